// SPDX-License-Identifier: Apache-2.0
// Starts threads that take the next piece from a counter until none is left, and waits for them.
// Most of the time of a load goes to page faults of the memory that it fills, and the threads share
// these. Starting a thread takes about as long as filling 100 KiB, so small work gets none.
#include "backends/base/bulk/parallel.h"

#include <stdatomic.h>

#include "backends/base/system/cores.h"
#include "backends/base/thread.h"
#include "proto/core/span.h"

struct progress {
    const struct inf_parallel *work;
    atomic_size_t next; // the piece that a thread takes next
};

static void take_pieces(struct progress *progress)
{
    const struct inf_parallel *work = progress->work;
    size_t piece;
    while ((piece = atomic_fetch_add(&progress->next, 1)) < work->pieces)
        work->run(work->context, piece);
}

static void run_thread(void *context)
{
    inf_role_enter_worker();
    take_pieces(context);
}

static size_t count_threads(const struct inf_parallel *work) INF_MAY_BLOCK
{
    size_t wanted = INF_MIN(work->pieces, work->bytes / INF_PARALLEL_THREAD_BYTES);
    if (wanted <= 1)
        return 1;
    return INF_MIN(INF_MIN(wanted, (size_t)inf_cores_usable()), (size_t)INF_PARALLEL_THREADS);
}

void inf_parallel_run(const struct inf_parallel *work)
{
    struct inf_thread threads[INF_PARALLEL_THREADS] = {0};
    struct progress progress = {.work = work};
    inf_role_check_may_block();
    size_t count = count_threads(work);
    for (size_t i = 1; i < count; i++)
        (void)!inf_thread_start(&threads[i], "inferd-part", run_thread, &progress, NULL);
    take_pieces(&progress);
    for (size_t i = 1; i < count; i++)
        inf_thread_join(&threads[i]);
}
