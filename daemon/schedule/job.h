// SPDX-License-Identifier: Apache-2.0
// One inference on its way through the daemon. The loop fills it and submits it to the scheduler; a
// worker runs it; it returns to the loop with the result. At any time one of them owns it, except
// for `cancelled` and `answerer`.
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

// One output, in the order of the model.
struct inf_job_output {
    // Set by the loop.
    bool wanted;
    uint8_t *memory;           // in a region; NULL: in the data segment of the reply
    uint64_t room_bytes;       // size of `memory`
    struct inf_region *region; // reference while the job runs; NULL: none
    uint64_t region_id, region_offset;
    bool returned;                   // the reply contains it
    struct inf_session_buffer *kept; // session buffer that receives it; NULL: it is not kept
    // Set by the worker.
    bool late; // its size is known only after the run
    enum inf_dtype dtype;
    struct inf_shape shape;
    size_t size_bytes;
    size_t offset; // in the data segment of the reply
};

enum inf_job_place {
    INF_JOB_LOOP,  // being filled, or done
    INF_JOB_HELD,  // waits for an earlier job of its session; counted by the device queue
    INF_JOB_QUEUE, // in a device queue, guarded by its mutex
    INF_JOB_WORKER // with a worker, or in the queue of jobs that are done
};

// Which thread sends the final reply of a job.
enum inf_job_answerer {
    INF_JOB_BY_NONE, // not decided yet
    INF_JOB_BY_LOOP,
    INF_JOB_BY_WORKER,
};

struct inf_job {
    struct inf_call call; // the loop's

    // Set by the loop before the job is submitted.
    struct inf_served *served; // a reference
    struct inf_device *device;
    uint32_t device_index;
    enum inf_precision precision; // that the request names; AUTO: as the model is placed
    bool movable;                 // may move to another device, once: the request names no device
    uint32_t input_count;
    const void *inputs[INF_LIMIT_TENSORS];           // in the order of the model
    struct inf_mapping *mappings[INF_LIMIT_TENSORS]; // mapping that an input lies in; NULL: copied
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    uint32_t output_count; // of the model
    struct inf_job_output outputs[INF_LIMIT_TENSORS];
    uint32_t reply_bytes_max; // limit of the reply's data segment
    uint64_t accepted_ns;
    uint64_t estimate_key;
    uint32_t rows; // rows that may run together with those of other jobs; 0: the job runs alone

    struct {                             // for a direct reply of the worker
        struct inf_reply_writer *writer; // a reference; NULL: the loop replies
        uint64_t stream_id;
        uint32_t data_bytes_max; // limit of the data in one frame
    } direct;

    // Set by the loop at any time, and read by the worker between steps.
    atomic_bool cancelled;
    // Which thread sends the final reply. Changed by inf_job_claim() only.
    _Atomic enum inf_job_answerer answerer;

    // Owned by the worker until it posts the job, then by the loop.
    struct {
        struct inf_fault fault;
        uint8_t *data; // of the pool; NULL: none
        size_t data_bytes, data_capacity;
        // When a worker took the job; when its run began and ended (0: it did not run); and when
        // the worker was done with it.
        uint64_t start_ns, begin_ns, end_ns, done_ns;
        uint64_t device_ns;               // share of this job in the time from start to done
        enum inf_precision precision;     // of the answer
        struct inf_shadow_sample *sample; // copy for the shadow check; NULL: none
        uint32_t batch_rows;              // rows of the run, of all jobs
        uint32_t padded_to;               // rows of the run with its padding; 0: no padding
        uint32_t flags;                   // of enum inf_infer_flag
    } result;

    // Guarded by the mutex of the device queue; the loop sets user, model and priority of
    // `queue_entry` before.
    enum inf_job_place place;
    struct inf_fair_queue_entry queue_entry;
    struct inf_estimate expected; // all 0: not known
    bool skip_run;                // not to be run, because its deadline would pass meanwhile
    uint64_t expected_end_ns;

    // Used by the loop only.
    struct inf_deadline deadline;       // at_ns 0: none
    struct inf_deadline queue_deadline; // for the start of the run; at_ns 0: none
    uint8_t *data;                      // data segment of the request, of the pool; NULL: none
    size_t data_bytes;
    struct inf_region *input_regions[INF_LIMIT_TENSORS]; // references; NULL: the input is inline
    uint32_t order_count;                                // outputs, in the order of the request
    uint8_t order[INF_LIMIT_TENSORS];
    bool shadowed;               // the answer is to be checked by the shadow check
    bool traced;                 // the nodes are to be logged
    struct inf_session *session; // a reference; NULL: none
    struct inf_job *session_next;
    uint32_t kept_input_count; // inputs that come from the session, and their tensors there
    struct inf_session_port kept_inputs[INF_LIMIT_TENSORS];
    uint32_t kept_output_count;
    struct inf_session_port kept_outputs[INF_LIMIT_TENSORS];
    char id[INF_LIMIT_REQUEST_ID + 1];
};

// Claims the final reply of a job. Returns true for exactly one of loop and worker, each time that
// it asks.
static inline bool inf_job_claim(struct inf_job *job, enum inf_job_answerer who)
{
    enum inf_job_answerer answerer = INF_JOB_BY_NONE;
    // Relaxed: only the decision is atomic. The contents of the reply are handed over by the
    // queues.
    return atomic_compare_exchange_strong_explicit(&job->answerer, &answerer, who,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           answerer == who;
}

#endif
