// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire/assembler.h"

// --- fixtures ---

struct memory {
    size_t live; // bytes handed out
    bool refuse;
};

static void *memory_alloc(void *context, size_t size)
{
    struct memory *memory = context;
    if (memory->refuse)
        return NULL;
    memory->live += size;
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

static void memory_free(void *context, void *data, size_t size)
{
    struct memory *memory = context;
    memory->live -= size;
    free(data);
}

struct fixture {
    struct memory memory;
    struct inf_assembler assembler;
};

static void begin(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    inf_assembler_init(&fixture->assembler,
                       &(struct inf_assembler_limits){.meta_bytes = INF_LIMIT_META_BYTES,
                                                      .data_bytes = INF_LIMIT_DATA_BYTES},
                       &(struct inf_assembler_memory){.alloc = memory_alloc,
                                                      .free = memory_free,
                                                      .context = &fixture->memory});
}

static void end(struct fixture *fixture)
{
    inf_assembler_fini(&fixture->assembler);
    cr_assert_eq(fixture->memory.live, 0, "%zu bytes leaked", fixture->memory.live);
}

// Writes a REQUEST (or with fds a MEM_REGISTER) and gives its size. Metadata is 'm', data is 'd'.
static size_t put_frame(uint8_t *to, uint64_t stream, uint32_t meta, uint32_t data, uint8_t fds)
{
    memset(to, 0, 24);
    memcpy(to, &meta, 4);
    memcpy(to + 4, &data, 4);
    memcpy(to + 8, &stream, 8);
    to[16] = fds > 0 ? 6 : 3;
    to[17] = fds;
    memset(to + 24, 'm', meta);
    memset(to + 24 + meta, 'd', data);
    return 24 + (size_t)meta + data;
}

static bool all(const uint8_t *bytes, size_t size, uint8_t value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

// Feeds bytes in one piece; they must all be used.
static void feed(struct fixture *fixture, const uint8_t *bytes, size_t size)
{
    size_t used;
    struct inf_error err;
    enum inf_code code =
        inf_assembler_feed(&fixture->assembler, (struct inf_span){bytes, size}, &used, &err);
    cr_assert_eq(code, INF_OK, "%s", err.text);
    cr_assert_eq(used, size);
}

static void take(struct fixture *fixture, struct inf_frame *frame)
{
    cr_assert_eq(fixture->assembler.state, INF_ASSEMBLER_READY);
    inf_assembler_take(&fixture->assembler, frame);
}

// Takes a frame and checks that it is the one put_frame() wrote.
static void take_expected(struct fixture *fixture, uint64_t stream, uint32_t meta, uint32_t data)
{
    struct inf_frame frame;
    take(fixture, &frame);
    cr_assert_eq(frame.rejected.code, INF_OK);
    cr_assert_eq(frame.header.stream_id, stream);
    cr_assert_eq(frame.meta.size, meta);
    cr_assert(all(frame.meta.data, meta, 'm'));
    cr_assert_eq(frame.header.data_bytes, data);
    cr_assert_eq(frame.data == NULL, data == 0);
    cr_assert(all(frame.data, data, 'd'));
    cr_assert_eq((uintptr_t)frame.data % 64, 0);
    cr_assert_eq(frame.fd_count, 0);
    if (frame.data != NULL)
        memory_free(&fixture->memory, frame.data, data);
}

static int open_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

// --- bytes ---

Test(assembler, assembles_byte_by_byte)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[300];
    size_t size = put_frame(bytes, 9, 100, 65, 0);
    cr_assert_not(inf_assembler_partial(&fixture.assembler));
    for (size_t i = 0; i < size; i++) {
        cr_assert_neq(fixture.assembler.state, INF_ASSEMBLER_READY);
        feed(&fixture, bytes + i, 1);
        cr_assert_eq(inf_assembler_partial(&fixture.assembler), i + 1 < size);
    }
    take_expected(&fixture, 9, 100, 65);
    end(&fixture);
}

Test(assembler, assembles_whatever_the_split)
{
    static const uint32_t sizes[][2] = {{0, 0}, {1, 0}, {0, 1}, {7, 0}, {0, 64}, {31, 129}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint8_t bytes[600];
        size_t first = put_frame(bytes, 1, sizes[k][0], sizes[k][1], 0);
        size_t size = first + put_frame(bytes + first, 2, sizes[k][0], sizes[k][1], 0);
        for (size_t split = 0; split <= size; split++) {
            struct fixture fixture;
            begin(&fixture);
            const size_t ends[] = {split, size};
            size_t at = 0;
            uint64_t stream = 1;
            for (size_t part = 0; part < 2; part++) {
                while (at < ends[part]) {
                    size_t used;
                    struct inf_span span = {bytes + at, ends[part] - at};
                    cr_assert_eq(inf_assembler_feed(&fixture.assembler, span, &used, NULL), INF_OK);
                    at += used;
                    if (fixture.assembler.state == INF_ASSEMBLER_READY)
                        take_expected(&fixture, stream++, sizes[k][0], sizes[k][1]);
                }
            }
            cr_assert_eq(stream, 3);
            cr_assert_not(inf_assembler_partial(&fixture.assembler));
            end(&fixture);
        }
    }
}

Test(assembler, stops_behind_the_first_of_two_frames)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[200];
    size_t first = put_frame(bytes, 1, 3, 5, 0);
    size_t size = first + put_frame(bytes + first, 2, 4, 0, 0);
    size_t used;
    cr_assert_eq(
        inf_assembler_feed(&fixture.assembler, (struct inf_span){bytes, size}, &used, NULL),
        INF_OK);
    cr_assert_eq(used, first);
    struct inf_span rest = {bytes + first, size - first};
    cr_assert_eq(inf_assembler_feed(&fixture.assembler, rest, &used, NULL), INF_OK);
    cr_assert_eq(used, 0, "nothing is taken in while a frame waits");
    take_expected(&fixture, 1, 3, 5);
    feed(&fixture, rest.data, rest.size);
    take_expected(&fixture, 2, 4, 0);
    end(&fixture);
}

