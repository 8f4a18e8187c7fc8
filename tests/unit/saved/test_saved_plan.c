// SPDX-License-Identifier: Apache-2.0
// Plans: what is written is read again, and a file that is damaged, foreign or hostile is refused.
#include "backends/saved/plan_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"
#include "backends/saved/saved_graph.h"
#include "backends/storage/checksum.h"
#include "tests/unit/graph/graph_kit.h"
#include "tests/unit/saved/forge_plan.h"

// Directory of the files of a test.
static char root[] = "/tmp/inferd-plan-XXXXXX";
static int directory = -1;

static void start_test(void)
{
    cr_assert_not_null(mkdtemp(root));
    directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(directory, 0);
}

static void end_test(void)
{
    char command[64];
    close(directory);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(saved_plan, .init = start_test, .fini = end_test);

static const struct inf_plan_id id = {.key = 0x1234, .build = "1.2.3 abc"};
static const struct inf_plan_facts facts = {
    .format = "onnx", .content_hash = 77, .notes = {1, 2, 3}};

// The graphs of a plan without classes.
#define GRAPHS(graph) ((const struct inf_graph *const[]){graph})

// A branch that returns its input, or the negative of it.
static struct inf_graph *make_branch(bool negative)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "a", INF_DTYPE_F32, INF_SHAPE(1, 4));
    if (negative)
        x = node(graph, INF_OP_UNARY, "neg", x);
    add_output(graph, "b", x);
    return graph;
}

