// SPDX-License-Identifier: Apache-2.0
// Decides whether a model may compute in less than fp32. The precision check runs the graph twice:
// once with noise and once with a synthetic picture. Noise alone is not enough, because many
// networks give the same answer for all noise. The worse result counts. Large products are computed
// on a host device, all other nodes with the reference kernels.
#include "daemon/load/precision.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/dynamic/product_evaluator.h"
#include "proto/core/span.h"

// Kinds of inputs for the precision check, with values between 0 and 1. Noise alone proves little,
// because many networks give the same answer for all noise.
enum look {
    LOOK_NOISE,   // uniform noise, as in races
    LOOK_PICTURE, // a bright ellipse with rows of strokes on a dark background, and a little noise
    LOOK_COUNT
};

// Returns the brightness of element `i` of a test picture in layout [n,h,w,c] or [n,c,h,w].
static float find_brightness(const struct inf_shape *shape, size_t i)
{
    bool planes = shape->dims[1] <= 4 && shape->dims[3] > 4;
    size_t w = (size_t)shape->dims[planes ? 3 : 2], h = (size_t)shape->dims[planes ? 2 : 1];
    size_t pixel = planes ? i : i / (size_t)shape->dims[3];
    float x = (float)(pixel % w) / (float)w - 0.5f, y = (float)(pixel / w % h) / (float)h - 0.5f;
    float ground = 0.15f + 0.1f * (x + y);
    if (6 * x * x + 5 * y * y > 1)
        return ground;
    // Draw rows of strokes at pseudo-random places, which resemble text.
    unsigned line = (unsigned)((y + 0.5f) * 32), column = (unsigned)((x + 0.5f) * 160);
    bool stroke = (line & 1) != 0 && ((line * 2654435761u + column * 40503u) >> 7 & 3) < 2;
    return stroke ? ground : 0.65f + 0.2f * x;
}

// Creates a test input: values between 0 and 1 for floats, and 0 for other types.
static struct inf_blob *make_input(const struct inf_value *value, enum look look)
{
    size_t bytes;
    uint64_t state = 1;
    if (!inf_shape_bytes(&value->shape, value->dtype, &bytes))
        return NULL;
    struct inf_blob *blob = inf_blob_create(bytes);
    if (blob == NULL || value->dtype != INF_DTYPE_F32)
        return blob;
    float *elements = blob->data;
    for (size_t i = 0; i < bytes / sizeof *elements; i++) {
        // A linear congruential generator (Knuth, TAOCP 2, 3.3.4, line 26). Its quality is
        // sufficient here.
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        elements[i] = (float)(state >> 40) / 16777216.f;
        if (look == LOOK_PICTURE && value->shape.rank == 4)
            elements[i] = 0.1f * elements[i] + find_brightness(&value->shape, i);
    }
    return blob;
}

static enum inf_code check_look(struct inf_precision_report *report, enum inf_precision precision,
                                const struct inf_graph *graph, enum look look,
                                const struct inf_product_evaluator *products,
                                const atomic_bool *cancelled, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_blob **inputs = calloc((size_t)graph->input_count + 1, sizeof(struct inf_blob *));
    bool made = inputs != NULL;
    for (uint32_t i = 0; made && i < graph->input_count; i++) {
        inputs[i] = make_input(&graph->values[graph->inputs[i].value], look);
        made = inputs[i] != NULL;
    }
    const struct inf_precision_limits limits = {
        .macs = products->host_count > 1 ? INF_PRECISION_DEVICE_MACS_MAX : INF_PRECISION_MACS_MAX,
        .time_ns = INF_PRECISION_TIME_MAX_NS};
    enum inf_code code =
        made ? inf_precision_check(report, precision, graph, &products->evaluator, &limits, inputs,
                                   cancelled, err)
             : inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for inputs");
    for (uint32_t i = 0; inputs != NULL && i < graph->input_count; i++)
        inf_blob_unref(&inputs[i]);
    free(inputs);
    return code;
}

static bool takes_pictures(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        if (value->dtype == INF_DTYPE_F32 && value->shape.rank == 4)
            return true;
    }
    return false;
}

static bool has_pin(const struct inf_precision_report *report, uint64_t pin)
{
    for (uint32_t i = 0; i < report->pinned_nodes; i++)
        if (report->pins[i] == pin)
            return true;
    return false;
}

