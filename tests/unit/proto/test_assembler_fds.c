// SPDX-License-Identifier: Apache-2.0
// Tests of file descriptors that are sent with frames, with real sockets.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/wire/assembly.h"

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

// --- which frame each descriptor belongs to ---

Test(assembler_fds, gives_fds_to_the_frame_they_came_with)
{
    // The descriptors of frame 2 may arrive with any piece of frame 2. Earlier pieces contain bytes
    // of earlier sendmsg() calls.
    uint8_t bytes[200];
    size_t before = assembly_put(bytes, 1, 5, 6, 0);
    size_t size = before + assembly_put(bytes + before, 2, 9, 0, 2);
    for (size_t split = before; split < size; split++) {
        struct assembly assembly;
        assembly_begin(&assembly);
        assembly_feed(&assembly, bytes, 10);
        // One read returns the rest of frame 1 and the bytes of frame 2 before `split`. If `split`
        // is the start of frame 2, the read has no byte of frame 2.
        int fds[2] = {open_fd(), open_fd()};
        size_t at = 10;
        if (split == before) {
            assembly_feed(&assembly, bytes + at, before - at);
            assembly_take_expected(&assembly, 1, 5, 6);
            at = before;
        }
        cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, fds, 2, NULL), INF_OK);
        size_t until = split == before ? size : split;
        at += assembly_feed_some(&assembly, bytes + at, until - at);
        if (split != before) {
            assembly_take_expected(&assembly, 1, 5, 6);
            assembly_feed(&assembly, bytes + at, until - at);
            assembly_feed(&assembly, bytes + until, size - until);
        }
        struct inf_frame frame;
        assembly_take(&assembly, &frame);
        cr_assert_eq(frame.header.stream_id, 2);
        cr_assert_eq(frame.fd_count, 2);
        cr_assert_eq(frame.fds[0], fds[0]);
        cr_assert_eq(frame.fds[1], fds[1]);
        assembly_end(&assembly);
        cr_assert(is_open(fds[0]) && is_open(fds[1]), "they are the taker's");
        close(fds[0]);
        close(fds[1]);
    }
}

Test(assembler_fds, keeps_fds_of_neighbouring_frames_apart)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[100];
    size_t first = assembly_put(bytes, 1, 4, 0, 1);
    size_t size = first + assembly_put(bytes + first, 2, 4, 0, 2);
    int fds[3] = {open_fd(), open_fd(), open_fd()};
    // The first read ends inside frame 1. The second read has the rest of frame 1, and frame 2 with
    // two more descriptors.
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, fds, 1, NULL), INF_OK);
    assembly_feed(&assembly, bytes, 10);
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, fds + 1, 2, NULL), INF_OK);
    size_t used = assembly_feed_some(&assembly, bytes + 10, size - 10);
    struct inf_frame frame;
    assembly_take(&assembly, &frame);
    cr_assert_eq(frame.fd_count, 1);
    cr_assert_eq(frame.fds[0], fds[0]);
    assembly_feed(&assembly, bytes + 10 + used, size - 10 - used);
    assembly_take(&assembly, &frame);
    cr_assert_eq(frame.fd_count, 2);
    cr_assert_eq(frame.fds[0], fds[1]);
    cr_assert_eq(frame.fds[1], fds[2]);
    assembly_end(&assembly);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

// Expects that a frame is refused if its header declares `declared` descriptors and the read
// returns `given`.
static void refuses_fds(uint8_t declared, uint32_t given)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[100];
    size_t size = assembly_put(bytes, 3, 4, 40, declared);
    int fds[INF_LIMIT_FRAME_FDS];
    for (uint32_t i = 0; i < given; i++)
        fds[i] = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, fds, given, NULL), INF_OK);
    struct inf_error err;
    assembly_feed_bad(&assembly, bytes, size, INF_INVALID, INF_REASON_BAD_FRAME, &err);
    cr_assert_not_null(strstr(err.text, "file descriptors declared"), "%s", err.text);
    for (uint32_t i = 0; i < given; i++)
        cr_assert_not(is_open(fds[i]), "closed at once");
    cr_assert_eq(assembly.memory.live, 0);
    assembly_end(&assembly);
}

Test(assembler_fds, refuses_another_number_of_fds_than_declared)
{
    refuses_fds(0, 1);
    refuses_fds(1, 0);
    refuses_fds(1, 2);
    refuses_fds(2, 1);
    refuses_fds(1, INF_LIMIT_FRAME_FDS);
}

Test(assembler_fds, refuses_another_number_of_fds_behind_data_read_in_place)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    uint8_t bytes[100];
    assembly_put(bytes, 3, 4, 40, 1);
    assembly_feed(&assembly, bytes, 24 + 4);
    uint8_t *room;
    size_t size;
    inf_assembler_data_room(&assembly.assembler, &room, &size);
    memset(room, 'd', size);
    inf_assembler_advance(&assembly.assembler, size);
    cr_assert_eq(assembly.assembler.state, INF_ASSEMBLER_BROKEN);
    struct inf_error err;
    assembly_feed_bad(&assembly, NULL, 0, INF_INVALID, INF_REASON_BAD_FRAME, &err);
    cr_assert_not_null(strstr(err.text, "1 file descriptors declared, 0 came"), "%s", err.text);
    assembly_end(&assembly);
}

