// SPDX-License-Identifier: Apache-2.0
// Plans over fake devices: storage, lifetimes and segments.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/backend.h"
#include "backends/exec/arena_plan.h"
#include "backends/exec/plan.h"
#include "backends/graph/shape/infer.h"
#include "proto/core/limits.h"

static const struct inf_run_options plain;

// A fake device that supports operator number n if bit n of `operators` is set.
struct fake {
    struct inf_device base;
    uint64_t operators;
};

static enum inf_code fake_supports(struct inf_device *device, const struct inf_graph *graph,
                                   uint32_t node, struct inf_error *err)
{
    const struct fake *fake = (const struct fake *)device;
    if (fake->operators >> graph->nodes[node].op & 1)
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED, "operator %s", inf_op_info(graph->nodes[node].op)->name);
}

static const struct inf_backend fake_backend = {.name = "fake", .supports = fake_supports};

static void fake_init(struct fake *fake, const char *name, uint64_t operators)
{
    memset(fake, 0, sizeof *fake);
    fake->base.backend = &fake_backend;
    fake->base.references = 1;
    fake->base.info.host_memory = true;
    fake->base.info.slots = 1;
    strcpy(fake->base.info.name, name);
    fake->operators = operators;
}

#define ALL UINT64_MAX

static uint32_t add_input(struct inf_graph *graph, const char *name, int64_t elements)
{
    uint32_t value;
    struct inf_shape shape = INF_SHAPE(elements);
    cr_assert_eq(inf_graph_add_value(graph, name, INF_DTYPE_F32, &shape, &value, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, name, value, NULL), INF_OK);
    return value;
}

static uint32_t add_unary(struct inf_graph *graph, const char *name, uint32_t input)
{
    uint32_t node;
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_UNARY, name, "Neg", &input, 1, 1, &node, NULL),
                 INF_OK);
    return graph->nodes[node].outputs[0];
}

static uint32_t add_binary(struct inf_graph *graph, const char *name, uint32_t a, uint32_t b)
{
    uint32_t node;
    uint32_t inputs[] = {a, b};
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_BINARY, name, "Add", inputs, 2, 1, &node, NULL),
                 INF_OK);
    return graph->nodes[node].outputs[0];
}

static uint32_t add_reshape(struct inf_graph *graph, const char *name, uint32_t input, int32_t rows)
{
    uint32_t shape;
    int32_t dims[] = {rows, -1};
    cr_assert_eq(inf_graph_add_const_i32(graph, "shape", dims, 2, &shape, NULL), INF_OK);
    uint32_t node;
    uint32_t inputs[] = {input, shape};
    cr_assert_eq(
        inf_graph_add_node(graph, INF_OP_RESHAPE, name, "Reshape", inputs, 2, 1, &node, NULL),
        INF_OK);
    return graph->nodes[node].outputs[0];
}

static struct inf_plan *build_plan(struct inf_graph *graph, struct fake *fakes, uint32_t count)
{
    struct inf_device *devices[4];
    for (uint32_t i = 0; i < count; i++)
        devices[i] = &fakes[i].base;
    struct inf_error err;
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    struct inf_plan *plan = NULL;
    cr_assert_eq(inf_plan_build(&plan, graph, devices, count, &plain, &err), INF_OK, "%s",
                 err.text);
    return plan;
}

Test(plan, writes_outputs_in_place_and_reuses_the_arena)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    uint32_t value = add_input(graph, "x", 1000);
    for (int i = 0; i < 6; i++)
        value = add_unary(graph, "n", value);
    cr_assert_eq(inf_graph_add_output(graph, "y", value, NULL), INF_OK);
    struct fake fake;
    fake_init(&fake, "fake", ALL);
    struct inf_plan *plan = build_plan(graph, &fake, 1);
    cr_assert_eq(plan->step_count, 6u);
    cr_assert_eq(plan->segment_count, 1u);
    cr_assert_eq(plan->storage[value].place, INF_PLACE_OUTPUT);
    cr_assert_eq(plan->copy_count, 0u);
    // A chain needs two tensors at a time. Each has 4000 bytes and 64 bytes of slack, rounded up to
    // 4096.
    cr_assert_eq(plan->arena_bytes, 2u * 4096);
    cr_assert_eq(plan->live_max_bytes, plan->arena_bytes);
    inf_plan_destroy(&plan);
    inf_graph_destroy(&graph);
}

