// SPDX-License-Identifier: Apache-2.0
// run_random [--backend NAME] [--count N] [--seed N] [--nodes N] [--print]
//
// Tests COUNT random graphs of all operators (tests/conformance/random_graph.h), from seed SEED on,
// each with about 1 to NODES nodes. Each graph runs on the backend (cpu if available) with all
// passes and without passes, and on the reference device `ref` with all passes. Input shapes are
// known at compilation; for every other graph, the graph also runs with shapes that are known only
// at run time. Every output is compared with the result of running the graph on `ref` node by node.
// A graph that fails is reduced to a smaller graph that still fails, and printed with its seed.
// --print prints every graph. Exit status: 0 all outputs agree, 1 some do not, 2 usage.
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/graph/print.h"
#include "backends/registry.h"
#include "tests/conformance/random_graph.h"
#include "tests/tools/run/engine.h"

// One way to run a graph: the device, with or without passes, with known or unknown shapes.
struct subject {
    const char *name;
    struct inf_device *device;
    bool passes; // true: all passes; false: none
    bool late;   // input shapes are known only at run time
};

// The graph under test: a random graph, or a part of one.
struct part {
    const struct random_graph *random;
    struct inf_graph *graph; // the value indices are the same as in the random graph
};

static const struct inf_tensor *tensor_of(const struct part *part, uint32_t value)
{
    return &part->random->values[value].worlds[0];
}

// --- comparing outputs with the results of `ref` ---

static double read_element(enum inf_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case INF_DTYPE_F32:
        return (double)((const float *)data)[i];
    case INF_DTYPE_F64:
        return ((const double *)data)[i];
    case INF_DTYPE_F16:
        return (double)inf_half_to_float(((const uint16_t *)data)[i]);
    default:
        return (double)inf_bf16_to_float(((const uint16_t *)data)[i]);
    }
}

// Devices may flush subnormal floats to 0, so a tiny difference is accepted.
static bool is_near(double got, double wanted, double tolerance)
{
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs(got - wanted) <= tolerance + 1.2e-38;
}

static enum inf_code compare_output(const struct part *part, uint32_t output,
                                    const struct inf_tensor *got, const void *data,
                                    struct inf_error *err)
{
    uint32_t index = part->graph->outputs[output].value;
    const struct inf_tensor *wanted = tensor_of(part, index);
    const char *name = part->graph->outputs[output].name;
    char has[INF_SHAPE_TEXT_SIZE], wants[INF_SHAPE_TEXT_SIZE];
    if (got->dtype != wanted->dtype || !inf_shape_equal(&got->shape, &wanted->shape))
        return inf_fail(err, INF_INVALID, "output '%s' is %s %s, wanted %s %s", name,
                        inf_dtype_name(got->dtype), inf_shape_print(&got->shape, has),
                        inf_dtype_name(wanted->dtype), inf_shape_print(&wanted->shape, wants));
    double tolerance = random_tolerance(&part->random->values[index]);
    size_t size = inf_dtype_size(wanted->dtype);
    const char *right = wanted->data->data;
    for (size_t i = 0; i < inf_shape_elements(&wanted->shape); i++) {
        if (!inf_dtype_is_float(wanted->dtype)) {
            if (memcmp((const char *)data + i * size, right + i * size, size) != 0)
                return inf_fail(err, INF_INVALID, "output '%s', element %zu of %s differs", name, i,
                                inf_dtype_name(wanted->dtype));
            continue;
        }
        double a = read_element(wanted->dtype, data, i), b = read_element(wanted->dtype, right, i);
        if (!is_near(a, b, tolerance))
            return inf_fail(err, INF_INVALID,
                            "output '%s', element %zu is %.9g, wanted %.9g within %.3g", name, i, a,
                            b, tolerance);
    }
    return INF_OK;
}

// --- running a graph in one of several ways ---

