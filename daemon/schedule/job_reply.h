// SPDX-License-Identifier: Apache-2.0
// The final reply of a successful job: as a message, or as a frame that the worker writes itself.
#ifndef INF_DAEMON_SCHEDULE_JOB_REPLY_H
#define INF_DAEMON_SCHEDULE_JOB_REPLY_H

#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"
#include "proto/wire/message.h"

// Fills the message with the results of a job. The message points into the job.
void inf_job_reply_fill(const struct inf_job *job, struct inf_infer_reply *reply);

// Buffers of a worker for encoding direct replies, which the worker writes to the socket itself.
struct inf_job_replier;

// Creates a replier for one worker. The caller destroys *out_replier.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_job_replier_create(struct inf_job_replier **out_replier, struct inf_pool *pool,
                                     struct inf_error *err) INF_NODISCARD;

// Frees a replier. NULL is allowed.
void inf_job_replier_destroy(struct inf_job_replier **replier);

// A reply frame that is encoded and that the worker will write to the socket.
struct inf_job_direct_reply {
    struct inf_reply_writer *writer; // a reference; the worker has the right to write
    size_t head_bytes;               // bytes of the header and metadata in the inf_job_replier
    uint8_t *data;                   // data of the reply, in a pool buffer; NULL: none
    size_t data_bytes, data_capacity;
    uint32_t pending_plus_1; // of job->direct
};

// Makes the final reply of a job that the worker is about to post, and takes over its data.
// Afterwards no other thread answers the job. Returns false if the loop must answer the job.
bool inf_job_replier_begin(struct inf_job_replier *replier, struct inf_job *job,
                           struct inf_job_direct_reply *direct_reply) INF_NODISCARD INF_ON_WORKER;

// Writes the reply frame. The worker must post the job before: a client that has read the reply may
// send its next request at once, and the loop must know by then that this request is over. Never
// blocks.
void inf_job_replier_end(struct inf_job_replier *replier,
                         struct inf_job_direct_reply *direct_reply) INF_ON_WORKER;

#endif