Test(plan, reshapes_cost_nothing)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    uint32_t x = add_input(graph, "x", 12);
    uint32_t a = add_reshape(graph, "first", x, 3);
    uint32_t b = add_unary(graph, "neg", a);
    uint32_t c = add_reshape(graph, "second", b, 4);
    cr_assert_eq(inf_graph_add_output(graph, "y", c, NULL), INF_OK);
    struct fake fake;
    fake_init(&fake, "fake", ALL);
    struct inf_plan *plan = build_plan(graph, &fake, 1);
    cr_assert_eq(plan->step_count, 1u);
    cr_assert_eq(plan->storage[a].place, INF_PLACE_INPUT);
    cr_assert_eq(plan->storage[b].place, INF_PLACE_OUTPUT,
                 "neg writes where its reshape is wanted");
    cr_assert_eq(plan->storage[c].place, INF_PLACE_OUTPUT);
    cr_assert_eq(plan->arena_bytes, 0u);
    inf_plan_destroy(&plan);
    inf_graph_destroy(&graph);
}

Test(plan, copies_outputs_that_lie_elsewhere)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    uint32_t x = add_input(graph, "x", 12);
    uint32_t reshaped = add_reshape(graph, "reshape", x, 3);
    uint32_t negated = add_unary(graph, "neg", x);
    cr_assert_eq(inf_graph_add_output(graph, "input again", reshaped, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "first", negated, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "same", negated, NULL), INF_OK);
    struct fake fake;
    fake_init(&fake, "fake", ALL);
    struct inf_plan *plan = build_plan(graph, &fake, 1);
    cr_assert_eq(plan->copy_count, 2u);
    cr_assert_eq(plan->copy_values[0], reshaped);
    cr_assert_eq(plan->copy_outputs[0], 0u);
    cr_assert_eq(plan->copy_values[1], negated);
    cr_assert_eq(plan->copy_outputs[1], 2u);
    cr_assert_eq(plan->storage[negated].index, 1u);
    inf_plan_destroy(&plan);
    inf_graph_destroy(&graph);
}

Test(plan, nodes_fall_to_the_next_device)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    uint32_t x = add_input(graph, "x", 12);
    uint32_t value = add_unary(graph, "a", add_unary(graph, "b", x));
    value = add_binary(graph, "c", value, x);
    value = add_unary(graph, "d", value);
    cr_assert_eq(inf_graph_add_output(graph, "y", value, NULL), INF_OK);
    struct fake fakes[2];
    fake_init(&fakes[0], "unary", 1ull << INF_OP_UNARY);
    fake_init(&fakes[1], "all", ALL);
    struct inf_plan *plan = build_plan(graph, fakes, 2);
    cr_assert_eq(plan->segment_count, 3u);
    static const struct inf_plan_segment wanted[] = {{0, 0, 2}, {1, 2, 1}, {0, 3, 1}};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(plan->segments[i].device, wanted[i].device);
        cr_assert_eq(plan->segments[i].first, wanted[i].first);
        cr_assert_eq(plan->segments[i].count, wanted[i].count);
    }
    inf_plan_destroy(&plan);

    fakes[1].operators = 1ull << INF_OP_SOFTMAX;
    struct inf_device *devices[] = {&fakes[0].base, &fakes[1].base};
    struct inf_error err;
    cr_assert_eq(inf_plan_build(&plan, graph, devices, 2, &plain, &err), INF_UNSUPPORTED);
    cr_assert(strstr(err.text, "'c'") && strstr(err.text, "binary"), "%s", err.text);
    inf_graph_destroy(&graph);
}

