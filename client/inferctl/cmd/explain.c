// SPDX-License-Identifier: Apache-2.0
// inferctl explain prints where a model runs and why. inferctl advise compares rules of thumb with
// measured times.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

// The thresholds in the documentation of TensorFlow.js; backends/place/prior.h has the same values.
#define LITE_BYTES     ((uint64_t)3 << 20)
#define LITE_MACS      ((uint64_t)60000000)
#define WEBGL_HANDOFF  128
#define WEBGPU_HANDOFF 1000

static double ms_of(uint64_t ns)
{
    return (double)ns / 1e6;
}

// --- the verb explain ---

static void add_time(struct table *table, uint64_t ns)
{
    if (ns == 0)
        table_value(table, json_null(), "-");
    else
        table_real(table, ms_of(ns), NULL);
}

static struct table *list_candidates(const inferd_placement *placement)
{
    static const char *const columns[] = {"device",   "backend", "kind",     "precision",
                                          "threads",  "verdict", "prior_ms", "median_ms",
                                          "first_ms", "runs",    "memory",   "reason"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < placement->candidate_count; i++) {
        const inferd_candidate *candidate = &placement->candidates[i];
        char bytes[16];
        table_text(table, candidate->device);
        table_text(table, candidate->backend);
        table_text(table, candidate->kind);
        table_text(table, candidate->precision);
        table_whole(table, candidate->threads, NULL);
        table_text(table, candidate->verdict);
        add_time(table, candidate->prior_ns);
        add_time(table, candidate->median_ns);
        add_time(table, candidate->first_ns);
        table_whole(table, candidate->runs, NULL);
        table_whole(table, (int64_t)candidate->memory_bytes,
                    candidate->memory_bytes > 0 ? table_bytes(candidate->memory_bytes, bytes)
                                                : "-");
        table_text(table, candidate->reason);
    }
    return table;
}

static struct table *list_declined(const inferd_placement *placement)
{
    static const char *const columns[] = {"operator", "nodes", "runs_on", "reason"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < placement->declined_count; i++) {
        table_text(table, placement->declined[i].op);
        table_whole(table, placement->declined[i].nodes, NULL);
        table_text(table, placement->declined[i].device);
        table_text(table, placement->declined[i].reason);
    }
    return table;
}

// Returns a table of the settings of the model. If `all` is true, the table includes settings with
// their default value.
static struct table *list_settings(const inferd_placement *placement, bool all)
{
    static const char *const columns[] = {"setting", "value", "origin"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < placement->setting_count; i++) {
        const inferd_setting *setting = &placement->settings[i];
        if (!all && strcmp(setting->origin, "default") == 0)
            continue;
        table_text(table, setting->name);
        table_text(table, setting->value);
        table_text(table, setting->origin);
    }
    return table;
}

static bool was_told(const inferd_placement *placement)
{
    for (size_t i = 0; i < placement->setting_count; i++)
        if (strcmp(placement->settings[i].origin, "default") != 0)
            return true;
    return false;
}

static void print_placement(const inferd_placement *placement)
{
    printf("%s version %s runs on %s (backend %s) in %s\n", placement->name, placement->version,
           placement->device, placement->backend, placement->precision);
    printf("chosen by  %s: %s\n", placement->source, placement->reason);
    printf("policy     %s\n", placement->policy);
    printf("precision  %s: %s\n", placement->precision, placement->precision_reason);
    printf("rule       %s: %s\n", placement->rule_device, placement->rule_reason);
    printf("work       %.3f M multiply-adds, %.2f MB of weights, %u steps",
           (double)placement->macs / 1e6, (double)placement->const_bytes / 1e6, placement->steps);
    if (placement->interpreted > 0)
        printf(", %u nodes interpreted, because shapes depend on values", placement->interpreted);
    printf("\n");
    if (placement->joined_steps[0] != '\0')
        printf("joined     %s\n", placement->joined_steps);
    if (placement->shadow_checked + placement->shadow_dropped > 0)
        printf("checked    %" PRIu64 " answers, %" PRIu64 " differ, %" PRIu64 " left out\n",
               placement->shadow_checked, placement->shadow_drifted, placement->shadow_dropped);
    if (placement->shadow_alarm[0] != '\0')
        printf("ALARM      %s\n", placement->shadow_alarm);
    if (placement->recomputed > 0)
        printf("guard      %" PRIu64 " answers computed again in fp32\n", placement->recomputed);
    printf("\n");
    table_print(list_candidates(placement), OUTPUT_TABLE, false);
    if (was_told(placement)) {
        printf("\nsettings:\n");
        table_print(list_settings(placement, false), OUTPUT_TABLE, false);
    }
    if (placement->declined_count == 0)
        return;
    printf("\nnodes that %s declines:\n", placement->device);
    table_print(list_declined(placement), OUTPUT_TABLE, false);
}

