// SPDX-License-Identifier: Apache-2.0
// Keeps a session whose steps fail out of joined runs for a while. The steps of a joined run that
// fails are repeated one by one, so each failure costs the time of all steps of the run. The
// functions read no clock.
#ifndef INF_DAEMON_POLICY_JOIN_BACK_OFF_H
#define INF_DAEMON_POLICY_JOIN_BACK_OFF_H

#include <stdbool.h>
#include <stdint.h>

// How many steps of a session run alone after one of its steps made a joined run fail. The number
// doubles with each such step, up to the maximum. A joined run that succeeds resets the number.
#define INF_JOIN_ALONE_FIRST 8u
#define INF_JOIN_ALONE_MAX   1024u

// One per session. All zero is the initial state.
struct inf_join_back_off {
    uint32_t alone; // how many of the next steps run alone
    uint32_t last;  // how many steps had to run alone after the last failure; 0: there was none
};

// How a step ran.
enum inf_join_outcome {
    INF_JOIN_ALONE,   // in a run of its own
    INF_JOIN_SHARED,  // with steps of other sessions
    INF_JOIN_SPOILED, // the step made a run with other steps fail
};

// Returns true if the next step may run with steps of other sessions.
bool inf_join_back_off_may_join(const struct inf_join_back_off *back_off);

// Notes the end of a step.
void inf_join_back_off_note(struct inf_join_back_off *back_off, enum inf_join_outcome outcome);

#endif
