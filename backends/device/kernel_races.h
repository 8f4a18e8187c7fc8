// SPDX-License-Identifier: Apache-2.0
// Options of a compilation for the choice among several kernels that can compute a node. In a race
// a device runs each of them and takes the fastest.
#ifndef INF_BACKENDS_DEVICE_KERNEL_RACES_H
#define INF_BACKENDS_DEVICE_KERNEL_RACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/idle_gate.h"

// Lets races run only while no request is served. The owner keeps it until the compilation ends.
struct inf_race_gate {
    const struct inf_idle_gate *idle_gate;
    const atomic_bool *stop; // ends the waiting when it becomes true
    // Set if the daemon was not idle in time, or *stop became true: no further race of the
    // compilation begins. May be used as the flag that cancels the compilation.
    atomic_bool gave_up;
};

// A zeroed struct: kernels without a recorded winner race at once.
struct inf_kernel_races {
    // 0: kernels without a recorded winner race. Otherwise no kernel races: the winners that were
    // recorded by this time (inf_clock_ns()) are used, and fixed rules choose the other kernels.
    // The time makes all parts of a compilation choose alike, although another thread may record a
    // winner meanwhile.
    uint64_t known_until_ns;
    // Each timed run waits for it, on a GPU those of all kernels for a node together; NULL: they do
    // not wait.
    struct inf_race_gate *gate;
};

// Waits until no request is served. Returns false, at once if the gate gave up before, if the timed
// run must not begin. `gate` may be NULL.
bool inf_race_gate_wait(struct inf_race_gate *gate) INF_MAY_BLOCK;

#endif