// Merges two reports of a precision check that both admit the precision: keeps the larger error,
// and the nodes that either report pins to fp32.
static void merge_reports(struct inf_precision_report *report, struct inf_precision_report *other)
{
    struct inf_precision_report *more = other->error > report->error ? other : report;
    const struct inf_precision_report *less = more == report ? other : report;
    for (uint32_t i = 0; i < less->pinned_nodes && more->admissible; i++) {
        if (has_pin(more, less->pins[i]))
            continue;
        more->admissible = more->pinned_nodes < INF_PRECISION_PINS_MAX;
        if (more->admissible)
            more->pins[more->pinned_nodes++] = less->pins[i];
    }
    more->magnitude = fmax(report->magnitude, other->magnitude);
    *report = *more;
}

enum inf_code inf_precision_evaluate(struct inf_precision_report *report,
                                     enum inf_precision precision, struct inf_model *model,
                                     const struct inf_shape *shapes,
                                     struct inf_device *const *hosts, uint32_t host_count,
                                     const atomic_bool *cancelled, struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct inf_precision_report other;
    struct inf_product_evaluator products;
    inf_product_evaluator_init(&products, inf_registry_evaluator(), hosts, host_count);
    INF_TRY(inf_model_specialize_graph(model, shapes, &graph, err));
    INF_TRY(check_look(report, precision, graph, LOOK_NOISE, &products, cancelled, err));
    if (report->admissible && takes_pictures(graph)) {
        INF_TRY(check_look(&other, precision, graph, LOOK_PICTURE, &products, cancelled, err));
        if (other.admissible)
            merge_reports(report, &other);
        else
            *report = other;
    }
    report->admissible &= !inf_precision_is_inconclusive(report);
    return INF_OK;
}

// Checks a precision and fills *result, except for its key. Returns false if the check failed for
// a reason that may pass, such as memory, so that the result must not be remembered.
static bool check_precision(struct inf_precision_result *result,
                            const struct inf_precision_question *question,
                            enum inf_precision precision) INF_MAY_BLOCK
{
    struct inf_precision_report report;
    struct inf_error why = {0};
    struct inf_device *hosts[INF_REGISTRY_DEVICES];
    uint32_t host_count = inf_device_list_hosts(question->devices, hosts, INF_REGISTRY_DEVICES);
    uint64_t begin_ns = inf_clock_ns();
    inf_log(question->log, INF_LOG_INFO, "precision check begins name=%s precision=%s",
            question->name, inf_precision_name(precision));
    enum inf_code code =
        inf_precision_evaluate(&report, precision, question->model, question->shapes, hosts,
                               host_count, question->cancelled, &why);
    if (code == INF_OK) {
        inf_precision_print(&report, result->text, sizeof result->text);
        result->admissible = report.admissible;
        result->pin_count = INF_MIN(report.pinned_nodes, INF_PRECISION_PINS_MAX);
        memcpy(result->pins, report.pins, result->pin_count * sizeof *result->pins);
    } else {
        snprintf(result->text, sizeof result->text, "%.180s", why.text);
    }
    inf_log(question->log, INF_LOG_INFO,
            "precision checked name=%s precision=%s ms=%" PRIu64 " allowed=%s result=\"%s\"",
            question->name, inf_precision_name(precision),
            (inf_clock_ns() - begin_ns) / INF_NS_PER_MS, result->admissible ? "yes" : "no",
            result->text);
    return code == INF_OK || code == INF_UNSUPPORTED;
}

_Static_assert(INF_PRECISION_PINS_MAX == INF_PRECISION_RESULT_PINS,
               "a result has room for all pins");

// Fills *result with the result of an earlier check or, if there is none, of a new check, which is
// then remembered.
static void find_result(struct inf_precision_result *result,
                        const struct inf_precision_question *question,
                        enum inf_precision precision) INF_MAY_BLOCK
{
    *result = (struct inf_precision_result){0};
    if (question->shapes == NULL) {
        snprintf(result->text, sizeof result->text, "its shapes are not known");
        return;
    }
    result->key = inf_precision_results_key(question->content_hash, question->shapes,
                                            question->input_count, precision, question->version);
    const struct inf_precision_result *known =
        question->results != NULL ? inf_precision_results_find(question->results, result->key)
                                  : NULL;
    if (known != NULL) {
        *result = *known;
        return;
    }
    if (check_precision(result, question, precision) && question->results != NULL)
        inf_precision_results_add(question->results, result);
}

// --- which precisions the devices offer ---

static bool offers_precision(const struct inf_device *device, enum inf_precision precision)
{
    return (inf_device_info(device)->precisions & INF_PRECISION_BIT(precision)) != 0;
}

static bool any_offers_precision(const struct inf_device_list *devices,
                                 enum inf_precision precision)
{
    for (uint32_t i = 0; i < devices->count; i++)
        if (offers_precision(devices->devices[i], precision))
            return true;
    return false;
}

