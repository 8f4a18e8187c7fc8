// SPDX-License-Identifier: Apache-2.0
// One inference on its way through the daemon. The loop fills it and gives it to the scheduler; a
// worker runs it; it comes back to the loop with the result. At any time one of them has it, except
// for `cancelled`.
#ifndef INF_DAEMON_SCHEDULE_JOB_H
#define INF_DAEMON_SCHEDULE_JOB_H

#include <stdatomic.h>

#include "daemon/output/reply_writer.h"
#include "daemon/policy/deadline.h"
#include "daemon/policy/fair_queue.h"
#include "daemon/policy/run_estimate.h"
#include "daemon/resource/region.h"
#include "daemon/resource/session.h"
#include "daemon/schedule/call.h"
#include "daemon/schedule/fault.h"
#include "daemon/store/store.h"

// An output, by the model's order.
struct inf_job_output {
    // the loop's
    bool wanted;
    uint8_t *memory;           // in a region; NULL: it goes into the reply's data segment
    uint64_t room_bytes;       // at `memory`
    struct inf_region *region; // held; NULL where there is none
    uint64_t region_id, region_offset;
    bool returned;                   // in the reply
    struct inf_session_buffer *kept; // where it is to be kept; NULL: it is not
    // the worker's
    bool late; // its size is known only after the run
    enum inf_dtype dtype;
    struct inf_shape shape;
    size_t size_bytes;
    size_t offset; // in the reply's data segment
};

enum inf_job_place {
    INF_JOB_LOOP,  // being filled, or done
    INF_JOB_HELD,  // waits for its turn in its session; counted by the lane
    INF_JOB_QUEUE, // in a lane; guarded by the lane's mutex
    INF_JOB_WORKER // taken by a worker, or in the queue of those that are done
};

// Who gives the final answer of a job.
enum inf_job_answerer {
    INF_JOB_BY_NOBODY, // yet
    INF_JOB_BY_LOOP,
    INF_JOB_BY_WORKER,
};

struct inf_job {
    struct inf_call call; // the loop's

    // Fixed by the loop before the job is submitted.
    struct inf_served *served; // a reference
    struct inf_device *device;
    uint32_t device_index;
    enum inf_precision precision; // that was asked for; AUTO: as the model is placed
    bool movable; // to another device, once: nobody named this one, and it was not moved yet
    uint32_t input_count;
    const void *inputs[INF_LIMIT_TENSORS];           // by the model's order
    struct inf_mapping *mappings[INF_LIMIT_TENSORS]; // what an input lies in; NULL: devices copy it
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    uint32_t output_count; // of the model
    struct inf_job_output outputs[INF_LIMIT_TENSORS];
    uint32_t reply_bytes_max; // of the reply's data segment
    uint64_t accepted_ns;
    uint64_t estimate_key;
    uint32_t rows; // that may run together with those of other jobs of the model; 0: none may

    struct {                             // for a worker that writes the reply itself
        struct inf_reply_writer *writer; // a reference; NULL: the loop is to answer
        uint64_t stream_id;
        uint32_t data_bytes_max; // in one frame
    } direct;

    // Set by the loop at any time, looked at by the worker between steps.
    atomic_bool cancelled;
    // Who gives the final answer; changed by inf_job_claim() only.
    _Atomic enum inf_job_answerer answerer;

    // The worker's until it posts the job; then the loop's.
    struct {
        struct inf_fault fault;
        uint8_t *data; // of the pool; NULL where there is none
        size_t data_bytes, data_capacity;
        // When a worker took the job, when its run began and ended (0: it never did), and when
        // the worker was done with it.
        uint64_t start_ns, begin_ns, end_ns, done_ns;
        uint64_t device_ns;               // its share of the time from start to done
        enum inf_precision precision;     // of the answer
        struct inf_shadow_sample *sample; // NULL: its answer is not checked
        uint32_t batch_rows;              // of the run, those of other jobs counted
        uint32_t padded_to;               // rows of the run with its padding; 0: none
        uint32_t flags;                   // of enum inf_infer_flag
    } result;

    // The lane's, under its mutex; user, model and priority of `turn` are set by the loop before.
    enum inf_job_place place;
    struct inf_fair_queue_entry turn;
    struct inf_estimate expected; // all 0: nothing is known
    bool given_up;                // its deadline would pass while it ran: it is not to be run
    uint64_t expected_end_ns;

    // The loop's alone.
    struct inf_deadline deadline;       // at_ns 0: none
    struct inf_deadline queue_deadline; // only while no worker has it; at_ns 0: none
    uint8_t *data;                      // the request's data segment, of the pool; NULL where none
    size_t data_bytes;
    struct inf_region *input_regions[INF_LIMIT_TENSORS]; // held; NULL where inline
    uint32_t order_count;                                // outputs in the request's order
    uint8_t order[INF_LIMIT_TENSORS];
    bool shadowed;               // its answer is to be checked
    bool traced;                 // its nodes are to be told of
    struct inf_session *session; // a reference; NULL: none
    struct inf_job *session_next;
    uint32_t kept_input_count; // inputs that the session gives, and which of its tensors they are
    struct inf_session_port kept_inputs[INF_LIMIT_TENSORS];
    uint32_t kept_output_count;
    struct inf_session_port kept_outputs[INF_LIMIT_TENSORS];
    char id[INF_LIMIT_REQUEST_ID + 1];
};

// Takes it on to answer a job: true for exactly one who asks, and whenever the same asks again.
static inline bool inf_job_claim(struct inf_job *job, enum inf_job_answerer who)
{
    enum inf_job_answerer answerer = INF_JOB_BY_NOBODY;
    // Relaxed: it says who, and what the answer consists of is handed over elsewhere.
    return atomic_compare_exchange_strong_explicit(&job->answerer, &answerer, who,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           answerer == who;
}

#endif
