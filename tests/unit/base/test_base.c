// SPDX-License-Identifier: Apache-2.0
// The base parts of the engine: arenas, blobs, pages, 16-bit floats, queues, threads, spinning
// before sleeping, and files that are opened beneath a directory.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/arena.h"
#include "backends/base/blob.h"
#include "backends/base/half.h"
#include "backends/base/pages.h"
#include "backends/base/queue.h"
#include "backends/base/sorted.h"
#include "backends/base/spin_wait.h"
#include "backends/base/thread.h"
#include "backends/storage/file.h"
#include "backends/storage/open_beneath.h"

Test(arena, gives_zeroed_aligned_memory_of_any_size)
{
    struct inf_arena arena = {0};
    for (size_t size = 0; size < 200000; size = size * 3 + 1) {
        unsigned char *memory = inf_arena_alloc(&arena, size);
        cr_assert_not_null(memory);
        cr_assert_eq((uintptr_t)memory % 16, 0u);
        for (size_t i = 0; i < size; i++)
            cr_assert_eq(memory[i], 0);
        memset(memory, 0xff, size);
    }
    cr_assert_null(inf_arena_alloc(&arena, SIZE_MAX - 3));
    inf_arena_fini(&arena);
    cr_assert_null(arena.blocks);
}

Test(blob, lives_as_long_as_its_last_reference)
{
    struct inf_blob *blob = inf_blob_create(5);
    struct inf_blob *other = inf_blob_ref(blob);
    inf_blob_unref(&blob);
    cr_assert_null(blob);
    cr_assert_eq((uintptr_t)other->data % 64, 0u);
    for (size_t i = 0; i < 5 + INF_BLOB_SLACK_BYTES; i++)
        cr_assert_eq(((char *)other->data)[i], 0);
    inf_blob_unref(&other);
}

// Set when the packed form below is destroyed. A packed form replaces the bytes of an evicted blob
// and can restore them; this one always restores "hello".
static bool form_is_gone;

static void say_hello(const struct inf_blob_form *form, void *data)
{
    (void)form;
    memcpy(data, "hello", 5);
}

static void note_end(struct inf_blob_form *form)
{
    (void)form;
    form_is_gone = true;
}

Test(blob, gives_its_bytes_up_for_a_form_and_makes_them_again)
{
    struct inf_blob_form form = {
        .references = 1, .size_bytes = 9, .restore = say_hello, .destroy = note_end};
    struct inf_blob_form *ours = &form;
    struct inf_blob *blob = inf_blob_create(5);
    cr_assert(inf_blob_restore(blob), "of no effect");
    cr_assert_eq(((char *)blob->data)[0], 0);

    inf_blob_evict(blob, &form);
    cr_assert_null(blob->data);
    cr_assert_eq(blob->form, &form);
    inf_blob_form_unref(&ours);
    cr_assert_null(ours);
    cr_assert_not(form_is_gone, "the blob needs it");
    inf_blob_evict(blob, &form); // has no effect, because the blob is evicted already

    cr_assert(inf_blob_restore(blob));
    cr_assert(form_is_gone);
    cr_assert_null(blob->form);
    cr_assert_eq((uintptr_t)blob->data % 64, 0u);
    cr_assert_eq(memcmp(blob->data, "hello", 5), 0);
    for (size_t i = 0; i < INF_BLOB_SLACK_BYTES; i++)
        cr_assert_eq(((char *)blob->data)[5 + i], 0);
    inf_blob_unref(&blob);
}

Test(blob, without_bytes_frees_its_form)
{
    struct inf_blob_form form = {
        .references = 1, .size_bytes = 9, .restore = say_hello, .destroy = note_end};
    struct inf_blob_form *ours = &form;
    struct inf_blob *blob = inf_blob_create(5);
    inf_blob_evict(blob, &form);
    inf_blob_form_unref(&ours);
    inf_blob_unref(&blob);
    cr_assert(form_is_gone);
}

Test(pages, are_aligned_as_asked_and_can_be_written)
{
    static const size_t sizes[] = {0, 1, 4097, (2u << 20) - 1, 2u << 20, (6u << 20) + 17};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        unsigned char *memory = inf_pages_alloc(64, sizes[i]);
        cr_assert_not_null(memory);
        cr_assert_eq((uintptr_t)memory % 64, 0u);
        memset(memory, 0xff, sizes[i]);
        free(memory);
    }
}

