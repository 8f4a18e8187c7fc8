// SPDX-License-Identifier: Apache-2.0
// Files in memory (memfd_create()). The library seals the size of a file and allocates all of its
// pages. Otherwise a client that shrinks the file, or a lack of memory, could cause a fault in the
// daemon, which maps the file.
#include "client/lib/io/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOEXEC_SEAL_FLAG 0x0008u // MFD_NOEXEC_SEAL, which older headers lack

static enum inf_code fail_map(struct inf_error *err, size_t size)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "cannot map %zu bytes of shared memory: %s", size, strerror(errno));
}

int inf_client_memfd_create(size_t size, struct inf_error *err)
{
    int fd = memfd_create("inferd", MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL_FLAG);
    if (fd < 0 && errno == EINVAL) // the kernel is older than Linux 6.3
        fd = memfd_create("inferd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "cannot make shared memory: %s",
                        strerror(errno));
        return -1;
    }
    if (ftruncate(fd, (off_t)size) < 0 || fallocate(fd, 0, 0, (off_t)size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                        "cannot make %zu bytes of shared memory: %s", size, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

enum inf_code inf_client_memfd_map(int fd, size_t size, uint8_t **data, struct inf_error *err)
{
    void *mapping = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (mapping == MAP_FAILED)
        return fail_map(err, size);
    *data = mapping;
    return INF_OK;
}

enum inf_code inf_client_memfd_replace(uint8_t *data, size_t size, int *out_fd,
                                       struct inf_error *err)
{
    int fd = inf_client_memfd_create(size, err);
    if (fd < 0)
        return INF_EXHAUSTED;
    uint8_t *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (copy != MAP_FAILED)
        memcpy(copy, data, size);
    if (copy == MAP_FAILED ||
        mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, data) == MAP_FAILED) {
        (void)!fail_map(err, size);
        if (copy != MAP_FAILED)
            munmap(copy, size);
        close(fd);
        return INF_EXHAUSTED;
    }
    *out_fd = fd;
    return INF_OK;
}
