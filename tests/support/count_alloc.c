// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon: counts the calls that allocate memory, of all threads, in the file that
// $INF_COUNT_ALLOC names, which a test has mapped too.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// What glibc's own functions are called beneath.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

#define EXPORT __attribute__((visibility("default")))

static _Atomic uint64_t *calls;

__attribute__((constructor)) static void open_counter(void)
{
    const char *path = getenv("INF_COUNT_ALLOC");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *shared = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        calls = shared;
    close(fd);
}

static void count(void)
{
    if (calls != NULL)
        atomic_fetch_add_explicit(calls, 1, memory_order_relaxed);
}

EXPORT void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    count();
    return __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    count();
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}