static json_t *placement_json(const inferd_placement *placement)
{
    json_t *object = json_value_must(json_object());
    const struct {
        const char *key, *text;
    } texts[] = {{"name", placement->name},
                 {"version", placement->version},
                 {"device", placement->device},
                 {"backend", placement->backend},
                 {"precision", placement->precision},
                 {"precision_reason", placement->precision_reason},
                 {"policy", placement->policy},
                 {"source", placement->source},
                 {"reason", placement->reason},
                 {"rule_device", placement->rule_device},
                 {"rule_reason", placement->rule_reason},
                 {"shadow_alarm", placement->shadow_alarm},
                 {"joined_steps", placement->joined_steps}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        json_object_set_new(object, texts[i].key, json_value_text(texts[i].text));
    json_object_set_new(object, "shadow_checked",
                        json_value_whole((int64_t)placement->shadow_checked));
    json_object_set_new(object, "shadow_drifted",
                        json_value_whole((int64_t)placement->shadow_drifted));
    json_object_set_new(object, "shadow_dropped",
                        json_value_whole((int64_t)placement->shadow_dropped));
    json_object_set_new(object, "recomputed", json_value_whole((int64_t)placement->recomputed));
    json_object_set_new(object, "macs", json_value_whole((int64_t)placement->macs));
    json_object_set_new(object, "const_bytes", json_value_whole((int64_t)placement->const_bytes));
    json_object_set_new(object, "steps", json_value_whole(placement->steps));
    json_object_set_new(object, "interpreted", json_value_whole(placement->interpreted));
    return object;
}

static int print_explanation(const struct context *context, const inferd_placement *placement)
{
    if (context->format == OUTPUT_TABLE) {
        print_placement(placement);
        return EXIT_OK;
    }
    json_t *object = placement_json(placement);
    json_object_set_new(object, "candidates", table_json(list_candidates(placement)));
    json_object_set_new(object, "declined", table_json(list_declined(placement)));
    json_object_set_new(object, "settings", table_json(list_settings(placement, true)));
    json_value_print(object);
    return EXIT_OK;
}

// --- the verb advise ---

// The result of applying one rule of thumb to the model: the rule, the number that was found for
// this model, and the advice that follows.
struct advice {
    const char *rule;
    char found[64];
    const char *says;
};

#define ADVICES 4

static void collect_advice(struct advice advice[ADVICES], const inferd_placement *placement)
{
    bool light = placement->const_bytes < LITE_BYTES, quick = placement->macs < LITE_MACS;
    advice[0].rule = "weights < 3 MiB";
    snprintf(advice[0].found, sizeof advice[0].found, "%.2f MB",
             (double)placement->const_bytes / 1e6);
    advice[0].says = light && quick ? "ultra-lite: the CPU" : light ? "-" : "a GPU";
    advice[1].rule = "multiply-adds < 60 M";
    snprintf(advice[1].found, sizeof advice[1].found, "%.2f M", (double)placement->macs / 1e6);
    advice[1].says = light && quick ? "ultra-lite: the CPU" : quick ? "-" : "a GPU";
    advice[2].rule = "operations below 128 elements (WebGL)";
    snprintf(advice[2].found, sizeof advice[2].found, "%u of %u", placement->small_ops_webgl,
             placement->steps);
    advice[2].says = placement->small_ops_webgl > 0 ? "these on the CPU" : "-";
    advice[3].rule = "operations below 1000 elements (WebGPU)";
    snprintf(advice[3].found, sizeof advice[3].found, "%u of %u", placement->small_ops_webgpu,
             placement->steps);
    advice[3].says = placement->small_ops_webgpu > 0 ? "these on the CPU" : "-";
}

// Returns the candidate device with the smallest median run time, or NULL if none was measured.
static const inferd_candidate *find_fastest(const inferd_placement *placement)
{
    const inferd_candidate *best = NULL;
    for (size_t i = 0; i < placement->candidate_count; i++) {
        const inferd_candidate *candidate = &placement->candidates[i];
        bool right =
            strcmp(candidate->verdict, "wrong") != 0 && strcmp(candidate->verdict, "refused") != 0;
        if (candidate->median_ns > 0 && right &&
            (best == NULL || candidate->median_ns < best->median_ns))
            best = candidate;
    }
    return best;
}

static const char *describe_choice(const inferd_placement *placement, const inferd_candidate *best)
{
    if (best == NULL)
        return "not measured: no race was run for this placement";
    return strcmp(best->device, placement->rule_device) == 0 ? "the rule is right here"
                                                             : "the rule is wrong here";
}

static struct table *list_advice(const inferd_placement *placement)
{
    static const char *const columns[] = {"rule", "this_model", "says"};
    struct advice advice[ADVICES];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    collect_advice(advice, placement);
    for (size_t i = 0; i < ADVICES; i++) {
        table_text(table, advice[i].rule);
        table_text(table, advice[i].found);
        table_text(table, advice[i].says);
    }
    return table;
}

static int print_advice(const struct context *context, const inferd_placement *placement)
{
    const inferd_candidate *best = find_fastest(placement);
    if (context->format == OUTPUT_TABLE) {
        table_print(list_advice(placement), OUTPUT_TABLE, false);
        printf("\nrule      %s: %s\n", placement->rule_device, placement->rule_reason);
        if (best != NULL)
            printf("measured  %s: %.3f ms\n", best->device, ms_of(best->median_ns));
        printf("so        %s\nruns on   %s, by %s: %s\n\n", describe_choice(placement, best),
               placement->device, placement->source, placement->reason);
        table_print(list_candidates(placement), OUTPUT_TABLE, false);
        return EXIT_OK;
    }
    json_t *object = placement_json(placement);
    json_object_set_new(object, "rules", table_json(list_advice(placement)));
    json_object_set_new(object, "measured_device",
                        best != NULL ? json_value_text(best->device) : json_null());
    json_object_set_new(object, "judgement", json_value_text(describe_choice(placement, best)));
    json_object_set_new(object, "candidates", table_json(list_candidates(placement)));
    json_value_print(object);
    return EXIT_OK;
}

// --- running the two verbs ---

static int run_with_placement(const struct context *context, const struct arguments *arguments,
                              int (*show)(const struct context *context,
                                          const inferd_placement *placement))
{
    const char *version = NULL;
    for (size_t i = 0; i < arguments->option_count; i++)
        version = arguments->options[i].value;
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_placement *placement;
    if (inferd_explain(client, arguments->names[0], version, &placement, &err) != 0)
        code = command_failed(&err);
    else
        code = show(context, placement);
    inferd_placement_free(placement);
    inferd_close(client);
    return code;
}

static int run_explain(const struct context *context, const struct arguments *arguments)
{
    return run_with_placement(context, arguments, print_explanation);
}

static int run_advise(const struct context *context, const struct arguments *arguments)
{
    return run_with_placement(context, arguments, print_advice);
}

static const struct option long_options[] = {{"version", required_argument, NULL, 'v'}, {0}};

const struct command command_explain = {
    .name = "explain",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "show where MODEL runs and why, and why not on the other devices",
    .help =
        "Times are those of the race that chose the device, at this or an earlier start; prior_ms\n"
        "is estimated from the device's speed. Nodes that the device declines are listed with the\n"
        "reason.\n\n"
        "  -v, --version V        of the model\n",
    .short_options = "v:",
    .long_options = long_options,
    .run = run_explain,
};

const struct command command_advise = {
    .name = "advise",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "show what rules of thumb say about MODEL beside what was measured",
    .help =
        "The rules are those of TensorFlow.js's documents: a model below 3 MiB and 60 M\n"
        "multiply-adds belongs on the CPU, others on a GPU; operations below 128 elements (WebGL)\n"
        "or 1000 (WebGPU) are handed to the CPU.\n\n"
        "  -v, --version V        of the model\n",
    .short_options = "v:",
    .long_options = long_options,
    .run = run_advise,
};