// Makes a graph with every kind of attribute, constants of several types, one of them used twice,
// an absent input, a long name and subgraphs.
static struct inf_graph *make_graph(void)
{
    char name[600];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    uint32_t filter = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 3, 8), NULL);
    float *weights = graph->values[filter].data->data;
    for (int i = 0; i < 3 * 3 * 3 * 8; i++)
        weights[i] = (float)i / 7;
    uint32_t twin;
    cr_assert_eq(inf_graph_add_const(graph, "twin", INF_DTYPE_F32, &graph->values[filter].shape,
                                     inf_blob_ref(graph->values[filter].data), &twin, NULL),
                 INF_OK);
    uint32_t alpha = floats(graph, INF_SHAPE(8), 1, 2, 3, 4, 5, 6, 7, 8);
    uint32_t conv = node(graph, INF_OP_CONV2D, name, x, filter, INF_VALUE_NONE, alpha);
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    last_attrs(graph)->conv2d.activation = INF_ACTIVATION_PRELU;
    uint32_t again = node(graph, INF_OP_CONV2D, "again", x, twin);
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    uint32_t sum = node(graph, INF_OP_BINARY, "sum", conv, again);
    uint32_t mean = node(graph, INF_OP_REDUCE, "mean", sum);
    last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 2, .values = {1, -2}};
    uint32_t clip = node(graph, INF_OP_CLIP, "clip", mean);
    last_attrs(graph)->clip.min = 0.25f;
    uint32_t shape = ints(graph, 2, 4);
    uint32_t pairs = node(graph, INF_OP_RESHAPE, "pairs", clip, shape);
    uint32_t first = ints(graph, 0, 0), end = ints(graph, 1, 4), stride = ints(graph, 1, 1);
    uint32_t row = node(graph, INF_OP_SLICE, "row", pairs, first, end, stride);
    uint32_t truth = add_constant(graph, INF_DTYPE_BOOL, INF_SHAPE(2), (const uint8_t[]){1, 0});
    uint32_t any = add_constant(graph, INF_DTYPE_BOOL, SCALAR, (const uint8_t[]){1});
    (void)truth;
    struct inf_graph *branches[2] = {make_branch(false), make_branch(true)};
    uint32_t indices[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(inf_graph_add_subgraph(graph, &branches[i], &indices[i], NULL), INF_OK);
    uint32_t chosen = node(graph, INF_OP_BRANCH, "choice", any, row);
    int32_t *numbers[2];
    cr_assert(inf_node_subgraphs(&graph->nodes[graph->node_count - 1], numbers));
    for (int i = 0; i < 2; i++)
        *numbers[i] = (int32_t)indices[i];
    add_output(graph, "y", chosen);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_graph_verify(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

static void write_plan(const char *name)
{
    struct inf_error err = {0};
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()};
    cr_assert_eq(inf_plan_file_write(directory, name, 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    inf_saved_plan_fini(&plan);
}

// Returns a block of bytes that depend on their place and on `first`. The caller frees it.
static void *make_part(size_t size, uint8_t first)
{
    uint8_t *part = calloc(1, size + 1);
    for (size_t i = 0; i < size; i++)
        part[i] = (uint8_t)(first + i * 7 + i / 255);
    return part;
}

#define PART_BYTES 700000 // two pieces of data and a part of a third

// Writes a plan with a class that shares the constants of the graph, a form that replaces the
// filter, a second form of it, and a form of a constant that no graph has, which is left out.
static void write_whole_plan(const char *name)
{
    struct inf_error err = {0};
    struct inf_graph *graph = make_graph(), *copy = NULL;
    struct inf_blob *stranger = inf_blob_create(8);
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    void *parts[3] = {make_part(PART_BYTES, 1), make_part(100, 2), make_part(64, 3)};
    struct inf_plan_class class = {"cpu", 1, 2, copy};
    struct inf_plan_form forms[] = {
        {graph->values[1].data, {"cpu", {5}, {parts[0], parts[1]}, {PART_BYTES, 100}, NULL}, true},
        {stranger, {"cpu", {6}, {parts[2], NULL}, {64, 0}, NULL}, true},
        {graph->values[1].data, {"other", {7}, {parts[2], NULL}, {64, 0}, NULL}, false}};
    const struct inf_saved_plan plan = {
        .facts = facts, .graph = graph, .classes = &class, .forms = forms, 1, 3};
    cr_assert_eq(inf_plan_file_write(directory, name, 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    for (int i = 0; i < 3; i++)
        free(parts[i]);
    inf_blob_unref(&stranger);
    inf_graph_destroy(&graph);
    inf_graph_destroy(&copy);
}

// Reads a plan, and drops the graph.
static enum inf_code try_plan(const char *name, const struct inf_plan_id *wanted,
                              struct inf_error *err)
{
    struct inf_saved_plan plan;
    *err = (struct inf_error){0};
    enum inf_code code = inf_plan_file_read(&plan, directory, name, wanted, err);
    cr_expect_eq(plan.graph != NULL, code == INF_OK);
    if (code == INF_OK)
        cr_expect_eq(inf_graph_verify(plan.graph, NULL), INF_OK);
    for (uint32_t i = 0; i < plan.class_count; i++)
        cr_expect_eq(inf_graph_verify(plan.classes[i].graph, NULL), INF_OK);
    inf_saved_plan_fini(&plan);
    return code;
}

static size_t load_file(const char *name, uint8_t **out_bytes)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    cr_assert_eq(fstat(fd, &status), 0);
    *out_bytes = malloc((size_t)status.st_size);
    cr_assert_eq(read(fd, *out_bytes, (size_t)status.st_size), status.st_size);
    close(fd);
    return (size_t)status.st_size;
}

static void store_file(const char *name, const uint8_t *bytes, size_t size)
{
    // Not truncated first: some file systems write a file that was emptied to the disk at once.
    int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

Test(saved_plan, that_was_written_is_read_again)
{
    struct inf_graph *graph = make_graph(), *copy = NULL;
    struct inf_saved_plan plan;
    struct inf_error err = {0};
    write_plan("p");
    cr_assert_eq(inf_plan_file_read(&plan, directory, "p", &id, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(plan.facts.format, "onnx");
    cr_expect_eq(plan.facts.content_hash, 77);
    cr_expect_eq(memcmp(plan.facts.notes, facts.notes, sizeof facts.notes), 0);
    cr_expect_eq(plan.class_count, 0);
    cr_expect_eq(plan.form_count, 0);
    copy = plan.graph;
    char *wanted = print_to_text(graph), *has = print_to_text(copy);
    cr_expect_str_eq(has, wanted);
    free(wanted);
    free(has);
    cr_assert_eq(copy->value_count, graph->value_count);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_blob *a = graph->values[i].data, *b = copy->values[i].data;
        cr_expect_str_eq(copy->values[i].name, graph->values[i].name);
        cr_assert_eq(a != NULL, b != NULL);
        if (a == NULL)
            continue;
        cr_assert_eq(a->size_bytes, b->size_bytes);
        cr_expect_eq(memcmp(a->data, b->data, a->size_bytes), 0);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        cr_expect_str_eq(copy->nodes[i].name, graph->nodes[i].name);
        cr_expect_str_eq(copy->nodes[i].source, graph->nodes[i].source);
    }
    // Two values that share a constant share it again.
    cr_expect_eq(copy->values[1].data, copy->values[2].data);
    struct stat status;
    cr_assert_eq(fstatat(directory, "p", &status, 0), 0);
    cr_expect_eq(status.st_mode & 0777, 0600);
    inf_graph_destroy(&graph);
    inf_saved_plan_fini(&plan);
}

static void expect_part(const struct inf_form_record *record, size_t part, size_t size,
                        uint8_t first)
{
    void *wanted = make_part(size, first);
    cr_assert_eq(record->part_bytes[part], size);
    cr_expect_eq((uintptr_t)record->parts[part] % 64, 0u);
    cr_expect_eq(memcmp(record->parts[part], wanted, size), 0);
    free(wanted);
}

Test(saved_plan, has_forms_and_classes)
{
    struct inf_saved_plan plan;
    struct inf_error err = {0};
    write_whole_plan("p");
    cr_assert_eq(inf_plan_file_read(&plan, directory, "p", &id, &err), INF_OK, "%s", err.text);
    cr_assert_eq(plan.class_count, 1);
    cr_expect_str_eq(plan.classes[0].device, "cpu");
    cr_expect_eq(plan.classes[0].precision, 1);
    cr_expect_eq(plan.classes[0].threads, 2);
    struct inf_graph *graph = make_graph();
    char *wanted = print_to_text(graph), *has = print_to_text(plan.classes[0].graph);
    cr_expect_str_eq(has, wanted);
    free(wanted);
    free(has);
    // The graphs share their constants. That of the filter has no bytes.
    struct inf_blob *filter = plan.graph->values[1].data;
    for (uint32_t i = 0; i < graph->value_count; i++)
        cr_expect_eq(plan.classes[0].graph->values[i].data, plan.graph->values[i].data);
    cr_expect_null(filter->data);
    cr_expect_eq(filter->size_bytes, graph->values[1].data->size_bytes);
    cr_assert_eq(plan.form_count, 2);
    cr_expect_eq(plan.forms[0].blob, filter);
    cr_expect_str_eq(plan.forms[0].record.device, "cpu");
    cr_expect_eq(plan.forms[0].record.description[0], 5);
    expect_part(&plan.forms[0].record, 0, PART_BYTES, 1);
    expect_part(&plan.forms[0].record, 1, 100, 2);
    cr_expect_eq(plan.forms[1].blob, filter);
    cr_expect_str_eq(plan.forms[1].record.device, "other");
    expect_part(&plan.forms[1].record, 0, 64, 3);
    cr_expect_eq(plan.forms[1].record.part_bytes[1], 0);
    inf_graph_destroy(&graph);
    inf_saved_plan_fini(&plan);
}

// A changed byte in any piece of the packed weights is noticed.
Test(saved_plan, with_changed_packed_weights_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_whole_plan("p");
    size_t size = load_file("p", &bytes);
    cr_expect_eq(try_plan("p", &id, &err), INF_OK, "%s", err.text);
    // The file ends with the parts of the forms: 700000, 100 and 64 bytes, each filled up to a
    // multiple of 64.
    const size_t begin = size - 64 - 128 - 700032;
    for (size_t i = begin; i < begin + PART_BYTES; i += 9973) {
        bytes[i] ^= 1;
        store_file("p", bytes, size);
        cr_expect_eq(try_plan("p", &id, &err), INF_INVALID, "byte %zu of %zu", i, size);
        bytes[i] ^= 1;
    }
    // Two pieces of the same part that change places.
    uint8_t *first = bytes + begin + 4000, swap = *first;
    cr_assert_neq(*first, first[256 << 10]);
    *first = first[256 << 10];
    first[256 << 10] = swap;
    store_file("p", bytes, size);
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    free(bytes);
}

Test(saved_plan, that_lacks_the_bytes_of_a_constant_is_not_written)
{
    struct inf_error err = {0};
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()};
    struct inf_blob *filter = plan.graph->values[1].data;
    void *data = filter->data;
    filter->data = NULL;
    cr_expect_eq(inf_plan_file_write(directory, "p", 0600, &id, &plan, &err), INF_INVALID);
    cr_expect_eq(try_plan("p", &id, &err), INF_NOT_FOUND);
    filter->data = data;
    inf_saved_plan_fini(&plan);
}

Test(saved_plan, of_another_model_or_build_is_refused)
{
    struct inf_error err;
    write_plan("p");
    cr_expect_eq(try_plan("p", &id, &err), INF_OK, "%s", err.text);
    cr_expect_eq(try_plan("p", &(struct inf_plan_id){0x1235, id.build}, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "another model"), "%s", err.text);
    cr_expect_eq(try_plan("p", &(struct inf_plan_id){id.key, "1.2.3 abd"}, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "another version"), "%s", err.text);
    cr_expect_eq(try_plan("q", &id, &err), INF_NOT_FOUND);
}

Test(saved_plan, that_others_may_have_written_is_refused)
{
    struct inf_error err;
    write_plan("p");
    cr_assert_eq(fchmodat(directory, "p", 0620, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_DENIED);
    cr_assert_eq(fchmodat(directory, "p", 0602, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_DENIED);
    cr_assert_eq(fchmodat(directory, "p", 0644, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_OK, "%s", err.text);
    cr_assert_eq(symlinkat("p", directory, "link"), 0);
    cr_expect_eq(try_plan("link", &id, &err), INF_DENIED);
    cr_assert_eq(linkat(directory, "p", directory, "second", 0), 0);
    cr_expect_eq(try_plan("second", &id, &err), INF_DENIED);
    if (geteuid() != 0)
        return;
    cr_assert_eq(unlinkat(directory, "second", 0), 0);
    cr_assert_eq(fchownat(directory, "p", 12345, 12345, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_DENIED);
}

Test(saved_plan, that_is_cut_off_or_longer_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_plan("p");
    size_t size = load_file("p", &bytes);
    for (size_t cut = 0; cut < size; cut += cut < 300 ? 1 : 61) {
        store_file("p", bytes, cut);
        cr_assert_eq(try_plan("p", &id, &err), INF_INVALID, "%zu bytes", cut);
    }
    bytes = realloc(bytes, size + 64);
    memset(bytes + size, 0, 64);
    store_file("p", bytes, size + 64);
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    free(bytes);
}

Test(saved_plan, with_a_changed_byte_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_plan("p");
    size_t size = load_file("p", &bytes);
    // The bytes between two parts have no meaning, and are zeros.
    size_t passed = 0;
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (uint8_t)(1u << (i % 8));
        store_file("p", bytes, size);
        passed += try_plan("p", &id, &err) == INF_OK;
        bytes[i] ^= (uint8_t)(1u << (i % 8));
    }
    cr_expect_leq(passed, 63u * 8, "%zu of %zu bytes count for nothing", passed, size);
    free(bytes);
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void overwrite_part(uint8_t *bytes, size_t size, uint64_t *state)
{
    static const uint32_t numbers[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 65536, 4097};
    size_t at = next_random(state) % size;
    uint32_t number = numbers[next_random(state) % INF_ARRAY_LENGTH(numbers)];
    switch (next_random(state) % 3) {
    case 0:
        bytes[at] = (uint8_t)next_random(state);
        break;
    case 1:
        bytes[at] ^= (uint8_t)(1u << next_random(state) % 8);
        break;
    default:
        if (at + sizeof number <= size)
            memcpy(bytes + at, &number, sizeof number);
    }
}

Test(saved_plan, with_bytes_behind_its_data_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_whole_plan("p");
    size_t size = load_file("p", &bytes);
    const uint64_t longer = size + 64;
    bytes = realloc(bytes, longer);
    memset(bytes + size, 0, 64);
    memcpy(bytes + AT_FILE_BYTES, &longer, sizeof longer);
    uint64_t sum = inf_checksum(bytes, AT_HEADER_SUM);
    memcpy(bytes + AT_HEADER_SUM, &sum, sizeof sum);
    store_file("p", bytes, longer);
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "bytes follow its data"), "%s", err.text);
    free(bytes);
}

// Changes a plan at random and makes its checksums right again, so that the reader is reached by
// what a forger could write. The reader must refuse it, or return a graph that is sound.
static void forge_plans(void (*write)(const char *name), int rounds)
{
    const char *name = "p";
    struct inf_error err;
    uint8_t *bytes, *changed;
    uint64_t state = 1, description;
    uint32_t refused = 0;
    write(name);
    size_t size = load_file("p", &bytes);
    changed = malloc(size);
    memcpy(&description, bytes + AT_DESCRIPTION_BYTES, sizeof description);
    for (int round = 0; round < rounds; round++) {
        memcpy(changed, bytes, size);
        for (uint32_t i = next_random(&state) % 4 + 1; i > 0; i--)
            overwrite_part(changed, HEADER_BYTES + (size_t)description, &state);
        memcpy(changed + AT_DESCRIPTION_BYTES, &description, sizeof description);
        forge_sums(changed);
        store_file("p", changed, size);
        enum inf_code code = try_plan("p", &id, &err);
        cr_assert(code == INF_OK || err.text[0] != '\0', "round %d", round);
        refused += code != INF_OK;
    }
    cr_expect_gt(refused, (uint32_t)rounds / 2);
    cr_expect_lt(refused, (uint32_t)rounds, "names and numbers may be changed");
    free(bytes);
    free(changed);
}

Test(saved_plan, of_a_forger_is_refused_or_sound, .timeout = 300)
{
    forge_plans(write_plan, 10000);
}

Test(saved_plan, of_a_forger_with_packed_weights_is_refused_or_sound, .timeout = 300)
{
    forge_plans(write_whole_plan, 2000);
}

// Passes and shape rules read small constants, before a device restores anything. The filter of the
// graph has 864 bytes; all others have less than 512.
Test(saved_plan, whose_small_constants_have_no_bytes_is_refused)
{
    struct inf_error err;
    uint8_t *bytes, *changed;
    uint32_t refused = 0, read = 0;
    write_plan("p");
    size_t size = load_file("p", &bytes), shorter;
    changed = malloc(size);
    for (uint32_t index = 0;; index++) {
        memcpy(changed, bytes, size);
        shorter = forge_dropped_constant(changed, size, index);
        if (shorter == 0)
            break;
        store_file("p", changed, shorter);
        enum inf_code code = try_plan("p", &id, &err);
        cr_expect(code == INF_OK || strstr(err.text, "has no bytes") != NULL, "%s", err.text);
        refused += code == INF_INVALID;
        read += code == INF_OK;
    }
    cr_expect_eq(read, 1, "the filter");
    cr_expect_eq(refused, 7, "alpha, four lists of integers, and two booleans");
    free(bytes);
    free(changed);
}

// Shapes are computed from integers of any number.
Test(saved_plan, whose_integers_have_no_bytes_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    struct inf_graph *graph = new_graph();
    add_output(graph, "y", add_constant(graph, INF_DTYPE_I32, INF_SHAPE(128), NULL));
    struct inf_saved_plan plan = {.facts = facts, .graph = graph};
    cr_assert_eq(inf_plan_file_write(directory, "p", 0600, &id, &plan, NULL), INF_OK);
    size_t size = load_file("p", &bytes);
    store_file("p", bytes, forge_dropped_constant(bytes, size, 0));
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "a constant of integers"), "%s", err.text);
    free(bytes);
    inf_graph_destroy(&graph);
}

Test(saved_plan, graph_bytes_of_any_length_are_refused_or_sound)
{
    struct inf_graph *graph = make_graph(), *copy;
    struct inf_saved_blobs blobs;
    struct inf_saved_bytes bytes = {0};
    struct inf_error err = {0};
    cr_assert_eq(inf_saved_blobs_list(&blobs, GRAPHS(graph), 1, &err), INF_OK);
    inf_saved_graph_encode(&bytes, graph, &blobs);
    cr_assert_not(bytes.failed);
    for (size_t size = 0; size <= bytes.size; size++) {
        // A block of its own, so that a sanitizer sees a read behind the end.
        uint8_t *part = malloc(size + (size == 0));
        memcpy(part, bytes.data, size);
        copy = NULL;
        enum inf_code code = inf_saved_graph_decode(&copy, part, size, &blobs, graph, &err);
        cr_expect_eq(code, size == bytes.size ? INF_OK : INF_INVALID, "%zu bytes", size);
        inf_graph_destroy(&copy);
        free(part);
    }
    inf_saved_append(&bytes, "", 1);
    cr_expect_eq(inf_saved_graph_decode(&copy, bytes.data, bytes.size, &blobs, graph, &err),
                 INF_INVALID);
    free(bytes.data);
    free(blobs.items);
    inf_graph_destroy(&graph);
}

Test(saved_plan, booleans_are_true_or_false)
{
    struct inf_graph *graph = make_graph(), *copy = NULL;
    struct inf_saved_blobs blobs;
    struct inf_saved_bytes plain = {0}, changed = {0};
    struct inf_error err = {0};
    struct inf_node *mean = NULL;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == INF_OP_REDUCE)
            mean = &graph->nodes[i];
    cr_assert_not_null(mean);
    cr_assert_eq(inf_saved_blobs_list(&blobs, GRAPHS(graph), 1, &err), INF_OK);
    inf_saved_graph_encode(&plain, graph, &blobs);
    mean->attrs.reduce.keep_dims = true;
    inf_saved_graph_encode(&changed, graph, &blobs);
    mean->attrs.reduce.keep_dims = false;
    cr_assert_eq(plain.size, changed.size);
    size_t at = 0;
    while (at < plain.size && plain.data[at] == changed.data[at])
        at++;
    cr_assert_lt(at, plain.size);
    cr_expect_eq(memcmp(plain.data + at + 1, changed.data + at + 1, plain.size - at - 1), 0);
    plain.data[at] = 2;
    cr_expect_eq(inf_saved_graph_decode(&copy, plain.data, plain.size, &blobs, graph, &err),
                 INF_INVALID);
    cr_expect_not_null(strstr(err.text, "neither true nor false"), "%s", err.text);
    // A constant, too.
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].dtype == INF_DTYPE_BOOL && graph->values[i].data != NULL)
            *(uint8_t *)graph->values[i].data->data = 2;
    struct inf_saved_plan plan = {.facts = facts, .graph = graph};
    cr_assert_eq(inf_plan_file_write(directory, "p", 0600, &id, &plan, &err), INF_OK);
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "an element that its type does not have"), "%s", err.text);
    free(plain.data);
    free(changed.data);
    free(blobs.items);
    inf_graph_destroy(&graph);
}