static enum inf_code judge_outputs(const struct part *part, const struct inf_executable *executable,
                                   struct inf_blob *const *blobs, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_tensor got = {.dtype = value->dtype, .shape = value->shape};
        struct inf_result result;
        const void *data = blobs[i] != NULL ? blobs[i]->data : NULL;
        if (inf_executable_result(executable, 0, i, &result)) {
            got = (struct inf_tensor){.dtype = result.dtype, .shape = result.shape};
            data = result.data;
        }
        if (data == NULL)
            return inf_fail(err, INF_INVALID, "output %u was not made", i);
        INF_TRY(compare_output(part, i, &got, data, err));
    }
    return INF_OK;
}

static enum inf_code run_executable(const struct part *part, struct inf_executable *executable,
                                    struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const void **inputs = calloc(graph->input_count + 1, sizeof *inputs);
    void **outputs = calloc(graph->output_count + 1, sizeof *outputs);
    struct inf_blob **blobs = calloc(graph->output_count + 1, sizeof *blobs);
    enum inf_code code = INF_OK;
    if (inputs == NULL || outputs == NULL || blobs == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory");
    for (uint32_t i = 0; code == INF_OK && i < graph->input_count; i++)
        inputs[i] = tensor_of(part, part->graph->inputs[i].value)->data->data;
    for (uint32_t i = 0; code == INF_OK && i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t size_bytes;
        if (inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            blobs[i] = inf_blob_create(size_bytes);
        outputs[i] = blobs[i] != NULL ? blobs[i]->data : NULL;
        // Fill the output with garbage, so that an unwritten element cannot be correct by chance.
        if (blobs[i] != NULL && size_bytes != 0)
            memset(blobs[i]->data, 0xa5, size_bytes);
    }
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    // Run twice, to check that the first run leaves no state that changes the second one.
    for (int run = 0; run < 2 && code == INF_OK; run++)
        code = inf_executable_run(executable, &execution, err);
    if (code == INF_OK)
        code = judge_outputs(part, executable, blobs, err);
    for (uint32_t i = 0; blobs != NULL && i < graph->output_count; i++)
        inf_blob_unref(&blobs[i]);
    free(blobs);
    free(inputs);
    free(outputs);
    return code;
}

// Clones the graph with the input shapes that the subject requires.
static enum inf_code clone_for(const struct part *part, const struct subject *subject,
                               struct inf_graph **graph, struct inf_error *err)
{
    INF_TRY(inf_graph_clone(graph, part->graph, err));
    for (uint32_t i = 0; subject->late && i < (*graph)->input_count; i++) {
        struct inf_shape *shape = &(*graph)->values[(*graph)->inputs[i].value].shape;
        for (int32_t axis = 0; axis < shape->rank; axis++)
            if (axis == 0 || i % 2 == 0)
                shape->dims[axis] = INF_DIM_UNKNOWN;
    }
    return INF_OK;
}

static enum inf_code run_part(const struct tool_engine *engine, const struct part *part,
                              const struct subject *subject, struct inf_error *err)
{
    struct inf_pass_options options = {.disabled = subject->passes ? 0 : (1u << INF_PASS_COUNT) - 1,
                                       .evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    struct inf_shape *shapes = calloc(part->graph->input_count + 1, sizeof *shapes);
    for (uint32_t i = 0; shapes != NULL && i < part->graph->input_count; i++)
        shapes[i] = tensor_of(part, part->graph->inputs[i].value)->shape;
    enum inf_code code = shapes != NULL ? clone_for(part, subject, &graph, err) : INF_EXHAUSTED;
    if (code == INF_OK)
        code = inf_model_create(&model, &graph, engine->hosts, engine->host_count, &options, err);
    if (code == INF_OK)
        code = inf_model_acquire(model, subject->device, shapes, &executable, err);
    if (code == INF_OK)
        code = run_executable(part, executable, err);
    if (executable != NULL)
        inf_model_release(model, &executable);
    inf_model_unref(&model);
    inf_graph_destroy(&graph);
    free(shapes);
    return code;
}

// --- reducing a failing graph ---

// Which part of a failing graph is kept to find a smaller one that still fails: all outputs or one
// output. The outputs of removed nodes become inputs.
struct cut {
    bool *nodes;
    uint32_t output; // index of the output; UINT32_MAX for all outputs
};

static void mark_live(const struct inf_graph *graph, const struct cut *cut, bool *live)
{
    bool *wanted = calloc(graph->value_count + 1, sizeof *wanted);
    if (wanted == NULL)
        abort();
    for (uint32_t i = 0; i < graph->output_count; i++)
        wanted[graph->outputs[i].value] |= cut->output == UINT32_MAX || cut->output == i;
    for (uint32_t i = graph->node_count; i-- > 0;) {
        const struct inf_node *node = &graph->nodes[i];
        live[i] = false;
        for (uint32_t k = 0; k < node->output_count; k++)
            live[i] |= wanted[node->outputs[k]];
        for (uint32_t k = 0; live[i] && !cut->nodes[i] && k < node->input_count; k++)
            if (node->inputs[k] != INF_VALUE_NONE)
                wanted[node->inputs[k]] = true;
    }
    free(wanted);
}

// Makes the outputs of a removed node inputs of the graph.
static void feed_outputs(struct part *part, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        struct inf_value *value = &part->graph->values[node->outputs[i]];
        char name[24];
        snprintf(name, sizeof name, "v%u", node->outputs[i]);
        value->shape = tensor_of(part, node->outputs[i])->shape;
        if (inf_graph_add_input(part->graph, name, node->outputs[i], NULL) != INF_OK)
            abort();
    }
}

// Returns true if a remaining node or output reads the value.
static bool is_read(const struct inf_graph *graph, uint32_t value)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] == value)
                return true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i].value == value)
            return true;
    return false;
}

