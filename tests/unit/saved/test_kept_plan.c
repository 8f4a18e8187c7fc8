// SPDX-License-Identifier: Apache-2.0
// A model that is made from the plan of an earlier load packs nothing, gives the same answers bit
// by bit, and is compiled for other shapes and devices like the original.
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/exec/model/model.h"
#include "backends/registry.h"
#include "daemon/load/kept_plan.h"
#include "daemon/load/source/read_files.h"
#include "tests/unit/saved/forge_plan.h"

#define KEY UINT64_C(77)

static struct inf_device_list devices;
static struct inf_device *cpu, *ref;
static char folder[] = "/tmp/inferd-kept-XXXXXX";
static struct inf_plan_cache *plans;

static void start_test(void)
{
    const struct inf_device_options options = {.slots = 2, .threads = 1};
    cr_assert_not_null(mkdtemp(folder));
    if (inf_registry_find("cpu") == NULL)
        cr_skip("built without the cpu backend");
    cr_assert_eq(inf_device_list_open(&devices, "cpu,ref", &options, NULL), INF_OK);
    cpu = devices.devices[0];
    ref = devices.devices[1];
    cr_assert_eq(inf_plan_cache_create(&plans, folder, (uint64_t)1 << 30, "1.2.3 test", NULL, NULL),
                 INF_OK);
}