// Asserts which devices compute -(-(-x)) + -x, where x has `elements` elements. `wanted` has one
// letter per segment.
static void expect_devices(uint32_t handoff_elements, int64_t elements, uint64_t first_operators,
                           const char *wanted)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    uint32_t less = add_unary(graph, "a", add_input(graph, "x", elements));
    uint32_t value = add_unary(graph, "b", add_reshape(graph, "rows", less, 1));
    value = add_binary(graph, "c", add_unary(graph, "d", value), less);
    cr_assert_eq(inf_graph_add_output(graph, "y", value, NULL), INF_OK);
    struct fake fakes[2];
    fake_init(&fakes[0], "gpu", first_operators);
    fakes[0].base.info.host_memory = false;
    fakes[0].base.info.handoff_elements = handoff_elements;
    fake_init(&fakes[1], "host", ALL);
    struct inf_plan *plan = build_plan(graph, fakes, 2);
    cr_assert_eq(plan->segment_count, strlen(wanted), "%u segments, wanted %s", plan->segment_count,
                 wanted);
    for (uint32_t i = 0; i < plan->segment_count; i++)
        cr_assert_eq(fakes[plan->segments[i].device].base.info.name[0], wanted[i]);
    inf_plan_destroy(&plan);
    inf_graph_destroy(&graph);
}

Test(plan, hands_small_steps_of_host_values_to_the_host)
{
    expect_devices(0, 12, ALL, "g");
    expect_devices(1000, 12, ALL, "h");
    expect_devices(1000, 999, ALL, "h");
    expect_devices(1000, 1000, ALL, "g");
    // The binary node always runs on the host, because the first device does not support it. The
    // unary nodes run on the device only if they are large.
    expect_devices(1000, 1000, 1ull << INF_OP_UNARY, "gh");
    expect_devices(12, 12, 1ull << INF_OP_UNARY, "gh");
    expect_devices(13, 12, 1ull << INF_OP_UNARY, "h");
}

Test(plan, fetches_nothing_to_hand_it_to_the_host)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    // The graph negates a large value and a small value, and then adds the two results.
    uint32_t large = add_unary(graph, "large", add_input(graph, "x", 5000));
    uint32_t small = add_unary(graph, "small", add_input(graph, "z", 1));
    uint32_t both = add_binary(graph, "both", large, small);
    uint32_t node;
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_REDUCE, "sum", "", &both, 1, 1, &node, NULL),
                 INF_OK);
    uint32_t after = add_unary(graph, "after", graph->nodes[node].outputs[0]);
    cr_assert_eq(inf_graph_add_output(graph, "y", after, NULL), INF_OK);
    struct fake fakes[2];
    fake_init(&fakes[0], "gpu", ALL);
    fakes[0].base.info.host_memory = false;
    fakes[0].base.info.handoff_elements = 1000;
    fake_init(&fakes[1], "host", ALL);
    struct inf_plan *plan = build_plan(graph, fakes, 2);
    // The value "small" is computed on the host because it is small. The value "after" is small
    // too, but it is computed on the device because its operand is there.
    static const uint32_t wanted[] = {0, 1, 0};
    cr_assert_eq(plan->segment_count, 3u);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(plan->segments[i].device, wanted[i]);
    inf_plan_destroy(&plan);
    inf_graph_destroy(&graph);
}

// Finds the first and last step during which a value's storage is in use by looking at every step,
// to check the planner's result.
static void find_lifetime(const struct inf_graph *graph, const struct inf_plan *plan,
                          uint32_t value, uint32_t *first, uint32_t *last)
{
    *first = UINT32_MAX;
    *last = 0;
    for (uint32_t step = 0; step < plan->step_count; step++) {
        const struct inf_node *node = &graph->nodes[plan->steps[step]];
        bool used = node->outputs[0] == value;
        for (uint32_t i = 0; i < node->input_count; i++)
            used |= node->inputs[i] == value;
        if (used) {
            *first = INF_MIN(*first, step);
            *last = step;
        }
    }
}