Test(assembler, takes_data_straight_into_its_room)
{
    struct fixture fixture;
    begin(&fixture);
    static uint8_t bytes[24 + 8 + 1000];
    put_frame(bytes, 5, 8, 1000, 0);
    uint8_t *room;
    size_t size;
    inf_assembler_data_room(&fixture.assembler, &room, &size);
    cr_assert_eq(size, 0);
    feed(&fixture, bytes, 24 + 8 + 10);
    inf_assembler_data_room(&fixture.assembler, &room, &size);
    cr_assert_eq(size, 990);
    memset(room, 'd', 400);
    inf_assembler_advance(&fixture.assembler, 400);
    inf_assembler_advance(&fixture.assembler, 0);
    inf_assembler_data_room(&fixture.assembler, &room, &size);
    cr_assert_eq(size, 590);
    feed(&fixture, bytes + 500, 90);
    inf_assembler_data_room(&fixture.assembler, &room, &size);
    cr_assert_eq(size, 500);
    memset(room, 'd', 500);
    inf_assembler_advance(&fixture.assembler, 500);
    take_expected(&fixture, 5, 8, 1000);
    end(&fixture);
}

Test(assembler, frees_a_truncated_frame)
{
    static uint8_t bytes[24 + 50 + 5000];
    size_t size = put_frame(bytes, 5, 50, 5000, 0);
    for (size_t cut = 1; cut < size; cut += 7) {
        struct fixture fixture;
        begin(&fixture);
        feed(&fixture, bytes, cut);
        cr_assert(inf_assembler_partial(&fixture.assembler));
        end(&fixture);
    }
}

// --- limits ---

Test(assembler, takes_frames_at_the_limit)
{
    struct fixture fixture;
    begin(&fixture);
    size_t size = 24 + (size_t)INF_LIMIT_META_BYTES + INF_LIMIT_DATA_BYTES;
    uint8_t *bytes = malloc(size);
    put_frame(bytes, 1, INF_LIMIT_META_BYTES, INF_LIMIT_DATA_BYTES, 0);
    feed(&fixture, bytes, size);
    take_expected(&fixture, 1, INF_LIMIT_META_BYTES, INF_LIMIT_DATA_BYTES);
    free(bytes);
    end(&fixture);
}

// An oversize frame, fed in odd pieces and with another frame behind it.
static void skips(uint32_t meta, uint32_t data)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[24 + 10007];
    put_frame(bytes, 77, 0, 0, 0);
    memcpy(bytes, &meta, 4);
    memcpy(bytes + 4, &data, 4);
    feed(&fixture, bytes, 24);
    uint64_t left = (uint64_t)meta + data;
    while (left > 0) {
        cr_assert_eq(fixture.assembler.state, INF_ASSEMBLER_SKIP);
        size_t piece = left < 10007 ? (size_t)left : 10007;
        feed(&fixture, bytes + 24, piece);
        left -= piece;
    }
    struct inf_frame frame;
    take(&fixture, &frame);
    cr_assert_eq(frame.rejected.code, INF_EXHAUSTED);
    cr_assert_eq(frame.rejected.reason, INF_REASON_FRAME_TOO_LARGE);
    cr_assert_eq(frame.header.stream_id, 77);
    cr_assert_eq(frame.meta.size, 0);
    cr_assert_null(frame.data);
    cr_assert_eq(fixture.memory.live, 0);
    size_t size = put_frame(bytes, 78, 2, 0, 0);
    feed(&fixture, bytes, size);
    take_expected(&fixture, 78, 2, 0);
    end(&fixture);
}