Test(half, every_value_survives_the_round_trip)
{
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        float value = inf_half_to_float((uint16_t)bits);
        if (isnan(value))
            cr_assert(isnan(inf_half_to_float(inf_half_from_float(value))));
        else
            cr_assert_eq(inf_half_from_float(value), bits, "0x%04x", bits);
    }
}

Test(half, rounds_to_nearest_even_and_knows_its_range)
{
    cr_assert_eq(inf_half_to_float(0x3c00), 1.0f);
    cr_assert_eq(inf_half_to_float(0x7bff), 65504.0f);
    cr_assert_eq(inf_half_from_float(65519.0f), 0x7bff);
    cr_assert_eq(inf_half_from_float(65520.0f), 0x7c00);
    cr_assert_eq(inf_half_from_float(1.0f + 0x1p-11f), 0x3c00);
    cr_assert_eq(inf_half_from_float(1.0f + 0x1.8p-10f), 0x3c02);
    cr_assert_eq(inf_half_from_float(0x1p-24f), 0x0001);
    cr_assert_eq(inf_half_from_float(0x1p-25f), 0x0000);
    cr_assert_eq(inf_half_from_float(0x1.8p-25f), 0x0001);
    cr_assert_eq(inf_bf16_from_float(1.0f + 0x1p-8f), 0x3f80);
    cr_assert_eq(inf_bf16_to_float(0xc000), -2.0f);
}

static void push_hundred(void *raw)
{
    for (uintptr_t i = 1; i <= 100; i++)
        while (!inf_queue_push(raw, (void *)i))
            ;
}

Test(queue, keeps_order_between_threads)
{
    struct inf_queue *queue;
    cr_assert_eq(inf_queue_create(&queue, 7, false, NULL), INF_OK);
    struct inf_thread thread = {0};
    cr_assert_eq(inf_thread_start(&thread, "pusher", push_hundred, queue, NULL), INF_OK);
    for (uintptr_t i = 1; i <= 100; i++)
        cr_assert_eq((uintptr_t)inf_queue_pop(queue), i);
    inf_thread_join(&thread);
    inf_queue_close(queue);
    cr_assert_null(inf_queue_pop(queue));
    cr_assert_not(inf_queue_push(queue, queue));
    inf_queue_destroy(&queue);
}

Test(queue, fd_is_readable_while_items_wait)
{
    struct inf_queue *queue;
    cr_assert_eq(inf_queue_create(&queue, 2, true, NULL), INF_OK);
    struct pollfd poll_fd = {.fd = inf_queue_fd(queue), .events = POLLIN};
    cr_assert_eq(poll(&poll_fd, 1, 0), 0);
    cr_assert(inf_queue_push(queue, queue));
    cr_assert(inf_queue_push(queue, queue));
    cr_assert_not(inf_queue_push(queue, queue), "full");
    cr_assert_eq(poll(&poll_fd, 1, 0), 1);
    inf_queue_fd_clear(queue);
    cr_assert_not_null(inf_queue_try_pop(queue));
    cr_assert_not_null(inf_queue_try_pop(queue));
    cr_assert_null(inf_queue_try_pop(queue));
    cr_assert_eq(poll(&poll_fd, 1, 0), 0);
    inf_queue_destroy(&queue);
}

Test(queue, leaves_its_fd_alone_while_its_reader_polls)
{
    struct inf_queue *queue;
    cr_assert_eq(inf_queue_create(&queue, 2, true, NULL), INF_OK);
    struct pollfd poll_fd = {.fd = inf_queue_fd(queue), .events = POLLIN};
    inf_queue_begin_polling(queue);
    cr_assert(inf_queue_push(queue, queue));
    cr_expect_eq(poll(&poll_fd, 1, 0), 0);
    cr_expect(inf_queue_end_polling(queue), "what came meanwhile is told");
    cr_expect_not_null(inf_queue_try_pop(queue));
    cr_expect_not(inf_queue_end_polling(queue));
    cr_assert(inf_queue_push(queue, queue));
    cr_expect_eq(poll(&poll_fd, 1, 0), 1);
    inf_queue_destroy(&queue);
}

