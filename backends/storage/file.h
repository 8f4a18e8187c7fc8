// SPDX-License-Identifier: Apache-2.0
// Reads and writes files. Model files are copied, never mapped, because reading a mapping of a file
// that another process truncates raises SIGBUS. Names never leave the directory to which they are
// relative.
#ifndef INF_BACKENDS_STORAGE_FILE_H
#define INF_BACKENDS_STORAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// Returns the code of the failure of a system call with the errno `cause`:
//
// INF_EXHAUSTED    no memory or descriptor.
// INF_UNAVAILABLE  the device or the server of the file did not answer as it should.
// INF_DENIED       any other failure.
enum inf_code inf_file_failure_code(int cause);

// Opens the directory `path` for inf_file_open_beneath(). The caller closes *out_fd.
//
// INF_NOT_FOUND  there is no such directory; the text has only the last part of `path`.
// INF_EXHAUSTED, INF_UNAVAILABLE, INF_DENIED  as inf_file_failure_code() returns them.
enum inf_code inf_directory_open(int *out_fd, const char *path,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Opens the regular file `name` for reading, beneath `directory_fd`. The name must not be absolute
// or contain "..", no part of it may be a symbolic link (inf_beneath_open()), and the file must
// have only one hard link. The caller closes *out_fd.
//
// INF_NOT_FOUND  no such file.
// INF_DENIED     the name leaves the directory, or the file is a link or not a regular file.
// INF_EXHAUSTED, INF_UNAVAILABLE, INF_DENIED  as inf_file_failure_code() returns them.
enum inf_code inf_file_open_beneath(int *out_fd, uint64_t *out_size_bytes, int directory_fd,
                                    const char *name,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads exactly `size` bytes at `offset` of `fd` into `buffer`, on several cores if they are many.
// `name` is for the error text.
//
// INF_RANGE  the file ends before `offset` + `size`.
enum inf_code inf_file_read(int fd, const char *name, uint64_t offset, void *buffer, size_t size,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Does what inf_file_read() does, and sets *out_sum to inf_checksum_pieces() of the bytes. It sums
// them while they are in the cache, so that they are not read from memory a second time. After a
// failure *out_sum is undefined.
//
// INF_RANGE      as inf_file_read().
// INF_EXHAUSTED  no memory for the sums.
enum inf_code inf_file_read_summed(int fd, const char *name, uint64_t offset, void *buffer,
                                   size_t size, uint64_t *out_sum,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads the whole file `name` beneath `directory_fd`, at most `limit_bytes`, into memory that the
// caller frees. A NUL byte follows the contents.
//
// INF_EXHAUSTED  the file is larger than the limit, or there is not enough memory.
enum inf_code inf_file_read_all(char **out_data, size_t *out_size_bytes, int directory_fd,
                                const char *name, uint64_t limit_bytes,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Writes all bytes at the position of `fd`. Returns false and sets errno if that fails.
bool inf_file_write_all(int fd, const void *bytes, size_t size) INF_NODISCARD INF_MAY_BLOCK;

#endif
