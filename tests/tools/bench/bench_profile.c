// SPDX-License-Identifier: Apache-2.0
// Profiles a model by steps: shortest times, work, bytes, and the share of the peak of the cores.
#include "tests/tools/bench/bench_profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/tools/kernels/peak.h"

#define PROFILE_RUNS 20u

// --- counting the multiply-adds and bytes of each step ---

// Returns the number of multiply-adds of a node that computes products (such as a convolution); 0
// for other nodes.
static double node_macs(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->input_count < 2 || node->inputs[1] == INF_VALUE_NONE)
        return 0;
    const struct inf_shape *x = &graph->values[node->inputs[0]].shape;
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    double filter = (double)inf_shape_elements(&graph->values[node->inputs[1]].shape);
    switch (node->op) {
    case INF_OP_CONV2D:
    case INF_OP_QCONV2D:
    case INF_OP_DEPTHWISE_CONV2D:
        return (double)inf_shape_elements(y) / (double)y->dims[3] * filter;
    case INF_OP_CONV2D_TRANSPOSE:
        return (double)inf_shape_elements(x) / (double)x->dims[3] * filter;
    case INF_OP_MATMUL:
        return (double)inf_shape_elements(y) *
               (double)x->dims[x->rank - (node->attrs.matmul.transpose_a ? 2 : 1)];
    case INF_OP_QMATMUL:
    case INF_OP_MATMUL_BLOCKS:
        return (double)inf_shape_elements(y) * (double)x->dims[x->rank - 1];
    default:
        return 0;
    }
}

// The work of a step, summed over all nodes that the step computes.
struct work {
    double macs;
    double bytes; // size of the tensors that the step reads and writes
};

static double value_bytes(const struct inf_graph *graph, uint32_t value)
{
    size_t size;
    if (value == INF_VALUE_NONE ||
        !inf_shape_bytes(&graph->values[value].shape, graph->values[value].dtype, &size))
        return 0;
    return (double)size;
}

// A step computes one node or a chain of fused nodes, and only its last node is marked in `listed`.
// Returns the last node of the step that computes `node`; INF_NODE_NONE if there is none.
static uint32_t computed_by(const struct inf_graph *graph, const bool *listed, uint32_t node)
{
    while (node != INF_NODE_NONE && !listed[node]) {
        uint32_t reader = INF_NODE_NONE;
        for (uint32_t n = node + 1; reader == INF_NODE_NONE && n < graph->node_count; n++) {
            for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
                if (graph->nodes[n].inputs[i] == graph->nodes[node].outputs[0])
                    reader = n;
            }
        }
        node = reader;
    }
    return node;
}

// Sets work[n] for each node n that is marked in `listed`, that is the last node of a step, to the
// work of that step.
static void sum_work(const struct inf_graph *graph, const bool *listed, struct work *work)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        uint32_t step = computed_by(graph, listed, n);
        if (step == INF_NODE_NONE)
            continue;
        const struct inf_node *node = &graph->nodes[n];
        work[step].macs += node_macs(graph, node);
        for (uint32_t i = 0; i < node->input_count; i++) {
            uint32_t value = node->inputs[i];
            uint32_t made_by = value != INF_VALUE_NONE ? graph->values[value].producer : step;
            // Do not count tensors between nodes of the same step, because they are neither read
            // nor written.
            if (made_by == INF_NODE_NONE || computed_by(graph, listed, made_by) != step)
                work[step].bytes += value_bytes(graph, value);
        }
        for (uint32_t i = 0; i < node->output_count && n == step; i++)
            work[step].bytes += value_bytes(graph, node->outputs[i]);
    }
}

struct timed {
    struct inf_node_profile *nodes;
    double *best_us;
    struct work *work; // indexed by node; only the entry of the last node of each step is set
    bool *listed;      // indexed by node; true for the last node of each step
    uint32_t count;
};

static bool computes_bytes(const struct inf_node_profile *profile)
{
    return profile->kernel != NULL && strncmp(profile->kernel, "q8", 2) == 0;
}

// Returns the peak rate of the cores, in multiply-adds per second, for the precision and the kind
// of arithmetic of the step.
static double peak_of(const struct inf_node_profile *profile, const struct tool_peaks *peaks,
                      enum inf_precision precision)
{
    if (computes_bytes(profile))
        return peaks->q8;
    return precision == INF_PRECISION_BF16 && peaks->bf16 > 0 ? peaks->bf16 : peaks->fp32;
}

static void print_step(const struct inf_graph *graph, const struct inf_node_profile *profile,
                       const struct work *work, double us, double total_us, double peak,
                       double peak_dot)
{
    const struct inf_node *node = &graph->nodes[profile->node];
    double gflops = us > 0 ? 2e-3 * work->macs / us : 0;
    char dot[16] = "-";
    if (peak_dot > 0 && computes_bytes(profile))
        snprintf(dot, sizeof dot, "%.1f", 100 * gflops / peak_dot);
    printf("  %9.1f %6.1f %8.1f %6.1f %6s %9.1f %7.1f  %-6s %-22s %-16s %s\n", us,
           total_us > 0 ? 100 * us / total_us : 0, gflops, peak > 0 ? 100 * gflops / peak : 0, dot,
           work->bytes / 1024, us > 0 ? work->bytes / us / 1000 : 0, profile->device,
           profile->kernel != NULL ? profile->kernel : "", inf_op_info(node->op)->name, node->name);
}

