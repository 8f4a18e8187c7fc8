// SPDX-License-Identifier: Apache-2.0
// The nice value of the thread that loads models, so that loads do not delay the requests of other
// models, and requests do not starve loads. It has no clock: the caller passes times.
#ifndef INF_DAEMON_POLICY_LOAD_NICE_H
#define INF_DAEMON_POLICY_LOAD_NICE_H

#include <stdbool.h>
#include <stdint.h>

// The value beside requests: any other thread goes first. Linux gives it about 1.5 % of a core
// beside one busy thread of nice 0.
#define INF_LOAD_NICE_LOW 19
// The value of a load that gets too little: about 10 % of a core beside one busy thread of nice 0.
#define INF_LOAD_NICE_STARVED 10

// How often the caller asks for the value while a load runs.
#define INF_LOAD_NICE_PERIOD_NS UINT64_C(100000000)

// A load is starved if it got less than one part in so many of the time of a core. The next period
// it gets more, so a load beside one busy thread on each core gets half of this at least in the
// long run: a load of one second ends within INF_LOAD_STARVED_PARTS * 2 seconds.
#define INF_LOAD_STARVED_PARTS 20u

// Requests count as being served until so long after the last one.
#define INF_LOAD_QUIET_NS UINT64_C(1000000000)

// What is known about a load that runs. A zeroed struct is a load that begins.
struct inf_load_nice {
    bool wanted;     // a request waits for the model
    uint64_t cpu_ns; // processor time of the thread at the end of the last period
    uint64_t at_ns;  // end of the last period; 0: this is the first one
};

// Returns the nice value for the next period. `serving`: requests of other models are being served,
// or were in the last INF_LOAD_QUIET_NS. `cpu_ns` is the processor time that the thread has used.
int inf_load_nice_choose(struct inf_load_nice *load, bool serving, uint64_t now_ns,
                         uint64_t cpu_ns);

#endif