Test(assembler, skips_and_reports_an_oversize_frame)
{
    skips(INF_LIMIT_META_BYTES + 1, 0);
    skips(0, INF_LIMIT_DATA_BYTES + 1);
    skips(10, 5u << 20);
    skips(0, INF_LIMIT_SKIP_BYTES);
}

static void breaks(uint32_t meta, uint32_t data)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[24];
    put_frame(bytes, 77, 0, 0, 0);
    memcpy(bytes, &meta, 4);
    memcpy(bytes + 4, &data, 4);
    for (int again = 0; again < 2; again++) {
        size_t used;
        struct inf_error err;
        cr_assert_eq(
            inf_assembler_feed(&fixture.assembler, (struct inf_span){bytes, 24}, &used, &err),
            INF_EXHAUSTED);
        cr_assert_eq(err.reason, INF_REASON_FRAME_TOO_LARGE);
        cr_assert_eq(fixture.assembler.state, INF_ASSEMBLER_BROKEN);
        cr_assert_eq(fixture.assembler.header.stream_id, 77);
    }
    end(&fixture);
}

Test(assembler, breaks_on_a_frame_beyond_skipping)
{
    breaks(1, INF_LIMIT_SKIP_BYTES);
    breaks(INF_LIMIT_SKIP_BYTES + 1, 0);
    breaks(UINT32_MAX, UINT32_MAX);
    breaks(0, UINT32_MAX);
}

Test(assembler, skips_a_frame_that_finds_no_memory)
{
    struct fixture fixture;
    begin(&fixture);
    fixture.memory.refuse = true;
    uint8_t bytes[400];
    size_t size = put_frame(bytes, 4, 20, 300, 0);
    feed(&fixture, bytes, size);
    struct inf_frame frame;
    take(&fixture, &frame);
    cr_assert_eq(frame.rejected.code, INF_EXHAUSTED);
    cr_assert_eq(frame.rejected.reason, INF_REASON_HOST_OOM);
    cr_assert_eq(frame.meta.size, 0);
    cr_assert_null(frame.data);
    fixture.memory.refuse = false;
    feed(&fixture, bytes, size);
    take_expected(&fixture, 4, 20, 300);
    end(&fixture);
}

Test(assembler, breaks_on_a_bad_header_for_good)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[48];
    put_frame(bytes, 1, 0, 0, 0);
    put_frame(bytes + 24, 2, 0, 0, 0);
    bytes[22] = 1;
    size_t used;
    struct inf_error err;
    struct inf_span span = {bytes, 48};
    cr_assert_eq(inf_assembler_feed(&fixture.assembler, span, &used, &err), INF_INVALID);
    cr_assert_eq(err.reason, INF_REASON_BAD_FRAME);
    span = (struct inf_span){bytes + 24, 24};
    cr_assert_eq(inf_assembler_feed(&fixture.assembler, span, &used, &err), INF_INVALID);
    cr_assert_eq(used, 0);
    cr_assert_not_null(strstr(err.text, "reserved"), "the first cause is kept: %s", err.text);
    cr_assert_not(inf_assembler_partial(&fixture.assembler));
    end(&fixture);
}

// --- file descriptors ---

Test(assembler, gives_fds_to_the_frame_they_came_with)
{
    // The fds may come with any piece of the frame; pieces before it are older bytes.
    uint8_t bytes[200];
    size_t before = put_frame(bytes, 1, 5, 6, 0);
    size_t size = before + put_frame(bytes + before, 2, 9, 0, 2);
    for (size_t split = before; split < size; split++) {
        struct fixture fixture;
        begin(&fixture);
        feed(&fixture, bytes, 10);
        // One read: the rest of frame 1, and frame 2 up to `split`, or nothing of it.
        int fds[2] = {open_fd(), open_fd()};
        size_t at = 10;
        if (split == before) {
            feed(&fixture, bytes + at, before - at);
            take_expected(&fixture, 1, 5, 6);
            at = before;
        }
        cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, fds, 2, NULL), INF_OK);
        size_t used;
        size_t until = split == before ? size : split;
        struct inf_span span = {bytes + at, until - at};
        cr_assert_eq(inf_assembler_feed(&fixture.assembler, span, &used, NULL), INF_OK);
        at += used;
        if (split != before) {
            take_expected(&fixture, 1, 5, 6);
            feed(&fixture, bytes + at, until - at);
            feed(&fixture, bytes + until, size - until);
        }
        struct inf_frame frame;
        take(&fixture, &frame);
        cr_assert_eq(frame.header.stream_id, 2);
        cr_assert_eq(frame.fd_count, 2);
        cr_assert_eq(frame.fds[0], fds[0]);
        cr_assert_eq(frame.fds[1], fds[1]);
        end(&fixture);
        cr_assert(is_open(fds[0]) && is_open(fds[1]), "they are the taker's");
        close(fds[0]);
        close(fds[1]);
    }
}

