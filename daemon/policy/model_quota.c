// SPDX-License-Identifier: Apache-2.0
// Counters with limits. The rate of requests is that of a leaky bucket (rate_limit.h): a request
// adds its share of a second to the bucket, which holds one second, so that the requests of one
// second may come at once.
#include "daemon/policy/model_quota.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

// The bucket drains a second of its content in a second.
#define MS_PER_S 1000u

const char *inf_model_quota_name(enum inf_model_quota_kind kind)
{
    static const char *const names[] = {[INF_MODEL_QUOTA_REQUESTS] = "requests",
                                        [INF_MODEL_QUOTA_RATE] = "requests_per_second",
                                        [INF_MODEL_QUOTA_SESSION_BYTES] = "session_bytes"};
    _Static_assert(INF_ARRAY_LENGTH(names) == INF_MODEL_QUOTA_KINDS, "each kind has a name");
    return names[kind];
}

struct inf_model_quota *inf_model_quota_create(void)
{
    struct inf_model_quota *quota = calloc(1, sizeof *quota);
    if (quota != NULL)
        atomic_init(&quota->references, 1);
    return quota;
}

struct inf_model_quota *inf_model_quota_ref(struct inf_model_quota *quota)
{
    atomic_fetch_add_explicit(&quota->references, 1, memory_order_relaxed);
    return quota;
}

void inf_model_quota_unref(struct inf_model_quota **quota)
{
    struct inf_model_quota *gone = *quota;
    *quota = NULL;
    if (gone != NULL && atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) == 1)
        free(gone);
}

// Returns true if `amount` more than `held` would exceed the limit, and counts the refusal.
static bool exceeds_limit(struct inf_model_quota *quota, enum inf_model_quota_kind kind,
                          uint64_t held, uint64_t amount)
{
    uint64_t most = quota->most[kind];
    bool refused = most > 0 && !inf_range_ok(held, amount, most);
    quota->refused[kind] += refused;
    return refused;
}

enum inf_code inf_model_quota_begin_request(struct inf_model_quota *quota, const char *model,
                                            uint64_t now_ns, uint64_t *out_wait_ns,
                                            struct inf_error *err)
{
    const uint64_t rate = quota->most[INF_MODEL_QUOTA_RATE];
    *out_wait_ns = 0;
    const uint64_t held = quota->held[INF_MODEL_QUOTA_REQUESTS];
    if (exceeds_limit(quota, INF_MODEL_QUOTA_REQUESTS, held, 1))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "model '%s': %" PRIu64
                               " requests are in flight, and its setting requests_max allows no "
                               "more",
                               model, held);
    if (rate > 0)
        *out_wait_ns = inf_rate_limit_wait_ns(&quota->rate, MS_PER_S, now_ns);
    if (*out_wait_ns > 0) {
        quota->refused[INF_MODEL_QUOTA_RATE]++;
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "model '%s': more than %" PRIu64
                               " requests in a second, which its setting requests_per_second_max "
                               "does not allow",
                               model, rate);
    }
    // Rounded up: with shares rounded down, one request too many would fit into the bucket.
    if (rate > 0)
        inf_rate_limit_take(&quota->rate, (INF_NS_PER_S + rate - 1) / rate, MS_PER_S, now_ns);
    quota->held[INF_MODEL_QUOTA_REQUESTS]++;
    return INF_OK;
}

void inf_model_quota_end_request(struct inf_model_quota *quota)
{
    assert(quota->held[INF_MODEL_QUOTA_REQUESTS] > 0);
    quota->held[INF_MODEL_QUOTA_REQUESTS]--;
}

enum inf_code inf_model_quota_charge_session(struct inf_model_quota *quota, uint64_t bytes,
                                             struct inf_error *err)
{
    uint64_t held = quota->held[INF_MODEL_QUOTA_SESSION_BYTES];
    do {
        if (exceeds_limit(quota, INF_MODEL_QUOTA_SESSION_BYTES, held, bytes))
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                                   "the sessions of the model have %" PRIu64 " bytes, and %" PRIu64
                                   " more are too many: its setting session_bytes_max allows "
                                   "%" PRIu64,
                                   held, bytes, quota->most[INF_MODEL_QUOTA_SESSION_BYTES]);
    } while (!atomic_compare_exchange_weak(&quota->held[INF_MODEL_QUOTA_SESSION_BYTES], &held,
                                           held + bytes));
    return INF_OK;
}

void inf_model_quota_refund_session(struct inf_model_quota *quota, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub(&quota->held[INF_MODEL_QUOTA_SESSION_BYTES], bytes);
    assert(before >= bytes);
    (void)before;
}
