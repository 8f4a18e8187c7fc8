// SPDX-License-Identifier: Apache-2.0
// Model files of most formats say nothing about their labels, or about how a picture becomes their
// input. The settings of the model can say it. They have a description of their own, because that
// of the file is kept with the plan of the model, which does not depend on the settings.
#include "backends/import/common/described_settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/graph.h"
#include "backends/storage/file.h"
#include "proto/core/utf8.h"

// The most channels of an input whose normalisation the settings have.
#define CHANNELS_MAX 16u

static enum inf_code fail_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for the description of a model");
}

// --- normalisation ---

// Parses numbers with commas between. Returns how many there are; 0: the text is no such list.
static uint32_t parse_numbers(const char *text, float numbers[CHANNELS_MAX])
{
    uint32_t count = 0;
    for (;;) {
        char *end;
        float number = strtof(text, &end);
        if (end == text || !isfinite(number) || count == CHANNELS_MAX)
            return 0;
        numbers[count++] = number;
        end += strspn(end, " ");
        if (*end == '\0')
            return count;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
}

static enum inf_code describe_input(struct inf_model_description *description,
                                    const struct inf_described_settings *settings,
                                    struct inf_error *err)
{
    struct inf_arena *arena = &description->arena;
    float *mean = inf_arena_alloc(arena, CHANNELS_MAX * sizeof *mean);
    float *deviation = inf_arena_alloc(arena, CHANNELS_MAX * sizeof *deviation);
    description->inputs = inf_arena_alloc(arena, sizeof *description->inputs);
    if (mean == NULL || deviation == NULL || description->inputs == NULL)
        return fail_memory(err);
    uint32_t count = parse_numbers(settings->input_mean, mean);
    bool ok = count > 0 && parse_numbers(settings->input_deviation, deviation) == count;
    for (uint32_t i = 0; i < count; i++)
        ok &= deviation[i] != 0;
    if (!ok)
        return inf_fail(err, INF_INVALID,
                        "input_mean = %.64s, input_deviation = %.64s: wanted as many numbers each, "
                        "1 to %u with commas between, and no deviation of 0",
                        settings->input_mean, settings->input_deviation, CHANNELS_MAX);
    description->input_count = 1;
    description->inputs[0] = (struct inf_described_tensor){.title = "",
                                                           .text = "",
                                                           .labels_file = "",
                                                           .mean = mean,
                                                           .deviation = deviation,
                                                           .channel_count = count};
    return INF_OK;
}

// --- labels ---

// Returns how many elements the first output has, or 0 if that is not known. The first dimension is
// left out, because it may be that of a batch, unless it is the only one.
static uint64_t count_classes(const struct inf_graph *graph)
{
    const struct inf_shape *shape = &graph->values[graph->outputs[0].value].shape;
    uint64_t count = 1;
    if (shape->rank <= 0)
        return 0;
    for (int32_t i = shape->rank > 1 ? 1 : 0; i < shape->rank; i++) {
        if (shape->dims[i] == INF_DIM_UNKNOWN)
            return 0;
        count *= (uint64_t)shape->dims[i];
    }
    return count;
}

static enum inf_code describe_output(struct inf_model_description *description,
                                     const struct inf_described_settings *settings,
                                     const struct inf_graph *graph, int directory_fd,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    char *data = NULL;
    size_t size = 0;
    uint64_t wanted = count_classes(graph);
    INF_TRY(inf_file_read_all(&data, &size, directory_fd, settings->labels_file,
                              INF_DESCRIPTION_LABEL_BYTES, err));
    bool ok = inf_utf8_valid((struct inf_span){(const uint8_t *)data, size}) &&
              memchr(data, '\0', size) == NULL;
    char *text = inf_arena_alloc(&description->arena, size + 2);
    const char *name = inf_arena_strdup(&description->arena, settings->labels_file);
    description->outputs = inf_arena_alloc(&description->arena, sizeof *description->outputs);
    if (text != NULL)
        memcpy(text, data, size);
    free(data);
    if (text == NULL || name == NULL || description->outputs == NULL)
        return fail_memory(err);
    if (!ok)
        return inf_fail(err, INF_INVALID, "labels_file = %.64s: the file is no UTF-8",
                        settings->labels_file);
    uint32_t count = inf_description_split_labels(text, size);
    if (count == 0 || (wanted > 0 && wanted != count))
        return inf_fail(err, INF_INVALID,
                        "labels_file = %.64s: the file has %u labels, and output '%.64s' has %llu "
                        "elements; wanted one label in each line",
                        settings->labels_file, count, graph->outputs[0].name,
                        (unsigned long long)wanted);
    description->output_count = 1;
    description->outputs[0] = (struct inf_described_tensor){.title = "",
                                                            .text = "",
                                                            .labels_file = name,
                                                            .labels = text,
                                                            .label_count = count,
                                                            .label_kind = INF_LABELS_CLASSES};
    return INF_OK;
}

// --- all of it ---

static enum inf_code describe_model(struct inf_model_description *description,
                                    const struct inf_described_settings *settings,
                                    const struct inf_graph *graph, int directory_fd,
                                    struct inf_error *err) INF_MAY_BLOCK
{
    description->text = inf_arena_strdup(&description->arena, settings->description);
    description->license = inf_arena_strdup(&description->arena, settings->license);
    if (description->text == NULL || description->license == NULL)
        return fail_memory(err);
    if (settings->input_mean[0] != '\0' || settings->input_deviation[0] != '\0')
        INF_TRY(describe_input(description, settings, err));
    if (settings->labels_file[0] != '\0' && graph->output_count > 0)
        INF_TRY(describe_output(description, settings, graph, directory_fd, err));
    return INF_OK;
}

enum inf_code inf_described_settings_create(struct inf_model_description **out_description,
                                            const struct inf_described_settings *settings,
                                            const struct inf_graph *graph, int directory_fd,
                                            struct inf_error *err)
{
    *out_description = NULL;
    if (settings->description[0] == '\0' && settings->license[0] == '\0' &&
        settings->labels_file[0] == '\0' && settings->input_mean[0] == '\0' &&
        settings->input_deviation[0] == '\0')
        return INF_OK;
    INF_TRY(inf_model_description_create(out_description, err));
    enum inf_code code = describe_model(*out_description, settings, graph, directory_fd, err);
    if (code != INF_OK)
        inf_model_description_unref(out_description);
    return code;
}

struct inf_described_tensor inf_described_tensor_merge(const struct inf_described_tensor *file,
                                                       const struct inf_described_tensor *settings)
{
    struct inf_described_tensor merged = {.title = "", .text = "", .labels_file = ""};
    if (file != NULL)
        merged = *file;
    if (settings != NULL && settings->channel_count > 0) {
        merged.mean = settings->mean;
        merged.deviation = settings->deviation;
        merged.channel_count = settings->channel_count;
    }
    if (settings != NULL && settings->label_kind != INF_LABELS_NONE) {
        merged.labels_file = settings->labels_file;
        merged.labels = settings->labels;
        merged.label_count = settings->label_count;
        merged.label_kind = settings->label_kind;
    }
    return merged;
}
