// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/served_shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/storage/record_file.h"
#include "proto/core/span.h"

#define FILE_BYTES_MAX ((uint64_t)1 << 20)

// The sets of one model.
struct record {
    uint64_t content_hash;
    char text[INF_SERVED_SHAPES_TEXT];
};

struct inf_served_shapes {
    struct inf_record_file file;
    uint32_t count;
    uint32_t next; // the oldest, once all places are taken
    struct record records[INF_SERVED_SHAPES_MODELS];
};

// --- what one model serves ---

// Writes a set; false where it does not fit.
static bool print_set(char text[INF_SERVED_SHAPES_SET_TEXT], const struct inf_shape *shapes,
                      uint32_t count)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && used < INF_SERVED_SHAPES_SET_TEXT; i++) {
        used += (size_t)snprintf(text + used, INF_SERVED_SHAPES_SET_TEXT - used, "%s%s",
                                 i > 0 ? "," : "", shapes[i].rank == 0 ? "scalar" : "");
        for (int32_t d = 0; d < shapes[i].rank && used < INF_SERVED_SHAPES_SET_TEXT; d++)
            used += (size_t)snprintf(text + used, INF_SERVED_SHAPES_SET_TEXT - used, "%s%" PRId64,
                                     d > 0 ? "x" : "", shapes[i].dims[d]);
    }
    return count > 0 && used < INF_SERVED_SHAPES_SET_TEXT;
}

// Brings a set to the front, in the place of the last one where it is new; true where it is.
static bool bring_forward(struct inf_served_shape_set *seen, const char *set)
{
    uint32_t at = 0;
    while (at < seen->count && strcmp(seen->sets[at], set) != 0)
        at++;
    bool is_new = at == seen->count;
    if (is_new && seen->count < INF_SERVED_SHAPES_SETS)
        seen->count++;
    at = INF_MIN(at, seen->count - 1);
    memmove(seen->sets[1], seen->sets[0], at * sizeof seen->sets[0]);
    snprintf(seen->sets[0], sizeof seen->sets[0], "%s", set);
    return is_new;
}

bool inf_served_shapes_note(struct inf_served_shape_set *seen, uint64_t key,
                            const struct inf_shape *shapes, uint32_t count, uint64_t now_ns)
{
    char set[INF_SERVED_SHAPES_SET_TEXT];
    if (key == seen->last_key)
        return false;
    seen->last_key = key;
    if (print_set(set, shapes, count))
        seen->changed |= bring_forward(seen, set);
    bool write = seen->changed &&
                 (seen->written_ns == 0 || now_ns - seen->written_ns >= INF_SERVED_SHAPES_PAUSE_NS);
    if (write) {
        seen->changed = false;
        seen->written_ns = now_ns;
    }
    return write;
}

const char *inf_served_shapes_print(const struct inf_served_shape_set *seen,
                                    char text[INF_SERVED_SHAPES_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < seen->count; i++)
        used += (size_t)snprintf(text + used, INF_SERVED_SHAPES_TEXT - used, "%s%s",
                                 i > 0 ? ";" : "", seen->sets[i]);
    return text;
}

void inf_served_shapes_take(struct inf_served_shape_set *seen, const char *text)
{
    for (seen->count = 0; seen->count < INF_SERVED_SHAPES_SETS && *text != '\0';) {
        size_t length = strcspn(text, ";");
        if (length > 0 && length < INF_SERVED_SHAPES_SET_TEXT)
            snprintf(seen->sets[seen->count++], INF_SERVED_SHAPES_SET_TEXT, "%.*s", (int)length,
                     text);
        text += length + (text[length] == ';');
    }
}

// --- records ---

static const struct record *find(const struct inf_served_shapes *seen, uint64_t content_hash)
{
    for (uint32_t i = 0; i < seen->count; i++)
        if (seen->records[i].content_hash == content_hash)
            return &seen->records[i];
    return NULL;
}

// Keeps the sets of a model, in the place of the oldest where it is new, and returns its index.
static uint32_t keep(struct inf_served_shapes *seen, uint64_t content_hash, const char *text)
{
    const struct record *known = find(seen, content_hash);
    uint32_t index = seen->next;
    if (known != NULL) {
        index = (uint32_t)(known - seen->records);
    } else if (seen->count < INF_SERVED_SHAPES_MODELS) {
        index = seen->count++;
    } else {
        seen->next = (seen->next + 1) % INF_SERVED_SHAPES_MODELS;
    }
    seen->records[index].content_hash = content_hash;
    snprintf(seen->records[index].text, sizeof seen->records[index].text, "%s", text);
    return index;
}

// HASH SETS
static bool take_line(void *context, const char *line)
{
    uint64_t content_hash;
    int length = -1;
    if (sscanf(line, "%16" SCNx64 " %n", &content_hash, &length) != 1 || length < 0)
        return false;
    const char *text = line + length;
    if (*text == '\0' || strlen(text) >= INF_SERVED_SHAPES_TEXT ||
        strspn(text, "0123456789x,;scalr") != strlen(text))
        return false;
    keep(context, content_hash, text);
    return true;
}

static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_served_shapes *seen = context;
    const struct record *record = &seen->records[index];
    return (size_t)snprintf(line, capacity, "%016" PRIx64 " %s", record->content_hash,
                            record->text);
}

enum inf_code inf_served_shapes_open(struct inf_served_shapes **out_seen, const char *directory,
                                     const struct inf_log *log, struct inf_error *err)
{
    struct inf_served_shapes *seen = calloc(1, sizeof *seen);
    if (seen == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the memory of shapes");
    seen->file = (struct inf_record_file){.name = "shapes.db",
                                          .header = "inferd-shapes 1\n",
                                          .what = "memory of shapes",
                                          .bytes_max = FILE_BYTES_MAX,
                                          .log = log,
                                          .context = seen,
                                          .take = take_line,
                                          .write = write_line};
    inf_record_file_open(&seen->file, directory);
    *out_seen = seen;
    return INF_OK;
}

void inf_served_shapes_close(struct inf_served_shapes **pointer)
{
    struct inf_served_shapes *seen = *pointer;
    *pointer = NULL;
    if (seen == NULL)
        return;
    inf_record_file_close(&seen->file);
    free(seen);
}

const char *inf_served_shapes_find(const struct inf_served_shapes *seen, uint64_t content_hash)
{
    const struct record *record = find(seen, content_hash);
    return record != NULL ? record->text : "";
}

void inf_served_shapes_keep(struct inf_served_shapes *seen, uint64_t content_hash, const char *text)
{
    if (strcmp(inf_served_shapes_find(seen, content_hash), text) == 0)
        return;
    uint32_t index = keep(seen, content_hash, text);
    inf_record_file_append(&seen->file, index, seen->count);
}