Test(queue, announces_earlier_items_with_the_next_notification)
{
    struct inf_queue *queue;
    cr_assert_eq(inf_queue_create(&queue, 3, true, NULL), INF_OK);
    struct pollfd poll_fd = {.fd = inf_queue_fd(queue), .events = POLLIN};
    inf_queue_notify(queue);
    cr_expect_eq(poll(&poll_fd, 1, 0), 0, "no notification is due");
    cr_assert(inf_queue_push_deferred(queue, queue));
    cr_expect_eq(poll(&poll_fd, 1, 0), 0);
    inf_queue_notify(queue);
    cr_expect_eq(poll(&poll_fd, 1, 0), 1);
    inf_queue_fd_clear(queue);
    inf_queue_notify(queue);
    cr_expect_eq(poll(&poll_fd, 1, 0), 0, "the reader was notified before");
    cr_expect_not_null(inf_queue_try_pop(queue));
    cr_assert(inf_queue_push_deferred(queue, queue));
    cr_assert(inf_queue_push(queue, queue));
    cr_expect_eq(poll(&poll_fd, 1, 0), 1, "a push with a notification announces earlier items too");
    inf_queue_fd_clear(queue);
    cr_expect_not_null(inf_queue_try_pop(queue));
    cr_expect_not_null(inf_queue_try_pop(queue));
    inf_queue_begin_polling(queue);
    cr_assert(inf_queue_push_deferred(queue, queue));
    inf_queue_notify(queue);
    cr_expect_eq(poll(&poll_fd, 1, 0), 0, "the reader looks");
    cr_expect(inf_queue_end_polling(queue));
    inf_queue_destroy(&queue);
}

struct promptness {
    int before, after, heir;
};

static void note_nice(void *context)
{
    *(int *)context = getpriority(PRIO_PROCESS, 0);
}

static void be_prompt(void *context)
{
    struct promptness *seen = context;
    struct inf_thread heir;
    struct inf_error err;
    note_nice(&seen->before);
    inf_thread_set_low_latency();
    note_nice(&seen->after);
    cr_assert_eq(inf_thread_start(&heir, "heir", note_nice, &seen->heir, &err), INF_OK);
    inf_thread_join(&heir);
}

// The operating system limits how far a thread may raise its priority. Expect the priority that was
// granted, and expect that threads it creates do not inherit it.
Test(thread, has_the_priority_that_is_granted_and_its_children_have_not)
{
    struct promptness seen;
    struct inf_thread thread;
    struct inf_error err;
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NICE, &limit), 0);
    cr_assert_eq(inf_thread_start(&thread, "prompt", be_prompt, &seen, &err), INF_OK);
    inf_thread_join(&thread);
    cr_expect(seen.after == -10 || seen.after == seen.before, "%d", seen.after);
    if (limit.rlim_cur >= 30)
        cr_expect_eq(seen.after, -10);
    cr_expect_geq(seen.heir, 0);
}

Test(spin_wait, spins_after_a_short_wait_if_another_processor_is_free)
{
    struct inf_spin_wait spin_wait;
    inf_spin_wait_init(&spin_wait, 2);
    cr_expect_not(inf_spin_wait_should_spin(&spin_wait), "nothing is known yet");
    inf_spin_wait_note_wait(&spin_wait, 100000);
    cr_expect(inf_spin_wait_should_spin(&spin_wait));
    inf_spin_wait_note_wait(&spin_wait, 100001);
    cr_expect_not(inf_spin_wait_should_spin(&spin_wait));
    inf_spin_wait_note_work(&spin_wait, 800000);
    inf_spin_wait_note_wait(&spin_wait, 200000);
    cr_expect(inf_spin_wait_should_spin(&spin_wait), "a quarter of long work may be waited");
    inf_spin_wait_note_wait(&spin_wait, 200001);
    cr_expect_not(inf_spin_wait_should_spin(&spin_wait));
    inf_spin_wait_note_work(&spin_wait, 3000000000);
    cr_expect_eq(spin_wait.limit_ns, 500000);
    inf_spin_wait_note_work(&spin_wait, 0);
    cr_expect_eq(spin_wait.limit_ns, 100000);
    inf_spin_wait_init(&spin_wait, 1);
    inf_spin_wait_note_wait(&spin_wait, 1);
    cr_expect_not(inf_spin_wait_should_spin(&spin_wait),
                  "a spinning thread keeps other threads from the only processor");
}

