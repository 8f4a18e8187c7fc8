// SPDX-License-Identifier: Apache-2.0
// Remembers the shapes that models serve.
//
// The problem: a model with open dimensions is compiled for the shapes of its first request, which
// makes that request slow after every restart. The idea: remember the shapes that each model served
// last, and compile for them at load.
//
// Each served model has a short list of shape sets, most recently used first (struct
// inf_served_shape_set, used by the loop). If a new set appears, the loader thread writes the whole
// list to a record file, at most once per INF_SERVED_SHAPES_PAUSE_NS. Models are identified by the
// hash of their file, so a changed model starts without shapes.
#include "daemon/model/served_shapes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/storage/record_file.h"
#include "proto/core/span.h"

#define FILE_BYTES_MAX ((uint64_t)1 << 20)

// The saved shape sets of one model file.
struct record {
    uint64_t content_hash;
    char text[INF_SERVED_SHAPES_TEXT];
};

struct inf_served_shapes {
    struct inf_record_file file;
    struct inf_record_places places; // which of `records` are used
    struct record records[INF_SERVED_SHAPES_MODELS];
};

// --- shape sets of one model ---

// Writes a set of shapes as text: "1x128,1x128". Returns false if the buffer is too small.
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

// Moves a shape set to the front of served->sets, which is in order of last use. A new set replaces
// the last one if there is no room. Returns true if the set is new.
static bool move_to_front(struct inf_served_shape_set *served, const char *set)
{
    uint32_t at = 0;
    while (at < served->count && strcmp(served->sets[at], set) != 0)
        at++;
    bool is_new = at == served->count;
    if (is_new && served->count < INF_SERVED_SHAPES_SETS)
        served->count++;
    at = INF_MIN(at, served->count - 1);
    memmove(served->sets[1], served->sets[0], at * sizeof served->sets[0]);
    snprintf(served->sets[0], sizeof served->sets[0], "%s", set);
    return is_new;
}

bool inf_served_shapes_note(struct inf_served_shape_set *served, uint64_t key,
                            const struct inf_shape *shapes, uint32_t count, uint64_t now_ns)
{
    char set[INF_SERVED_SHAPES_SET_TEXT];
    if (key == served->last_key)
        return false;
    served->last_key = key;
    if (print_set(set, shapes, count))
        served->changed |= move_to_front(served, set);
    bool write = served->changed && (served->written_ns == 0 ||
                                     now_ns - served->written_ns >= INF_SERVED_SHAPES_PAUSE_NS);
    if (write) {
        served->changed = false;
        served->written_ns = now_ns;
    }
    return write;
}

const char *inf_served_shapes_print(const struct inf_served_shape_set *served,
                                    char text[INF_SERVED_SHAPES_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < served->count; i++)
        used += (size_t)snprintf(text + used, INF_SERVED_SHAPES_TEXT - used, "%s%s",
                                 i > 0 ? ";" : "", served->sets[i]);
    return text;
}

void inf_served_shapes_take(struct inf_served_shape_set *served, const char *text)
{
    for (served->count = 0; served->count < INF_SERVED_SHAPES_SETS && *text != '\0';) {
        size_t length = strcspn(text, ";");
        if (length > 0 && length < INF_SERVED_SHAPES_SET_TEXT)
            snprintf(served->sets[served->count++], INF_SERVED_SHAPES_SET_TEXT, "%.*s", (int)length,
                     text);
        text += length + (text[length] == ';');
    }
}

// --- saved records of all models ---

static const struct record *find_record(const struct inf_served_shapes *db, uint64_t content_hash)
{
    for (uint32_t i = 0; i < db->places.count; i++)
        if (db->records[i].content_hash == content_hash)
            return &db->records[i];
    return NULL;
}

// Stores the shape sets of a model. If all records are used, replaces the oldest one. Returns the
// index of the record.
static uint32_t store_record(struct inf_served_shapes *db, uint64_t content_hash, const char *text)
{
    const struct record *known = find_record(db, content_hash);
    uint32_t index = known != NULL ? (uint32_t)(known - db->records)
                                   : inf_record_place(&db->places, INF_SERVED_SHAPES_MODELS);
    db->records[index].content_hash = content_hash;
    snprintf(db->records[index].text, sizeof db->records[index].text, "%s", text);
    return index;
}

// Parses one line of the saved file, "HASH SETS", where HASH is that of the model file.
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
    store_record(context, content_hash, text);
    return true;
}

static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_served_shapes *db = context;
    const struct record *record = &db->records[index];
    return (size_t)snprintf(line, capacity, "%016" PRIx64 " %s", record->content_hash,
                            record->text);
}

enum inf_code inf_served_shapes_open(struct inf_served_shapes **out_db, const char *directory,
                                     const struct inf_log *log, struct inf_error *err)
{
    struct inf_served_shapes *db = calloc(1, sizeof *db);
    if (db == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the memory of shapes");
    db->file = (struct inf_record_file){.name = "shapes.db",
                                        .header = "inferd-shapes 1\n",
                                        .what = "memory of shapes",
                                        .bytes_max = FILE_BYTES_MAX,
                                        .log = log,
                                        .context = db,
                                        .take = take_line,
                                        .write = write_line};
    inf_record_file_open(&db->file, directory);
    *out_db = db;
    return INF_OK;
}

void inf_served_shapes_close(struct inf_served_shapes **pointer)
{
    struct inf_served_shapes *db = *pointer;
    *pointer = NULL;
    if (db == NULL)
        return;
    inf_record_file_close(&db->file);
    free(db);
}

const char *inf_served_shapes_find(const struct inf_served_shapes *db, uint64_t content_hash)
{
    const struct record *record = find_record(db, content_hash);
    return record != NULL ? record->text : "";
}

void inf_served_shapes_keep(struct inf_served_shapes *db, uint64_t content_hash, const char *text)
{
    if (strcmp(inf_served_shapes_find(db, content_hash), text) == 0)
        return;
    uint32_t index = store_record(db, content_hash, text);
    inf_record_file_append(&db->file, index, db->places.count);
}
