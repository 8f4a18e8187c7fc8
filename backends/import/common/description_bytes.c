// SPDX-License-Identifier: Apache-2.0
// Descriptions of models as bytes, in the byte order of the machine. A text is its length and its
// characters. Labels are one text whose parts end with NUL. One function walks through all members
// for both directions, so that the order of writing and of reading cannot differ.
#include "backends/import/common/description_bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/saved/saved_graph.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

// The most channels of one tensor with a normalisation of its own for each.
#define CHANNELS_MAX 65536u

// One pass over a description: writes to `bytes` if `writes` is set, otherwise reads from `rest`
// into `description`.
struct walk {
    bool writes;
    struct inf_saved_bytes bytes;
    struct inf_saved_rest rest;
    struct inf_model_description *description;
    struct inf_error *err;
};

static enum inf_code fail_invalid(const struct walk *walk, const char *what)
{
    return inf_fail(walk->err, INF_INVALID, "description of a model: %s", what);
}

static void *alloc_array(struct walk *walk, size_t count, size_t element_bytes)
{
    void *memory = inf_arena_alloc(&walk->description->arena, (count + 1) * element_bytes);
    if (memory == NULL)
        (void)inf_fail_reason(walk->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                              "no memory for the description of a model");
    return memory;
}

static enum inf_code walk_bytes(struct walk *walk, void *data, size_t size)
{
    if (walk->writes)
        inf_saved_append(&walk->bytes, data, size);
    else if (!inf_saved_take(&walk->rest, data, size))
        return fail_invalid(walk, "it ends too early");
    return INF_OK;
}

static enum inf_code walk_count(struct walk *walk, uint32_t *count, uint32_t most)
{
    INF_TRY(walk_bytes(walk, count, sizeof *count));
    // Each element has one byte at least, so a broken count does not allocate much.
    if (!walk->writes && (*count > most || *count > walk->rest.left))
        return fail_invalid(walk, "a count is too large");
    return INF_OK;
}

// Walks through `*size` characters; NULL is written as 0 of them, and none is read as NULL.
static enum inf_code walk_characters(struct walk *walk, const char **text, uint32_t *size)
{
    INF_TRY(walk_count(walk, size, UINT32_MAX));
    if (walk->writes) {
        inf_saved_append(&walk->bytes, *text, *size);
        return INF_OK;
    }
    char *copy = alloc_array(walk, *size, 1);
    if (copy == NULL)
        return INF_EXHAUSTED;
    *text = copy;
    return walk_bytes(walk, copy, *size);
}

static enum inf_code walk_text(struct walk *walk, const char **text)
{
    uint32_t size = walk->writes && *text != NULL ? (uint32_t)strlen(*text) : 0;
    INF_TRY(walk_characters(walk, text, &size));
    return walk->writes || strlen(*text) == size ? INF_OK : fail_invalid(walk, "a text has NUL");
}

// Returns the size of `count` texts that follow each other and end with NUL.
static uint32_t measure_labels(const char *labels, uint32_t count)
{
    const char *at = labels;
    for (uint32_t i = 0; i < count; i++)
        at += strlen(at) + 1;
    return (uint32_t)(at - labels);
}

static enum inf_code walk_labels(struct walk *walk, struct inf_described_tensor *tensor)
{
    uint32_t kind = tensor->label_kind;
    uint32_t size = walk->writes && tensor->labels != NULL
                        ? measure_labels(tensor->labels, tensor->label_count)
                        : 0;
    INF_TRY(walk_bytes(walk, &kind, sizeof kind));
    INF_TRY(walk_count(walk, &tensor->label_count, INF_DESCRIPTION_LABEL_BYTES));
    INF_TRY(walk_characters(walk, &tensor->labels, &size));
    if (walk->writes)
        return INF_OK;
    uint32_t ends = 0;
    for (uint32_t i = 0; i < size; i++)
        ends += tensor->labels[i] == '\0';
    if (kind > INF_LABELS_VALUES || ends != tensor->label_count ||
        (size > 0 && tensor->labels[size - 1] != '\0'))
        return fail_invalid(walk, "its labels are broken");
    tensor->label_kind = (enum inf_label_kind)kind;
    if (size == 0)
        tensor->labels = NULL;
    return INF_OK;
}

