// SPDX-License-Identifier: Apache-2.0
// The device interface, tested with a backend made for the test: references, options, buffers,
// memory counts, copies, and the checks before a compilation or a run.
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/backend.h"
#include "backends/device/device.h"

// --- a device without optional entries, which counts the calls of the other entries ---

struct fake_device {
    struct inf_device base;
    int *closed;
};

static int closed_count;
static uint32_t ran_slot = UINT32_MAX;

static uint32_t fake_probe(void)
{
    return 1;
}

static enum inf_code fake_open(struct inf_device **out_device, uint32_t index,
                               const struct inf_device_options *options, struct inf_error *err)
{
    (void)index;
    (void)err;
    struct fake_device *device = calloc(1, sizeof(*device));
    cr_assert_not_null(device);
    device->closed = &closed_count;
    device->base.info = (struct inf_device_info){.name = "fake",
                                                 .backend = "fake",
                                                 .slots = options->slots != 0 ? options->slots : 3,
                                                 .threads = 1,
                                                 .host_memory = true,
                                                 .alignment = 16};
    *out_device = &device->base;
    return INF_OK;
}

static enum inf_code refusing_open(struct inf_device **out_device, uint32_t index,
                                   const struct inf_device_options *options, struct inf_error *err)
{
    (void)out_device;
    (void)index;
    (void)options;
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE, "no driver");
}

static void fake_close(struct inf_device *device)
{
    (*((struct fake_device *)device)->closed)++;
    free(device);
}

static enum inf_code fake_supports(struct inf_device *device, const struct inf_graph *graph,
                                   uint32_t node, struct inf_error *err)
{
    (void)device;
    if (graph->nodes[node].op == INF_OP_IDENTITY)
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED, "node '%s' is not for fakes", graph->nodes[node].name);
}

static enum inf_code fake_compile(struct inf_program **out_program, struct inf_device *device,
                                  const struct inf_segment *segment, uint32_t flags,
                                  struct inf_error *err)
{
    (void)device;
    (void)segment;
    (void)flags;
    (void)err;
    *out_program = calloc(1, sizeof(**out_program));
    cr_assert_not_null(*out_program);
    (*out_program)->weight_bytes = 1000;
    return INF_OK;
}

static void fake_program_destroy(struct inf_program *program)
{
    free(program);
}

static enum inf_code fake_run(struct inf_program *program, const struct inf_run *run,
                              struct inf_ticket *ticket, struct inf_error *err)
{
    (void)program;
    (void)ticket;
    (void)err;
    ran_slot = run->slot;
    return INF_OK;
}

static const struct inf_backend fake = {
    .name = "fake",
    .priority = 1,
    .probe = fake_probe,
    .open = fake_open,
    .close = fake_close,
    .supports = fake_supports,
    .compile = fake_compile,
    .program_destroy = fake_program_destroy,
    .run = fake_run,
};

static struct inf_device *open_fake(void)
{
    struct inf_device *device = NULL;
    cr_assert_eq(inf_device_open(&device, &fake, 0, NULL, NULL), INF_OK);
    return device;
}

// Makes a graph of two nodes that read the same input: node 0 is an identity and node 1 is a SHAPE.
static struct inf_graph *two_nodes(void)
{
    struct inf_graph *graph = NULL;
    uint32_t x, node;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    struct inf_shape shape = INF_SHAPE(2, 3);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    enum inf_op ops[] = {INF_OP_IDENTITY, INF_OP_SHAPE};
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(inf_graph_add_node(graph, ops[i], "n", "", &x, 1, 1, &node, NULL), INF_OK);
    return graph;
}

Test(device, closes_with_the_last_reference)
{
    closed_count = 0;
    struct inf_device *first = open_fake();
    struct inf_device *second = inf_device_ref(first);
    inf_device_unref(&first);
    cr_assert_null(first);
    cr_assert_eq(closed_count, 0);
    inf_device_unref(&second);
    cr_assert_eq(closed_count, 1);
    inf_device_unref(&second);
    cr_assert_eq(closed_count, 1);
}

Test(device, refuses_an_index_that_was_not_probed)
{
    struct inf_device *device = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_device_open(&device, &fake, 1, NULL, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_NO_DEVICE);
    cr_assert_str_eq(err.text, "backend 'fake': there is no device 1, it finds 1");
    cr_assert_null(device);
}

