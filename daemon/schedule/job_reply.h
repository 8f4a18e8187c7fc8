// SPDX-License-Identifier: Apache-2.0
// The final reply of a job that went well: as a message, and as a frame that its worker writes itself.
#ifndef INF_DAEMON_SCHEDULE_JOB_REPLY_H
#define INF_DAEMON_SCHEDULE_JOB_REPLY_H

#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"
#include "proto/wire/message.h"

// Says in a message what the job has given. It points into the job.
void inf_job_reply_fill(const struct inf_job *job, struct inf_infer_reply *reply);

// What a worker makes such frames with.
struct inf_job_replier;

// Makes one. *out_replier is the caller's to destroy.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_job_replier_create(struct inf_job_replier **out_replier, struct inf_pool *pool,
                                     struct inf_error *err) INF_NODISCARD;

// Frees it. NULL is fine.
void inf_job_replier_destroy(struct inf_job_replier **replier);

// A frame that is to be written.
struct inf_job_direct_reply {
    struct inf_reply_writer *writer; // a reference; the worker is in
    size_t head_bytes;               // in the replier
    uint8_t *data;                   // of the pool; NULL where there is none
    size_t data_bytes, data_capacity;
};

// Makes the final reply of a job that the worker is about to post, and takes over what it consists of: from
// then on nobody else answers the job. False: the loop is to answer it.
bool inf_job_replier_begin(struct inf_job_replier *replier, struct inf_job *job,
                           struct inf_job_direct_reply *direct_reply) INF_NODISCARD INF_ON_WORKER;

// Writes it, once the job is posted: whoever has read it may ask again at once, and the loop must know by
// then that this request is over. Never blocks.
void inf_job_replier_end(struct inf_job_replier *replier,
                         struct inf_job_direct_reply *direct_reply) INF_ON_WORKER;

#endif
