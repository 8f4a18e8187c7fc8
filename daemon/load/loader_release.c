// SPDX-License-Identifier: Apache-2.0
// Gives up what holds the memory of models: models without references are freed, and jobs that only
// save results, each of which holds a reference to a model, are run.
#include <malloc.h>

#include "daemon/load/kept_plan.h"
#include "daemon/load/loader_state.h"

void inf_loader_retire(struct inf_served *served)
{
    struct inf_loader *loader = served->loader;
    inf_mutex_lock(&loader->mutex);
    served->next = loader->retired;
    loader->retired = served;
    // Signal while holding the mutex: inf_loader_destroy() may be waiting for this last model, and
    // frees the loader as soon as it gets the mutex.
    inf_cond_signal(&loader->wanted);
    inf_mutex_unlock(&loader->mutex);
}

// Saves the input shapes with which clients ran a model, if they changed since the last save.
static void save_shapes(struct inf_loader *loader, const struct inf_served *served) INF_MAY_BLOCK
{
    char text[INF_SERVED_SHAPES_TEXT];
    if (served->shapes.changed && served->config.remember_shapes)
        inf_served_shapes_keep(loader->options.load.served_shapes, served->content_hash,
                               inf_served_shapes_print(&served->shapes, text));
}

void inf_loader_free_retired(struct inf_served *retired) INF_MAY_BLOCK
{
    bool any = retired != NULL;
    while (retired != NULL) {
        struct inf_served *next = retired->next;
        inf_log(retired->loader->options.load.log, INF_LOG_DEBUG, "model freed name=%s version=%s",
                retired->name, retired->version);
        save_shapes(retired->loader, retired);
        inf_served_destroy(&retired);
        retired = next;
    }
    // The allocator keeps freed memory for later; another process may need it sooner.
    if (any)
        malloc_trim(0);
}

// --- jobs that save results ---

void inf_loader_run_saving_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK
{
    const struct inf_load_options *options = &loader->options.load;
    if (job->kind == INF_LOAD_JOB_SAVE_DECISION)
        inf_tune_add(options->place.tune, job->save_decision.decision->key,
                     &job->save_decision.decision->race);
    else if (job->kind == INF_LOAD_JOB_SAVE_PLAN)
        inf_kept_plan_keep(options->plans, job->base, &job->save_plan.facts);
    else if (job->kind == INF_LOAD_JOB_SAVE_USES)
        inf_model_uses_write(options->uses, job->save_uses.counts);
    else if (job->kind == INF_LOAD_JOB_SAVE_HANG)
        inf_load_journal_begin(options->journal, job->base->hang_key);
    else
        inf_served_shapes_keep(options->served_shapes, job->base->content_hash,
                               job->save_shapes.shapes);
}

// Removes the first queued job that only saves results, and returns it; NULL: there is none.
static struct inf_load_job *take_saving_job(struct inf_loader *loader)
    INF_ATTR(requires_capability(loader->mutex))
{
    struct inf_load_job **link = &loader->jobs;
    while (*link != NULL && (*link)->kind != INF_LOAD_JOB_SAVE_DECISION &&
           (*link)->kind != INF_LOAD_JOB_SAVE_SHAPES && (*link)->kind != INF_LOAD_JOB_SAVE_PLAN &&
           (*link)->kind != INF_LOAD_JOB_SAVE_HANG)
        link = &(*link)->next;
    struct inf_load_job *job = *link;
    if (job == NULL)
        return NULL;
    *link = job->next;
    if (*link == NULL)
        loader->jobs_tail = link;
    return job;
}

bool inf_loader_release_models(struct inf_loader *loader) INF_MAY_BLOCK
{
    inf_mutex_lock(&loader->mutex);
    struct inf_served *retired = loader->retired;
    loader->retired = NULL;
    struct inf_load_job *job = take_saving_job(loader);
    inf_mutex_unlock(&loader->mutex);
    inf_loader_free_retired(retired);
    if (job != NULL) {
        inf_loader_run_saving_job(loader, job);
        inf_loader_post_outcome(loader, job);
    }
    return retired != NULL || job != NULL;
}
