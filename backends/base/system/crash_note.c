// SPDX-License-Identifier: Apache-2.0
// What runs when the process crashes must be known without a write for each run, and a handler of a
// signal may only read memory and call write(). So each thread keeps the key of what it computes in
// a thread-local variable, and a table has the keys of all threads:
//
//   the crashed thread has a key            -> its key is noted
//   it has none, and one thread has a key   -> that key is noted: a thread of a library or a driver
//                                              computed for this thread
//   several threads have keys               -> nothing is noted: the guilty one is not known
//
// The handler first restores the handler that was there before. For a fault of an instruction,
// returning executes the instruction again, so that the earlier handler (a sanitizer's) or the
// default action follows, with its core dump. abort() and raise() send the signal once, so
// the handler sends it again. A stack that overflowed has no room for the handler: no note then.
#include "backends/base/system/crash_note.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

// The most threads in the table. Further ones are found by their own key only.
#define THREADS_MAX 64u

static const char digits[] = "0123456789abcdef";
const int inf_crash_signals[INF_CRASH_SIGNALS] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// One place for a thread, in a cache line of its own.
struct place {
    _Alignas(64) _Atomic uint64_t key;
};

static struct place places[THREADS_MAX];
static struct sigaction earlier[INF_CRASH_SIGNALS];
static _Atomic int note_fd = -1;

static _Thread_local volatile uint64_t own_key;
static _Thread_local uint32_t own_place; // the place that the thread had last
static _Thread_local bool has_place;

// --- what threads compute ---

void inf_crash_note_begin(uint64_t key)
{
    own_key = key;
    for (uint32_t i = 0; i < THREADS_MAX && !has_place; i++) {
        uint32_t place = (own_place + i) % THREADS_MAX;
        uint64_t none = 0;
        has_place = atomic_compare_exchange_strong(&places[place].key, &none, key);
        if (has_place)
            own_place = place;
    }
}

void inf_crash_note_end(void)
{
    if (has_place)
        atomic_store_explicit(&places[own_place].key, 0, memory_order_release);
    has_place = false;
    own_key = 0;
}

uint64_t inf_crash_note_key(void)
{
    return own_key;
}

void inf_crash_note_help(uint64_t key)
{
    own_key = key;
}

// --- the handler ---

// Returns the key to note; 0: it is not known.
static uint64_t find_key(void)
{
    uint64_t only = 0;
    uint32_t count = 0;
    if (own_key != 0)
        return own_key;
    for (uint32_t i = 0; i < THREADS_MAX; i++) {
        uint64_t key = atomic_load_explicit(&places[i].key, memory_order_relaxed);
        count += key != 0;
        only = key != 0 ? key : only;
    }
    return count == 1 ? only : 0;
}

static void write_note(uint64_t key)
{
    char line[INF_CRASH_NOTE_BYTES];
    for (uint32_t i = 0; i < INF_CRASH_NOTE_BYTES - 1; i++)
        line[i] = digits[key >> (60 - 4 * i) & 15];
    line[INF_CRASH_NOTE_BYTES - 1] = '\n';
    (void)!write(atomic_load(&note_fd), line, sizeof line);
}

static void note_crash(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    for (size_t i = 0; i < INF_CRASH_SIGNALS; i++)
        if (inf_crash_signals[i] == number)
            sigaction(number, &earlier[i], NULL);
    uint64_t key = info->si_code == SI_USER || info->si_code == SI_QUEUE ? 0 : find_key();
    if (key != 0)
        write_note(key);
    errno = saved;
    // Delivered when the handler returns, because the signal is blocked here.
    if (info->si_code <= 0)
        raise(number);
}

enum inf_code inf_crash_note_install(int fd, struct inf_error *err)
{
    struct sigaction action = {.sa_sigaction = note_crash, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    atomic_store(&note_fd, fd);
    for (size_t i = 0; i < INF_CRASH_SIGNALS; i++)
        if (sigaction(inf_crash_signals[i], &action, &earlier[i]) != 0)
            return inf_fail(err, INF_EXHAUSTED, "no handler for signal %d: %s",
                            inf_crash_signals[i], strerror(errno));
    return INF_OK;
}

void inf_crash_note_remove(void)
{
    if (atomic_exchange(&note_fd, -1) < 0)
        return;
    for (size_t i = 0; i < INF_CRASH_SIGNALS; i++)
        sigaction(inf_crash_signals[i], &earlier[i], NULL);
}

uint64_t inf_crash_note_parse(const char *line)
{
    uint64_t key = 0;
    for (uint32_t i = 0; i < INF_CRASH_NOTE_BYTES - 1; i++) {
        const char *digit = memchr(digits, line[i], sizeof digits - 1);
        if (digit == NULL)
            return 0;
        key = key << 4 | (uint64_t)(digit - digits);
    }
    return line[INF_CRASH_NOTE_BYTES - 1] == '\n' ? key : 0;
}
