// SPDX-License-Identifier: Apache-2.0
// Opens and reads model files. Every name is resolved beneath a directory that the caller opened,
// so that a model cannot name files of other users.
#include "backends/storage/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/bulk/parallel.h"
#include "backends/base/pages.h"
#include "backends/storage/checksum.h"
#include "backends/storage/open_beneath.h"
#include "proto/core/span.h"

// Several cores read a file in pieces of so many bytes, the size of a large page.
#define PIECE_BYTES ((size_t)2 << 20)
_Static_assert(PIECE_BYTES % INF_CHECKSUM_PIECE_BYTES == 0, "one thread makes each sum");

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

enum inf_code inf_file_failure_code(int cause)
{
    switch (cause) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return INF_EXHAUSTED;
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case ENOTCONN:
        return INF_UNAVAILABLE;
    default:
        return INF_DENIED;
    }
}

enum inf_code inf_directory_open(int *out_fd, const char *path, struct inf_error *err)
{
    inf_role_check_may_block();
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return inf_fail(
            err, errno == ENOENT || errno == ENOTDIR ? INF_NOT_FOUND : inf_file_failure_code(errno),
            "directory '%s': %s", last_part(path), strerror(errno));
    *out_fd = fd;
    return INF_OK;
}

// Fails unless `fd` is a regular file with one hard link. A second link may belong to another user.
static enum inf_code check_regular(int fd, const char *name, uint64_t *out_size,
                                   struct inf_error *err)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return inf_fail(err, INF_INTERNAL, "file '%s': %s", name, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return inf_fail(err, INF_DENIED, "file '%s': not a regular file", name);
    if (status.st_nlink > 1)
        return inf_fail(err, INF_DENIED, "file '%s': has %lu hard links, wanted 1", name,
                        (unsigned long)status.st_nlink);
    *out_size = (uint64_t)status.st_size;
    return INF_OK;
}

enum inf_code inf_file_open_beneath(int *out_fd, uint64_t *out_size_bytes, int directory_fd,
                                    const char *name, struct inf_error *err)
{
    inf_role_check_may_block();
    int fd = inf_beneath_open(directory_fd, name);
    if (fd < 0 && errno == ENOENT)
        return inf_fail(err, INF_NOT_FOUND, "file '%s': does not exist", name);
    if (fd < 0 && (errno == EXDEV || errno == ELOOP))
        return inf_fail(err, INF_DENIED, "file '%s': leaves the model's directory, or is a link",
                        name);
    if (fd < 0)
        return inf_fail(err, inf_file_failure_code(errno), "file '%s': %s", name, strerror(errno));
    enum inf_code code = check_regular(fd, name, out_size_bytes, err);
    if (code == INF_OK)
        *out_fd = fd;
    else
        close(fd);
    return code;
}

// --- reading bytes ---

// A part of an open file that is read to memory.
struct part {
    int fd;
    const char *name;
    uint64_t offset;
    char *buffer;
    size_t size;
};

