// SPDX-License-Identifier: Apache-2.0
// Decides which sessions a restart keeps if all of them together are too large. Used by the loop
// only, at the end of the process.
#ifndef INF_DAEMON_RESOURCE_SESSION_CHOICE_H
#define INF_DAEMON_RESOURCE_SESSION_CHOICE_H

#include "daemon/resource/session.h"

struct inf_session_candidate;

// The sessions to choose from. Zero-initialise, add tables, decide, and call
// inf_session_choice_fini(). The tables must not change meanwhile.
struct inf_session_choice {
    struct inf_session_candidate *candidates;
    size_t count, capacity;
};

// What was decided.
struct inf_session_choice_result {
    uint32_t kept, lost;
    uint64_t kept_bytes, lost_bytes; // bytes of their images
};

// Adds all sessions of a table, none of which has a request in flight. Returns false if memory is
// exhausted; then no session of the table will be kept.
bool inf_session_choice_add(struct inf_session_choice *choice,
                            struct inf_session_table *table) INF_NODISCARD INF_ON_LOOP;

// Sets `is_kept` of every session that was added. The images of all that are kept have at most
// `bytes_max`, and those of one table at most `table_bytes_max`. Users share the bytes equally: no
// user loses a session while another one keeps more bytes. Of one user, the sessions that were
// used least recently are lost first.
struct inf_session_choice_result inf_session_choice_decide(struct inf_session_choice *choice,
                                                           uint64_t bytes_max,
                                                           uint64_t table_bytes_max) INF_ON_LOOP;

// Frees the candidates.
void inf_session_choice_fini(struct inf_session_choice *choice);

#endif