static void end_test(void)
{
    char command[64];
    for (uint32_t i = 0; i < devices.count; i++) {
        struct inf_device_memory memory = inf_device_memory(devices.devices[i]);
        cr_assert_eq(memory.weight_bytes + memory.buffer_bytes + memory.held.bytes, 0u);
        cr_assert_eq(memory.allocations, 0u);
    }
    inf_plan_cache_destroy(&plans);
    inf_device_list_close(&devices);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(kept_plan, .init = start_test, .fini = end_test);

// --- a model ---

#define SIDE     12
#define CHANNELS 24
#define CLASSES  40

static float number_at(size_t i)
{
    return (float)((i * 7919 + 13) % 251) / 251 - 0.5f;
}

static uint32_t add_constant(struct inf_graph *graph, const struct inf_shape *shape)
{
    uint32_t value;
    struct inf_blob *blob = inf_blob_create((size_t)inf_shape_elements(shape) * sizeof(float));
    cr_assert_not_null(blob);
    for (size_t i = 0; i < blob->size_bytes / sizeof(float); i++)
        ((float *)blob->data)[i] = number_at(i + (size_t)shape->dims[0]);
    cr_assert_eq(inf_graph_add_const(graph, "w", INF_DTYPE_F32, shape, blob, &value, NULL), INF_OK);
    return value;
}

static uint32_t add_node(struct inf_graph *graph, enum inf_op op, const uint32_t *inputs,
                         uint32_t input_count, union inf_attrs **out_attrs)
{
    uint32_t node;
    struct inf_error err;
    cr_assert_eq(inf_graph_add_node(graph, op, inf_op_info(op)->name, "", inputs, input_count, 1,
                                    &node, &err),
                 INF_OK, "%s", err.text);
    *out_attrs = &graph->nodes[node].attrs;
    return graph->nodes[node].outputs[0];
}

// Makes a network of a 3x3 convolution with a bias, a depthwise and a 1x1 convolution, a sum with
// the first result, and two products, of which the last shares its weights with the first.
static struct inf_graph *make_graph(void)
{
    struct inf_graph *graph;
    union inf_attrs *attrs;
    uint32_t x;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32,
                                     &INF_SHAPE(INF_DIM_UNKNOWN, SIDE, SIDE, 3), &x, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    uint32_t wide = add_constant(graph, &INF_SHAPE(3, 3, 3, CHANNELS));
    uint32_t bias = add_constant(graph, &INF_SHAPE(CHANNELS));
    uint32_t deep = add_constant(graph, &INF_SHAPE(3, 3, CHANNELS, 1));
    uint32_t narrow = add_constant(graph, &INF_SHAPE(1, 1, CHANNELS, CHANNELS));
    uint32_t rows = add_constant(graph, &INF_SHAPE(CHANNELS, CLASSES));
    uint32_t first = add_node(graph, INF_OP_CONV2D, (uint32_t[]){x, wide, bias}, 3, &attrs);
    attrs->conv2d.padding = INF_PADDING_SAME;
    attrs->conv2d.activation = INF_ACTIVATION_RELU;
    uint32_t y = add_node(graph, INF_OP_DEPTHWISE_CONV2D, (uint32_t[]){first, deep}, 2, &attrs);
    attrs->depthwise_conv2d.padding = INF_PADDING_SAME;
    y = add_node(graph, INF_OP_CONV2D, (uint32_t[]){y, narrow}, 2, &attrs);
    y = add_node(graph, INF_OP_BINARY, (uint32_t[]){y, first}, 2, &attrs);
    y = add_node(graph, INF_OP_REDUCE, (uint32_t[]){y}, 1, &attrs);
    attrs->reduce.kind = INF_REDUCE_MEAN;
    attrs->reduce.axes = (struct inf_ints){.count = 2, .values = {1, 2}};
    y = add_node(graph, INF_OP_MATMUL, (uint32_t[]){y, rows}, 2, &attrs);
    y = add_node(graph, INF_OP_MATMUL, (uint32_t[]){y, rows}, 2, &attrs);
    attrs->matmul.transpose_b = true;
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    return graph;
}

static struct inf_model *make_model(struct inf_graph **graph, bool already_run)
{
    struct inf_device *const hosts[] = {cpu, ref};
    struct inf_model *model = NULL;
    struct inf_error err = {0};
    const struct inf_pass_options options = {.evaluator = inf_registry_evaluator(),
                                             .already_run = already_run};
    cr_assert_eq(inf_model_create(&model, graph, hosts, 2, &options, &err), INF_OK, "%s", err.text);
    return model;
}

// Runs the model with `rows` rows on a device, and returns the answer; the caller frees it.
static float *run_model(struct inf_model *model, struct inf_device *device, int64_t rows)
{
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    size_t count = (size_t)rows * SIDE * SIDE * 3;
    cr_assert_eq(
        inf_model_acquire(model, device, &INF_SHAPE(rows, SIDE, SIDE, 3), &executable, &err),
        INF_OK, "%s", err.text);
    struct inf_blob *x = inf_blob_create(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        ((float *)x->data)[i] = number_at(i * 31);
    float *y = calloc((size_t)rows * CHANNELS + 16, sizeof *y);
    const void *inputs[] = {x->data};
    void *outputs[] = {y};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_model_release(model, &executable);
    inf_blob_unref(&x);
    return y;
}

static void expect_answer(struct inf_model *model, struct inf_device *device, int64_t rows,
                          const float *wanted, double tolerance)
{
    float *y = run_model(model, device, rows);
    for (size_t i = 0; i < (size_t)rows * CHANNELS; i++)
        cr_assert_float_eq((double)y[i], (double)wanted[i], tolerance, "row count %d, element %zu",
                           (int)rows, i);
    free(y);
}

// Returns the list of files of a load that has read one file.
static struct inf_read_files *list_one_file(void)
{
    struct inf_model_location location = {.directory_fd = AT_FDCWD, .file = "model.absent"};
    struct inf_read_files *files = NULL;
    cr_assert_eq(inf_read_files_create(&files, &location, NULL), INF_OK);
    inf_read_files_close(files);
    return files;
}

// Keeps the plan of a model that was read from one file.
static void keep_plan(struct inf_model *model, const struct inf_plan_facts *facts)
{
    struct inf_served served = {
        .model = model, .cache_key = KEY, .plan_facts = *facts, .files = list_one_file()};
    inf_kept_plan_keep(plans, &served, &served.plan_facts);
    inf_read_files_unref(&served.files);
}

// Compiles a model for 1 and 4 rows, and keeps its plan. The answers for 1, 2 and 4 rows are
// written to `answers`.
static void keep_model(float *answers[5])
{
    const struct inf_plan_facts facts = {.format = "test", .content_hash = 5};
    struct inf_graph *graph = make_graph();
    struct inf_model *model = make_model(&graph, false);
    answers[1] = run_model(model, cpu, 1);
    answers[4] = run_model(model, cpu, 4);
    inf_model_allow_eviction(model);
    keep_plan(model, &facts);
    cr_expect_gt(inf_model_memory(model).weight_bytes, 0u);
    answers[2] = run_model(model, cpu, 2);
    inf_model_unref(&model);
}

static struct inf_model *load_model(struct inf_kept_plan *kept)
{
    struct inf_error err = {0};
    cr_assert(inf_kept_plan_find(kept, plans, KEY, &devices, NULL));
    struct inf_model *model = make_model(&kept->saved.graph, true);
    cr_assert_eq(inf_kept_plan_offer(kept, model, &devices, &err), INF_OK, "%s", err.text);
    return model;
}

// Writes the path of the kept plan's file to `path`, and returns its status.
static struct stat stat_plan(char path[64])
{
    struct stat status;
    snprintf(path, 64, "%s/plan-%016llx", folder, (unsigned long long)KEY);
    cr_assert_eq(stat(path, &status), 0);
    return status;
}

static void free_answers(float *answers[5])
{
    for (int i = 0; i < 5; i++)
        free(answers[i]);
}

Test(kept_plan, packs_nothing_and_gives_the_same_answers)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    keep_model(answers);
    struct inf_model *model = load_model(&kept);
    cr_expect_str_eq(kept.saved.facts.format, "test");
    cr_expect_eq(kept.saved.class_count, 2);
    cr_expect_geq(kept.saved.form_count, 4, "three convolutions and two products");
    uint64_t before = inf_model_memory(model).const_bytes;
    expect_answer(model, cpu, 4, answers[4], 0);
    expect_answer(model, cpu, 1, answers[1], 0);
    cr_expect_not(inf_model_outgrew_offers(model));
    inf_kept_plan_fini(&kept);
    struct inf_model_memory memory = inf_model_memory(model);
    cr_expect_eq(memory.packing_ns, 0u, "a weight was packed");
    cr_expect_eq(memory.const_bytes, before, "a constant was restored");
    inf_model_allow_eviction(model);
    expect_answer(model, cpu, 1, answers[1], 0);
    inf_model_unref(&model);
    free_answers(answers);
}

Test(kept_plan, is_compiled_for_other_shapes_and_devices)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    keep_model(answers);
    struct inf_model *model = load_model(&kept);
    expect_answer(model, cpu, 2, answers[2], 0);
    cr_expect(inf_model_outgrew_offers(model));
    expect_answer(model, ref, 2, answers[2], 1e-4);
    expect_answer(model, cpu, 4, answers[4], 0);
    inf_kept_plan_fini(&kept);
    inf_model_allow_eviction(model);
    expect_answer(model, cpu, 2, answers[2], 0);
    expect_answer(model, ref, 1, answers[1], 1e-4);
    inf_model_unref(&model);
    free_answers(answers);
}

