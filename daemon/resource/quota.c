// SPDX-License-Identifier: Apache-2.0
// An account per user (uid), with one counter and one limit for each kind of resource. The counters
// are atomic, because workers charge for memory of sessions. Accounts are reference counted: a
// request that is still with a worker keeps the account of its user. An account without references
// is kept while the user owes device time, so that reconnecting does not clear the debt.
#include "daemon/resource/quota.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "daemon/policy/rate_limit.h"
#include "proto/core/span.h"

struct inf_quota_user {
    struct inf_quota *quota;
    struct inf_quota_user *next;
    uid_t uid;
    uint32_t references; // 0: the account exists only because the user owes device time
    struct inf_rate_limit device;
    _Atomic uint64_t held[INF_QUOTA_KIND_COUNT];
};

struct inf_quota {
    _Atomic uint64_t most[INF_QUOTA_KIND_COUNT];
    _Atomic uint64_t total[INF_QUOTA_KIND_COUNT]; // what all users hold
    struct inf_quota_user *users;
};

static const struct {
    const char *name; // used in error texts: "user 7: 12 NAME"
    enum inf_reason reason;
} kinds[] = {
    [INF_QUOTA_CONNECTIONS] = {"connections", INF_REASON_QUOTA_REQUESTS},
    [INF_QUOTA_REQUESTS] = {"requests in flight", INF_REASON_QUOTA_REQUESTS},
    [INF_QUOTA_REQUEST_BYTES] = {"bytes of requests in flight", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_REGIONS] = {"regions", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_REGION_BYTES] = {"bytes of regions", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_FILLED_BYTES] = {"bytes allocated in regions", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_FDS] = {"file descriptors", INF_REASON_QUOTA_REQUESTS},
    [INF_QUOTA_DEVICE_MS] = {"ms of device time", INF_REASON_QUOTA_TIME},
    [INF_QUOTA_SESSION_BYTES] = {"bytes of sessions", INF_REASON_QUOTA_BYTES},
};

