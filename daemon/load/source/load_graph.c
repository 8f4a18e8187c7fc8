// SPDX-License-Identifier: Apache-2.0
// The graph of a model that is loaded. A plan of an earlier load has the graph after its passes and
// the packed weights; a model file is imported. A model that is only placed again gets a copy of
// the graph of the served one.
#include "daemon/load/source/load_graph.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/import/common/shards.h"
#include "backends/registry.h"
#include "backends/storage/record.h"
#include "daemon/load/load_plan.h"
#include "daemon/load/warm_up.h"
#include "daemon/model/sequence_lengths.h"

// The load compiles the copy like the graph of a new model. It cannot share the executables of the
// served model, because it would run them in slots (concurrent runs) that workers may be using.
enum inf_code inf_load_graph_copy(struct inf_load *load, struct inf_error *err)
{
    const struct inf_served *base = load->job->base;
    load->location.stamp = base->stamp;
    if (load->job->model.config_complete)
        load->location.config_stamp = atomic_load(&base->config_stamp);
    if (load->files != NULL)
        inf_read_files_adopt(load->files, base->files);
    load->info.content_hash = base->content_hash;
    load->file_hash = base->file_hash;
    load->hang_key = base->hang_key;
    snprintf(load->location.version, sizeof load->location.version, "%s", base->version);
    snprintf(load->platform, sizeof load->platform, "%s", base->platform);
    load->description = inf_model_description_ref(base->description);
    return inf_model_copy_graph(base->model, &load->graph, err);
}

// Takes the graph from the plan of an earlier load, or from one that was made ahead. Returns false
// if there is none.
static bool take_plan(struct inf_load *load) INF_MAY_BLOCK
{
    const struct inf_load_model_job *model = &load->job->model;
    const struct inf_load_plan_question question = {
        .name = load->job->name,
        .location = &load->location,
        .config = &load->config,
        .options = load->options,
        .files = load->files,
        // A plan beside the model is that of its default signature.
        .in_repository =
            load->order == load->job && model->path[0] == '\0' && model->directory_fd < 0};
    load->plan_key = inf_load_plan_key(&question);
    if (!inf_load_plan_find(&load->kept, &load->plan_was_ahead, load->plan_key, &question))
        return false;
    const struct inf_plan_facts *facts = &load->kept.saved.facts;
    load->from_plan = true;
    load->graph = load->kept.saved.graph;
    load->kept.saved.graph = NULL;
    load->description = load->kept.description;
    load->kept.description = NULL;
    load->info.content_hash = facts->content_hash;
    snprintf(load->info.format, sizeof load->info.format, "%s", facts->format);
    return true;
}

// Returns true if the importer read the model's file only. If the graph is from a plan, the answer
// is not known. It is not used then: only inferctl compile uses it, which loads without plans.
static bool reads_one_file(const struct inf_load *load) INF_MAY_BLOCK
{
    struct stat status;
    return load->from_plan ||
           (fstatat(load->location.directory_fd, load->location.file, &status, 0) == 0 &&
            (uint64_t)status.st_size == load->info.file_bytes);
}

// Decides whether the plan of a model that was read from its file is kept. If the load used a plan
// of the cache, the plan is kept again only if the model was compiled in another way.
//
// A model that was placed again because its kernels have raced has other packed weights than its
// plan. No other model that was placed again is kept, because its settings are not those of its
// files.
void inf_load_graph_offer_plan(const struct inf_load *load, struct inf_served *served)
{
    const struct inf_served *base = load->job->base;
    if (base != NULL && !load->job->model.takes_kernels)
        return;
    served->plan_facts.content_hash = load->file_hash;
    if (base != NULL)
        served->plan_facts = base->plan_facts;
    if (base != NULL) {
        served->reads_one_file = base->reads_one_file;
        served->cache_key = base->cache_key;
        served->plan_due = served->cache_key != 0;
        return;
    }
    snprintf(served->plan_facts.format, sizeof served->plan_facts.format, "%s", load->info.format);
    served->reads_one_file = reads_one_file(load);
    bool is_kept =
        load->from_plan && !load->plan_was_ahead && !inf_model_outgrew_offers(served->model);
    served->cache_key = load->plan_key;
    served->plan_due = served->cache_key != 0 && !is_kept;
}

static void note_opened(void *context, const char *path)
{
    inf_read_files_note(context, path);
}

enum inf_code inf_load_graph_read(struct inf_load *load, struct inf_error *err)
{
    struct inf_sequence_lengths parsed;
    struct inf_sequence_length lengths[INF_LIMIT_TENSORS];
    if (!inf_sequence_lengths_parse(load->config.sequence_lengths, &parsed))
        return inf_fail(err, INF_INVALID, "sequence_lengths = %s: wanted INPUT=COUNT",
                        load->config.sequence_lengths);
    for (uint32_t i = 0; i < parsed.count; i++)
        lengths[i] = (struct inf_sequence_length){parsed.names[i], parsed.counts[i]};
    const struct inf_open_sink opened = {.note = note_opened, .context = load->files};
    const struct inf_import_options import = {.evaluator = inf_registry_evaluator(),
                                              .signature = load->config.signature,
                                              .lengths = lengths,
                                              .length_count = parsed.count,
                                              .description = &load->description,
                                              .opened = load->files != NULL ? &opened : NULL,
                                              .cancelled = &load->order->cancelled};
    inf_load_report(load->progress, load->location.version, "read", INF_LOAD_PERCENT_READ);
    if (!take_plan(load))
        INF_TRY(inf_model_import_with(&load->graph, &load->info, load->location.directory_fd,
                                      load->location.file, &import, err));
    // Saved shapes, races and precision checks are found by the content hash. Two signatures of one
    // file are two graphs, so the hash covers the signature too.
    load->file_hash = load->info.content_hash;
    if (load->config.signature[0] != '\0')
        load->info.content_hash =
            inf_record_hash_text(load->info.content_hash, load->config.signature);
    if (load->config.sequence_lengths[0] != '\0')
        load->info.content_hash =
            inf_record_hash_text(load->info.content_hash, load->config.sequence_lengths);
    snprintf(load->platform, sizeof load->platform, "inferd_%s", load->info.format);
    if (load->description != NULL && load->description->problem[0] != '\0')
        inf_log(load->options->log, INF_LOG_WARNING,
                "model metadata damaged name=%s problem=\"%s\"", load->job->name,
                load->description->problem);
    return INF_OK;
}
