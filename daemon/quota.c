// SPDX-License-Identifier: Apache-2.0
#include "daemon/quota.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct inf_quota_user {
    struct inf_quota *quota;
    struct inf_quota_user *next;
    uid_t uid;
    uint32_t references;
    uint64_t held[INF_QUOTA_KIND_COUNT];
};

struct inf_quota {
    uint64_t most[INF_QUOTA_KIND_COUNT];
    struct inf_quota_user *users;
};

static const struct {
    const char *name; // "user 7: 12 NAME"
    enum inf_reason reason;
} kinds[] = {
    [INF_QUOTA_CONNECTIONS] = {"connections", INF_REASON_QUOTA_REQUESTS},
    [INF_QUOTA_REQUESTS] = {"requests in flight", INF_REASON_QUOTA_REQUESTS},
    [INF_QUOTA_REQUEST_BYTES] = {"bytes of requests in flight", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_REGIONS] = {"regions", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_REGION_BYTES] = {"bytes of regions", INF_REASON_QUOTA_BYTES},
    [INF_QUOTA_SESSION_BYTES] = {"bytes of sessions", INF_REASON_QUOTA_BYTES},
};

enum inf_code inf_quota_create(struct inf_quota **out_quota,
                               const uint64_t most[INF_QUOTA_KIND_COUNT], struct inf_error *err)
{
    struct inf_quota *quota = calloc(1, sizeof *quota);
    if (quota == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for quotas");
    memcpy(quota->most, most, sizeof quota->most);
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

struct inf_quota_user *inf_quota_open(struct inf_quota *quota, uid_t uid)
{
    struct inf_quota_user *user = quota->users;
    while (user != NULL && user->uid != uid)
        user = user->next;
    if (user == NULL) {
        user = calloc(1, sizeof *user);
        if (user == NULL)
            return NULL;
        *user = (struct inf_quota_user){.quota = quota, .next = quota->users, .uid = uid};
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
    struct inf_quota_user **link = &user->quota->users;
    while (*link != user)
        link = &(*link)->next;
    *link = user->next;
    free(user);
}

enum inf_code inf_quota_charge(struct inf_quota_user *user, enum inf_quota_kind kind,
                               uint64_t amount, struct inf_error *err)
{
    uint64_t most = user->quota->most[kind];
    if (amount > most || user->held[kind] > most - amount)
        return inf_fail_reason(
            err, INF_EXHAUSTED, kinds[kind].reason,
            "user %u: %" PRIu64 " %s and %" PRIu64 " more are too many, a user may have %" PRIu64,
            (unsigned)user->uid, user->held[kind], kinds[kind].name, amount, most);
    user->held[kind] += amount;
    return INF_OK;
}

void inf_quota_refund(struct inf_quota_user *user, enum inf_quota_kind kind, uint64_t amount)
{
    assert(user->held[kind] >= amount);
    user->held[kind] -= amount;
}

uint64_t inf_quota_held(const struct inf_quota_user *user, enum inf_quota_kind kind)
{
    return user->held[kind];
}

void inf_quota_set_most(struct inf_quota *quota, enum inf_quota_kind kind, uint64_t most)
{
    quota->most[kind] = most;
}
