// SPDX-License-Identifier: Apache-2.0
// Turns the contents of a plan's file into a model that is about to be compiled, and back. A plan
// is used whole or not at all: if a device does not adopt the packed weights that replace a
// constant, the model is read from its files.
#include "daemon/load/kept_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/common/description_bytes.h"
#include "backends/saved/saved_graph.h"
#include "daemon/load/source/read_files.h"
#include "proto/core/span.h"

static struct inf_device *find_device(const struct inf_device_list *devices, const char *name)
{
    for (uint32_t i = 0; i < devices->count; i++)
        if (strcmp(inf_device_info(devices->devices[i])->name, name) == 0)
            return devices->devices[i];
    return NULL;
}

// --- reading ---

// Lets a device adopt each form, and gives evicted constants the form that restores them.
static enum inf_code adopt_forms(struct inf_kept_plan *kept, const struct inf_device_list *devices,
                                 struct inf_error *err)
{
    struct inf_saved_plan *saved = &kept->saved;
    kept->forms = calloc((size_t)saved->form_count + 1, sizeof(struct inf_blob_form *));
    if (kept->forms == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for packed weights");
    for (uint32_t i = 0; i < saved->form_count; i++) {
        struct inf_plan_form *form = &saved->forms[i];
        struct inf_device *device = find_device(devices, form->record.device);
        if (device == NULL)
            return inf_fail(err, INF_UNSUPPORTED, "there is no device '%s'", form->record.device);
        INF_TRY(inf_device_adopt_form(device, form->blob, &form->record, &kept->forms[i], err));
        if (kept->forms[i]->restore != NULL)
            inf_blob_set_form(form->blob, kept->forms[i]);
    }
    return INF_OK;
}

// Returns true if every constant has its bytes or a form.
static bool constants_are_complete(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_blob *blob = graph->values[i].data;
        if (blob != NULL && blob->data == NULL && blob->form == NULL)
            return false;
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (!constants_are_complete(graph->subgraphs[i]))
            return false;
    return true;
}

static enum inf_code check_complete(const struct inf_saved_plan *saved, struct inf_error *err)
{
    bool complete = constants_are_complete(saved->graph);
    for (uint32_t i = 0; i < saved->class_count; i++)
        complete = complete && constants_are_complete(saved->classes[i].graph);
    return complete ? INF_OK
                    : inf_fail(err, INF_INVALID, "a constant has neither bytes nor packed weights");
}

// Decodes the bytes that the load added to the plan: the size of the list of files, the list, and
// the description of the model, if it has one.
static enum inf_code take_extra(struct inf_kept_plan *kept, struct inf_error *err)
{
    struct inf_saved_rest rest = {kept->saved.extra, kept->saved.extra_bytes};
    uint64_t files_bytes;
    if (!inf_saved_take(&rest, &files_bytes, sizeof files_bytes) || files_bytes > rest.left)
        return inf_fail(err, INF_INVALID, "its list of files is damaged");
    kept->files = rest.at;
    kept->files_bytes = (size_t)files_bytes;
    if (rest.left == files_bytes)
        return INF_OK;
    return inf_description_decode(&kept->description, rest.at + files_bytes,
                                  rest.left - (size_t)files_bytes, err);
}

// Makes a plan ready to use whose file was read. Frees it if that fails.
static enum inf_code prepare_plan(struct inf_kept_plan *kept, const struct inf_device_list *devices,
                                  struct inf_error *err)
{
    const struct inf_saved_plan *saved = &kept->saved;
    enum inf_code code = adopt_forms(kept, devices, err);
    if (code == INF_OK)
        code = check_complete(saved, err);
    if (code == INF_OK)
        code = take_extra(kept, err);
    if (code != INF_OK)
        inf_kept_plan_fini(kept);
    return code;
}

bool inf_kept_plan_find(struct inf_kept_plan *kept, struct inf_plan_cache *plans, uint64_t key,
                        const struct inf_device_list *devices, const struct inf_log *log)
{
    struct inf_error err = {0};
    *kept = (struct inf_kept_plan){.forms = NULL};
    if (!inf_plan_cache_find(plans, key, &kept->saved))
        return false;
    if (prepare_plan(kept, devices, &err) == INF_OK)
        return true;
    inf_log(log, INF_LOG_NOTICE, "plan not used, the model is read instead reason=\"%s\"",
            err.text);
    return false;
}

enum inf_code inf_kept_plan_read(struct inf_kept_plan *kept, int directory_fd, const char *name,
                                 const struct inf_plan_id *id,
                                 const struct inf_device_list *devices, struct inf_error *err)
{
    *kept = (struct inf_kept_plan){.forms = NULL};
    INF_TRY(inf_plan_file_read(&kept->saved, directory_fd, name, id, err));
    return prepare_plan(kept, devices, err);
}

enum inf_code inf_kept_plan_offer(struct inf_kept_plan *kept, struct inf_model *model,
                                  const struct inf_device_list *devices, struct inf_error *err)
{
    for (uint32_t i = 0; i < kept->saved.class_count; i++) {
        struct inf_plan_class *class = &kept->saved.classes[i];
        const struct inf_device *device = find_device(devices, class->device);
        const struct inf_run_options options = {.precision = (enum inf_precision) class->precision,
                                                .threads = class->threads};
        if (device != NULL && class->precision < INF_PRECISIONS)
            INF_TRY(inf_model_offer(model, device, &options, &class->graph, err));
    }
    return INF_OK;
}

void inf_kept_plan_fini(struct inf_kept_plan *kept)
{
    // The forms go before the constants, whose addresses the packs are found by.
    for (uint32_t i = 0; kept->forms != NULL && i < kept->saved.form_count; i++)
        inf_blob_form_unref(&kept->forms[i]);
    free(kept->forms);
    inf_model_description_unref(&kept->description);
    inf_saved_plan_fini(&kept->saved);
    *kept = (struct inf_kept_plan){.forms = NULL};
}

// --- the batch ladder ---

// What the notes of a plan have. It has no padding.
struct notes {
    char device[32];
    uint32_t precision, threads; // of the default options of the device
    uint32_t rows_max;           // limit of the measurement; 0: nothing was measured
    uint32_t count;
    struct {
        uint64_t rows, run_ns;
    } rungs[INF_BATCH_RUNGS];
    uint64_t bytes;
    // Why a ladder of decoding steps is not longer, as in struct inf_step_findings.
    uint32_t refused, refused_permille;
    char why[INF_STEP_WHY];
};
_Static_assert(sizeof(struct notes) == 48 + 16 * INF_BATCH_RUNGS + 16 + INF_STEP_WHY,
               "notes have no padding");
_Static_assert(sizeof(struct notes) <= INF_PLAN_NOTES_BYTES, "notes fit the plan");

// Notes on what the ladder of a served model depends.
static void describe_measurement(struct notes *notes, const struct inf_served *served)
{
    struct inf_run_options options = inf_model_default_options(served->model, served->device);
    *notes = (struct notes){
        .precision = options.precision, .threads = options.threads, .rows_max = served->rows_max};
    snprintf(notes->device, sizeof notes->device, "%s", inf_device_info(served->device)->name);
}

void inf_kept_plan_note_ladder(struct inf_plan_facts *facts, const struct inf_served *served)
{
    const struct inf_batch_ladder *ladder = &served->ladder;
    const struct inf_step_findings *findings = &served->step_findings;
    struct notes notes = {.rows_max = 0};
    if (!served->steps_due)
        describe_measurement(&notes, served);
    notes.count = ladder->count;
    for (uint32_t i = 0; i < ladder->count; i++) {
        notes.rungs[i].rows = ladder->rungs[i].rows;
        notes.rungs[i].run_ns = ladder->rungs[i].run_ns;
    }
    notes.bytes = ladder->bytes;
    notes.refused = findings->refused;
    notes.refused_permille = findings->refused_permille;
    snprintf(notes.why, sizeof notes.why, "%s", findings->why);
    memcpy(facts->notes, &notes, sizeof notes);
}

// Returns true if the rungs are those of a ladder that a trial can make.
static bool is_ladder(const struct notes *notes)
{
    uint64_t rows = 1;
    for (uint32_t i = 0; i < notes->count; i++, rows *= 2)
        if (notes->rungs[i].rows != rows || notes->rungs[i].run_ns == 0)
            return false;
    return notes->count != 1 && (notes->count == 0 || rows / 2 <= notes->rows_max) &&
           notes->bytes <= INF_BATCH_BYTES_MAX && memchr(notes->why, 0, sizeof notes->why) != NULL;
}

bool inf_kept_plan_take_ladder(const struct inf_kept_plan *kept, struct inf_served *served)
{
    struct notes notes, wanted;
    memcpy(&notes, kept->saved.facts.notes, sizeof notes);
    describe_measurement(&wanted, served);
    if (served->rows_max == 0 || memcmp(&notes, &wanted, offsetof(struct notes, count)) != 0 ||
        notes.count > INF_BATCH_RUNGS || !is_ladder(&notes))
        return false;
    struct inf_batch_ladder *ladder = &served->ladder;
    struct inf_step_findings *findings = &served->step_findings;
    *ladder = (struct inf_batch_ladder){.count = notes.count, .bytes = notes.bytes};
    for (uint32_t i = 0; i < notes.count; i++)
        ladder->rungs[i] = (struct inf_batch_rung){.rows = (uint32_t)notes.rungs[i].rows,
                                                   .run_ns = notes.rungs[i].run_ns};
    *findings = (struct inf_step_findings){.refused = notes.refused,
                                           .refused_permille = notes.refused_permille};
    memcpy(findings->why, notes.why, sizeof findings->why);
    return true;
}

// --- keeping ---

// A plan on its way to a file.
struct keeping {
    const struct inf_served *served;
    const struct inf_plan_facts *facts;
    struct inf_saved_bytes extra; // the bytes that take_extra() decodes
    struct inf_plan_cache *plans; // NULL: the plan goes to the file `name`
    int directory_fd;
    const char *name;
    const struct inf_plan_id *id;
    struct inf_error *err;
    enum inf_code code;
};

static int compare_forms(const void *a, const void *b)
{
    const struct inf_constant_use *x = a, *y = b;
    return ((uintptr_t)x->form > (uintptr_t)y->form) - ((uintptr_t)x->form < (uintptr_t)y->form);
}

// Fills `forms` with each form of the uses once, and returns their number. A constant may be left
// out if it may be evicted: one of its forms then restores it.
static uint32_t list_forms(struct inf_plan_form *forms, struct inf_constant_use *uses,
                           const struct inf_model_kept *kept)
{
    uint32_t count = 0;
    if (kept->uses->count == 0)
        return 0;
    memcpy(uses, kept->uses->uses, kept->uses->count * sizeof *uses);
    qsort(uses, kept->uses->count, sizeof *uses, compare_forms);
    for (size_t i = 0; i < kept->uses->count; i++) {
        struct inf_blob_form *form = uses[i].form;
        if (form == NULL || form->describe == NULL || (i > 0 && uses[i - 1].form == form))
            continue;
        forms[count].blob = uses[i].blob;
        form->describe(form, &forms[count].record);
        count++;
    }
    return count;
}

static int compare_blobs(const void *a, const void *b)
{
    const struct inf_constant_use *x = a, *y = b;
    return ((uintptr_t)x->blob > (uintptr_t)y->blob) - ((uintptr_t)x->blob < (uintptr_t)y->blob);
}

static void mark_replaced(struct inf_plan_form *forms, uint32_t count,
                          const struct inf_constants *constants)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_constant_use key = {.blob = forms[i].blob};
        const struct inf_constant_use *found = bsearch(&key, constants->uses, constants->count,
                                                       sizeof *constants->uses, compare_blobs);
        forms[i].replaces =
            found != NULL && inf_constant_is_evictable(found) && found->form->describe != NULL;
    }
}

