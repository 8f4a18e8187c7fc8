// SPDX-License-Identifier: Apache-2.0
// Sampling of traces. The ids are random numbers, which need not be secret: they come from a
// generator that is seeded once.
#include "daemon/service/tracing.h"

#include <string.h>
#include <sys/random.h>

#include "backends/base/clock.h"

enum inf_code inf_service_open_traces(struct inf_service *service, struct inf_error *err)
{
    const struct inf_config *config = service->options.environment->config;
    if (config->trace_file[0] == '\0' && config->trace_socket[0] == '\0')
        return INF_OK;
    // If the kernel has no random numbers yet, the time and an address are a sufficient seed for
    // trace ids.
    if (getrandom(&service->trace_random, sizeof service->trace_random, GRND_NONBLOCK) < 0)
        service->trace_random = inf_clock_ns() ^ (uintptr_t)service;
    const struct inf_trace_writer_options options = {
        .file = config->trace_file,
        .file_bytes_max = config->trace_file_bytes,
        .socket = config->trace_socket,
        .version = service->options.version,
        .log = &service->options.logs[INF_LOG_PART_DAEMON],
    };
    return inf_trace_writer_create(&service->trace_writer, &options, err);
}

// Returns the next number of the generator splitmix64.
static uint64_t draw_random(struct inf_service *service)
{
    uint64_t z = (service->trace_random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Returns true at random, with the probability `rate`.
static bool draw_sampled(struct inf_service *service, double rate)
{
    return rate > 0 && (double)(draw_random(service) >> 11) * 0x1p-53 < rate;
}

// Begins a trace for a request whose client has none.
static void begin_trace(struct inf_service *service, struct inf_trace_context *trace)
{
    const uint64_t id[2] = {draw_random(service), draw_random(service) | 1};
    _Static_assert(sizeof id == sizeof trace->trace_id, "a trace id is two numbers");
    memcpy(trace->trace_id, id, sizeof id);
    memset(trace->parent_id, 0, sizeof trace->parent_id);
    trace->state[0] = '\0';
}

void inf_service_choose_tracing(struct inf_service *service, struct inf_job *job,
                                const char *traceparent, const char *tracestate)
{
    struct inf_trace_context *trace = &job->trace;
    trace->recorded = false;
    if (service->trace_writer == NULL)
        return;
    const struct inf_config *config = service->options.environment->config;
    bool sampled;
    if (inf_trace_context_parse(trace, traceparent, &sampled)) {
        trace->recorded = sampled && config->trace_parents;
        if (trace->recorded)
            inf_trace_context_set_state(trace, tracestate);
    } else if (draw_sampled(service, config->trace_rate)) {
        trace->recorded = true;
        begin_trace(service, trace);
    }
    // The ids of the child spans follow this id, and none of them may be 0.
    if (trace->recorded)
        trace->span_id = draw_random(service) >> 1 | 1;
}
