// SPDX-License-Identifier: Apache-2.0
// Each change of a model postpones the time at which the model has settled. While a file of the
// model has been written to and not closed, the model does not settle at all, because a program
// that copies a model can pause. If that program dies, the kernel closes its files.
#include "daemon/model/settle.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct inf_settle_model *inf_settle_obtain(struct inf_settle *settle, const char *name)
{
    struct inf_settle_model *model = NULL;
    for (uint32_t i = 0; i < settle->model_count; i++) {
        if (strcmp(settle->models[i].name, name) == 0)
            return &settle->models[i];
        if (settle->models[i].name[0] == '\0')
            model = &settle->models[i];
    }
    if (model == NULL) {
        if (settle->model_count == INF_SETTLE_MODELS)
            return NULL;
        model = &settle->models[settle->model_count++];
    }
    *model = (struct inf_settle_model){.due_ns = INF_SETTLE_NEVER};
    snprintf(model->name, sizeof model->name, "%s", name);
    return model;
}

void inf_settle_forget(struct inf_settle *settle, struct inf_settle_model *model)
{
    for (uint32_t i = settle->writer_count; i-- > 0;)
        if (settle->writers[i].model == model)
            settle->writers[i] = settle->writers[--settle->writer_count];
    *model = (struct inf_settle_model){.due_ns = INF_SETTLE_NEVER};
}

void inf_settle_note_change(struct inf_settle *settle, struct inf_settle_model *model,
                            uint64_t now_ns)
{
    model->due_ns = now_ns + settle->quiet_ns;
}

// Returns the index of a file in settle->writers; settle->writer_count if it is not being written.
static uint32_t find_writer(const struct inf_settle *settle, int directory, const char *file)
{
    uint32_t i = 0;
    while (i < settle->writer_count && (settle->writers[i].directory != directory ||
                                        strcmp(settle->writers[i].file, file) != 0))
        i++;
    return i;
}

void inf_settle_note_write(struct inf_settle *settle, struct inf_settle_model *model, int directory,
                           const char *file, uint64_t now_ns)
{
    inf_settle_note_change(settle, model, now_ns);
    uint32_t index = find_writer(settle, directory, file);
    if (index < settle->writer_count || index == INF_SETTLE_WRITERS)
        return;
    struct inf_settle_writer *writer = &settle->writers[settle->writer_count++];
    writer->directory = directory;
    writer->model = model;
    snprintf(writer->file, sizeof writer->file, "%s", file);
}

void inf_settle_note_close(struct inf_settle *settle, struct inf_settle_model *model, int directory,
                           const char *file, uint64_t now_ns)
{
    inf_settle_note_change(settle, model, now_ns);
    uint32_t index = find_writer(settle, directory, file);
    if (index < settle->writer_count)
        settle->writers[index] = settle->writers[--settle->writer_count];
}

void inf_settle_forget_directory(struct inf_settle *settle, int directory)
{
    for (uint32_t i = settle->writer_count; i-- > 0;)
        if (settle->writers[i].directory == directory)
            settle->writers[i] = settle->writers[--settle->writer_count];
}

void inf_settle_forget_writers(struct inf_settle *settle)
{
    settle->writer_count = 0;
}

static bool is_written(const struct inf_settle *settle, const struct inf_settle_model *model)
{
    for (uint32_t i = 0; i < settle->writer_count; i++)
        if (settle->writers[i].model == model)
            return true;
    return false;
}

struct inf_settle_model *inf_settle_take(struct inf_settle *settle, uint64_t now_ns)
{
    for (uint32_t i = 0; i < settle->model_count; i++) {
        struct inf_settle_model *model = &settle->models[i];
        if (model->due_ns <= now_ns && !is_written(settle, model)) {
            model->due_ns = INF_SETTLE_NEVER;
            return model;
        }
    }
    return NULL;
}

uint64_t inf_settle_next_ns(const struct inf_settle *settle)
{
    uint64_t next_ns = INF_SETTLE_NEVER;
    for (uint32_t i = 0; i < settle->model_count; i++) {
        const struct inf_settle_model *model = &settle->models[i];
        if (model->due_ns < next_ns && !is_written(settle, model))
            next_ns = model->due_ns;
    }
    return next_ns;
}