static enum inf_code walk_floats(struct walk *walk, const float **numbers, uint32_t count,
                                 bool divides)
{
    float *copy = NULL;
    if (walk->writes)
        return walk_bytes(walk, (void *)(uintptr_t)*numbers, count * sizeof **numbers);
    copy = alloc_array(walk, count, sizeof *copy);
    if (copy == NULL)
        return INF_EXHAUSTED;
    INF_TRY(walk_bytes(walk, copy, count * sizeof *copy));
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(copy[i]) || (divides && copy[i] == 0))
            return fail_invalid(walk, "its normalisation is broken");
    *numbers = copy;
    return INF_OK;
}

static enum inf_code walk_tensors(struct walk *walk, struct inf_described_tensor **tensors,
                                  uint32_t *count)
{
    INF_TRY(walk_count(walk, count, INF_LIMIT_TENSORS));
    if (!walk->writes)
        *tensors = alloc_array(walk, *count, sizeof **tensors);
    if (*tensors == NULL && *count > 0)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < *count; i++) {
        struct inf_described_tensor *tensor = &(*tensors)[i];
        INF_TRY(walk_text(walk, &tensor->title));
        INF_TRY(walk_text(walk, &tensor->text));
        INF_TRY(walk_text(walk, &tensor->labels_file));
        INF_TRY(walk_labels(walk, tensor));
        INF_TRY(walk_count(walk, &tensor->channel_count, CHANNELS_MAX));
        INF_TRY(walk_floats(walk, &tensor->mean, tensor->channel_count, false));
        INF_TRY(walk_floats(walk, &tensor->deviation, tensor->channel_count, true));
    }
    return INF_OK;
}

static enum inf_code walk_signatures(struct walk *walk)
{
    struct inf_model_description *description = walk->description;
    uint8_t named = description->default_signature != NULL;
    INF_TRY(walk_count(walk, &description->signature_count, INF_LIMIT_SUBGRAPHS));
    if (!walk->writes)
        description->signatures =
            alloc_array(walk, description->signature_count, sizeof *description->signatures);
    if (description->signatures == NULL && description->signature_count > 0)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < description->signature_count; i++)
        INF_TRY(walk_text(walk, &description->signatures[i]));
    INF_TRY(walk_bytes(walk, &named, sizeof named));
    if (named == 1)
        return walk_text(walk, &description->default_signature);
    return named == 0 ? INF_OK : fail_invalid(walk, "a truth value is neither true nor false");
}

static enum inf_code walk_files(struct walk *walk)
{
    struct inf_model_description *description = walk->description;
    INF_TRY(walk_count(walk, &description->file_count, INF_DESCRIPTION_FILES));
    if (!walk->writes)
        description->files = alloc_array(walk, description->file_count, sizeof *description->files);
    if (description->files == NULL && description->file_count > 0)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < description->file_count; i++) {
        INF_TRY(walk_text(walk, &description->files[i].name));
        INF_TRY(walk_bytes(walk, &description->files[i].size_bytes,
                           sizeof description->files[i].size_bytes));
    }
    return INF_OK;
}

static enum inf_code walk_description(struct walk *walk)
{
    struct inf_model_description *description = walk->description;
    const char **const texts[] = {&description->title, &description->text, &description->version,
                                  &description->author, &description->license};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++)
        INF_TRY(walk_text(walk, texts[i]));
    INF_TRY(walk_signatures(walk));
    INF_TRY(walk_tensors(walk, &description->inputs, &description->input_count));
    INF_TRY(walk_tensors(walk, &description->outputs, &description->output_count));
    INF_TRY(walk_files(walk));
    INF_TRY(walk_bytes(walk, description->problem, sizeof description->problem));
    if (description->problem[sizeof description->problem - 1] != '\0' ||
        (!walk->writes && walk->rest.left > 0))
        return fail_invalid(walk, "bytes follow it");
    return INF_OK;
}

void *inf_description_encode(const struct inf_model_description *description, size_t *out_size)
{
    // A pass that writes changes nothing.
    struct walk walk = {.writes = true,
                        .description = (struct inf_model_description *)(uintptr_t)description};
    if (walk_description(&walk) != INF_OK || walk.bytes.failed) {
        free(walk.bytes.data);
        return NULL;
    }
    *out_size = walk.bytes.size;
    return walk.bytes.data;
}

enum inf_code inf_description_decode(struct inf_model_description **out_description,
                                     const void *data, size_t size, struct inf_error *err)
{
    struct walk walk = {.rest = {.at = data, .left = size}, .err = err};
    INF_TRY(inf_model_description_create(&walk.description, err));
    enum inf_code code = walk_description(&walk);
    if (code != INF_OK) {
        inf_model_description_unref(&walk.description);
        return code;
    }
    *out_description = walk.description;
    return INF_OK;
}