static enum inf_code read_part(const struct part *part, struct inf_error *err)
{
    size_t done = 0;
    while (done < part->size) {
        uint64_t at = part->offset + done;
        ssize_t got = pread(part->fd, part->buffer + done, part->size - done, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return inf_fail(err, INF_UNAVAILABLE, "file '%s': read: %s", part->name,
                            strerror(errno));
        if (got == 0)
            return inf_fail(err, INF_RANGE, "file '%s': ends at byte %llu, wanted %llu", part->name,
                            (unsigned long long)at,
                            (unsigned long long)(part->offset + part->size));
        done += (size_t)got;
    }
    return INF_OK;
}

// A part that several threads read piece by piece.
struct reading {
    struct part part;
    uint64_t *sums; // receives the checksum of each INF_CHECKSUM_PIECE_BYTES; NULL: not wanted
    // The first thread that fails sets `code` and `err`; the pieces that are left are not read.
    atomic_bool failed;
    enum inf_code code;
    struct inf_error err;
};

// Reads `size` bytes of the part from byte `at` on. Sums are made while the bytes are in the cache.
static enum inf_code read_range(const struct reading *reading, size_t at, size_t size,
                                struct inf_error *err)
{
    const size_t most = reading->sums != NULL ? INF_CHECKSUM_PIECE_BYTES : size;
    for (size_t done = 0; done < size; done += most) {
        struct part part = reading->part;
        part.offset += at + done;
        part.buffer += at + done;
        part.size = INF_MIN(size - done, most);
        INF_TRY(read_part(&part, err));
        if (reading->sums != NULL)
            reading->sums[(at + done) / most] = inf_checksum(part.buffer, part.size);
    }
    return INF_OK;
}

static void read_piece(void *context, size_t index)
{
    struct reading *reading = context;
    size_t at = index * PIECE_BYTES;
    struct inf_error err = {0};
    if (atomic_load(&reading->failed))
        return;
    enum inf_code code =
        read_range(reading, at, INF_MIN(reading->part.size - at, PIECE_BYTES), &err);
    if (code != INF_OK && !atomic_exchange(&reading->failed, true)) {
        reading->code = code;
        reading->err = err;
    }
}

static enum inf_code run_reading(struct reading *reading, struct inf_error *err) INF_MAY_BLOCK
{
    size_t size = reading->part.size;
    if (size < 2 * PIECE_BYTES)
        return read_range(reading, 0, size, err);
    inf_parallel_run(&(struct inf_parallel){.run = read_piece,
                                            .context = reading,
                                            .pieces = (size + PIECE_BYTES - 1) / PIECE_BYTES,
                                            .bytes = size});
    if (reading->code != INF_OK && err != NULL)
        *err = reading->err;
    return reading->code;
}

enum inf_code inf_file_read(int fd, const char *name, uint64_t offset, void *buffer, size_t size,
                            struct inf_error *err)
{
    struct reading reading = {
        .part = {.fd = fd, .name = name, .offset = offset, .buffer = buffer, .size = size}};
    inf_role_check_may_block();
    return run_reading(&reading, err);
}

enum inf_code inf_file_read_summed(int fd, const char *name, uint64_t offset, void *buffer,
                                   size_t size, uint64_t *out_sum, struct inf_error *err)
{
    size_t count = (size + INF_CHECKSUM_PIECE_BYTES - 1) / INF_CHECKSUM_PIECE_BYTES;
    struct reading reading = {
        .part = {.fd = fd, .name = name, .offset = offset, .buffer = buffer, .size = size},
        .sums = calloc(count + 1, sizeof *reading.sums)};
    inf_role_check_may_block();
    if (reading.sums == NULL)
        return inf_fail(err, INF_EXHAUSTED, "file '%s': no memory for its checksum", name);
    enum inf_code code = run_reading(&reading, err);
    *out_sum = size;
    for (size_t i = 0; i < count; i++)
        *out_sum = inf_checksum_add_piece(*out_sum, reading.sums[i]);
    free(reading.sums);
    return code;
}

// Reads all `size` bytes of an open file into memory that the caller frees.
static enum inf_code read_open(char **out_data, int fd, const char *name, uint64_t size,
                               struct inf_error *err)
{
    // Large pages: a model's file is read once, and small pages cost as much as the copy.
    char *data = inf_pages_alloc(sizeof(void *), (size_t)size + 1);
    if (data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "file '%s': no memory for %llu bytes", name,
                        (unsigned long long)size);
    enum inf_code code = inf_file_read(fd, name, 0, data, (size_t)size, err);
    if (code != INF_OK) {
        free(data);
        return code;
    }
    data[size] = '\0';
    *out_data = data;
    return INF_OK;
}

enum inf_code inf_file_read_all(char **out_data, size_t *out_size_bytes, int directory_fd,
                                const char *name, uint64_t limit_bytes, struct inf_error *err)
{
    int fd;
    uint64_t size;
    INF_TRY(inf_file_open_beneath(&fd, &size, directory_fd, name, err));
    enum inf_code code =
        size > limit_bytes
            ? inf_fail(err, INF_EXHAUSTED, "file '%s': %llu bytes, at most %llu allowed", name,
                       (unsigned long long)size, (unsigned long long)limit_bytes)
            : read_open(out_data, fd, name, size, err);
    close(fd);
    if (code == INF_OK)
        *out_size_bytes = (size_t)size;
    return code;
}

bool inf_file_write_all(int fd, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size > 0) {
        ssize_t written = write(fd, next, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = EIO;
        if (written <= 0)
            return false;
        next += written;
        size -= (size_t)written;
    }
    return true;
}