static void print_profile(const struct inf_graph *graph, const struct timed *timed,
                          const struct tool_peaks *peaks, const struct tool_engine *engine)
{
    double total_us = 0;
    for (uint32_t i = 0; i < timed->count; i++)
        total_us += timed->best_us[i];
    printf("  %9s %6s %8s %6s %6s %9s %7s  %-6s %-22s %-16s %s\n", "us", "%", "GFLOP/s", "%peak",
           "%dot", "KiB", "GB/s", "device", "kernel", "op", "node");
    for (uint32_t i = 0; i < timed->count; i++)
        print_step(graph, &timed->nodes[i], &timed->work[timed->nodes[i].node], timed->best_us[i],
                   total_us, peak_of(&timed->nodes[i], peaks, engine->options.precision),
                   peaks->q8_dot);
    printf("  %9.1f in %u steps; peaks of multiply-adds: %.1f GFLOP/s in fp32", total_us,
           timed->count, peaks->fp32);
    if (peaks->bf16 > 0)
        printf(", %.1f in bf16", peaks->bf16);
    printf(", %.1f in 8 bits (%.1f without tile registers); %s\n", peaks->q8, peaks->q8_dot,
           inf_device_info(engine->device)->description);
}

// Returns the shortest time of each step over some runs. The shortest time is the best estimate,
// because disturbances only add time.
static enum inf_code time_steps(const struct bench_subject *subject, struct timed *timed,
                                struct inf_error *err) INF_MAY_BLOCK
{
    uint32_t capacity = subject->graph->node_count;
    for (uint32_t run = 0; run < PROFILE_RUNS; run++) {
        INF_TRY(bench_subject_run(subject, true, err));
        timed->count = inf_executable_profile(subject->executable, 0, timed->nodes, capacity);
        for (uint32_t i = 0; i < timed->count; i++) {
            double us = (double)timed->nodes[i].time_ns / 1000;
            timed->best_us[i] = run == 0 ? us : INF_MIN(timed->best_us[i], us);
        }
    }
    for (uint32_t i = 0; i < timed->count; i++)
        timed->listed[timed->nodes[i].node] = true;
    return INF_OK;
}

// Prints how large the model's weights are, and how long packing them took.
static enum inf_code print_weights(const struct bench_subject *subject, struct inf_error *err)
{
    struct inf_executable_memory memory;
    INF_TRY(inf_executable_memory(subject->executable, &memory, err));
    printf(
        "  weights: %.1f KiB packed in %.2f ms, %.1f KiB for this program alone, "
        "%.1f KiB as they are\n",
        (double)memory.shared_bytes / 1024, (double)memory.packing_ns / 1e6,
        (double)memory.weight_bytes / 1024, (double)memory.const_bytes / 1024);
    return INF_OK;
}

// Prints the shortest CPU time that the calling thread used in a run.
static enum inf_code print_host(const struct bench_subject *subject,
                                struct inf_error *err) INF_MAY_BLOCK
{
    double best_us = 0;
    for (uint32_t run = 0; run < PROFILE_RUNS; run++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        INF_TRY(bench_subject_run(subject, false, err));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        double us =
            (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
        best_us = run == 0 ? us : INF_MIN(best_us, us);
    }
    printf("  %9.1f of the calling thread\n", best_us);
    return INF_OK;
}

enum inf_code bench_profile(const struct bench_subject *subject, const struct tool_engine *engine,
                            uint32_t threads, struct inf_error *err)
{
    size_t count = (size_t)subject->graph->node_count + 1;
    struct timed timed = {.nodes = calloc(count, sizeof(*timed.nodes)),
                          .best_us = calloc(count, sizeof(*timed.best_us)),
                          .work = calloc(count, sizeof(*timed.work)),
                          .listed = calloc(count, sizeof(*timed.listed))};
    enum inf_code code = INF_OK;
    if (timed.nodes == NULL || timed.best_us == NULL || timed.work == NULL || timed.listed == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory for a profile");
    else
        code = time_steps(subject, &timed, err);
    if (code == INF_OK) {
        sum_work(subject->graph, timed.listed, timed.work);
        struct tool_peaks peaks = tool_peaks();
        peaks.fp32 *= threads, peaks.bf16 *= threads, peaks.q8 *= threads;
        peaks.q8_dot *= threads;
        print_profile(subject->graph, &timed, &peaks, engine);
        // The runs above recorded timestamps. One run without timestamps warms up and is not
        // counted.
        (void)!bench_subject_run(subject, false, NULL);
        code = print_host(subject, err);
        if (code == INF_OK)
            code = print_weights(subject, err);
    }
    free(timed.nodes);
    free(timed.best_us);
    free(timed.work);
    free(timed.listed);
    return code;
}
