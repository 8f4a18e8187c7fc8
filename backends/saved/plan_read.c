// SPDX-License-Identifier: Apache-2.0
// Reads the file of a plan (plan_layout.h). The file is read, not mapped, because reading a mapping
// of a file that was truncated raises SIGBUS. Constants and packed weights are read into their
// final place and are checked there, so no byte is copied twice. Every size that the description
// names is compared with the size of the file before memory is allocated for it.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/pages.h"
#include "backends/saved/plan_data.h"
#include "backends/saved/plan_layout.h"
#include "backends/saved/saved_graph.h"
#include "backends/storage/file.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

struct plan_reader {
    int fd;
    const char *name;
    uint64_t size_bytes; // of the file
    struct inf_plan_header header;
    uint8_t *description;
    struct inf_saved_rest rest;   // of the description
    struct inf_graph *outer;      // without nodes; its pool has the strings of constants
    uint64_t offset;              // of the data that is described next
    struct inf_saved_blobs blobs; // owned references
    struct inf_plan_block *blocks;
    size_t block_count;
    struct inf_saved_plan *plan;
    struct inf_error *err;
};

static enum inf_code fail_plan(const struct plan_reader *reader, const char *what)
{
    return inf_fail(reader->err, INF_INVALID, "plan '%s': %s", reader->name, what);
}

