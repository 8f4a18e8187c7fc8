// SPDX-License-Identifier: Apache-2.0
// Accounts and limits of users.
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/resource/quota.h"

static const uint64_t most[INF_QUOTA_KIND_COUNT] = {2, 3, 1000, 1, UINT64_MAX};

static struct inf_quota *make_quota(void)
{
    struct inf_quota *quota = NULL;
    struct inf_error err;
    cr_assert_eq(inf_quota_create(&quota, most, &err), INF_OK);
    return quota;
}

Test(quota, is_separate_for_each_user)
{
    inf_role_enter_loop();
    struct inf_quota *quota = make_quota();
    struct inf_error err;
    struct inf_quota_user *one = inf_quota_open(quota, 1);
    struct inf_quota_user *two = inf_quota_open(quota, 2);
    cr_assert_neq(one, two);
    cr_expect_eq(inf_quota_charge(one, INF_QUOTA_CONNECTIONS, 2, &err), INF_OK);
    cr_expect_eq(inf_quota_charge(one, INF_QUOTA_CONNECTIONS, 1, &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_QUOTA_REQUESTS);
    cr_expect_not_null(strstr(err.text, "user 1: 2 connections"), "%s", err.text);
    cr_expect_eq(inf_quota_charge(two, INF_QUOTA_CONNECTIONS, 1, &err), INF_OK);
    cr_expect_eq(inf_quota_total(quota, INF_QUOTA_CONNECTIONS), 3);
    inf_quota_refund(one, INF_QUOTA_CONNECTIONS, 1);
    cr_expect_eq(inf_quota_total(quota, INF_QUOTA_CONNECTIONS), 2);
    inf_quota_charge_held(two, INF_QUOTA_FILLED_BYTES, 5);
    cr_expect_eq(inf_quota_total(quota, INF_QUOTA_FILLED_BYTES), 5);
    cr_expect_eq(inf_quota_charge(one, INF_QUOTA_CONNECTIONS, 1, &err), INF_OK);
    inf_quota_destroy(&quota);
}

Test(quota, keeps_an_account_while_it_is_referenced)
{
    inf_role_enter_loop();
    struct inf_quota *quota = make_quota();
    struct inf_error err;
    struct inf_quota_user *user = inf_quota_open(quota, 7);
    struct inf_quota_user *again = inf_quota_open(quota, 7);
    cr_assert_eq(user, again);
    cr_expect_eq(inf_quota_charge(user, INF_QUOTA_REQUESTS, 3, &err), INF_OK);
    inf_quota_unref(&user);
    cr_expect_null(user);
    user = inf_quota_ref(again);
    cr_expect_eq(inf_quota_held(again, INF_QUOTA_REQUESTS), 3);
    inf_quota_refund(again, INF_QUOTA_REQUESTS, 3);
    inf_quota_unref(&again);
    inf_quota_unref(&user);
    // All references to the user's account were dropped. Expect a new, empty account.
    user = inf_quota_open(quota, 7);
    cr_expect_eq(inf_quota_held(user, INF_QUOTA_REQUESTS), 0);
    inf_quota_unref(&user);
    inf_quota_destroy(&quota);
}

Test(quota, does_not_wrap)
{
    inf_role_enter_loop();
    struct inf_quota *quota = make_quota();
    struct inf_error err;
    struct inf_quota_user *user = inf_quota_open(quota, 1);
    cr_expect_eq(inf_quota_charge(user, INF_QUOTA_REQUEST_BYTES, UINT64_MAX, &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_QUOTA_BYTES);
    cr_expect_eq(inf_quota_charge(user, INF_QUOTA_REGION_BYTES, UINT64_MAX - 1, &err), INF_OK);
    cr_expect_eq(inf_quota_charge(user, INF_QUOTA_REGION_BYTES, 2, &err), INF_EXHAUSTED);
    cr_expect_eq(inf_quota_held(user, INF_QUOTA_REGION_BYTES), UINT64_MAX - 1);
    inf_quota_destroy(&quota);
}
