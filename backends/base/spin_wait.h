// SPDX-License-Identifier: Apache-2.0
// Decides how long a thread without work polls before it sleeps. Waking a sleeping CPU costs more
// than a small request (about 40 us in a virtual machine), so a thread whose last wait was short
// spins first. Embedded in its owner and used by one thread.
#ifndef INF_BACKENDS_BASE_SPIN_WAIT_H
#define INF_BACKENDS_BASE_SPIN_WAIT_H

#include <stdbool.h>
#include <stdint.h>

// Limits of the spin time. The minimum is long enough to wake a client and receive its next
// request. After a long run the spin time is a quarter of the run time, up to the maximum.
#define INF_SPIN_WAIT_MIN_NS 100000u
#define INF_SPIN_WAIT_MAX_NS 500000u

struct inf_spin_wait {
    // true: the process has several CPUs, so spinning does not stop other threads.
    bool possible;
    bool last_short;   // true: the last wait ended within the limit
    uint64_t limit_ns; // how long to spin
};

// Initialises the state for a process that may use `cores` cores.
void inf_spin_wait_init(struct inf_spin_wait *spin_wait, uint32_t cores);

// Returns true if the thread should poll before it sleeps.
bool inf_spin_wait_should_spin(const struct inf_spin_wait *spin_wait);

// Sets the limit from the duration of the run that just ended.
void inf_spin_wait_note_work(struct inf_spin_wait *spin_wait, uint64_t took_ns);

// Records the duration of the wait that just ended.
void inf_spin_wait_note_wait(struct inf_spin_wait *spin_wait, uint64_t waited_ns);

// Yields the CPU between two polls. Returns false if another thread used the CPU for long; the
// caller should then stop spinning.
bool inf_spin_wait_yield(void);

#endif
