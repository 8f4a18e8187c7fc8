// SPDX-License-Identifier: Apache-2.0
// Sequences of the Open Inference Protocol: requests with the same sequence_id share the state of a
// model. Each sequence is a session of the daemon, on a connection of its own.
#ifndef INF_GATEWAY_SEQUENCES_H
#define INF_GATEWAY_SEQUENCES_H

#include <stddef.h>
#include <stdint.h>

#include "client/gateway/core/link.h"
#include "client/gateway/core/question.h"
#include "client/gateway/oip/request.h"

// Maximum number of requests of one sequence that wait or are in flight.
#define INF_SEQUENCE_CALLS_MAX 64u

struct inf_sequences;
struct inf_sequence_call;

// Creates an empty table of sequences. At most `max` sequences are open at the same time. A
// sequence without a request for `idle_ms` milliseconds ends. `questions` opens sessions, and must
// be destroyed after the table.
enum inf_code inf_sequences_create(struct inf_sequences **sequences, struct event_base *base,
                                   struct inf_question_queue *questions, size_t max,
                                   uint64_t idle_ms, struct inf_error *err) INF_NODISCARD;

// Ends all sequences and frees the table. Callbacks of calls are not called. Sets *sequences to
// NULL.
void inf_sequences_destroy(struct inf_sequences **sequences);

// Returns the number of sequences that are open or being opened.
size_t inf_sequences_count(const struct inf_sequences *sequences);

// Sends a request of a sequence, which request->sequence names. Sequences of other owners
// (request->owner) are other sequences, even if they have the same name. If
// request->sequence_start is set, a new sequence begins, and an older one of the same name ends;
// otherwise the sequence must exist. If request->sequence_end is set, the sequence ends with the
// request. Requests of a sequence run in the order of the calls. `wanted` must have been built from
// `request`. The callback and the return value are those of inf_link_infer().
int inf_sequences_infer(struct inf_sequences *sequences, const struct inf_oip_request *request,
                        const inferd_request *wanted, inf_link_callback callback, void *context,
                        struct inf_sequence_call **call, struct inferd_error *err);

// Ends a call, which must be done once for each call: cancels it if its callback was not called,
// and otherwise tells the sequence that the result was freed. The result must not be used
// afterwards, because its memory belongs to the connection of the sequence.
void inf_sequences_release(struct inf_sequence_call *call);

#endif
