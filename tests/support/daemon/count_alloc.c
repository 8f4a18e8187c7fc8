// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon: counts the allocations of all threads, and makes one of them fail if the
// test requests it. The counters are in the file that $INF_COUNT_ALLOC names, which the test maps
// too.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// The allocation functions of glibc under their internal names.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

#define EXPORT __attribute__((visibility("default")))

// The contents of the file that $INF_COUNT_ALLOC names. The test declares the same struct.
struct counter {
    _Atomic uint64_t calls;
    _Atomic uint64_t fail_at; // number of the call that fails, counted from 1; 0: no call fails
};

static struct counter *counter;

__attribute__((constructor)) static void open_counter(void)
{
    const char *path = getenv("INF_COUNT_ALLOC");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *shared = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        counter = shared;
    close(fd);
}

// Counts one call of an allocation function. Returns true if the test wants this call to fail.
static bool count_call(void)
{
    return counter != NULL &&
           atomic_fetch_add(&counter->calls, 1) + 1 == atomic_load(&counter->fail_at);
}

EXPORT void *malloc(size_t size)
{
    return count_call() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t number, size_t size)
{
    return count_call() ? NULL : __libc_calloc(number, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    return count_call() ? NULL : __libc_realloc(old, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return count_call() ? NULL : __libc_memalign(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return count_call() ? NULL : __libc_memalign(alignment, size);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = count_call() ? NULL : __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}
