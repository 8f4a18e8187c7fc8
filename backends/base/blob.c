// SPDX-License-Identifier: Apache-2.0
// Reference-counted bytes. A blob may lose its bytes while another form of them exists (a packed
// weight), and get them back from that form. backends/exec/model/weight_residency.h decides which
// blobs lose their bytes.
#include "backends/base/blob.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/pages.h"
#include "backends/base/reference.h"
#include "proto/core/span.h"

#define ALIGNMENT 64

struct inf_blob *inf_blob_create(size_t size_bytes)
{
    struct inf_blob *blob = inf_blob_create_unset(size_bytes);
    if (blob != NULL)
        memset(blob->data, 0, size_bytes);
    return blob;
}

// Allocates `size_bytes` uninitialised bytes followed by zeroed slack; NULL if there is no memory.
static void *alloc_bytes(size_t size_bytes)
{
    size_t total;
    if (!inf_size_add(size_bytes, INF_BLOB_SLACK_BYTES + ALIGNMENT - 1, &total))
        return NULL;
    total &= ~(size_t)(ALIGNMENT - 1);
    unsigned char *data = inf_pages_alloc(ALIGNMENT, total);
    if (data != NULL)
        memset(data + size_bytes, 0, total - size_bytes);
    return data;
}

struct inf_blob *inf_blob_create_evicted(size_t size_bytes)
{
    struct inf_blob *blob = calloc(1, sizeof *blob);
    if (blob == NULL)
        return NULL;
    blob->size_bytes = size_bytes;
    atomic_init(&blob->references, 1);
    return blob;
}

struct inf_blob *inf_blob_create_unset(size_t size_bytes)
{
    struct inf_blob *blob = inf_blob_create_evicted(size_bytes);
    if (blob == NULL)
        return NULL;
    blob->data = alloc_bytes(size_bytes);
    if (blob->data == NULL) {
        free(blob);
        return NULL;
    }
    return blob;
}

void inf_blob_set_form(struct inf_blob *blob, struct inf_blob_form *form)
{
    assert(form->restore != NULL);
    if (blob->data == NULL && blob->form == NULL)
        blob->form = inf_blob_form_ref(form);
}

struct inf_blob *inf_blob_ref(struct inf_blob *blob)
{
    inf_reference_take(&blob->references);
    return blob;
}

void inf_blob_unref(struct inf_blob **blob)
{
    struct inf_blob *gone = *blob;
    *blob = NULL;
    if (gone == NULL || !inf_reference_drop(&gone->references))
        return;
    inf_blob_form_unref(&gone->form);
    free(gone->data);
    free(gone);
}

void inf_blob_evict(struct inf_blob *blob, struct inf_blob_form *form)
{
    if (blob->data == NULL)
        return;
    blob->form = inf_blob_form_ref(form);
    free(blob->data);
    blob->data = NULL;
}

bool inf_blob_restore(struct inf_blob *blob)
{
    if (blob->data != NULL)
        return true;
    void *data = alloc_bytes(blob->size_bytes);
    if (data == NULL)
        return false;
    blob->form->restore(blob->form, data);
    blob->data = data;
    inf_blob_form_unref(&blob->form);
    return true;
}

struct inf_blob_form *inf_blob_form_ref(struct inf_blob_form *form)
{
    inf_reference_take(&form->references);
    return form;
}

void inf_blob_form_unref(struct inf_blob_form **form)
{
    struct inf_blob_form *gone = *form;
    *form = NULL;
    if (gone != NULL && inf_reference_drop(&gone->references))
        gone->destroy(gone);
}