// The plan of a model that was made from a plan is a new file of the same size.
Test(kept_plan, of_a_kept_plan_is_the_same)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    char path[64];
    keep_model(answers);
    const struct stat status = stat_plan(path);
    struct inf_model *model = load_model(&kept);
    expect_answer(model, cpu, 4, answers[4], 0);
    expect_answer(model, cpu, 1, answers[1], 0);
    keep_plan(model, &kept.saved.facts);
    inf_kept_plan_fini(&kept);
    inf_model_unref(&model);
    const struct stat again = stat_plan(path);
    cr_expect_neq(again.st_ino, status.st_ino);
    cr_expect_eq(again.st_size, status.st_size);
    model = load_model(&kept);
    expect_answer(model, cpu, 1, answers[1], 0);
    expect_answer(model, ref, 4, answers[4], 1e-4);
    inf_kept_plan_fini(&kept);
    inf_model_unref(&model);
    free_answers(answers);
}

// A plan whose model is never compiled frees what it has.
Test(kept_plan, that_is_not_compiled_leaves_nothing)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    keep_model(answers);
    struct inf_model *model = load_model(&kept);
    inf_model_unref(&model);
    inf_kept_plan_fini(&kept);
    cr_assert(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
    inf_graph_destroy(&kept.saved.graph);
    inf_kept_plan_fini(&kept);
    free_answers(answers);
}

// Without the device that packed the weights, the plan is not used.
Test(kept_plan, for_another_device_is_not_used)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    keep_model(answers);
    const struct inf_device_list others = {.devices = {ref}, .count = 1};
    cr_expect_not(inf_kept_plan_find(&kept, plans, KEY, &others, NULL));
    cr_expect_null(kept.saved.graph);
    inf_kept_plan_fini(&kept);
    free_answers(answers);
}