static uint32_t list_classes(struct inf_plan_class *classes, const struct inf_model_kept *kept)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->class_count && count < INF_PLAN_CLASSES_MAX; i++) {
        const struct inf_model_kept_class *from = &kept->classes[i];
        struct inf_plan_class *class = &classes[count];
        // The next load would not take the graph (kept_graphs.c).
        if (from->reads_values)
            continue;
        snprintf(class->device, sizeof class->device, "%s", inf_device_info(from->device)->name);
        class->precision = from->options.precision;
        class->threads = from->options.threads;
        class->graph = (struct inf_graph *)(uintptr_t)from->graph; // the writer only reads it
        count++;
    }
    return count;
}

static void store_plan(struct keeping *keeping, const struct inf_saved_plan *saved) INF_MAY_BLOCK
{
    keeping->code = INF_OK;
    if (keeping->plans != NULL)
        inf_plan_cache_keep(keeping->plans, keeping->served->cache_key, saved);
    else
        // Readable for the user of a daemon although root has made it. The bytes are those of the
        // model.
        keeping->code = inf_plan_file_write(keeping->directory_fd, keeping->name, 0644, keeping->id,
                                            saved, keeping->err);
}

static void keep_model(void *context, const struct inf_model_kept *kept) INF_MAY_BLOCK
{
    struct keeping *keeping = context;
    struct inf_saved_plan saved = {.facts = *keeping->facts,
                                   .graph = (struct inf_graph *)(uintptr_t)kept->graph,
                                   .extra = keeping->extra.data,
                                   .extra_bytes = keeping->extra.size};
    struct inf_constant_use *uses = calloc(kept->uses->count + 1, sizeof *uses);
    saved.forms = calloc(kept->uses->count + 1, sizeof *saved.forms);
    saved.classes = calloc((size_t)kept->class_count + 1, sizeof *saved.classes);
    if (uses != NULL && saved.forms != NULL && saved.classes != NULL) {
        saved.form_count = list_forms(saved.forms, uses, kept);
        mark_replaced(saved.forms, saved.form_count, kept->constants);
        saved.class_count = list_classes(saved.classes, kept);
        store_plan(keeping, &saved);
    }
    free(uses);
    free(saved.forms);
    free(saved.classes);
}

