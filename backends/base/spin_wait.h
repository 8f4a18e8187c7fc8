// SPDX-License-Identifier: Apache-2.0
// How long a thread that has nothing to do looks for work itself before it sleeps. Waking a processor
// that sleeps costs more than a small request (some 40 us in a virtual machine), so that whoever had
// little to wait lately looks for a while first. Embedded; its owner's alone.
#ifndef INF_BACKENDS_BASE_SPIN_WAIT_H
#define INF_BACKENDS_BASE_SPIN_WAIT_H

#include <stdbool.h>
#include <stdint.h>

// How long anybody looks at least, where looking pays: a client and the one that waits for it may both
// have to be woken in it. After long work a quarter of it, but no longer than the most.
#define INF_SPIN_WAIT_MIN_NS 100000u
#define INF_SPIN_WAIT_MAX_NS 500000u

struct inf_spin_wait {
    bool possible;     // others have a processor to work on meanwhile
    bool lately;       // the last wait was within the limit
    uint64_t limit_ns; // how long to look
};

// Prepares an embedded one for a process that may use so many cores.
void inf_spin_wait_init(struct inf_spin_wait *spin_wait, uint32_t cores);

// Whether to look before sleeping.
bool inf_spin_wait_should_spin(const struct inf_spin_wait *spin_wait);

// Work that took so long is done: what is next may be waited for accordingly.
void inf_spin_wait_note_work(struct inf_spin_wait *spin_wait, uint64_t took_ns);

// Learns from a wait that is over.
void inf_spin_wait_note_wait(struct inf_spin_wait *spin_wait, uint64_t waited_ns);

// Between two looks: leaves the processor to whoever else wants it. False where somebody took it for long:
// one that has others to run need not be kept awake.
bool inf_spin_wait_yield(void);

#endif