// A constant of the graph must have its bytes, or packed weights that restore it.
Test(kept_plan, that_lacks_a_constant_is_not_used)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    char path[64];
    uint32_t missing = 0;
    keep_model(answers);
    const size_t size = (size_t)stat_plan(path).st_size;
    uint8_t *bytes = malloc(size), *changed = malloc(size);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(read(fd, bytes, size), (ssize_t)size);
    for (uint32_t index = 0;; index++) {
        memcpy(changed, bytes, size);
        size_t shorter = forge_dropped_constant(changed, size, index);
        if (shorter == 0)
            break;
        if (shorter == size)
            continue; // packed weights restore it
        cr_assert_eq(pwrite(fd, changed, shorter, 0), (ssize_t)shorter);
        cr_assert_eq(ftruncate(fd, (off_t)shorter), 0);
        cr_expect_not(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
        cr_expect_null(kept.forms);
        missing++;
    }
    cr_expect_geq(missing, 1);
    cr_assert_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
    cr_expect(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
    inf_graph_destroy(&kept.saved.graph);
    inf_kept_plan_fini(&kept);
    close(fd);
    free(bytes);
    free(changed);
    free_answers(answers);
}

// A forger lets a device without packs run a graph whose constants have no bytes. They are restored
// when it is compiled.
Test(kept_plan, whose_graph_is_moved_to_another_device_is_sound)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    keep_model(answers);
    cr_assert(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
    struct inf_model *model = make_model(&kept.saved.graph, true);
    for (uint32_t i = 0; i < kept.saved.class_count; i++)
        snprintf(kept.saved.classes[i].device, sizeof kept.saved.classes[i].device, "ref");
    cr_assert_eq(inf_kept_plan_offer(&kept, model, &devices, NULL), INF_OK);
    expect_answer(model, ref, 4, answers[4], 1e-4);
    cr_expect_not(inf_model_outgrew_offers(model), "the offered graph was run");
    inf_kept_plan_fini(&kept);
    inf_model_unref(&model);
    free_answers(answers);
}

// A constant that is an output is read by runs, whatever form it has.
Test(kept_plan, whose_output_is_an_evicted_constant_is_sound)
{
    float *answers[5] = {NULL};
    struct inf_kept_plan kept;
    keep_model(answers);
    cr_assert(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
    struct inf_model *model = make_model(&kept.saved.graph, true);
    // The filter of the 1x1 convolution, [1,1,24,24], becomes the output.
    uint32_t filter = UINT32_MAX;
    struct inf_graph *graph = kept.saved.classes[0].graph;
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].data != NULL && graph->values[i].data->data == NULL &&
            graph->values[i].data->size_bytes == CHANNELS * CHANNELS * sizeof(float))
            filter = i;
    cr_assert_neq(filter, UINT32_MAX);
    const int64_t rows = graph->values[graph->inputs[0].value].shape.dims[0];
    graph->outputs[0].value = filter;
    cr_assert_eq(inf_kept_plan_offer(&kept, model, &devices, NULL), INF_OK);
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_acquire(model, cpu, &INF_SHAPE(rows, SIDE, SIDE, 3), &executable, &err),
                 INF_OK, "%s", err.text);
    float *x = calloc((size_t)rows * SIDE * SIDE * 3, sizeof *x), y[CHANNELS * CHANNELS];
    const struct inf_execution execution = {.inputs = (const void *[]){x},
                                            .outputs = (void *[]){y}};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    for (size_t i = 0; i < CHANNELS * CHANNELS; i++)
        cr_assert_eq(y[i], number_at(i + 1), "element %zu", i);
    free(x);
    inf_model_release(model, &executable);
    inf_kept_plan_fini(&kept);
    inf_model_unref(&model);
    free_answers(answers);
}

// --- the batch ladder ---

// Changes the note at `index` (numbers of 64 bits), and expects that the ladder is not taken.
static void expect_no_ladder(const struct inf_kept_plan *kept, struct inf_served *served,
                             size_t index, uint64_t value)
{
    struct inf_kept_plan changed = *kept;
    memcpy(changed.saved.facts.notes + 8 * index, &value, sizeof value);
    cr_expect_not(inf_kept_plan_take_ladder(&changed, served), "note %zu", index);
}

Test(kept_plan, has_the_batch_ladder_that_was_measured)
{
    struct inf_graph *graph = make_graph();
    struct inf_served served = {
        .model = make_model(&graph, false),
        .device = cpu,
        .rows_max = 8,
        .ladder = {.count = 3, .rungs = {{1, 100}, {2, 150}, {4, 200}}, .bytes = 4096}};
    struct inf_kept_plan kept = {.forms = NULL};
    cr_expect_not(inf_kept_plan_take_ladder(&kept, &served), "nothing was noted");
    inf_kept_plan_note_ladder(&kept.saved.facts, &served);
    const struct inf_batch_ladder measured = served.ladder;
    served.ladder = (struct inf_batch_ladder){.count = 0};
    cr_assert(inf_kept_plan_take_ladder(&kept, &served));
    cr_expect_eq(served.ladder.count, 3);
    cr_expect_eq(served.ladder.bytes, 4096);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(served.ladder.rungs[i].rows, measured.rungs[i].rows);
        cr_expect_eq(served.ladder.rungs[i].run_ns, measured.rungs[i].run_ns);
    }
    // The ladder is used only with the same device, options and limit.
    served.rows_max = 16;
    cr_expect_not(inf_kept_plan_take_ladder(&kept, &served));
    served.rows_max = 8;
    served.device = ref;
    cr_expect_not(inf_kept_plan_take_ladder(&kept, &served));
    served.device = cpu;
    inf_model_set_default_options(served.model, cpu, &(struct inf_run_options){.threads = 1});
    cr_expect_not(inf_kept_plan_take_ladder(&kept, &served));
    inf_model_set_default_options(served.model, cpu, &(struct inf_run_options){.threads = 0});
    cr_expect(inf_kept_plan_take_ladder(&kept, &served));
    // Notes that no trial writes. They are a name of 32 bytes, four numbers of 32 bits, the rows
    // and times of six rungs, and the bytes.
    expect_no_ladder(&kept, &served, 6, 2);              // from 2 rows on
    expect_no_ladder(&kept, &served, 7, 0);              // in no time
    expect_no_ladder(&kept, &served, 10, 8);             // 1, 2 and 8 rows
    expect_no_ladder(&kept, &served, 5, 8 | 1ull << 32); // one rung
    expect_no_ladder(&kept, &served, 5, 8 | 7ull << 32); // more rungs than there are
    expect_no_ladder(&kept, &served, 18, INF_BATCH_BYTES_MAX + 1);
    inf_model_unref(&served.model);
}