// Appends a part, and frees it. NULL: there was no memory for the part.
static void append_part(struct inf_saved_bytes *extra, void *part, size_t size)
{
    if (part != NULL)
        inf_saved_append(extra, part, size);
    extra->failed = extra->failed || part == NULL;
    free(part);
}

// Makes the bytes that the load adds to the plan. Sets extra->failed if there is no memory, or if
// the list of the files that the load has read is incomplete.
static void make_extra(struct inf_saved_bytes *extra, const struct inf_served *served)
{
    size_t size = 0;
    void *files = served->files != NULL ? inf_read_files_encode(served->files, &size) : NULL;
    uint64_t files_bytes = size;
    inf_saved_append(extra, &files_bytes, sizeof files_bytes);
    append_part(extra, files, size);
    if (served->description != NULL) {
        void *description = inf_description_encode(served->description, &size);
        append_part(extra, description, size);
    }
}

// Lists what the model can keep, and stores it.
static enum inf_code lend_model(struct keeping *keeping, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_served *served = keeping->served;
    keeping->code =
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                        "no memory for a plan, or too many files for its list of files");
    make_extra(&keeping->extra, served);
    enum inf_code code = keeping->extra.failed
                             ? keeping->code
                             : inf_model_lend(served->model, keep_model, keeping, err);
    free(keeping->extra.data);
    return code != INF_OK ? code : keeping->code;
}

void inf_kept_plan_keep(struct inf_plan_cache *plans, struct inf_served *served,
                        const struct inf_plan_facts *facts)
{
    struct keeping keeping = {.served = served, .facts = facts, .plans = plans};
    (void)!lend_model(&keeping, NULL);
}

enum inf_code inf_kept_plan_write(struct inf_served *served, int directory_fd, const char *name,
                                  const struct inf_plan_id *id, struct inf_error *err)
{
    struct inf_plan_facts facts = served->plan_facts;
    struct keeping keeping = {.served = served,
                              .facts = &facts,
                              .directory_fd = directory_fd,
                              .name = name,
                              .id = id,
                              .err = err};
    inf_kept_plan_note_ladder(&facts, served);
    return lend_model(&keeping, err);
}