Test(assembler_fds, refuses_and_closes_more_fds_than_may_wait)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    int fds[INF_LIMIT_FRAME_FDS + 1];
    for (uint32_t i = 0; i <= INF_LIMIT_FRAME_FDS; i++)
        fds[i] = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, fds, INF_LIMIT_FRAME_FDS, NULL),
                 INF_OK);
    struct inf_error err;
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, fds + INF_LIMIT_FRAME_FDS, 1, &err),
                 INF_INVALID);
    cr_assert_eq(err.reason, INF_REASON_BAD_FRAME);
    for (uint32_t i = 0; i <= INF_LIMIT_FRAME_FDS; i++)
        cr_assert_not(is_open(fds[i]));
    int late = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, &late, 1, &err), INF_INVALID);
    cr_assert_not(is_open(late), "a broken stream closes what still comes");
    assembly_end(&assembly);
}

Test(assembler_fds, closes_fds_of_skipped_and_of_unfinished_frames)
{
    struct assembly assembly;
    assembly_begin(&assembly);
    static uint8_t bytes[24 + INF_LIMIT_META_BYTES + 1];
    assembly_put(bytes, 3, INF_LIMIT_META_BYTES + 1, 0, 1);
    int fd = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, &fd, 1, NULL), INF_OK);
    assembly_feed(&assembly, bytes, sizeof bytes);
    assembly_take_rejected(&assembly, 3, INF_REASON_FRAME_TOO_LARGE);
    cr_assert_not(is_open(fd));

    assembly_put(bytes, 4, 8, 0, 1);
    fd = open_fd();
    cr_assert_eq(inf_assembler_add_fds(&assembly.assembler, &fd, 1, NULL), INF_OK);
    assembly_feed(&assembly, bytes, 25);
    assembly_end(&assembly);
    cr_assert_not(is_open(fd));
}

// --- descriptors that arrive over a real socket ---

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

// Reads at most `size` bytes once and passes them to the assembler. Appends the stream ids of
// complete frames to `seen`, with 1000 added for each descriptor.
static size_t receive_bytes(struct assembly *assembly, int socket, size_t size, uint64_t *seen)
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
        cr_assert_eq(inf_assembler_add_fds(&assembly->assembler, (const int *)CMSG_DATA(header),
                                           count, NULL),
                     INF_OK);
    }
    size_t count = 0;
    for (size_t at = 0; got > 0 && at < (size_t)got;) {
        at += assembly_feed_some(assembly, buffer + at, (size_t)got - at);
        if (assembly->assembler.state != INF_ASSEMBLER_READY)
            continue;
        struct inf_frame frame;
        inf_assembler_take(&assembly->assembler, &frame);
        seen[count++] = frame.header.stream_id + 1000 * frame.fd_count;
        for (uint32_t i = 0; i < frame.fd_count; i++)
            close(frame.fds[i]);
    }
    return count;
}

Test(assembler_fds, follows_what_linux_does_with_fds)
{
    // Of four frames, the second and third have a descriptor. They are read in pieces of every
    // size.
    for (size_t piece = 1; piece < 260; piece++) {
        int sockets[2];
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
        int fd = open_fd();
        uint8_t bytes[100];
        size_t size = assembly_put(bytes, 1, 7, 0, 0);
        cr_assert_eq(send(sockets[0], bytes, size, 0), (ssize_t)size);
        size = assembly_put(bytes, 2, 30, 0, 1);
        send_with_fd(sockets[0], bytes, size, fd);
        size = assembly_put(bytes, 3, 30, 0, 1);
        send_with_fd(sockets[0], bytes, size, fd);
        size = assembly_put(bytes, 4, 0, 0, 0);
        cr_assert_eq(send(sockets[0], bytes, size, 0), (ssize_t)size);
        size = assembly_put(bytes, 5, 11, 0, 0);
        cr_assert_eq(send(sockets[0], bytes, size, 0), (ssize_t)size);

        struct assembly assembly;
        assembly_begin(&assembly);
        uint64_t seen[16] = {0};
        size_t count = 0;
        for (int reads = 0; count < 5 && reads < 1000; reads++)
            count += receive_bytes(&assembly, sockets[1], piece, seen + count);
        cr_assert_eq(count, 5, "pieces of %zu", piece);
        static const uint64_t wanted[5] = {1, 1002, 1003, 4, 5};
        cr_assert_arr_eq(seen, wanted, sizeof wanted, "pieces of %zu", piece);
        assembly_end(&assembly);
        close(fd);
        close(sockets[0]);
        close(sockets[1]);
    }
}

// --- descriptors that another process received ---

Test(assembler_fds, may_be_lost_with_each_frame_of_one_read)
{
    static const struct inf_error why = {.code = INF_UNAVAILABLE, .reason = INF_REASON_NOT_BEGUN};
    struct assembly assembly;
    uint8_t bytes[100];
    size_t used = 0;
    assembly_begin(&assembly);
    inf_assembler_expect_lost_fds(&assembly.assembler, &why);
    size_t size = assembly_put(bytes, 1, 5, 0, 0);
    size += assembly_put(bytes + size, 2, 4, 0, 1);
    used = assembly_feed_some(&assembly, bytes, size);
    assembly_take_expected(&assembly, 1, 5, 0);
    assembly_feed(&assembly, bytes + used, size - used);
    struct inf_frame frame;
    assembly_take(&assembly, &frame);
    cr_assert_eq(frame.header.stream_id, 2);
    cr_assert_eq(frame.rejected.reason, INF_REASON_NOT_BEGUN);
    cr_assert_eq(frame.fd_count, 0);
    // The next read is one of this process.
    size = assembly_put(bytes, 3, 4, 0, 1);
    cr_assert_eq(
        inf_assembler_feed(&assembly.assembler, (struct inf_span){bytes, size}, &used, NULL),
        INF_INVALID);
    assembly_end(&assembly);
}
