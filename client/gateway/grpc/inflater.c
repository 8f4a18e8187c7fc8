// SPDX-License-Identifier: Apache-2.0
// Decompresses messages. A small message can expand to INF_HTTP_INFLATED_BYTES, so the result grows
// step by step, and each step is charged to the bodies of all requests, as zlib's memory is.
#include "client/gateway/grpc/inflater.h"

// What a slice decompresses, in bytes. It takes about 0.1 ms.
#define SLICE_BYTES ((size_t)32 << 10)

static bool inflate_slice(void *context)
{
    struct inf_grpc_inflater *inflater = context;
    struct inf_http_coder *coder = &inflater->coder;
    struct inf_error err = {0};
    bool done;
    enum inf_code code = inf_http_code(coder, SLICE_BYTES, &done, &err);
    size_t grown = INF_HTTP_INFLATE_STATE_BYTES + coder->capacity - inflater->charged;
    if (code == INF_OK && !inf_http_server_charge(inflater->gateway->server, grown))
        code = inf_fail(&err, INF_EXHAUSTED, "the messages of other calls need all memory");
    else if (code == INF_OK)
        inflater->charged += grown;
    if (code == INF_OK && !done)
        return true;
    inflater->done(inflater->context, (struct inf_span){coder->data, coder->size}, &err);
    return false;
}

void inf_grpc_inflate(struct inf_grpc_inflater *inflater, struct inf_gateway *gateway,
                      enum inf_http_coding coding, struct inf_span message,
                      void (*done)(void *context, struct inf_span message,
                                   const struct inf_error *err),
                      void *context)
{
    struct inf_error err;
    *inflater = (struct inf_grpc_inflater){
        .gateway = gateway,
        .task = {.step = inflate_slice, .context = inflater},
        .done = done,
        .context = context,
    };
    if (inf_http_inflate_begin(&inflater->coder, coding, message, &err) != INF_OK)
        done(context, (struct inf_span){0}, &err);
    else
        inf_slices_start(gateway->slices, &inflater->task);
}

void inf_grpc_inflater_fini(struct inf_grpc_inflater *inflater)
{
    if (inflater->gateway == NULL)
        return;
    inf_slices_cancel(inflater->gateway->slices, &inflater->task);
    inf_http_server_release(inflater->gateway->server, inflater->charged);
    inf_http_coder_fini(&inflater->coder);
    *inflater = (struct inf_grpc_inflater){0};
}