Test(assembler, keeps_fds_of_neighbouring_frames_apart)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[100];
    size_t first = put_frame(bytes, 1, 4, 0, 1);
    size_t size = first + put_frame(bytes + first, 2, 4, 0, 2);
    int fds[3] = {open_fd(), open_fd(), open_fd()};
    // Read one ends inside frame 1; read two has its rest and frame 2 with two more fds.
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, fds, 1, NULL), INF_OK);
    feed(&fixture, bytes, 10);
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, fds + 1, 2, NULL), INF_OK);
    size_t used;
    struct inf_span span = {bytes + 10, size - 10};
    cr_assert_eq(inf_assembler_feed(&fixture.assembler, span, &used, NULL), INF_OK);
    struct inf_frame frame;
    take(&fixture, &frame);
    cr_assert_eq(frame.fd_count, 1);
    cr_assert_eq(frame.fds[0], fds[0]);
    feed(&fixture, bytes + 10 + used, size - 10 - used);
    take(&fixture, &frame);
    cr_assert_eq(frame.fd_count, 2);
    cr_assert_eq(frame.fds[0], fds[1]);
    cr_assert_eq(frame.fds[1], fds[2]);
    end(&fixture);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

// A frame that declares `declared` fds and is read together with `given`.
static void refuses_fds(uint8_t declared, uint32_t given)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[100];
    size_t size = put_frame(bytes, 3, 4, 40, declared);
    int fds[INF_LIMIT_FRAME_FDS];
    for (uint32_t i = 0; i < given; i++)
        fds[i] = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, fds, given, NULL), INF_OK);
    size_t used;
    struct inf_error err;
    struct inf_span span = {bytes, size};
    cr_assert_eq(inf_assembler_feed(&fixture.assembler, span, &used, &err), INF_INVALID);
    cr_assert_eq(err.reason, INF_REASON_BAD_FRAME);
    cr_assert_not_null(strstr(err.text, "file descriptors declared"), "%s", err.text);
    for (uint32_t i = 0; i < given; i++)
        cr_assert_not(is_open(fds[i]), "closed at once");
    cr_assert_eq(fixture.memory.live, 0);
    end(&fixture);
}

Test(assembler, refuses_another_number_of_fds_than_declared)
{
    refuses_fds(0, 1);
    refuses_fds(1, 0);
    refuses_fds(1, 2);
    refuses_fds(2, 1);
    refuses_fds(1, INF_LIMIT_FRAME_FDS);
}

Test(assembler, refuses_another_number_of_fds_behind_data_read_in_place)
{
    struct fixture fixture;
    begin(&fixture);
    uint8_t bytes[100];
    put_frame(bytes, 3, 4, 40, 1);
    feed(&fixture, bytes, 24 + 4);
    uint8_t *room;
    size_t size;
    inf_assembler_data_room(&fixture.assembler, &room, &size);
    memset(room, 'd', size);
    inf_assembler_advance(&fixture.assembler, size);
    cr_assert_eq(fixture.assembler.state, INF_ASSEMBLER_BROKEN);
    struct inf_error err;
    cr_assert_eq(inf_assembler_feed(&fixture.assembler, (struct inf_span){0}, &size, &err),
                 INF_INVALID);
    cr_assert_not_null(strstr(err.text, "1 file descriptors declared, 0 came"), "%s", err.text);
    end(&fixture);
}

Test(assembler, refuses_and_closes_more_fds_than_may_wait)
{
    struct fixture fixture;
    begin(&fixture);
    int fds[INF_LIMIT_FRAME_FDS + 1];
    for (uint32_t i = 0; i <= INF_LIMIT_FRAME_FDS; i++)
        fds[i] = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, fds, INF_LIMIT_FRAME_FDS, NULL), INF_OK);
    struct inf_error err;
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, fds + INF_LIMIT_FRAME_FDS, 1, &err),
                 INF_INVALID);
    cr_assert_eq(err.reason, INF_REASON_BAD_FRAME);
    for (uint32_t i = 0; i <= INF_LIMIT_FRAME_FDS; i++)
        cr_assert_not(is_open(fds[i]));
    int late = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, &late, 1, &err), INF_INVALID);
    cr_assert_not(is_open(late), "a broken stream closes what still comes");
    end(&fixture);
}

