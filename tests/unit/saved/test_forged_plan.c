// SPDX-License-Identifier: Apache-2.0
// Plans with checksums that agree and contents that a forger chose: they are refused, or are sound.
#include "tests/unit/saved/plan_case.h"

TestSuite(forged_plan, .init = start_test, .fini = end_test);

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

Test(forged_plan, with_bytes_behind_its_data_is_refused)
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

Test(forged_plan, of_a_forger_is_refused_or_sound, .timeout = 300)
{
    forge_plans(write_plan, 10000);
}

Test(forged_plan, of_a_forger_with_packed_weights_is_refused_or_sound, .timeout = 300)
{
    forge_plans(write_whole_plan, 2000);
}

// Passes and shape rules read small constants, before a device restores anything. The filter of the
// graph has 864 bytes; all others have less than 512.
Test(forged_plan, whose_small_constants_have_no_bytes_is_refused)
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
Test(forged_plan, whose_integers_have_no_bytes_is_refused)
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

Test(forged_plan, graph_bytes_of_any_length_are_refused_or_sound)
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

Test(forged_plan, booleans_are_true_or_false)
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