static bool in_arena(const struct inf_storage *storage)
{
    return storage->place == INF_PLACE_ARENA || storage->place == INF_PLACE_OUTPUT;
}

static size_t most_bytes(const struct inf_plan *plan, const struct inf_storage *storage)
{
    return storage->place == INF_PLACE_OUTPUT ? plan->memory_bytes : plan->arena_bytes;
}

Test(plan, never_overlaps_live_tensors)
{
    uint32_t seed = 1;
    for (int round = 0; round < 200; round++) {
        struct inf_graph *graph;
        cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
        uint32_t values[64];
        uint32_t count = 0;
        values[count++] = add_input(graph, "x", 1 + round * 37 % 500);
        while (count < 40) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t a = values[(seed >> 8) % count];
            uint32_t b = values[(seed >> 16) % count];
            values[count++] = seed >> 31 ? add_unary(graph, "u", a) : add_binary(graph, "b", a, b);
        }
        // Values that no node reads become outputs too.
        cr_assert_eq(inf_graph_add_output(graph, "y", values[count - 1], NULL), INF_OK);
        cr_assert_eq(inf_graph_add_output(graph, "z", values[1 + round % 37], NULL), INF_OK);
        struct fake fake;
        fake_init(&fake, "fake", ALL);
        struct inf_plan *plan = build_plan(graph, &fake, 1);
        cr_assert_geq(plan->arena_bytes, plan->live_max_bytes);
        cr_assert_geq(plan->memory_bytes, plan->arena_bytes);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t k = i + 1; k < count; k++) {
                const struct inf_storage *a = &plan->storage[values[i]];
                const struct inf_storage *b = &plan->storage[values[k]];
                if (!in_arena(a) || !in_arena(b))
                    continue;
                cr_assert_leq(a->offset + a->size_bytes, most_bytes(plan, a));
                cr_assert_leq(b->offset + b->size_bytes, most_bytes(plan, b));
                uint32_t first_a, last_a, first_b, last_b;
                find_lifetime(graph, plan, values[i], &first_a, &last_a);
                find_lifetime(graph, plan, values[k], &first_b, &last_b);
                bool meet = first_a <= last_b && first_b <= last_a;
                bool overlap =
                    a->offset < b->offset + b->size_bytes && b->offset < a->offset + a->size_bytes;
                cr_assert_not(meet && overlap, "round %d: values %u and %u", round, i, k);
            }
        }
        inf_plan_destroy(&plan);
        inf_graph_destroy(&graph);
    }
}

// --- placing tensors in the arena ---

