// SPDX-License-Identifier: Apache-2.0
// Writes the file of a plan (plan_layout.h). The file is not synced to the disk: if a crash leaves
// only a part of it, the checksums do not match, and the next load does without the plan.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/saved/plan_data.h"
#include "backends/saved/plan_layout.h"
#include "backends/saved/saved_graph.h"
#include "backends/storage/checksum.h"
#include "proto/core/span.h"

// A plan on its way into its file.
struct plan_writer {
    const struct inf_saved_plan *plan;
    struct inf_saved_blobs blobs; // the distinct constants of all graphs
    bool *replaced;               // by number of the constant: a form replaces its bytes
    // The forms that are written: those of constants of the graphs.
    const struct inf_plan_form **forms;
    uint32_t form_count;
    struct inf_saved_bytes description;
    struct inf_plan_header header;
    struct inf_error *err;
};

static enum inf_code fail_memory(const struct plan_writer *writer)
{
    return inf_fail_reason(writer->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a plan");
}

// --- the description ---

static enum inf_code list_blobs(struct plan_writer *writer)
{
    const struct inf_saved_plan *plan = writer->plan;
    const struct inf_graph **graphs = calloc((size_t)plan->class_count + 1, sizeof *graphs);
    if (graphs == NULL)
        return fail_memory(writer);
    graphs[0] = plan->graph;
    for (uint32_t i = 0; i < plan->class_count; i++)
        graphs[1 + i] = plan->classes[i].graph;
    enum inf_code code =
        inf_saved_blobs_list(&writer->blobs, graphs, (size_t)plan->class_count + 1, writer->err);
    free(graphs);
    INF_TRY(code);
    writer->replaced = calloc((size_t)writer->blobs.count + 1, sizeof *writer->replaced);
    writer->forms = calloc((size_t)plan->form_count + 1, sizeof *writer->forms);
    return writer->replaced != NULL && writer->forms != NULL ? INF_OK : fail_memory(writer);
}

// Lists the forms that are written, and notes which constants they replace.
static void list_forms(struct plan_writer *writer)
{
    for (uint32_t i = 0; i < writer->plan->form_count; i++) {
        const struct inf_plan_form *form = &writer->plan->forms[i];
        uint32_t number = inf_saved_blobs_find(&writer->blobs, form->blob);
        if (number == UINT32_MAX)
            continue;
        writer->forms[writer->form_count++] = form;
        writer->replaced[number] |= form->replaces;
    }
}

static enum inf_code append_blobs(struct plan_writer *writer, uint64_t *data_bytes)
{
    for (uint32_t i = 0; i < writer->blobs.count; i++) {
        const struct inf_blob *blob = writer->blobs.items[i];
        struct inf_plan_saved_blob saved = {.size_bytes = blob->size_bytes,
                                            .evicted = writer->replaced[i]};
        if (!writer->replaced[i]) {
            if (blob->data == NULL)
                return inf_fail(writer->err, INF_INVALID, "a constant has no bytes");
            saved.sum = inf_checksum_pieces(blob->data, blob->size_bytes);
            *data_bytes += inf_plan_align(blob->size_bytes);
        }
        inf_saved_append(&writer->description, &saved, sizeof saved);
    }
    return INF_OK;
}

static void append_forms(struct plan_writer *writer, uint64_t *data_bytes)
{
    for (uint32_t i = 0; i < writer->form_count; i++) {
        const struct inf_plan_form *form = writer->forms[i];
        const struct inf_form_record *record = &form->record;
        struct inf_plan_saved_form saved = {.blob =
                                                inf_saved_blobs_find(&writer->blobs, form->blob)};
        for (size_t k = 0; k < INF_FORM_PARTS; k++) {
            saved.part_bytes[k] = record->part_bytes[k];
            saved.part_sums[k] = inf_checksum_pieces(record->parts[k], record->part_bytes[k]);
            *data_bytes += inf_plan_align(record->part_bytes[k]);
        }
        memcpy(saved.device, record->device, sizeof saved.device);
        memcpy(saved.description, record->description, sizeof saved.description);
        inf_saved_append(&writer->description, &saved, sizeof saved);
    }
}

static void append_classes(struct plan_writer *writer)
{
    for (uint32_t i = 0; i < writer->plan->class_count; i++) {
        const struct inf_plan_class *class = &writer->plan->classes[i];
        struct inf_plan_saved_class saved = {.precision = class->precision,
                                             .threads = class->threads};
        memcpy(saved.device, class->device, sizeof saved.device);
        inf_saved_append(&writer->description, &saved, sizeof saved);
    }
}

// Appends the sizes of the graphs, and then the graphs.
static void append_graphs(struct plan_writer *writer)
{
    const struct inf_saved_plan *plan = writer->plan;
    struct inf_saved_bytes graphs = {0};
    for (uint32_t i = 0; i <= plan->class_count; i++) {
        uint64_t before = graphs.size;
        inf_saved_graph_encode(&graphs, i == 0 ? plan->graph : plan->classes[i - 1].graph,
                               &writer->blobs);
        uint64_t size = graphs.size - before;
        inf_saved_append(&writer->description, &size, sizeof size);
    }
    inf_saved_append(&writer->description, graphs.data, graphs.size);
    writer->description.failed |= graphs.failed;
    free(graphs.data);
}

// Makes the description, and completes the header.
static enum inf_code describe_plan(struct plan_writer *writer)
{
    const struct inf_plan_facts *facts = &writer->plan->facts;
    struct inf_saved_bytes *bytes = &writer->description;
    struct inf_plan_header *header = &writer->header;
    // All graphs of a plan are copies of one graph, so they share its strings.
    const struct inf_string_pool *strings = inf_shared_strings_pool(writer->plan->graph->strings);
    uint64_t data_bytes = 0;
    if (writer->plan->extra_bytes > INF_PLAN_EXTRA_BYTES_MAX)
        return inf_fail(writer->err, INF_EXHAUSTED, "the description of the model is too large");
    inf_saved_append(bytes, facts->format, sizeof facts->format);
    inf_saved_append(bytes, &facts->content_hash, sizeof facts->content_hash);
    inf_saved_append(bytes, facts->notes, sizeof facts->notes);
    INF_TRY(append_blobs(writer, &data_bytes));
    append_forms(writer, &data_bytes);
    append_classes(writer);
    append_graphs(writer);
    inf_saved_append(bytes, strings->bytes, strings->size_bytes);
    inf_saved_append(bytes, writer->plan->extra, writer->plan->extra_bytes);
    if (bytes->failed)
        return fail_memory(writer);
    header->blob_count = writer->blobs.count;
    header->form_count = writer->form_count;
    header->class_count = writer->plan->class_count;
    header->string_bytes = strings->size_bytes;
    header->extra_bytes = writer->plan->extra_bytes;
    header->description_bytes = bytes->size;
    header->description_sum = inf_checksum(bytes->data, bytes->size);
    header->file_bytes = inf_plan_align(sizeof *header + bytes->size) + data_bytes;
    header->header_sum = inf_plan_header_sum(header);
    return INF_OK;
}

// --- the file ---

static bool write_at(int fd, const void *data, size_t size, uint64_t offset)
{
    const char *at = data;
    while (size > 0) {
        ssize_t written = pwrite(fd, at, size, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_parts(int fd, const struct plan_writer *writer)
{
    const struct inf_saved_bytes *bytes = &writer->description;
    uint64_t offset = inf_plan_align(sizeof writer->header + bytes->size);
    if (!write_at(fd, &writer->header, sizeof writer->header, 0) ||
        !write_at(fd, bytes->data, bytes->size, sizeof writer->header))
        return false;
    for (uint32_t i = 0; i < writer->blobs.count; i++) {
        const struct inf_blob *blob = writer->blobs.items[i];
        if (writer->replaced[i])
            continue;
        if (!write_at(fd, blob->data, blob->size_bytes, offset))
            return false;
        offset = inf_plan_align(offset + blob->size_bytes);
    }
    for (uint32_t i = 0; i < writer->form_count; i++) {
        const struct inf_form_record *record = &writer->forms[i]->record;
        for (size_t k = 0; k < INF_FORM_PARTS; k++) {
            if (!write_at(fd, record->parts[k], record->part_bytes[k], offset))
                return false;
            offset = inf_plan_align(offset + record->part_bytes[k]);
        }
    }
    return ftruncate(fd, (off_t)writer->header.file_bytes) == 0;
}

static enum inf_code write_file(int directory_fd, const char *name, mode_t mode,
                                const struct plan_writer *writer)
{
    char temporary[96];
    snprintf(temporary, sizeof temporary, "%.80s.new", name);
    (void)unlinkat(directory_fd, temporary, 0);
    int fd =
        openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_parts(fd, writer) && fchmod(fd, mode) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (ok && renameat(directory_fd, temporary, directory_fd, name) == 0)
        return INF_OK;
    error = ok ? errno : error;
    (void)unlinkat(directory_fd, temporary, 0);
    return inf_fail(writer->err, INF_UNAVAILABLE, "plan '%s': not written: %s", name,
                    strerror(error));
}

enum inf_code inf_plan_file_write(int directory_fd, const char *name, mode_t mode,
                                  const struct inf_plan_id *id, const struct inf_saved_plan *plan,
                                  struct inf_error *err)
{
    struct plan_writer writer = {.plan = plan, .err = err};
    inf_role_check_may_block();
    inf_plan_header_init(&writer.header, id);
    enum inf_code code = list_blobs(&writer);
    if (code == INF_OK) {
        list_forms(&writer);
        code = describe_plan(&writer);
    }
    if (code == INF_OK)
        code = write_file(directory_fd, name, mode, &writer);
    free(writer.description.data);
    free(writer.blobs.items);
    free(writer.replaced);
    free(writer.forms);
    return code;
}