Test(assembler, closes_fds_of_skipped_and_of_unfinished_frames)
{
    struct fixture fixture;
    begin(&fixture);
    static uint8_t bytes[24 + INF_LIMIT_META_BYTES + 1];
    put_frame(bytes, 3, INF_LIMIT_META_BYTES + 1, 0, 1);
    int fd = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, &fd, 1, NULL), INF_OK);
    feed(&fixture, bytes, sizeof bytes);
    struct inf_frame frame;
    take(&fixture, &frame);
    cr_assert_eq(frame.rejected.reason, INF_REASON_FRAME_TOO_LARGE);
    cr_assert_eq(frame.fd_count, 0);
    cr_assert_not(is_open(fd));

    put_frame(bytes, 4, 8, 0, 1);
    fd = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&fixture.assembler, &fd, 1, NULL), INF_OK);
    feed(&fixture, bytes, 25);
    end(&fixture);
    cr_assert_not(is_open(fd));
}

// --- a real socket ---

// Sends the bytes in one sendmsg(), with a descriptor.
static void send_with_fd(int socket, const uint8_t *bytes, size_t size, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec vector = {(void *)bytes, size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    cr_assert_eq(sendmsg(socket, &message, 0), (ssize_t)size);
}

// Reads once, at most `size` bytes, and feeds what came; the streams of whole frames go to `seen`,
// with 1000 added for each descriptor.
static size_t receive(struct fixture *fixture, int socket, size_t size, uint64_t *seen)
{
    uint8_t buffer[4096];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * INF_LIMIT_FRAME_FDS)];
    } control;
    struct iovec vector = {buffer, size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL) {
        uint32_t count = (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        cr_assert_eq(
            inf_assembler_add_fds(&fixture->assembler, (const int *)CMSG_DATA(header), count, NULL),
            INF_OK);
    }
    size_t count = 0;
    for (size_t at = 0; got > 0 && at < (size_t)got;) {
        size_t used;
        struct inf_error err;
        struct inf_span span = {buffer + at, (size_t)got - at};
        cr_assert_eq(inf_assembler_feed(&fixture->assembler, span, &used, &err), INF_OK, "%s",
                     err.text);
        at += used;
        if (fixture->assembler.state != INF_ASSEMBLER_READY)
            continue;
        struct inf_frame frame;
        inf_assembler_take(&fixture->assembler, &frame);
        seen[count++] = frame.header.stream_id + 1000 * frame.fd_count;
        for (uint32_t i = 0; i < frame.fd_count; i++)
            close(frame.fds[i]);
    }
    return count;
}

Test(assembler, follows_what_linux_does_with_fds)
{
    // Frames without, with, with, without a descriptor, read in pieces of any size.
    for (size_t piece = 1; piece < 260; piece++) {
        int sockets[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
        int fd = open_fd();
        uint8_t bytes[100];
        size_t size = put_frame(bytes, 1, 7, 0, 0);
        cr_assert_eq(send(sockets[0], bytes, size, 0), (ssize_t)size);
        size = put_frame(bytes, 2, 30, 0, 1);
        send_with_fd(sockets[0], bytes, size, fd);
        size = put_frame(bytes, 3, 30, 0, 1);
        send_with_fd(sockets[0], bytes, size, fd);
        size = put_frame(bytes, 4, 0, 0, 0);
        cr_assert_eq(send(sockets[0], bytes, size, 0), (ssize_t)size);
        size = put_frame(bytes, 5, 11, 0, 0);
        cr_assert_eq(send(sockets[0], bytes, size, 0), (ssize_t)size);

        struct fixture fixture;
        begin(&fixture);
        uint64_t seen[16] = {0};
        size_t count = 0;
        for (int reads = 0; count < 5 && reads < 1000; reads++)
            count += receive(&fixture, sockets[1], piece, seen + count);
        cr_assert_eq(count, 5, "pieces of %zu", piece);
        static const uint64_t wanted[5] = {1, 1002, 1003, 4, 5};
        cr_assert_arr_eq(seen, wanted, sizeof wanted, "pieces of %zu", piece);
        end(&fixture);
        close(fd);
        close(sockets[0]);
        close(sockets[1]);
    }
}
