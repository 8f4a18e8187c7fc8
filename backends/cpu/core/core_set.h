// SPDX-License-Identifier: Apache-2.0
// The cores of the cpu device, and the helper threads that compute on them. All runs share the
// helpers: a run that is alone may have all of them, and concurrent runs divide them.
#ifndef INF_BACKENDS_CPU_CORE_CORE_SET_H
#define INF_BACKENDS_CPU_CORE_CORE_SET_H

#include <pthreadpool.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "backends/base/thread.h"
#include "proto/core/status.h"

// The largest number of slots, and of threads of one run, that may be configured.
#define INF_CPU_SLOTS_MAX   256u
#define INF_CPU_THREADS_MAX 256u

// The largest number of slots, and of threads of one run, that the device chooses itself.
#define INF_CPU_AUTO_SLOTS_MAX   8u
#define INF_CPU_AUTO_THREADS_MAX 8u

// How often the cores that the process may use are counted, while there are runs.
#define INF_CPU_FOLLOW_MS 250u
// The time of the next count while a thread counts, so that no other thread begins to count.
#define INF_CPU_COUNTING UINT64_MAX

struct inf_cpu_helper;

// Shared by all programs of the device. The counts are atomic, so that a helper can check without
// the mutex whether it must give its core to another run.
struct inf_cpu_core_set {
    uint32_t slots;   // number of concurrent runs
    uint32_t threads; // most threads of one run, including the calling thread
    // Most threads of all runs together, if there are at most as many runs. Follows the cores that
    // the process may use, from 1 to `cores_most`.
    atomic_uint cores;
    uint32_t cores_most; // value of `cores` while `usable` cores or more may be used
    uint32_t usable;     // cores that the process might use when the set was initialised
    // Returns how many cores the process may use at present: inf_cores_usable(), except in tests.
    uint32_t (*count_usable)(void);
    // Time of the next count, on the clock of inf_clock_ns(), or INF_CPU_COUNTING.
    _Atomic uint64_t count_again_ns;
    // For the operators of XNNPACK: all `threads` threads, for one call at a time. NULL if
    // `threads` is 1.
    pthreadpool_t pool;
    atomic_bool pool_taken;
    atomic_uint runs;    // runs in progress; each has the core of its calling thread
    atomic_uint helping; // helpers that work for a run
    // True: a run got fewer cores than its share, because another run had more than its own share.
    atomic_bool wanted;
    // Time on the clock of inf_clock_ns() until which a free core is kept for the next run, because
    // a run ended beside another one; 0: it is not kept.
    _Atomic uint64_t kept_until_ns;
    // How many of `runs` may have this many threads at most.
    atomic_uint runs_of[INF_CPU_THREADS_MAX + 1];

    struct inf_mutex mutex;         // guards the helpers, and all changes of `helping`
    struct inf_cpu_helper *helpers; // cores_most - 1 threads
    uint32_t helper_count;          // helpers that were started
};

// The helpers of one run. Zero-initialise, then set `help`, `context` and `most`. One thread, the
// leader, acquires and releases helpers.
struct inf_cpu_crew {
    // Called by each helper with its number, which is from 1 to `most` and which no other helper of
    // the crew has. Returns false if the run needs no helper for a while, and true at once after
    // inf_cpu_core_set_give_way() returned true.
    bool (*help)(void *context, size_t worker);
    void *context;
    uint32_t most;    // the most helpers of the crew
    uint64_t run_key; // what the leader computes (inf_crash_note_key()); guarded by the mutex

    atomic_uint working; // helpers that count for the share of the run
    atomic_uint present; // helpers that may still use the crew
    // Guarded by the mutex of the set: the sum of the times for which helpers have been working,
    // counted until `counted_until_ns`.
    uint64_t helper_ns, counted_until_ns;
};

// Decides how many cores there are and starts the helper threads. `slots` and `threads` are upper
// limits; 0: one slot for each usable core, and as many threads as there are usable cores, but no
// more than INF_CPU_AUTO_SLOTS_MAX and INF_CPU_AUTO_THREADS_MAX. Must not be moved afterwards.
//
// INF_INVALID    more than INF_CPU_SLOTS_MAX or INF_CPU_THREADS_MAX.
// INF_EXHAUSTED  no memory, or the system refuses a thread.
enum inf_code inf_cpu_core_set_init(struct inf_cpu_core_set *set, uint32_t slots, uint32_t threads,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends the helper threads. No run may be in progress. A zeroed set is allowed.
void inf_cpu_core_set_fini(struct inf_cpu_core_set *set);

// Returns the share of a run in the cores, at least 1 thread. Runs in progress that may have fewer
// threads than that have as many as they may, and the others divide the rest. The division is
// rounded up if `round_up` is true. Any thread.
uint32_t inf_cpu_core_set_divide(const struct inf_cpu_core_set *set, bool round_up);

// Counts a run, which computes on the calling thread and keeps one core until
// inf_cpu_core_set_end_run(). `threads` is the most threads that it may have, the same in both
// calls. Helpers of other runs give way if there are more threads than cores. Any thread that may
// read files.
void inf_cpu_core_set_begin_run(struct inf_cpu_core_set *set, uint32_t threads) INF_MAY_BLOCK;
void inf_cpu_core_set_end_run(struct inf_cpu_core_set *set, uint32_t threads);

// Returns true if the crew has helpers, or inf_cpu_core_set_acquire() would probably find one.
bool inf_cpu_core_set_offers(struct inf_cpu_core_set *set,
                             const struct inf_cpu_crew *crew) INF_MAY_BLOCK;

// Acquires helpers for the crew until it has min(crew->most, most) or its share of the cores, and
// one more if a core is left over. Returns how many helpers the crew has. Returns at once: a helper
// starts when its thread wakes up.
uint32_t inf_cpu_core_set_acquire(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew,
                                  uint32_t most);

// Called by a helper of the crew between two pieces of work. Returns true if the helper must return
// true from crew->help(), because another run needs its core.
bool inf_cpu_core_set_give_way(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew);

// Takes back the helpers that have not begun. Those that have begun stay in the crew until they
// return from help(), and are counted until then.
void inf_cpu_core_set_release(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew);

// Returns the time for which helpers have been working for the crew since the last call, summed
// over the helpers. Called by the leader.
uint64_t inf_cpu_core_set_take_helper_ns(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew);

// Waits until no helper is in the crew. The leader must have made them return.
void inf_cpu_core_set_wait(struct inf_cpu_crew *crew);

// Returns the thread pool for one call of XNNPACK by a run, and reserves it until
// inf_cpu_core_set_release_pool(). Returns NULL, so that the calling thread computes alone, if
// there is more than one run, only one core, or the pool is in use. Any thread.
pthreadpool_t inf_cpu_core_set_acquire_pool(struct inf_cpu_core_set *set);

// Ends the reservation.
void inf_cpu_core_set_release_pool(struct inf_cpu_core_set *set);

#endif
