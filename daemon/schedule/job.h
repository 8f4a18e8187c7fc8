// SPDX-License-Identifier: Apache-2.0
// One inference on its way through the daemon. The loop fills the job and submits it to the
// scheduler, a worker runs it, and it returns to the loop with the result. At any time one thread
// owns the job, except for `cancelled` and `answerer`.
#ifndef INF_DAEMON_SCHEDULE_JOB_H
#define INF_DAEMON_SCHEDULE_JOB_H

#include <stdatomic.h>

#include "daemon/observe/trace_context.h"
#include "daemon/output/reply_writer.h"
#include "daemon/policy/deadline.h"
#include "daemon/policy/fair_queue.h"
#include "daemon/policy/join_back_off.h"
#include "daemon/policy/run_estimate.h"
#include "daemon/policy/slot_share.h"
#include "daemon/resource/region.h"
#include "daemon/resource/session.h"
#include "daemon/schedule/call.h"
#include "daemon/schedule/fault.h"
#include "daemon/store/store.h"

// One output of a job. job->outputs[] has one entry for each output of the model, in that order.
struct inf_job_output {
    // The loop sets the fields from `wanted` to `kept` before the job is submitted.
    bool wanted;
    uint8_t *memory;     // memory in a region; NULL: the output is sent in the data of the reply
    uint64_t room_bytes; // size of `memory` in bytes
    // The shared-memory region that contains `memory`; a reference while the job runs; NULL: none.
    struct inf_region *region;
    uint64_t region_id, region_offset;
    bool returned; // the reply contains this output
    // Session tensor whose next value is the output; NULL: the output is not kept.
    struct inf_session_tensor *kept;
    // The worker sets the fields from `late` on.
    bool late; // the size of the output is known only after the run
    // The run wrote the output into memory of the session, behind rows that were there: into the
    // present buffer of the session tensor, or its next one if `moved` is set.
    bool in_place, moved;
    bool overwrites; // the rows were written over rows of the next buffer, which has the others
    bool lags;       // as in struct inf_session_kept
    enum inf_dtype dtype;
    struct inf_shape shape;
    size_t size_bytes;
    size_t offset; // offset of the output in the data segment of the reply
};

enum inf_job_place {
    INF_JOB_LOOP,  // the loop fills the job, or has it back after the run
    INF_JOB_HELD,  // the job waits for an earlier job of its session
    INF_JOB_QUEUE, // the job is in a device queue, whose mutex guards it
    INF_JOB_WORKER // a worker has the job, or it is in the queue of done jobs
};

// Which thread sends the final reply of a job.
enum inf_job_answerer {
    INF_JOB_BY_NONE, // not decided yet
    INF_JOB_BY_LOOP,
    INF_JOB_BY_WORKER,
};

struct inf_job {
    struct inf_call call; // used by the loop only

    // The loop sets the fields from `served` to `direct` before the job is submitted.
    struct inf_served *served; // the model to run; a reference
    struct inf_device *device;
    uint32_t device_index;
    enum inf_precision precision; // precision that the request names; AUTO: that of the placement
    // True: the job may be moved to another device once, because the request names no device.
    bool movable;
    uint32_t input_count;
    const void *inputs[INF_LIMIT_TENSORS]; // input tensors, in the order of the model's inputs
    // Device mapping that contains the input; NULL: the input is copied.
    struct inf_mapping *mappings[INF_LIMIT_TENSORS];
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    // Sizes of the inputs of BYTES as in a message; not set for other inputs.
    size_t string_bytes[INF_LIMIT_TENSORS];
    uint32_t output_count; // number of outputs of the model
    struct inf_job_output outputs[INF_LIMIT_TENSORS];
    uint32_t reply_bytes_max; // the most bytes in the data segment of the reply
    uint64_t accepted_ns;
    struct inf_slot_limits slot_limits; // of the model's runs
    uint64_t client_id;                 // number of the connection
    struct inf_trace_context trace;
    // Entry of the request in shared memory, where the worker notes that it began; NULL: none.
    struct inf_pending *pending;
    uint64_t estimate_key;
    uint32_t rows; // number of rows that may be batched with other jobs; 0: the job runs alone
    // Not 0: the job is a decoding step, which counts as one row. It may share a run with jobs of
    // the same key only (history_joined.h). 0: the rows of the job may be batched with those of
    // other jobs whose key is 0.
    uint64_t join_key;

    // Data for a direct reply, which the worker writes to the socket itself.
    struct {
        struct inf_reply_writer *writer; // a reference; NULL: the loop sends the reply
        uint64_t stream_id;
        uint32_t pending_plus_1; // index of `pending`, plus 1; 0: none
        uint32_t data_bytes_max; // the most bytes of data in one frame
    } direct;