Test(device, passes_on_why_a_backend_does_not_open)
{
    struct inf_backend refusing = fake;
    refusing.open = refusing_open;
    struct inf_device *device = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_device_open(&device, &refusing, 0, NULL, &err), INF_UNAVAILABLE);
    cr_assert_str_eq(err.text, "no driver");
}

Test(device, hands_the_options_to_the_backend)
{
    struct inf_device *device = NULL;
    struct inf_device_options options = {.slots = 7};
    cr_assert_eq(inf_device_open(&device, &fake, 0, &options, NULL), INF_OK);
    cr_assert_eq(inf_device_info(device)->slots, 7);
    inf_device_unref(&device);
}

Test(device, gives_aligned_zeroed_host_buffers_with_slack)
{
    struct inf_device *device = open_fake();
    size_t sizes[] = {0, 1, 63, 64, 65, 4097};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes); i++) {
        struct inf_buffer *buffer = NULL;
        cr_assert_eq(inf_buffer_alloc(&buffer, device, sizes[i], INF_BUFFER_ARENA, NULL), INF_OK);
        const unsigned char *bytes = inf_buffer_host(buffer);
        cr_assert_not_null(bytes);
        cr_assert_eq((uintptr_t)bytes % 64, 0);
        // Also read the slack bytes behind the buffer, so that AddressSanitizer reports a buffer
        // that was allocated without slack.
        for (size_t j = 0; j < sizes[i] + INF_BLOB_SLACK_BYTES; j++)
            cr_assert_eq(bytes[j], 0);
        inf_buffer_free(&buffer);
        cr_assert_null(buffer);
        inf_buffer_free(&buffer);
    }
    inf_device_unref(&device);
}

Test(device, refuses_a_buffer_larger_than_memory)
{
    struct inf_device *device = open_fake();
    size_t sizes[] = {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 127, SIZE_MAX / 2 - 64};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes); i++) {
        struct inf_buffer *buffer = NULL;
        struct inf_error err = {0};
        cr_assert_eq(inf_buffer_alloc(&buffer, device, sizes[i], INF_BUFFER_ARENA, &err),
                     INF_EXHAUSTED);
        cr_assert_eq(err.reason, INF_REASON_HOST_OOM);
    }
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 0);
    inf_device_unref(&device);
}

Test(device, counts_buffers_and_weights_and_forgets_them)
{
    struct inf_device *device = open_fake();
    struct inf_buffer *a = NULL, *b = NULL, *borrowed = NULL;
    char host[10];
    cr_assert_eq(inf_buffer_alloc(&a, device, 100, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_assert_eq(inf_buffer_alloc(&b, device, 23, INF_BUFFER_STAGING, NULL), INF_OK);
    cr_assert_eq(inf_buffer_import(&borrowed, device, host, sizeof(host), NULL), INF_OK);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 123);
    inf_buffer_free(&a);
    inf_buffer_free(&borrowed);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 23);
    inf_buffer_free(&b);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 0);

    struct inf_graph *graph = two_nodes();
    uint32_t nodes[] = {0};
    struct inf_segment segment = {.graph = graph, .nodes = nodes, .node_count = 1, .slots = 2};
    struct inf_program *program = NULL;
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    cr_assert_eq(inf_program_weight_bytes(program), 1000);
    cr_assert_eq(inf_device_memory(device).weight_bytes, 1000);
    inf_program_destroy(&program);
    cr_assert_eq(inf_device_memory(device).weight_bytes, 0);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