Test(kept_plan, in_a_file_has_the_ladder_of_the_served_model)
{
    const struct inf_plan_id id = {.key = KEY, .build = "1.2.3 test"};
    struct inf_graph *graph = make_graph();
    struct inf_served served = {.model = make_model(&graph, false),
                                .device = cpu,
                                .rows_max = 8,
                                .ladder = {.count = 2, .rungs = {{1, 100}, {2, 150}}},
                                .files = list_one_file()};
    struct inf_error err = {0};
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(directory, 0);
    cr_assert_eq(inf_kept_plan_write(&served, directory, "model.plan", &id, &err), INF_OK, "%s",
                 err.text);
    struct inf_kept_plan kept;
    cr_assert_eq(inf_kept_plan_read(&kept, directory, "model.plan", &id, &devices, &err), INF_OK,
                 "%s", err.text);
    served.ladder.count = 0;
    cr_assert(inf_kept_plan_take_ladder(&kept, &served));
    cr_expect_eq(served.ladder.count, 2);
    cr_expect_eq(served.ladder.rungs[1].run_ns, 150u);
    close(directory);
    inf_kept_plan_fini(&kept);
    inf_read_files_unref(&served.files);
    inf_model_unref(&served.model);
}

// Why steps are not joined is kept too, so that a later load can say it without measuring again.
Test(kept_plan, has_what_was_found_about_joined_steps)
{
    struct inf_graph *graph = make_graph();
    struct inf_served served = {
        .model = make_model(&graph, false),
        .device = cpu,
        .rows_max = 8,
        .step_findings = {.refused = 2, .refused_permille = 957, .why = "rows are mixed"}};
    struct inf_kept_plan kept = {.forms = NULL};
    inf_kept_plan_note_ladder(&kept.saved.facts, &served);
    served.step_findings = (struct inf_step_findings){.refused = 0};
    cr_assert(inf_kept_plan_take_ladder(&kept, &served));
    cr_expect_eq(served.ladder.count, 0);
    cr_expect_eq(served.step_findings.refused, 2u);
    cr_expect_eq(served.step_findings.refused_permille, 957u);
    cr_expect_str_eq(served.step_findings.why, "rows are mixed");
    // A reason without a final NUL.
    struct inf_kept_plan changed = kept;
    memset(changed.saved.facts.notes + 160, 'x', INF_STEP_WHY);
    cr_expect_not(inf_kept_plan_take_ladder(&changed, &served));
    // While joined steps are still to be measured, nothing about them is kept.
    served.steps_due = true;
    inf_kept_plan_note_ladder(&kept.saved.facts, &served);
    cr_expect_not(inf_kept_plan_take_ladder(&kept, &served));
    inf_model_unref(&served.model);
}

Test(kept_plan, without_the_files_that_were_read_is_not_kept)
{
    struct inf_kept_plan kept;
    struct inf_graph *graph = make_graph();
    struct inf_model *model = make_model(&graph, false);
    struct inf_served served = {.model = model, .cache_key = KEY};
    inf_kept_plan_keep(plans, &served, &served.plan_facts);
    cr_expect_not(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
    keep_plan(model, &served.plan_facts);
    cr_expect(inf_kept_plan_find(&kept, plans, KEY, &devices, NULL));
    cr_expect_eq(kept.files_bytes, sizeof(uint64_t) + sizeof "model.absent");
    inf_kept_plan_fini(&kept);
    inf_model_unref(&model);
}