static enum inf_code fail_memory(const struct plan_reader *reader)
{
    return inf_fail_reason(reader->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a plan");
}

// --- the header and the bytes of the description ---

static enum inf_code check_owner(const struct plan_reader *reader)
{
    struct stat status;
    if (fstat(reader->fd, &status) != 0 || (status.st_uid != geteuid() && status.st_uid != 0) ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return inf_fail(reader->err, INF_DENIED,
                        "plan '%s': wanted a file of root or the daemon's user that others cannot "
                        "write",
                        reader->name);
    return INF_OK;
}

static enum inf_code read_header(struct plan_reader *reader, const struct inf_plan_id *id)
{
    struct inf_plan_header *header = &reader->header, wanted;
    if (reader->size_bytes < sizeof *header)
        return fail_plan(reader, "it is too short");
    INF_TRY(inf_file_read(reader->fd, reader->name, 0, header, sizeof *header, reader->err));
    if (memcmp(header->magic, INF_PLAN_MAGIC, sizeof header->magic) != 0)
        return fail_plan(reader, "its header is damaged");
    inf_plan_header_init(&wanted, id);
    if (header->version != INF_PLAN_VERSION)
        return fail_plan(reader, "it was made by another version");
    if (header->header_sum != inf_plan_header_sum(header))
        return fail_plan(reader, "its header is damaged");
    if (memcmp(header->build, wanted.build, sizeof wanted.build) != 0)
        return fail_plan(reader, "it was made by another version");
    reader->plan->key = header->key;
    if (id->key != 0 && header->key != id->key)
        return fail_plan(reader, "it is of another model");
    if (header->file_bytes != reader->size_bytes ||
        header->description_bytes > INF_PLAN_DESCRIPTION_MAX ||
        header->description_bytes > reader->size_bytes - sizeof *header)
        return fail_plan(reader, "its size is not that in its header");
    return INF_OK;
}

static enum inf_code read_description(struct plan_reader *reader)
{
    size_t size = (size_t)reader->header.description_bytes;
    reader->description = malloc(size + 1);
    if (reader->description == NULL)
        return fail_memory(reader);
    INF_TRY(inf_file_read(reader->fd, reader->name, sizeof reader->header, reader->description,
                          size, reader->err));
    if (inf_checksum(reader->description, size) != reader->header.description_sum)
        return fail_plan(reader, "its description is damaged");
    reader->rest = (struct inf_saved_rest){reader->description, size};
    reader->offset = inf_plan_align(sizeof reader->header + size);
    return INF_OK;
}

static enum inf_code take_bytes(struct plan_reader *reader, void *data, size_t size)
{
    return inf_saved_take(&reader->rest, data, size)
               ? INF_OK
               : fail_plan(reader, "its description is too short");
}

static enum inf_code take_facts(struct plan_reader *reader)
{
    struct inf_plan_facts *facts = &reader->plan->facts;
    INF_TRY(take_bytes(reader, facts->format, sizeof facts->format));
    INF_TRY(take_bytes(reader, &facts->content_hash, sizeof facts->content_hash));
    INF_TRY(take_bytes(reader, facts->notes, sizeof facts->notes));
    return memchr(facts->format, 0, sizeof facts->format) != NULL
               ? INF_OK
               : fail_plan(reader, "the name of its format has no end");
}

// Cuts `size` bytes off the end of the description.
static enum inf_code take_tail(struct plan_reader *reader, uint64_t size, const uint8_t **out_bytes)
{
    if (size > reader->rest.left)
        return fail_plan(reader, "its description is too short");
    reader->rest.left -= (size_t)size;
    *out_bytes = reader->rest.at + reader->rest.left;
    return INF_OK;
}

// Takes the strings of constants, and what the load added.
static enum inf_code take_tails(struct plan_reader *reader)
{
    struct inf_saved_plan *plan = reader->plan;
    size_t size = (size_t)reader->header.extra_bytes;
    const uint8_t *bytes = NULL;
    if (reader->header.extra_bytes > INF_PLAN_EXTRA_BYTES_MAX)
        return fail_plan(reader, "it has too many bytes of the load");
    INF_TRY(take_tail(reader, size, &bytes));
    if (size > 0) {
        plan->extra = malloc(size);
        if (plan->extra == NULL)
            return fail_memory(reader);
        memcpy(plan->extra, bytes, size);
        plan->extra_bytes = size;
    }
    size = (size_t)reader->header.string_bytes;
    INF_TRY(take_tail(reader, reader->header.string_bytes, &bytes));
    INF_TRY(inf_graph_create(&reader->outer, reader->err));
    struct inf_string_pool *strings = inf_shared_strings_pool(reader->outer->strings);
    uint64_t ignored;
    return inf_string_pool_add(strings, (struct inf_span){.data = bytes, .size = size}, &ignored,
                               reader->err);
}

// --- constants and forms ---

// Notes that the next `size` bytes of data are to be read to `memory`.
static void add_block(struct plan_reader *reader, void *memory, size_t size, uint64_t sum)
{
    reader->blocks[reader->block_count++] = (struct inf_plan_block){
        .memory = memory, .size_bytes = size, .offset = reader->offset, .sum = sum};
    reader->offset = inf_plan_align(reader->offset + size);
}

// Returns true if the file has `size` more bytes of data.
static bool has_data(const struct plan_reader *reader, uint64_t size)
{
    return reader->offset <= reader->size_bytes && size <= reader->size_bytes - reader->offset;
}

static enum inf_code take_blob(struct plan_reader *reader)
{
    struct inf_plan_saved_blob saved;
    INF_TRY(take_bytes(reader, &saved, sizeof saved));
    if (saved.evicted > 1 || (saved.evicted == 0 && !has_data(reader, saved.size_bytes)) ||
        saved.size_bytes > INF_LIMIT_TENSOR_BYTES)
        return fail_plan(reader, "a constant is outside of it");
    if (saved.evicted == 1 && saved.size_bytes < INF_BLOB_EVICTED_BYTES_MIN)
        return fail_plan(reader, "a small constant has no bytes");
    struct inf_blob *blob = saved.evicted ? inf_blob_create_evicted((size_t)saved.size_bytes)
                                          : inf_blob_create_unset((size_t)saved.size_bytes);
    if (blob == NULL)
        return fail_memory(reader);
    reader->blobs.items[reader->blobs.count++] = blob;
    if (!saved.evicted)
        add_block(reader, blob->data, blob->size_bytes, saved.sum);
    return INF_OK;
}

static enum inf_code take_form(struct plan_reader *reader)
{
    struct inf_plan_saved_form saved;
    struct inf_plan_form *form = &reader->plan->forms[reader->plan->form_count];
    INF_TRY(take_bytes(reader, &saved, sizeof saved));
    if (saved.blob >= reader->blobs.count || memchr(saved.device, 0, sizeof saved.device) == NULL)
        return fail_plan(reader, "a form is of no constant or of no device");
    *form = (struct inf_plan_form){.blob = inf_blob_ref(reader->blobs.items[saved.blob])};
    reader->plan->form_count++;
    memcpy(form->record.device, saved.device, sizeof saved.device);
    memcpy(form->record.description, saved.description, sizeof saved.description);
    for (size_t k = 0; k < INF_FORM_PARTS; k++) {
        size_t size = (size_t)saved.part_bytes[k];
        if (!has_data(reader, saved.part_bytes[k]))
            return fail_plan(reader, "packed weights are outside of it");
        form->record.part_bytes[k] = size;
        add_block(reader, NULL, size, saved.part_sums[k]);
    }
    return INF_OK;
}

// Gives the parts of all forms their places in one block of memory. Their order and alignment are
// those of the file, from `begin` on. `block` is the first block of a part.
static enum inf_code place_forms(struct plan_reader *reader, uint64_t begin,
                                 struct inf_plan_block *block)
{
    struct inf_saved_plan *plan = reader->plan;
    if (plan->form_count == 0)
        return INF_OK;
    struct inf_shared_pages *pages = inf_shared_pages_create((size_t)(reader->size_bytes - begin));
    if (pages == NULL)
        return fail_memory(reader);
    for (uint32_t i = 0; i < plan->form_count; i++) {
        struct inf_form_record *record = &plan->forms[i].record;
        record->pages = inf_shared_pages_ref(pages);
        for (size_t k = 0; k < INF_FORM_PARTS; k++, block++) {
            if (record->part_bytes[k] > 0)
                record->parts[k] = (uint8_t *)pages->memory + (block->offset - begin);
            block->memory = record->parts[k];
        }
    }
    inf_shared_pages_unref(&pages);
    return INF_OK;
}

// Takes the descriptions of all constants and forms, and reads their bytes.
static enum inf_code read_data(struct plan_reader *reader)
{
    size_t blobs = reader->header.blob_count, forms = reader->header.form_count;
    if (blobs > reader->rest.left / sizeof(struct inf_plan_saved_blob) ||
        forms > reader->rest.left / sizeof(struct inf_plan_saved_form))
        return fail_plan(reader, "its description is too short");
    reader->blobs.items = calloc(blobs + 1, sizeof(struct inf_blob *));
    reader->plan->forms = calloc(forms + 1, sizeof *reader->plan->forms);
    reader->blocks = calloc(blobs + INF_FORM_PARTS * forms + 1, sizeof *reader->blocks);
    if (reader->blobs.items == NULL || reader->plan->forms == NULL || reader->blocks == NULL)
        return fail_memory(reader);
    for (size_t i = 0; i < blobs; i++)
        INF_TRY(take_blob(reader));
    uint64_t begin = reader->offset;
    struct inf_plan_block *first_part = &reader->blocks[reader->block_count];
    for (size_t i = 0; i < forms; i++)
        INF_TRY(take_form(reader));
    if (reader->offset != reader->size_bytes)
        return fail_plan(reader, "bytes follow its data");
    INF_TRY(place_forms(reader, begin, first_part));
    return inf_plan_data_read(reader->fd, reader->name, reader->blocks, reader->block_count,
                              reader->err);
}

// --- graphs ---

// Constants of booleans have bytes 0 and 1 only; other parts rely on that.
static bool is_sound_boolean(const struct inf_blob *blob)
{
    for (size_t k = 0; k < blob->size_bytes; k++)
        if (((const uint8_t *)blob->data)[k] > 1)
            return false;
    return true;
}

// Constants of strings refer to strings of constants only, not to those of a run.
static bool are_sound_strings(const struct inf_graph *graph, const struct inf_blob *blob)
{
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(graph->strings)};
    struct inf_span string;
    const uint64_t *handles = blob->data;
    for (size_t k = 0; k < blob->size_bytes / sizeof *handles; k++)
        if (inf_strings_get(&strings, handles[k], &string, NULL) != INF_OK)
            return false;
    return true;
}

static bool constants_are_sound(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        if (value->data == NULL)
            continue;
        if ((value->dtype == INF_DTYPE_BOOL && !is_sound_boolean(value->data)) ||
            (value->dtype == INF_DTYPE_BYTES && !are_sound_strings(graph, value->data)))
            return false;
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (!constants_are_sound(graph->subgraphs[i]))
            return false;
    return true;
}

static enum inf_code take_graph(struct plan_reader *reader, uint64_t size,
                                struct inf_graph **out_graph)
{
    const uint8_t *bytes = reader->rest.at;
    if (size > reader->rest.left)
        return fail_plan(reader, "a graph is outside of it");
    reader->rest.at += size;
    reader->rest.left -= (size_t)size;
    INF_TRY(inf_saved_graph_decode(out_graph, bytes, (size_t)size, &reader->blobs, reader->outer,
                                   reader->err));
    return constants_are_sound(*out_graph)
               ? INF_OK
               : fail_plan(reader, "a constant has an element that its type does not have");
}

static enum inf_code take_graphs(struct plan_reader *reader)
{
    struct inf_saved_plan *plan = reader->plan;
    uint32_t count = reader->header.class_count;
    uint64_t sizes[INF_PLAN_CLASSES_MAX + 1];
    if (count > INF_PLAN_CLASSES_MAX)
        return fail_plan(reader, "it has too many graphs");
    plan->classes = calloc((size_t)count + 1, sizeof *plan->classes);
    if (plan->classes == NULL)
        return fail_memory(reader);
    for (; plan->class_count < count; plan->class_count++) {
        struct inf_plan_saved_class saved;
        struct inf_plan_class *class = &plan->classes[plan->class_count];
        INF_TRY(take_bytes(reader, &saved, sizeof saved));
        if (memchr(saved.device, 0, sizeof saved.device) == NULL)
            return fail_plan(reader, "a graph is of no device");
        memcpy(class->device, saved.device, sizeof saved.device);
        class->precision = saved.precision;
        class->threads = saved.threads;
    }
    INF_TRY(take_bytes(reader, sizes, ((size_t)count + 1) * sizeof sizes[0]));
    INF_TRY(take_graph(reader, sizes[0], &plan->graph));
    for (uint32_t i = 0; i < count; i++)
        INF_TRY(take_graph(reader, sizes[1 + i], &plan->classes[i].graph));
    return reader->rest.left == 0 ? INF_OK : fail_plan(reader, "bytes follow its graphs");
}

// The parts of the description are taken in their order (plan_layout.h). What they describe is read
// between them, so that graphs find their constants.
static enum inf_code read_plan(struct plan_reader *reader, const struct inf_plan_id *id)
{
    INF_TRY(check_owner(reader));
    INF_TRY(read_header(reader, id));
    INF_TRY(read_description(reader));
    INF_TRY(take_tails(reader));
    INF_TRY(take_facts(reader));
    INF_TRY(read_data(reader));
    return take_graphs(reader);
}

enum inf_code inf_plan_file_read(struct inf_saved_plan *plan, int directory_fd, const char *name,
                                 const struct inf_plan_id *id, struct inf_error *err)
{
    struct plan_reader reader = {.name = name, .plan = plan, .err = err};
    *plan = (struct inf_saved_plan){.graph = NULL};
    inf_role_check_may_block();
    INF_TRY(inf_file_open_beneath(&reader.fd, &reader.size_bytes, directory_fd, name, err));
    enum inf_code code = read_plan(&reader, id);
    for (uint32_t i = 0; i < reader.blobs.count; i++)
        inf_blob_unref(&reader.blobs.items[i]);
    inf_graph_destroy(&reader.outer);
    free(reader.blobs.items);
    free(reader.blocks);
    free(reader.description);
    close(reader.fd);
    if (code != INF_OK)
        inf_saved_plan_fini(plan);
    return code;
}

void inf_saved_plan_fini(struct inf_saved_plan *plan)
{
    for (uint32_t i = 0; i < plan->class_count; i++)
        inf_graph_destroy(&plan->classes[i].graph);
    inf_graph_destroy(&plan->graph);
    for (uint32_t i = 0; i < plan->form_count; i++) {
        inf_shared_pages_unref(&plan->forms[i].record.pages);
        inf_blob_unref(&plan->forms[i].blob);
    }
    free(plan->classes);
    free(plan->forms);
    free(plan->extra);
    *plan = (struct inf_saved_plan){.graph = NULL};
}