enum inf_code inf_quota_create(struct inf_quota **out_quota,
                               const uint64_t most[INF_QUOTA_KIND_COUNT], struct inf_error *err)
{
    struct inf_quota *quota = calloc(1, sizeof *quota);
    if (quota == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for quotas");
    for (int i = 0; i < INF_QUOTA_KIND_COUNT; i++)
        atomic_init(&quota->most[i], most[i]);
    *out_quota = quota;
    return INF_OK;
}

void inf_quota_destroy(struct inf_quota **quota)
{
    if (*quota == NULL)
        return;
    while ((*quota)->users != NULL) {
        struct inf_quota_user *user = (*quota)->users;
        (*quota)->users = user->next;
        free(user);
    }
    free(*quota);
    *quota = NULL;
}

static uint64_t find_debt_ns(struct inf_quota_user *user)
{
    return inf_rate_limit_wait_ns(&user->device, user->quota->most[INF_QUOTA_DEVICE_MS],
                                  inf_clock_ns());
}

// Frees the accounts of users who have no references left and owe no device time.
static void free_unused_accounts(struct inf_quota *quota)
{
    struct inf_quota_user **link = &quota->users;
    while (*link != NULL) {
        struct inf_quota_user *user = *link;
        if (user->references > 0 || find_debt_ns(user) > 0) {
            link = &user->next;
            continue;
        }
        *link = user->next;
        free(user);
    }
}

struct inf_quota_user *inf_quota_open(struct inf_quota *quota, uid_t uid)
{
    struct inf_quota_user *user = quota->users;
    while (user != NULL && user->uid != uid)
        user = user->next;
    if (user == NULL) {
        user = calloc(1, sizeof *user);
        if (user == NULL)
            return NULL;
        user->quota = quota;
        user->next = quota->users;
        user->uid = uid;
        quota->users = user;
    }
    user->references++;
    return user;
}

struct inf_quota_user *inf_quota_ref(struct inf_quota_user *user)
{
    user->references++;
    return user;
}

void inf_quota_unref(struct inf_quota_user **pointer)
{
    struct inf_quota_user *user = *pointer;
    *pointer = NULL;
    if (user == NULL || --user->references > 0)
        return;
    for (int i = 0; i < INF_QUOTA_KIND_COUNT; i++)
        assert(user->held[i] == 0 && "an account closed with something in it");
    free_unused_accounts(user->quota);
}

// The counters order nothing else, so relaxed order is enough.
static void add_amount(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static void subtract_amount(_Atomic uint64_t *counter, uint64_t amount)
{
    uint64_t before = atomic_fetch_sub_explicit(counter, amount, memory_order_relaxed);
    assert(before >= amount);
    (void)before;
}

// Charges for any kind of resource, on any thread. The public functions say which thread may charge
// for which kind.
static enum inf_code charge_any(struct inf_quota_user *user, enum inf_quota_kind kind,
                                uint64_t amount, struct inf_error *err)
{
    uint64_t most = atomic_load_explicit(&user->quota->most[kind], memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&user->held[kind], memory_order_relaxed);
    do {
        if (!inf_range_ok(held, amount, most))
            return inf_fail_reason(err, INF_EXHAUSTED, kinds[kind].reason,
                                   "user %u: %" PRIu64 " %s and %" PRIu64
                                   " more are too many, a user may have %" PRIu64,
                                   (unsigned)user->uid, held, kinds[kind].name, amount, most);
    } while (!atomic_compare_exchange_weak_explicit(&user->held[kind], &held, held + amount,
                                                    memory_order_relaxed, memory_order_relaxed));
    add_amount(&user->quota->total[kind], amount);
    return INF_OK;
}

enum inf_code inf_quota_charge(struct inf_quota_user *user, enum inf_quota_kind kind,
                               uint64_t amount, struct inf_error *err)
{
    return charge_any(user, kind, amount, err);
}

enum inf_code inf_quota_charge_session(struct inf_quota_user *user, uint64_t bytes,
                                       struct inf_error *err)
{
    return charge_any(user, INF_QUOTA_SESSION_BYTES, bytes, err);
}

void inf_quota_charge_held(struct inf_quota_user *user, enum inf_quota_kind kind, uint64_t amount)
{
    add_amount(&user->held[kind], amount);
    add_amount(&user->quota->total[kind], amount);
}

void inf_quota_spend(struct inf_quota_user *user, uint64_t device_ns)
{
    inf_rate_limit_take(&user->device, device_ns, user->quota->most[INF_QUOTA_DEVICE_MS],
                        inf_clock_ns());
}

enum inf_code inf_quota_check_device_time(struct inf_quota_user *user, uint64_t *out_wait_ns,
                                          struct inf_error *err)
{
    uint64_t most = user->quota->most[INF_QUOTA_DEVICE_MS];
    if (most == 0)
        return INF_OK;
    *out_wait_ns = find_debt_ns(user);
    if (*out_wait_ns == 0)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, kinds[INF_QUOTA_DEVICE_MS].reason,
                           "user %u: more %s was had than the %" PRIu64
                           " a second that a user may "
                           "have",
                           (unsigned)user->uid, kinds[INF_QUOTA_DEVICE_MS].name, most);
}

static void refund_any(struct inf_quota_user *user, enum inf_quota_kind kind, uint64_t amount)
{
    subtract_amount(&user->held[kind], amount);
    subtract_amount(&user->quota->total[kind], amount);
}

void inf_quota_refund(struct inf_quota_user *user, enum inf_quota_kind kind, uint64_t amount)
{
    refund_any(user, kind, amount);
}

void inf_quota_refund_session(struct inf_quota_user *user, uint64_t bytes)
{
    refund_any(user, INF_QUOTA_SESSION_BYTES, bytes);
}

uint64_t inf_quota_held(const struct inf_quota_user *user, enum inf_quota_kind kind)
{
    return user->held[kind];
}

uint64_t inf_quota_total(const struct inf_quota *quota, enum inf_quota_kind kind)
{
    return quota->total[kind];
}

void inf_quota_set_most(struct inf_quota *quota, enum inf_quota_kind kind, uint64_t most)
{
    quota->most[kind] = most;
}