    // Set by the loop at any time to ask the worker to stop. The worker reads it between the steps
    // of the model.
    atomic_bool cancelled;
    // Which thread sends the final reply. Only inf_job_claim() changes it.
    _Atomic enum inf_job_answerer answerer;

    // The result of the run. The worker owns it until it posts the job to the loop; afterwards the
    // loop owns it.
    struct {
        struct inf_fault fault;
        uint8_t *data; // outputs sent in the reply, in a buffer of the buffer pool; NULL: none
        size_t data_bytes, data_capacity;
        // Four times: when a worker took the job (0: none has); when the run began and ended (0 if
        // the job did not run); and when the worker was done with the job.
        uint64_t start_ns, begin_ns, end_ns, done_ns;
        uint64_t device_ns;               // this job's share of the time from start_ns to done_ns
        uint64_t core_ns;                 // device_ns, plus this job's share of the helpers' time
        struct inf_core_use core_use;     // cores of the run, or of all runs that had its rows
        uint64_t paused_ns;               // time for which the run paused, not in device_ns
        uint64_t helper_share_ns;         // this job's share of the helpers' time in batches
        enum inf_precision precision;     // precision in which the outputs were computed
        struct inf_shadow_sample *sample; // copied tensors for the shadow check; NULL: none
        // Number of rows in the run that computed this job, summed over all jobs of the batch.
        uint32_t batch_rows;
        // Whether a decoding step ran together with steps of other sessions.
        enum inf_join_outcome join_outcome;
        uint32_t padded_to; // number of rows in the run including padding; 0: no padding
        uint32_t flags;     // flags of enum inf_infer_flag
        uint32_t worker;    // slot of the worker that ran the job
    } result;
    // Set by the worker: rows of the buffers that the run extended in place, or whose rows it wrote
    // over; 0: it did neither.
    uint32_t history_room;

    // The fields from `place` to `shared` are guarded by the mutex of the device queue.
    // The loop sets user, model and priority of `queue_entry` before it pushes the job.
    enum inf_job_place place;
    struct inf_fair_queue_entry queue_entry;
    struct inf_estimate expected; // expected run time and device time; all 0: not known
    bool is_run; // the job counts as a run of its model: it runs alone, or is the first of a batch
    // Of the first job of a run: time until which the run pauses while more urgent runs use the
    // device; 0: it does not pause.
    uint64_t pause_until_ns;
    bool skip_run; // the worker must not run the job, because it would end after its deadline
    uint64_t expected_end_ns;
    uint64_t begun; // number of jobs of the device that had been taken when a worker took this one
    // Number of jobs that the device was running when this job was queued, plus the number of jobs
    // that workers took between then and the start of this job. Valid when this job is done.
    uint64_t ahead;
    uint32_t behind_uid; // user of the last job counted in `ahead`; valid if `ahead` is not 0
    // True: other jobs were in progress on the device during the run, so the run may have had fewer
    // cores than a run alone. Valid when the job is done.
    bool shared;

    // The fields from `deadline` on are used by the loop only.
    struct inf_deadline deadline;       // time by which the run must end; at_ns 0: none
    struct inf_deadline queue_deadline; // time by which the run must start; at_ns 0: none
    uint8_t *data;                      // data of the request, in a pool buffer; NULL: none
    size_t data_bytes;
    struct inf_region *input_regions[INF_LIMIT_TENSORS]; // one reference each; NULL: in `data`
    uint32_t order_count; // number of elements of `order`, the outputs in the request's order
    uint8_t order[INF_LIMIT_TENSORS];
    bool is_model_charged; // the account of the model is charged for the request
    bool shadowed;         // the shadow check will compute the answer again
    // True: the request is run again, and every node is logged (debug mode).
    bool traced;
    struct inf_session *session; // session of the request; a reference; NULL: none
    struct inf_job *session_next;
    // Number of inputs whose values the session provides, that is, of elements of `kept_inputs`.
    uint32_t kept_input_count;
    struct inf_session_port kept_inputs[INF_LIMIT_TENSORS];
    uint32_t kept_output_count;
    struct inf_session_port kept_outputs[INF_LIMIT_TENSORS];
    char id[INF_LIMIT_REQUEST_ID + 1];
};

// Claims the right to send the final reply of a job for the loop or the worker. The first one that
// claims gets true, on every call; the other one gets false.
static inline bool inf_job_claim(struct inf_job *job, enum inf_job_answerer who)
{
    enum inf_job_answerer answerer = INF_JOB_BY_NONE;
    // Relaxed memory order is enough, because only the decision must be atomic. The job and its
    // reply are passed between threads through queues, which order them.
    return atomic_compare_exchange_strong_explicit(&job->answerer, &answerer, who,
                                                   memory_order_relaxed, memory_order_relaxed) ||
           answerer == who;
}

#endif
