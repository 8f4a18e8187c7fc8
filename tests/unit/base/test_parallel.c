// SPDX-License-Identifier: Apache-2.0
// Work in pieces runs on several threads, each piece once. Copies, transposes and checksums give
// the same result on one thread and on several.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/bulk/parallel.h"
#include "backends/base/clock.h"
#include "backends/base/permute.h"
#include "backends/base/system/cores.h"
#include "backends/storage/checksum.h"
#include "backends/storage/file.h"

#define PIECES_MAX 1000

struct counts {
    atomic_uint calls[PIECES_MAX];
    atomic_uint inside, most; // threads that run pieces now, and the most at a time
    uint64_t end_ns;          // a piece waits until this time for a second thread
    int nice_of_helpers;
    pid_t caller;
};

static void count_call(void *context, size_t piece)
{
    struct counts *counts = context;
    atomic_fetch_add(&counts->calls[piece], 1);
}

static void assert_each_once(const struct counts *counts, size_t pieces)
{
    for (size_t i = 0; i < PIECES_MAX; i++)
        cr_assert_eq(counts->calls[i], i < pieces ? 1u : 0u, "piece %zu of %zu", i, pieces);
}

Test(parallel, runs_each_piece_once)
{
    static const size_t pieces[] = {0, 1, 2, 7, PIECES_MAX};
    static const size_t bytes[] = {0, INF_PARALLEL_THREAD_BYTES, 64 * INF_PARALLEL_THREAD_BYTES};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        for (size_t k = 0; k < sizeof bytes / sizeof *bytes; k++) {
            struct counts counts = {.end_ns = 0};
            inf_parallel_run(&(struct inf_parallel){
                .run = count_call, .context = &counts, .pieces = pieces[i], .bytes = bytes[k]});
            assert_each_once(&counts, pieces[i]);
        }
}

// Waits until another thread is in a piece too, or until the time is up.
static void meet_other(void *context, size_t piece)
{
    struct counts *counts = context;
    atomic_fetch_add(&counts->calls[piece], 1);
    unsigned inside = atomic_fetch_add(&counts->inside, 1) + 1, most = atomic_load(&counts->most);
    while (inside > most && !atomic_compare_exchange_weak(&counts->most, &most, inside))
        continue;
    if (gettid() != counts->caller)
        counts->nice_of_helpers = getpriority(PRIO_PROCESS, (id_t)gettid());
    while (atomic_load(&counts->most) < 2 && inf_clock_ns() < counts->end_ns)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    atomic_fetch_sub(&counts->inside, 1);
}

static struct counts run_meeting(size_t bytes, uint64_t wait_ns)
{
    struct counts counts = {.end_ns = inf_clock_ns() + wait_ns, .caller = gettid()};
    inf_parallel_run(
        &(struct inf_parallel){.run = meet_other, .context = &counts, .pieces = 2, .bytes = bytes});
    assert_each_once(&counts, 2);
    return counts;
}

Test(parallel, uses_further_threads_for_large_work_only)
{
    unsigned wanted = inf_cores_usable() > 1 ? 2 : 1;
    struct counts large = run_meeting(2 * INF_PARALLEL_THREAD_BYTES, 5 * INF_NS_PER_S);
    struct counts small = run_meeting(2 * INF_PARALLEL_THREAD_BYTES - 1, INF_NS_PER_S / 10);
    cr_expect_eq(atomic_load(&large.most), wanted);
    cr_expect_eq(atomic_load(&small.most), 1u);
}

// A load at low priority must not take cores from requests.
Test(parallel, threads_have_the_priority_of_the_caller)
{
    if (inf_cores_usable() < 2)
        cr_skip_test("one core");
    cr_assert_eq(setpriority(PRIO_PROCESS, (id_t)gettid(), 7), 0);
    cr_expect_eq(run_meeting(2 * INF_PARALLEL_THREAD_BYTES, 5 * INF_NS_PER_S).nice_of_helpers, 7);
}