static bool live_together(const struct inf_arena_item *a, const struct inf_arena_item *b)
{
    return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

// Returns the lowest offset at which items[index] overlaps no earlier item. Tries the end of every
// earlier item.
static size_t lowest_offset(const struct inf_arena_item *items, uint32_t index)
{
    const struct inf_arena_item *item = &items[index];
    size_t best = SIZE_MAX;
    for (uint32_t candidate = 0; candidate <= index; candidate++) {
        size_t offset =
            candidate == index ? 0 : items[candidate].offset + items[candidate].size_bytes;
        bool free = offset < best;
        for (uint32_t i = 0; i < index && free; i++)
            free = !live_together(item, &items[i]) ||
                   offset + item->size_bytes <= items[i].offset ||
                   items[i].offset + items[i].size_bytes <= offset;
        best = free ? offset : best;
    }
    return best;
}

// The lifetimes of the tensors have all lengths, from one step to all steps.
Test(plan, places_tensors_as_low_as_can_be)
{
    enum {
        ITEMS = 120,
        STEPS = 500
    };
    uint32_t seed = 7;
    for (int round = 0; round < 60; round++) {
        struct inf_arena_plan *plan = NULL;
        struct inf_arena_item items[ITEMS];
        size_t size = 0;
        cr_assert_eq(inf_arena_plan_create(&plan, ITEMS, STEPS, NULL), INF_OK);
        for (uint32_t i = 0; i < ITEMS; i++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t first = (seed >> 8) % STEPS;
            uint32_t length = 1u << (seed >> 28) % 10;
            seed = seed * 1664525u + 1013904223u;
            items[i] = (struct inf_arena_item){.first_step = first,
                                               .last_step = INF_MIN(first + length, STEPS - 1u),
                                               .size_bytes = 1 + (seed >> 8) % 90};
            inf_arena_plan_place(plan, &items[i]);
            cr_assert_eq(items[i].offset, lowest_offset(items, i), "round %d, tensor %u", round, i);
            size = INF_MAX(size, items[i].offset + items[i].size_bytes);
        }
        cr_assert_eq(inf_arena_plan_size(plan), size);
        inf_arena_plan_destroy(&plan);
    }
}

// Given more tensors than the planner compares one by one, expect that each still gets a free
// place.
Test(plan, places_tensors_without_number)
{
    enum {
        ITEMS = 8000
    };
    struct inf_arena_plan *plan = NULL;
    static struct inf_arena_item items[ITEMS];
    size_t end = 0;
    cr_assert_eq(inf_arena_plan_create(&plan, ITEMS, 100000, NULL), INF_OK);
    for (uint32_t i = 0; i < ITEMS; i++) {
        items[i] =
            (struct inf_arena_item){.first_step = 0, .last_step = 99999, .size_bytes = 64 + i % 3};
        inf_arena_plan_place(plan, &items[i]);
        cr_assert_eq(items[i].offset, end, "all live at once: one behind the other");
        end += items[i].size_bytes;
    }
    inf_arena_plan_destroy(&plan);
}

// Given two intermediate tensors that live at the same time, expect a plan if each is slightly
// smaller than half of the limit, and an error if each is slightly larger.
Test(plan, refuses_intermediates_beyond_the_limit)
{
    for (int over = 0; over < 2; over++) {
        struct fake device;
        struct inf_device *devices[] = {&device.base};
        struct inf_graph *graph = NULL;
        struct inf_plan *plan = NULL;
        struct inf_error err = {0};
        fake_init(&device, "all", ALL);
        cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
        uint32_t x =
            add_input(graph, "x", (int64_t)(INF_LIMIT_ARENA_BYTES / 8) + (over ? 1024 : -1024));
        uint32_t a = add_unary(graph, "first", x);
        uint32_t b = add_unary(graph, "second", a);
        uint32_t y = add_binary(graph, "sum", a, b);
        cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
        cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
        enum inf_code code = inf_plan_build(&plan, graph, devices, 1, &plain, &err);
        cr_assert_eq(code, over ? INF_EXHAUSTED : INF_OK, "%d: %s", over, err.text);
        cr_assert(!over || strstr(err.text, "node 'first'") != NULL, "%s", err.text);
        inf_plan_destroy(&plan);
        inf_graph_destroy(&graph);
    }
}

Test(plan, refuses_shapes_it_does_not_know)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    uint32_t value = add_unary(graph, "n", add_input(graph, "x", INF_DIM_UNKNOWN));
    cr_assert_eq(inf_graph_add_output(graph, "y", value, NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    struct fake fake;
    fake_init(&fake, "fake", ALL);
    struct inf_device *devices[] = {&fake.base};
    struct inf_plan *plan = NULL;
    struct inf_error err;
    cr_assert_neq(inf_plan_build(&plan, graph, devices, 1, &plain, &err), INF_OK);
    cr_assert_null(plan);
    inf_graph_destroy(&graph);
}
