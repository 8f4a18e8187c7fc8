// SPDX-License-Identifier: Apache-2.0
// Kernels of the reference device that may take minutes check for a cancellation while they
// compute. Each node here would run for several seconds, and is cancelled after a short time.
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/ref/ref_case.h"

#define CANCEL_AFTER_MS 50
#define END_WITHIN_MS   1500

static atomic_bool cancelled;

static void *cancel_later(void *unused)
{
    usleep(CANCEL_AFTER_MS * 1000);
    atomic_store(&cancelled, true);
    return unused;
}

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void add_zeros(struct inf_shape shape)
{
    float *zeros = calloc(inf_shape_elements(&shape), sizeof *zeros);
    cr_assert_not_null(zeros);
    add_input(INF_DTYPE_F32, shape, zeros);
    free(zeros);
}

// Runs the node, and cancels it meanwhile.
static void expect_cancelled(void)
{
    pthread_t thread;
    struct inf_error err = {0};
    atomic_store(&cancelled, false);
    one.cancelled = &cancelled;
    cr_assert_eq(pthread_create(&thread, NULL, cancel_later, NULL), 0);
    uint64_t begin_ms = clock_ms();
    enum inf_code code = one_node_run(&one, device, &err);
    uint64_t took_ms = clock_ms() - begin_ms;
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(code, INF_CANCELLED, "%s: %s", inf_op_info(one.op)->name, err.text);
    cr_expect_leq(took_ms, END_WITHIN_MS, "%s: %lu ms", inf_op_info(one.op)->name,
                  (unsigned long)took_ms);
}

Test(ref, matmul_and_convolutions_can_be_cancelled)
{
    begin_case(INF_OP_MATMUL);
    add_zeros(SHAPE(2000, 2000));
    add_zeros(SHAPE(2000, 2000));
    expect_cancelled();
    begin_case(INF_OP_CONV2D);
    add_zeros(SHAPE(1, 80, 80, 256));
    add_zeros(SHAPE(5, 5, 256, 256));
    expect_cancelled();
    begin_case(INF_OP_DEPTHWISE_CONV2D);
    add_zeros(SHAPE(1, 300, 300, 64));
    add_zeros(SHAPE(31, 31, 64, 1));
    expect_cancelled();
}

Test(ref, windows_and_recurrent_networks_can_be_cancelled)
{
    begin_case(INF_OP_POOL2D);
    one.attrs.pool2d.kernel_h = one.attrs.pool2d.kernel_w = 101;
    add_zeros(SHAPE(1, 300, 300, 16));
    expect_cancelled();
    begin_case(INF_OP_RNN); // x [steps, batches, inputs], W and R [directions, 4 hidden, ...]
    one.output_count = 3;
    add_zeros(SHAPE(4000, 1, 256));
    add_zeros(SHAPE(1, 4 * 512, 256));
    add_zeros(SHAPE(1, 4 * 512, 512));
    expect_cancelled();
}