// Makes a directory with files and links that an attacker could put there. Returns its descriptor.
static int make_directory(char path[64])
{
    strcpy(path, "/tmp/inf-test-XXXXXX");
    cr_assert_not_null(mkdtemp(path));
    int fd;
    cr_assert_eq(inf_directory_open(&fd, path, NULL), INF_OK);
    int file = openat(fd, "good", O_CREAT | O_WRONLY, 0600);
    cr_assert_eq(write(file, "hello", 5), 5);
    close(file);
    cr_assert_eq(symlinkat("/etc/passwd", fd, "link"), 0);
    cr_assert_eq(mkfifoat(fd, "fifo", 0600), 0);
    cr_assert_eq(mkdirat(fd, "sub", 0700), 0);
    cr_assert_eq(openat(fd, "a", O_CREAT | O_WRONLY, 0600) >= 0, 1);
    cr_assert_eq(linkat(fd, "a", fd, "b", 0), 0);
    return fd;
}

Test(file, reads_whole_and_checks_the_limit)
{
    char path[64];
    int fd = make_directory(path);
    char *data;
    size_t size;
    cr_assert_eq(inf_file_read_all(&data, &size, fd, "good", 5, NULL), INF_OK);
    cr_assert_eq(size, 5u);
    cr_assert_str_eq(data, "hello");
    free(data);
    struct inf_error err;
    cr_assert_eq(inf_file_read_all(&data, &size, fd, "good", 4, &err), INF_EXHAUSTED);
    cr_assert(strstr(err.text, "'good'") != NULL, "%s", err.text);
}

Test(file, never_leaves_its_directory)
{
    char path[64];
    int fd = make_directory(path);
    static const struct {
        const char *name;
        enum inf_code code;
    } cases[] = {
        {"../../etc/passwd", INF_DENIED},
        {"/etc/passwd", INF_DENIED},
        {"sub/../../x", INF_DENIED},
        {"link", INF_DENIED},
        {"fifo", INF_DENIED},
        {"sub", INF_DENIED},
        {"b", INF_DENIED},
        {"missing", INF_NOT_FOUND},
        {"", INF_NOT_FOUND},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        int opened;
        uint64_t size;
        struct inf_error err;
        cr_assert_eq(inf_file_open_beneath(&opened, &size, fd, cases[i].name, &err), cases[i].code,
                     "%s: %s", cases[i].name, err.text);
    }
}

// Expect that the code for kernels without openat2(), and for sandboxes that forbid openat2(),
// opens and refuses the same files.
Test(file, walks_to_a_file_where_the_kernel_cannot)
{
    char path[64];
    int fd = make_directory(path);
    static const struct {
        const char *name;
        int error; // expected errno; 0 if the file is opened
    } cases[] = {
        {"good", 0},           {"./good", 0},          {"sub/..", EXDEV},
        {"../x", EXDEV},       {"/etc/passwd", EXDEV}, {"link", ELOOP},
        {"link/x", ELOOP},     {"good/x", ENOTDIR},    {"missing", ENOENT},
        {"missing/x", ENOENT}, {"sub/none", ENOENT},   {"", ENOENT},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        int opened = inf_beneath_walk(fd, cases[i].name);
        int error = opened < 0 ? errno : 0;
        cr_assert_eq(error, cases[i].error, "%s: %s", cases[i].name, strerror(error));
        if (opened >= 0)
            close(opened);
    }
}

Test(sorted, finds_elements_their_places_and_gaps)
{
    static const uint32_t list[] = {0, 3, 4, 9, UINT32_MAX};
    cr_assert_eq(inf_sorted_find(list, 5, 0), 0u);
    cr_assert_eq(inf_sorted_find(list, 5, 1), 1u);
    cr_assert_eq(inf_sorted_find(list, 5, 9), 3u);
    cr_assert_eq(inf_sorted_find(list, 4, 10), 4u);
    cr_assert_eq(inf_sorted_find(list, 0, 3), 0u);
    for (uint32_t i = 0; i < 5; i++)
        cr_assert(inf_sorted_has(list, 5, list[i]));
    cr_assert_not(inf_sorted_has(list, 5, 5));
    cr_assert_not(inf_sorted_has(list, 4, UINT32_MAX));
    cr_assert_not(inf_sorted_has(NULL, 0, 0));
}
