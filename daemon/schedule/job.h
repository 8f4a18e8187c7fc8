// SPDX-License-Identifier: Apache-2.0
// One inference on its way through the daemon. The loop fills the job and submits it to the
// scheduler, a worker runs it, and it returns to the loop with the result. At any time one thread
// owns the job, except for `cancelled` and `answerer`.
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

// One output of a job. job->outputs[] has one entry for each output of the model, in that order.
struct inf_job_output {
    // The fields of this group are set by the loop before the job is submitted.
    bool wanted;
    uint8_t *memory; // memory in a region; NULL: the output goes into the data segment of the reply
    uint64_t room_bytes; // size of `memory` in bytes
    // The shared-memory region that contains `memory`; a reference while the job runs; NULL: none.
    struct inf_region *region;
    uint64_t region_id, region_offset;
    bool returned; // the reply contains this output
    // Session buffer that receives the output; NULL: the output is not kept.
    struct inf_session_buffer *kept;
    // The fields below are set by the worker.
    bool late; // the size is known only after the run
    enum inf_dtype dtype;
    struct inf_shape shape;
    size_t size_bytes;
    size_t offset; // offset in the data segment of the reply
};

enum inf_job_place {
    INF_JOB_LOOP,  // the loop fills the job, or has it back after the run
    INF_JOB_HELD,  // waits for an earlier job of its session; counted by the device queue
    INF_JOB_QUEUE, // in a device queue; the mutex of the queue guards the job
    INF_JOB_WORKER // with a worker, or in the queue of done jobs
};

// Which thread sends the final reply of a job.
enum inf_job_answerer {
    INF_JOB_BY_NONE, // not decided yet
    INF_JOB_BY_LOOP,
    INF_JOB_BY_WORKER,
};

struct inf_job {
    struct inf_call call; // used by the loop only

    // The fields of this group are set by the loop before the job is submitted.
    struct inf_served *served; // a reference
    struct inf_device *device;
    uint32_t device_index;
    enum inf_precision precision; // precision that the request names; AUTO: as the model is placed
    // True: the job may be moved to another device once, because the request names no device.
    bool movable;
    uint32_t input_count;
    const void *inputs[INF_LIMIT_TENSORS]; // in the order of the model
    // Device mapping that contains the input; NULL: the input is copied.
    struct inf_mapping *mappings[INF_LIMIT_TENSORS];
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    uint32_t output_count; // number of outputs of the model
    struct inf_job_output outputs[INF_LIMIT_TENSORS];
    uint32_t reply_bytes_max; // limit of the reply's data segment
    uint64_t accepted_ns;
    uint64_t estimate_key;
    uint32_t rows; // rows that may run together with those of other jobs; 0: the job runs alone

    // Data for a direct reply, which the worker writes to the socket itself.
    struct {
        struct inf_reply_writer *writer; // a reference; NULL: the loop replies
        uint64_t stream_id;
        uint32_t data_bytes_max; // limit of the data in one frame
    } direct;

    // Set by the loop at any time to ask the worker to stop. The worker reads it between the steps
    // of the model.
    atomic_bool cancelled;
    // Which thread sends the final reply. Only inf_job_claim() changes it.
    _Atomic enum inf_job_answerer answerer;

    // The result. The worker owns it until it posts the job to the loop; afterwards the loop owns
    // it.
    struct {
        struct inf_fault fault;
        uint8_t *data; // a buffer of the pool; NULL: none
        size_t data_bytes, data_capacity;
        // Four times: when a worker took the job; when the run began and ended (0 if the job did
        // not run); and when the worker was done with the job.
        uint64_t start_ns, begin_ns, end_ns, done_ns;
        uint64_t device_ns;               // this job's share of the time from start to done
        enum inf_precision precision;     // precision of the answer
        struct inf_shadow_sample *sample; // copy for the shadow check; NULL: none
        // Rows in the run that computed this job, over all jobs of the batch.
        uint32_t batch_rows;
        uint32_t padded_to; // rows in the run including padding; 0: no padding
        uint32_t flags;     // flags of enum inf_infer_flag
    } result;

    // Guarded by the mutex of the device queue. The loop sets user, model and priority of
    // `queue_entry` before it pushes the job.
    enum inf_job_place place;
    struct inf_fair_queue_entry queue_entry;
    struct inf_estimate expected; // expected run time and device time; all 0: not known
    bool skip_run; // the worker must not run the job, because its deadline would pass meanwhile
    uint64_t expected_end_ns;

    // The fields below are used by the loop only.
    struct inf_deadline deadline;       // at_ns 0: none
    struct inf_deadline queue_deadline; // time by which the run must start; at_ns 0: none
    uint8_t *data;                      // data segment of the request, of the pool; NULL: none
    size_t data_bytes;
    struct inf_region *input_regions[INF_LIMIT_TENSORS]; // references; NULL: the input is inline
    uint32_t order_count; // number of entries in the list of outputs in the order of the request
    uint8_t order[INF_LIMIT_TENSORS];
    bool shadowed; // the shadow check will check the answer
    // True: the request is run again, and every node is logged (debug mode).
    bool traced;
    struct inf_session *session; // a reference; NULL: none
    struct inf_job *session_next;
    // Number of inputs that come from the session, followed by their tensors in the session.
    uint32_t kept_input_count;
    struct inf_session_port kept_inputs[INF_LIMIT_TENSORS];
    uint32_t kept_output_count;
    struct inf_session_port kept_outputs[INF_LIMIT_TENSORS];
    char id[INF_LIMIT_REQUEST_ID + 1];
};

// Claims the right to send the final reply of a job. Either the loop or the worker gets true, on
// every call; the other one gets false.
static inline bool inf_job_claim(struct inf_job *job, enum inf_job_answerer who)
{
    enum inf_job_answerer answerer = INF_JOB_BY_NONE;
    // Relaxed is enough, because only the decision must be atomic. The queues order the contents of
    // the reply.
    return atomic_compare_exchange_strong_explicit(&job->answerer, &answerer, who,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           answerer == who;
}

#endif