// An array whose transpose several threads write, with sides that are no multiples of a tile.
Test(parallel, transposes_large_arrays)
{
    enum {
        ROWS = 1031,
        COLUMNS = 1019
    };
    uint32_t *from = malloc(sizeof(uint32_t) * ROWS * COLUMNS);
    uint32_t *to = malloc(sizeof(uint32_t) * ROWS * COLUMNS);
    cr_assert(from != NULL && to != NULL);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        from[i] = (uint32_t)i;
    const struct inf_permutation transpose = {
        .rank = 2, .counts = {COLUMNS, ROWS}, .steps = {1, COLUMNS}};
    inf_permute_32(&transpose, to, from);
    for (size_t column = 0; column < COLUMNS; column++)
        for (size_t row = 0; row < ROWS; row++)
            cr_assert_eq(to[column * ROWS + row], row * COLUMNS + column);
    free(from);
    free(to);
}

// The checksum of pieces is that of its definition, whatever the number of threads.
Test(parallel, checksums_are_those_of_the_pieces)
{
    static const size_t sizes[] = {0,
                                   1,
                                   INF_CHECKSUM_PIECE_BYTES - 1,
                                   INF_CHECKSUM_PIECE_BYTES,
                                   INF_CHECKSUM_PIECE_BYTES + 1,
                                   20 * INF_CHECKSUM_PIECE_BYTES + 17};
    unsigned char *data = malloc(sizes[5]);
    cr_assert_not_null(data);
    for (size_t i = 0; i < sizes[5]; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t wanted = sizes[k];
        for (size_t at = 0; at < sizes[k]; at += INF_CHECKSUM_PIECE_BYTES) {
            size_t left = sizes[k] - at;
            wanted = inf_checksum_add_piece(
                wanted,
                inf_checksum(data + at,
                             left < INF_CHECKSUM_PIECE_BYTES ? left : INF_CHECKSUM_PIECE_BYTES));
        }
        cr_expect_eq(inf_checksum_pieces(data, sizes[k]), wanted, "%zu bytes", sizes[k]);
    }
    uint64_t before = inf_checksum_pieces(data, sizes[5]);
    data[sizes[5] - 1] ^= 1;
    cr_expect_neq(inf_checksum_pieces(data, sizes[5]), before);
    free(data);
}

// Bytes of a file that do not repeat at the distance of a piece.
static unsigned char file_byte(size_t at)
{
    return (unsigned char)(at % 251);
}

Test(parallel, reads_large_files)
{
    enum {
        SIZE = (9 << 20) + 321,
        OFFSET = 123
    };
    char name[] = "/tmp/inferd-parallel-XXXXXX";
    int fd = mkstemp(name);
    unsigned char *data = malloc(SIZE);
    cr_assert(fd >= 0 && data != NULL);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = file_byte(i);
    cr_assert_eq(write(fd, data, SIZE), SIZE);
    memset(data, 0, SIZE);
    struct inf_error err = {0};
    cr_assert_eq(inf_file_read(fd, "f", OFFSET, data, SIZE - OFFSET, &err), INF_OK, "%s", err.text);
    for (size_t i = 0; i < SIZE - OFFSET; i++)
        cr_assert_eq(data[i], file_byte(OFFSET + i), "byte %zu", i);
    // With its checksum, in one piece and in several.
    static const size_t sizes[] = {0, 1000, 3 << 20, SIZE - OFFSET};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t sum = 1;
        memset(data, 0, SIZE);
        cr_assert_eq(inf_file_read_summed(fd, "f", OFFSET, data, sizes[i], &sum, &err), INF_OK);
        cr_expect_eq(sum, inf_checksum_pieces(data, sizes[i]), "%zu bytes", sizes[i]);
        cr_assert(sizes[i] == 0 || data[sizes[i] - 1] == file_byte(OFFSET + sizes[i] - 1));
    }
    uint64_t sum;
    cr_expect_eq(inf_file_read_summed(fd, "f", OFFSET + 1, data, SIZE - OFFSET, &sum, &err),
                 INF_RANGE);
    // The file ends in the last piece, and before the last one.
    cr_expect_eq(inf_file_read(fd, "f", OFFSET + 1, data, SIZE - OFFSET, &err), INF_RANGE);
    cr_expect_str_eq(err.text, "file 'f': ends at byte 9437505, wanted 9437506");
    cr_assert_eq(ftruncate(fd, 3 << 20), 0);
    cr_expect_eq(inf_file_read(fd, "f", 0, data, SIZE, NULL), INF_RANGE);
    free(data);
    close(fd);
    unlink(name);
}
