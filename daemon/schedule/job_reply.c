// SPDX-License-Identifier: Apache-2.0
// Makes the reply of a successful job: a message that the loop sends, or a whole frame for a direct
// reply. A worker replies directly only if it can enter the reply writer, the frame is small, and
// the worker claims the job before the loop does; then the loop will not answer the job. The frame
// is written after the job is posted, so that the loop has counted the request as done when the
// client sends the next one.
#include "daemon/schedule/job_reply.h"

#include <stdlib.h>

#include "backends/exec/model/model.h"
#include "daemon/output/reply_writer.h"
#include "proto/wire/frame.h"

// The most bytes of metadata in a direct reply. If the metadata is longer, the loop replies.
#define META_BYTES 4096

struct inf_job_replier {
    struct inf_pool *pool;
    struct inf_scratch *scratch;
    union inf_message message;
    uint8_t head[INF_FRAME_HEADER_BYTES + META_BYTES];
};

static void fill_outputs(const struct inf_job *job, struct inf_infer_reply *reply)
{
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    reply->output_count = 0;
    for (uint32_t i = 0; i < job->order_count; i++) {
        uint32_t index = job->order[i];
        const struct inf_job_output *output = &job->outputs[index];
        if (!output->returned)
            continue;
        reply->outputs[reply->output_count++] = (struct inf_tensor_entry){
            .name = graph->outputs[index].name,
            .dtype = output->dtype,
            .shape = output->shape,
            .location = {.present = true,
                         .region_id = output->region != NULL ? output->region_id : 0,
                         .offset = output->region != NULL ? output->region_offset : output->offset,
                         .length = output->size_bytes},
        };
    }
}

void inf_job_reply_fill(const struct inf_job *job, struct inf_infer_reply *reply)
{
    reply->model_name = job->served->name;
    reply->model_version = job->served->version;
    reply->id = job->id;
    fill_outputs(job, reply);
    const uint64_t compute_ns = job->result.end_ns - job->result.begin_ns;
    reply->timing = (struct inf_timing){
        .queue_ns = job->result.start_ns - job->accepted_ns,
        .input_ns = job->result.begin_ns - job->result.start_ns,
        .compute_ns = compute_ns,
        .output_ns = job->result.done_ns - job->result.end_ns,
        // The pause may have been before `begin_ns`, if the job was run again.
        .core_ns = compute_ns - INF_MIN(job->result.paused_ns, compute_ns) +
                   job->result.core_use.helper_ns,
        .threads = INF_MAX(job->result.core_use.threads, 1u),
    };
    reply->batch_size = job->result.batch_rows;
    reply->device = inf_device_info(job->device)->name;
    reply->precision = inf_precision_name(job->result.precision);
    reply->credit_return = 1;
    reply->flags = job->result.flags;
    reply->padded_to = job->result.padded_to;
}

// --- direct replies, which the worker writes ---

enum inf_code inf_job_replier_create(struct inf_job_replier **out_replier, struct inf_pool *pool,
                                     struct inf_error *err)
{
    struct inf_job_replier *replier = calloc(1, sizeof *replier);
    if (replier == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a worker's replies");
    replier->pool = pool;
    enum inf_code code = inf_scratch_create(&replier->scratch, err);
    if (code == INF_OK)
        *out_replier = replier;
    else
        inf_job_replier_destroy(&replier);
    return code;
}

void inf_job_replier_destroy(struct inf_job_replier **replier)
{
    if (*replier == NULL)
        return;
    inf_scratch_destroy(&(*replier)->scratch);
    free(*replier);
    *replier = NULL;
}

static bool encode_reply(struct inf_job_replier *replier, const struct inf_job *job,
                         size_t *out_bytes)
{
    size_t meta_bytes;
    inf_job_reply_fill(job, &replier->message.infer_reply);
    if (inf_message_encode(&replier->message, INF_MESSAGE_INFER_REPLY,
                           replier->head + INF_FRAME_HEADER_BYTES, META_BYTES, &meta_bytes,
                           replier->scratch, NULL) != INF_OK)
        return false;
    const struct inf_frame_header header = {.meta_bytes = (uint32_t)meta_bytes,
                                            .data_bytes = (uint32_t)job->result.data_bytes,
                                            .stream_id = job->direct.stream_id,
                                            .type = INF_FRAME_RESPONSE,
                                            .flags = INF_FRAME_FINAL,
                                            .method = INF_METHOD_MODEL_INFER};
    inf_frame_header_encode(&header, replier->head);
    *out_bytes = INF_FRAME_HEADER_BYTES + meta_bytes;
    return true;
}

bool inf_job_replier_begin(struct inf_job_replier *replier, struct inf_job *job,
                           struct inf_job_direct_reply *direct_reply)
{
    if (job->direct.writer == NULL || job->result.fault.err.code != INF_OK ||
        job->result.data_bytes > job->direct.data_bytes_max ||
        !inf_reply_writer_enter_worker(job->direct.writer))
        return false;
    if (!encode_reply(replier, job, &direct_reply->head_bytes) ||
        !inf_job_claim(job, INF_JOB_BY_WORKER)) {
        inf_reply_writer_leave_worker(job->direct.writer);
        return false;
    }
    direct_reply->writer = job->direct.writer;
    direct_reply->data = job->result.data;
    direct_reply->data_bytes = job->result.data_bytes;
    direct_reply->data_capacity = job->result.data_capacity;
    direct_reply->pending_plus_1 = job->direct.pending_plus_1;
    job->direct.writer = NULL;
    job->result.data = NULL;
    return true;
}

void inf_job_replier_end(struct inf_job_replier *replier, struct inf_job_direct_reply *direct_reply)
{
    const struct iovec parts[] = {{replier->head, direct_reply->head_bytes},
                                  {direct_reply->data, direct_reply->data_bytes}};
    inf_reply_writer_write(direct_reply->writer, parts, direct_reply->data_bytes > 0 ? 2 : 1,
                           direct_reply->pending_plus_1);
    inf_pool_release(replier->pool, direct_reply->data, direct_reply->data_capacity);
    inf_reply_writer_unref(&direct_reply->writer);
}