static struct part cut_down(const struct random_graph *random, const struct cut *cut)
{
    struct part part = {.random = random};
    uint32_t count = random->graph->node_count;
    uint32_t *map = calloc(count + 1, sizeof *map);
    bool *live = calloc(count + 1, sizeof *live);
    if (map == NULL || live == NULL || inf_graph_clone(&part.graph, random->graph, NULL) != INF_OK)
        abort();
    struct inf_graph *graph = part.graph;
    mark_live(graph, cut, live);
    for (uint32_t i = 0, next = 0; i < count; i++) {
        bool kept = live[i] && !cut->nodes[i];
        map[i] = kept ? next++ : INF_NODE_NONE;
        if (live[i] && cut->nodes[i])
            feed_outputs(&part, &graph->nodes[i]);
        for (uint32_t k = 0; !kept && k < graph->nodes[i].output_count; k++)
            graph->values[graph->nodes[i].outputs[k]].producer = INF_NODE_NONE;
    }
    inf_graph_compact_nodes(graph, map);
    (void)inf_graph_compact_subgraphs(graph);
    if (cut->output != UINT32_MAX) {
        graph->outputs[0] = graph->outputs[cut->output];
        graph->output_count = 1;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (is_read(graph, graph->inputs[i].value))
            graph->inputs[kept++] = graph->inputs[i];
    graph->input_count = kept;
    free(map);
    free(live);
    return part;
}

static bool still_fails(const struct tool_engine *engine, const struct random_graph *random,
                        const struct cut *cut, const struct subject *subject, struct inf_error *err)
{
    struct part part = cut_down(random, cut);
    bool fails = run_part(engine, &part, subject, err) != INF_OK;
    inf_graph_destroy(&part.graph);
    return fails;
}

// Prints the smallest part that was found to fail.
static void print_failure(const struct tool_engine *engine, const struct random_graph *random,
                          const struct subject *subject, uint64_t seed,
                          const struct inf_error *first)
{
    struct inf_error err;
    struct cut cut = {.nodes = calloc(random->graph->node_count + 1, sizeof(bool)),
                      .output = UINT32_MAX};
    if (cut.nodes == NULL)
        abort();
    for (uint32_t i = 0; i < random->graph->output_count && cut.output == UINT32_MAX; i++) {
        cut.output = i;
        if (!still_fails(engine, random, &cut, subject, &err))
            cut.output = UINT32_MAX;
    }
    for (uint32_t i = 0; i < random->graph->node_count; i++) {
        cut.nodes[i] = true;
        cut.nodes[i] = still_fails(engine, random, &cut, subject, &err);
    }
    struct part part = cut_down(random, &cut);
    bool fails = run_part(engine, &part, subject, &err) != INF_OK;
    printf("FAIL seed %" PRIu64 ": %s: %s\n", seed, subject->name, fails ? err.text : first->text);
    inf_graph_print(part.graph, stdout);
    inf_graph_destroy(&part.graph);
    free(cut.nodes);
}

// --- running all graphs ---

struct choice {
    const char *backend;
    uint64_t seed, count;
    uint32_t nodes;
    bool print;
};

struct tally {
    uint64_t graphs, nodes, faults;
    bool ops[INF_OP_COUNT];
};

static void count_ops(const struct inf_graph *graph, struct tally *tally)
{
    tally->nodes += graph->node_count;
    for (uint32_t i = 0; i < graph->node_count; i++)
        tally->ops[graph->nodes[i].op] = true;
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        count_ops(graph->subgraphs[i], tally);
}

static void try_seed(const struct tool_engine *engine, const struct choice *choice, uint64_t seed,
                     struct tally *tally)
{
    struct random_graph random;
    bool late = seed % 2 == 1;
    const struct subject subjects[] = {
        {late ? "all passes, shapes told late" : "all passes", engine->device, true, late},
        {late ? "no pass, shapes told late" : "no pass", engine->device, false, late},
        {"ref, all passes", engine->hosts[engine->host_count - 1], true, false},
    };
    random_graph_make(&random, seed, 1 + (uint32_t)(seed % choice->nodes));
    struct part part = {.random = &random, .graph = random.graph};
    if (choice->print)
        inf_graph_print(random.graph, stdout);
    tally->graphs++;
    count_ops(random.graph, tally);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(subjects); i++) {
        struct inf_error err = {0};
        if (run_part(engine, &part, &subjects[i], &err) == INF_OK)
            continue;
        tally->faults++;
        print_failure(engine, &random, &subjects[i], seed, &err);
        break;
    }
    random_graph_free(&random);
}