// Makes a graph whose output is a constant of the strings "alpha", "" and "beta". *handles are its
// elements.
static struct inf_graph *make_strings(uint64_t **handles)
{
    static const char *const texts[] = {"alpha", "", "beta"};
    struct inf_graph *graph = new_graph();
    struct inf_blob *blob = inf_blob_create(3 * sizeof **handles);
    uint32_t value;
    *handles = blob->data;
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(
            inf_string_pool_add(inf_shared_strings_pool(graph->strings),
                                (struct inf_span){(const uint8_t *)texts[i], strlen(texts[i])},
                                &(*handles)[i], NULL),
            INF_OK);
    cr_assert_eq(
        inf_graph_add_const(graph, "words", INF_DTYPE_BYTES, &INF_SHAPE(3), blob, &value, NULL),
        INF_OK);
    add_output(graph, "y", value);
    return graph;
}

Test(saved_plan, constants_of_strings_are_saved_with_their_strings)
{
    struct inf_error err = {0};
    uint64_t *handles;
    struct inf_graph *graph = make_strings(&handles);
    struct inf_saved_plan plan = {.facts = facts, .graph = graph}, read;
    cr_assert_eq(inf_plan_file_write(directory, "s", 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(inf_plan_file_read(&read, directory, "s", &id, &err), INF_OK, "%s", err.text);
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(read.graph->strings)};
    const uint64_t *copies = read.graph->values[0].data->data;
    struct inf_span string;
    cr_assert_eq(inf_strings_get(&strings, copies[0], &string, &err), INF_OK, "%s", err.text);
    cr_expect(string.size == 5 && memcmp(string.data, "alpha", 5) == 0);
    cr_assert_eq(inf_strings_get(&strings, copies[1], &string, &err), INF_OK);
    cr_expect_eq(string.size, 0);
    cr_assert_eq(inf_strings_get(&strings, copies[2], &string, &err), INF_OK);
    cr_expect(string.size == 4 && memcmp(string.data, "beta", 4) == 0);
    inf_saved_plan_fini(&read);
    // A forger writes handles of strings that a request sends, or that do not exist.
    const uint64_t good = handles[2];
    const uint64_t forged[] = {good & ~(UINT64_C(1) << 63), good + 1, good + (UINT64_C(1) << 32)};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(forged); i++) {
        handles[2] = forged[i];
        cr_assert_eq(inf_plan_file_write(directory, "s", 0600, &id, &plan, &err), INF_OK);
        cr_expect_eq(try_plan("s", &id, &err), INF_INVALID, "handle %zu", i);
    }
    handles[2] = good;
    inf_graph_destroy(&graph);
}