Test(device, counts_what_is_held_because_of_it_and_the_most_there_was)
{
    struct inf_device *device = open_fake();
    const struct inf_device_held held = {.bytes = 1000, .tensors = 5, .buffers = 3};
    struct inf_buffer *a = NULL, *empty = NULL;
    cr_assert_eq(inf_device_memory(device).peak_bytes, 0);
    inf_device_add_held(device, &held);
    cr_assert_eq(inf_buffer_alloc(&a, device, 100, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_assert_eq(inf_buffer_alloc(&empty, device, 0, INF_BUFFER_ARENA, NULL), INF_OK);
    inf_device_add_held(device, &held);
    struct inf_device_memory memory = inf_device_memory(device);
    cr_assert_eq(memory.held.bytes, 2000);
    cr_assert_eq(memory.held.tensors, 10);
    cr_assert_eq(memory.held.buffers, 6);
    cr_assert_eq(memory.allocations, 1);
    cr_assert_eq(memory.peak_bytes, 2100);
    inf_buffer_free(&a);
    inf_buffer_free(&empty);
    inf_device_remove_held(device, &held);
    inf_device_remove_held(device, &held);
    memory = inf_device_memory(device);
    cr_assert_eq(memory.held.bytes, 0);
    cr_assert_eq(memory.held.tensors, 0);
    cr_assert_eq(memory.held.buffers, 0);
    cr_assert_eq(memory.allocations, 0);
    // The peak is kept after memory is released.
    cr_assert_eq(memory.peak_bytes, 2100);
    inf_device_unref(&device);
}

Test(device, copies_between_its_own_and_the_callers_memory)
{
    struct inf_device *device = open_fake();
    struct inf_buffer *own = NULL, *borrowed = NULL;
    char host[8] = "abcdefg";
    cr_assert_eq(inf_buffer_alloc(&own, device, 8, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_assert_eq(inf_buffer_import(&borrowed, device, host, sizeof(host), NULL), INF_OK);
    cr_assert(inf_buffer_host(borrowed) == host);
    cr_assert_eq(inf_buffer_copy(own, 2, borrowed, 1, 3, NULL), INF_OK);
    cr_assert_eq(memcmp(inf_buffer_host(own), "\0\0bcd\0\0\0", 8), 0);
    cr_assert_eq(inf_buffer_copy(borrowed, 8, own, 8, 0, NULL), INF_OK);
    inf_buffer_free(&own);
    inf_buffer_free(&borrowed);
    cr_assert_str_eq(host, "abcdefg");
    inf_device_unref(&device);
}

Test(device, refuses_copies_beyond_a_buffer)
{
    static const struct {
        size_t to, from, size;
    } cases[] = {{0, 0, 9}, {8, 0, 1}, {0, 8, 1}, {1, SIZE_MAX, 2}, {SIZE_MAX, 0, 2}};
    struct inf_device *device = open_fake();
    struct inf_buffer *a = NULL, *b = NULL;
    cr_assert_eq(inf_buffer_alloc(&a, device, 8, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_assert_eq(inf_buffer_alloc(&b, device, 8, INF_BUFFER_ARENA, NULL), INF_OK);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++)
        cr_assert_eq(inf_buffer_copy(a, cases[i].to, b, cases[i].from, cases[i].size, NULL),
                     INF_RANGE, "case %zu", i);
    inf_buffer_free(&a);
    inf_buffer_free(&b);
    inf_device_unref(&device);
}

Test(device, refuses_copies_between_devices)
{
    struct inf_device *one = open_fake(), *other = open_fake();
    struct inf_buffer *a = NULL, *b = NULL;
    cr_assert_eq(inf_buffer_alloc(&a, one, 8, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_assert_eq(inf_buffer_alloc(&b, other, 8, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_assert_eq(inf_buffer_copy(a, 0, b, 0, 8, NULL), INF_INVALID);
    inf_buffer_free(&a);
    inf_buffer_free(&b);
    inf_device_unref(&one);
    inf_device_unref(&other);
}

Test(device, does_not_compile_what_it_cannot_run)
{
    struct inf_device *device = open_fake();
    struct inf_graph *graph = two_nodes();
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    uint32_t nodes[] = {0, 1};
    struct inf_segment segment = {.graph = graph, .nodes = nodes, .node_count = 2, .slots = 1};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_UNSUPPORTED);
    cr_assert_str_eq(err.text, "node 'n' is not for fakes");
    nodes[1] = 2;
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_INVALID);
    segment.node_count = 1;
    segment.slots = 0;
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_INVALID);
    cr_assert_null(program);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

Test(device, runs_only_slots_that_exist_and_is_done_at_once)
{
    struct inf_device *device = open_fake();
    struct inf_graph *graph = two_nodes();
    struct inf_program *program = NULL;
    uint32_t nodes[] = {0};
    struct inf_segment segment = {.graph = graph, .nodes = nodes, .node_count = 1, .slots = 2};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    struct inf_ticket ticket = {.value = 99};
    struct inf_run run = {.slot = 1};
    cr_assert_eq(inf_program_run(program, &run, &ticket, NULL), INF_OK);
    cr_assert_eq(ran_slot, 1);
    cr_assert_eq(ticket.value, 0);
    cr_assert_eq(inf_device_wait(device, ticket, 0, NULL), INF_OK);
    struct inf_step_profile step;
    cr_assert_eq(inf_program_profile(program, 0, &step, 1), 0);
    run.slot = 2;
    cr_assert_eq(inf_program_run(program, &run, &ticket, NULL), INF_INVALID);
    cr_assert_eq(ran_slot, 1);
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}