static int run_all(const struct choice *choice)
{
    struct tool_engine engine;
    struct inf_error err = {0};
    struct tally tally = {0};
    uint32_t ops = 0;
    if (tool_engine_open(&engine, choice->backend, 1, &err) != INF_OK) {
        fprintf(stderr, "run_random: %s\n", err.text);
        return 2;
    }
    for (uint64_t i = 0; i < choice->count; i++)
        try_seed(&engine, choice, choice->seed + i, &tally);
    tool_engine_close(&engine);
    for (int op = 0; op < INF_OP_COUNT; op++)
        ops += tally.ops[op];
    printf("%" PRIu64 " graphs of %" PRIu64 " nodes, %u of %d operators: %" PRIu64 " differ\n",
           tally.graphs, tally.nodes, ops, (int)INF_OP_COUNT, tally.faults);
    return tally.faults != 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'}, {"count", required_argument, NULL, 'c'},
        {"seed", required_argument, NULL, 's'},    {"nodes", required_argument, NULL, 'n'},
        {"print", no_argument, NULL, 'p'},         {0},
    };
    struct choice choice = {.seed = 1, .count = 100, .nodes = 24};
    int option;
    choice.backend = inf_registry_find("cpu") != NULL ? "cpu" : "ref";
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            choice.backend = optarg;
        else if (option == 'c')
            choice.count = strtoull(optarg, NULL, 10);
        else if (option == 's')
            choice.seed = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            choice.nodes = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'p')
            choice.print = true;
        else
            choice.nodes = 0;
    }
    if (choice.nodes == 0 || choice.count == 0 || optind != argc) {
        fputs("usage: run_random [--backend NAME] [--count N] [--seed N] [--nodes N] [--print]\n",
              stderr);
        return 2;
    }
    return run_all(&choice);
}