// Lists the devices with their reduced precisions: "gpu fp16, cpu, ref".
static void list_devices(const struct inf_device_list *devices, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < devices->count && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 inf_device_info(devices->devices[i])->name);
        for (enum inf_precision p = INF_PRECISION_FP32 + 1; p < INF_PRECISIONS && used < size; p++)
            if (offers_precision(devices->devices[i], p))
                used += (size_t)snprintf(text + used, size - used, " %s", inf_precision_name(p));
    }
}

static enum inf_code refuse_precision(enum inf_precision wanted,
                                      const struct inf_device_list *devices,
                                      const struct inf_device *device, const char *would,
                                      struct inf_error *err)
{
    char known[96] = "";
    list_devices(devices, known, sizeof known);
    if (device != NULL)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_FEATURE,
                               "precision %s: device '%s' does not compute in it (%s); in it: %s",
                               inf_precision_name(wanted), inf_device_info(device)->name, known,
                               would);
    return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_FEATURE,
                           "precision %s: no device computes in it (%s: fp32 only); in it: %s",
                           inf_precision_name(wanted), known, would);
}

// --- choosing the precision of a model ---

static enum inf_code decide_named(const struct inf_precision_question *question,
                                  char reason[INF_PRECISION_REASON],
                                  struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_precision_result result;
    enum inf_precision wanted = question->wanted;
    const struct inf_device *device = question->device;
    find_result(&result, question, wanted);
    if (device != NULL ? !offers_precision(device, wanted)
                       : !any_offers_precision(question->devices, wanted))
        return refuse_precision(wanted, question->devices, device, result.text, err);
    if (!result.admissible)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_FEATURE,
                               "precision %s: this model must not: %s", inf_precision_name(wanted),
                               result.text);
    snprintf(reason, INF_PRECISION_REASON, "it was named; %.200s", result.text);
    return inf_model_pin(question->model, wanted, result.pins, result.pin_count, err);
}

static void decide_auto(const struct inf_precision_question *question,
                        char reason[INF_PRECISION_REASON]) INF_MAY_BLOCK
{
    const struct inf_device_list *devices = question->devices;
    struct inf_precision_result result;
    char known[96] = "";
    bool offered = false;
    for (enum inf_precision p = INF_PRECISION_FP32 + 1; p < INF_PRECISIONS; p++)
        offered |= any_offers_precision(devices, p);
    list_devices(devices, known, sizeof known);
    if (offered) {
        snprintf(reason, INF_PRECISION_REASON, "less is tried in a race (%.64s)", known);
        return;
    }
    find_result(&result, question, INF_PRECISION_FP16);
    snprintf(reason, INF_PRECISION_REASON, "%.64s: fp32 only; in fp16: %.160s", known, result.text);
}

enum inf_code inf_precision_decide(const struct inf_precision_question *question,
                                   char reason[INF_PRECISION_REASON], struct inf_error *err)
{
    if (question->wanted > INF_PRECISION_FP32)
        return decide_named(question, reason, err);
    if (question->wanted == INF_PRECISION_FP32)
        snprintf(reason, INF_PRECISION_REASON, "it was named");
    else
        decide_auto(question, reason);
    return INF_OK;
}

void inf_precision_explain(const struct inf_placement *placement, char reason[INF_PRECISION_REASON])
{
    const struct inf_race *race = &placement->race;
    const struct inf_race_entry *chosen = &race->entries[race->chosen];
    bool measured = placement->source == INF_PLACE_RACE || placement->source == INF_PLACE_RECALL;
    if (measured && chosen->options.precision > INF_PRECISION_FP32) {
        snprintf(reason, INF_PRECISION_REASON,
                 "it won the race, within %g of fp32; %u nodes stay fp32",
                 chosen->tolerance > 0 ? chosen->tolerance
                 : race->tolerance > 0 ? race->tolerance
                                       : INF_RACE_TOLERANCE,
                 race->pin_count);
        return;
    }
    for (uint32_t i = 0; i < race->count && measured; i++) {
        const struct inf_race_entry *entry = &race->entries[i];
        if (entry->options.precision <= INF_PRECISION_FP32)
            continue;
        snprintf(reason, INF_PRECISION_REASON, "%s on %s: %s%s%.160s",
                 inf_precision_name(entry->options.precision), inf_device_info(entry->device)->name,
                 inf_race_verdict_name(entry->verdict), entry->why[0] != '\0' ? ": " : "",
                 entry->why);
        return;
    }
}