Test(saved_plan, has_what_the_load_adds)
{
    struct inf_error err = {0};
    char text[] = "labels and licences";
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()}, read;
    plan.extra = text;
    plan.extra_bytes = sizeof text;
    cr_assert_eq(inf_plan_file_write(directory, "e", 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(inf_plan_file_read(&read, directory, "e", &id, &err), INF_OK, "%s", err.text);
    cr_expect_eq(read.extra_bytes, sizeof text);
    cr_expect_str_eq(read.extra, text);
    inf_saved_plan_fini(&read);
    plan.extra_bytes = INF_PLAN_EXTRA_BYTES_MAX + 1;
    cr_expect_eq(inf_plan_file_write(directory, "e", 0600, &id, &plan, &err), INF_EXHAUSTED);
    plan.extra = NULL;
    plan.extra_bytes = 0;
    inf_saved_plan_fini(&plan);
}

// --- the cache ---

static struct inf_plan_cache *make_cache(uint64_t bytes_max)
{
    struct inf_plan_cache *cache = NULL;
    cr_assert_eq(inf_plan_cache_create(&cache, root, bytes_max, id.build, NULL, NULL), INF_OK);
    return cache;
}

static bool has_plan(struct inf_plan_cache *cache, uint64_t key)
{
    struct inf_saved_plan plan = {.graph = NULL};
    bool found = inf_plan_cache_find(cache, key, &plan);
    inf_saved_plan_fini(&plan);
    return found;
}

static void make_older(uint64_t key, int seconds)
{
    char name[32];
    struct stat status;
    snprintf(name, sizeof name, "plan-%016llx", (unsigned long long)key);
    cr_assert_eq(fstatat(directory, name, &status, 0), 0);
    const struct timespec times[2] = {{.tv_sec = status.st_mtim.tv_sec - seconds},
                                      {.tv_sec = status.st_mtim.tv_sec - seconds}};
    cr_assert_eq(utimensat(directory, name, times, 0), 0);
}

Test(saved_plan, cache_deletes_what_was_not_used_for_the_longest_time)
{
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()};
    // Room for three plans. Before the cache writes a plan, it makes room for the constants only.
    write_plan("p");
    struct stat status;
    cr_assert_eq(fstatat(directory, "p", &status, 0), 0);
    struct inf_plan_cache *cache = make_cache((uint64_t)status.st_size * 3);
    cr_expect(inf_plan_cache_is_open(cache));
    for (uint64_t key = 1; key <= 3; key++) {
        inf_plan_cache_keep(cache, key, &plan);
        cr_expect(has_plan(cache, key));
        make_older(key, 100 - (int)key);
    }
    cr_expect(has_plan(cache, 1), "and it is the newest from now on");
    inf_plan_cache_keep(cache, 4, &plan);
    cr_expect(has_plan(cache, 1));
    cr_expect_not(has_plan(cache, 2));
    cr_expect(has_plan(cache, 3));
    cr_expect(has_plan(cache, 4));
    inf_plan_cache_destroy(&cache);
    // What does not fit deletes nothing.
    cache = make_cache(100);
    inf_plan_cache_keep(cache, 5, &plan);
    cr_expect_not(has_plan(cache, 5));
    cr_expect(has_plan(cache, 4));
    inf_plan_cache_destroy(&cache);
    cache = make_cache(0);
    cr_expect_not(inf_plan_cache_is_open(cache));
    cr_expect_not(has_plan(cache, 4));
    inf_plan_cache_destroy(&cache);
    cr_expect_null(cache);
    inf_saved_plan_fini(&plan);
}

// --- checksums ---

Test(saved_plan, checksum_sees_each_bit_the_size_and_the_order)
{
    uint8_t bytes[100] = {0};
    uint64_t zero = inf_checksum(bytes, sizeof bytes);
    for (size_t size = 0; size < sizeof bytes; size++)
        cr_expect_neq(inf_checksum(bytes, size), zero, "%zu", size);
    for (size_t i = 0; i < sizeof bytes * 8; i++) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        cr_expect_neq(inf_checksum(bytes, sizeof bytes), zero, "bit %zu", i);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    bytes[0] = 1;
    uint64_t first = inf_checksum(bytes, sizeof bytes);
    bytes[0] = 0;
    bytes[8] = 1;
    cr_expect_neq(inf_checksum(bytes, sizeof bytes), first);
    bytes[8] = 0;
    bytes[32] = 1;
    cr_expect_neq(inf_checksum(bytes, sizeof bytes), first);
}
