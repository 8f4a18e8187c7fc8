// SPDX-License-Identifier: Apache-2.0
// How long a thread without work polls before it sleeps. Waking a sleeping CPU costs more than a
// small request (about 40 us in a virtual machine), so a thread whose last wait was short spins
// first. Embedded in its owner and used by one thread.
#ifndef INF_BACKENDS_BASE_SPIN_WAIT_H
#define INF_BACKENDS_BASE_SPIN_WAIT_H

#include <stdbool.h>
#include <stdint.h>

// Bounds of the spin time. The minimum covers waking a client and sending its next request. After
// long runs the spin time is a quarter of the run, up to the maximum.
#define INF_SPIN_WAIT_MIN_NS 100000u
#define INF_SPIN_WAIT_MAX_NS 500000u

struct inf_spin_wait {
    bool possible;     // there is more than one CPU, so spinning does not stop other threads
    bool last_short;   // the last wait ended within the limit
    uint64_t limit_ns; // how long to spin
};

// Initialises the state for a process that may use `cores` cores.
void inf_spin_wait_init(struct inf_spin_wait *spin_wait, uint32_t cores);

// Returns whether to poll before sleeping.
bool inf_spin_wait_should_spin(const struct inf_spin_wait *spin_wait);

// Sets the limit from the duration of the run that just ended.
void inf_spin_wait_note_work(struct inf_spin_wait *spin_wait, uint64_t took_ns);

// Notes how long the wait took that just ended.
void inf_spin_wait_note_wait(struct inf_spin_wait *spin_wait, uint64_t waited_ns);

// Yields the CPU between two polls. Returns false if another thread took it for long: the caller
// should stop spinning.
bool inf_spin_wait_yield(void);

#endif
