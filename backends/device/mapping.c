// SPDX-License-Identifier: Apache-2.0
// Imports a region of host memory into each device once, when the device first uses it, and keeps
// the import until the mapping is destroyed. If a device cannot import the region, the import is
// not tried again.
#include "backends/device/mapping.h"

#include <stdlib.h>

#include "backends/base/thread.h"
#include "backends/device/backend.h"

// The import of the mapping into one device.
struct import {
    struct import *next;
    struct inf_device *device; // a counted reference
    struct inf_buffer *buffer; // NULL: the device cannot import the mapping
};

struct inf_mapping {
    void *host;
    size_t size_bytes;
    struct inf_mutex mutex; // guards the list; entries stay until the mapping is destroyed
    struct import *imports;
};

enum inf_code inf_mapping_create(struct inf_mapping **out_mapping, void *host, size_t size_bytes,
                                 struct inf_error *err)
{
    struct inf_mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to map %zu bytes", size_bytes);
    mapping->host = host;
    mapping->size_bytes = size_bytes;
    inf_mutex_init(&mapping->mutex);
    *out_mapping = mapping;
    return INF_OK;
}

static bool is_of(const struct import *import, const struct inf_device *device)
{
    return import->device == device && (import->buffer == NULL || !inf_buffer_lost(import->buffer));
}

// Imports the mapping into the device and adds it to the list; NULL if there is no memory.
static struct import *add_import(struct inf_mapping *mapping, struct inf_device *device)
    INF_ATTR(requires_capability(mapping->mutex))
{
    struct import *import = calloc(1, sizeof *import);
    if (import == NULL)
        return NULL;
    import->device = inf_device_ref(device);
    if (inf_buffer_import(&import->buffer, device, mapping->host, mapping->size_bytes, NULL) !=
        INF_OK)
        import->buffer = NULL; // so that the import is not tried again
    import->next = mapping->imports;
    mapping->imports = import;
    return import;
}

// Returns the imported mapping; NULL if the device cannot import it.
static struct inf_buffer *find_buffer(struct inf_mapping *mapping, struct inf_device *device)
{
    inf_mutex_lock(&mapping->mutex);
    struct import *import = mapping->imports;
    while (import != NULL && !is_of(import, device))
        import = import->next;
    if (import == NULL)
        import = add_import(mapping, device);
    inf_mutex_unlock(&mapping->mutex);
    return import != NULL ? import->buffer : NULL;
}

bool inf_mapping_bind(struct inf_mapping *mapping, struct inf_device *device, const void *memory,
                      size_t size_bytes, struct inf_binding *binding)
{
    uintptr_t begin = (uintptr_t)mapping->host, at = (uintptr_t)memory;
    if (at < begin || at - begin > mapping->size_bytes ||
        size_bytes > mapping->size_bytes - (at - begin) ||
        (at - begin) % device->info.alignment != 0)
        return false;
    struct inf_buffer *buffer = find_buffer(mapping, device);
    if (buffer == NULL)
        return false;
    *binding = (struct inf_binding){.host = (unsigned char *)mapping->host + (at - begin),
                                    .buffer = buffer,
                                    .offset = at - begin};
    return true;
}

void inf_mapping_destroy(struct inf_mapping **pointer)
{
    struct inf_mapping *mapping = *pointer;
    *pointer = NULL;
    if (mapping == NULL)
        return;
    while (mapping->imports != NULL) {
        struct import *import = mapping->imports;
        mapping->imports = import->next;
        inf_buffer_free(&import->buffer);
        inf_device_unref(&import->device);
        free(import);
    }
    inf_mutex_fini(&mapping->mutex);
    free(mapping);
}
