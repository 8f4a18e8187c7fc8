// SPDX-License-Identifier: Apache-2.0
// The order in which queued loads run.
#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/load/load_order.h"
#include "daemon/model/config.h"

#define NOW_NS 1000u

static struct inf_load_job jobs[8];

// Makes a queue with a load for each rank. The array ends with a rank whose name is NULL.
static struct inf_load_job *make_queue(const struct inf_load_rank *ranks)
{
    struct inf_load_job *queue = NULL, **link = &queue;
    for (uint32_t i = 0; ranks[i].name != NULL; i++) {
        jobs[i] = (struct inf_load_job){.kind = INF_LOAD_JOB_MODEL};
        snprintf(jobs[i].name, sizeof jobs[i].name, "%s", ranks[i].name);
        jobs[i].model.wanted = ranks[i].wanted;
        jobs[i].model.priority = ranks[i].priority;
        jobs[i].model.uses = ranks[i].uses;
        *link = &jobs[i];
        link = &jobs[i].next;
    }
    return queue;
}

// Takes all jobs in the order of the loader. Expects that `order` has the index of the rank of each
// of them, as a digit.
static void expect_order(struct inf_load_job *queue, const char *order)
{
    for (; *order != '\0'; order++) {
        struct inf_load_job **link = inf_load_order_choose(&queue, NOW_NS), *job = *link;
        cr_expect_eq(job - jobs, *order - '0', "%zd, wanted %c", job - jobs, *order);
        *link = job->next;
    }
    cr_expect_null(queue);
}

Test(load_order, wanted_then_priority_then_uses_then_name)
{
    static const struct inf_load_rank ranks[] = {
        {.name = "c", .priority = INF_MODEL_PRIORITY_NORMAL},
        {.name = "b", .priority = INF_MODEL_PRIORITY_NORMAL},
        {.name = "d", .priority = INF_MODEL_PRIORITY_NORMAL, .uses = 3},
        {.name = "e", .priority = INF_MODEL_PRIORITY_HIGH},
        {.name = "f", .priority = INF_MODEL_PRIORITY_LOW, .uses = 9},
        {.name = "g", .priority = INF_MODEL_PRIORITY_LOW, .wanted = true},
        {.name = "a", .priority = INF_MODEL_PRIORITY_NORMAL, .uses = 4},
        {.name = NULL}};
    expect_order(make_queue(ranks), "5362104");
}

Test(load_order, loads_of_one_model_keep_their_order)
{
    static const struct inf_load_rank ranks[] = {
        {.name = "a"}, {.name = "b"}, {.name = "b", .wanted = true}, {.name = NULL}};
    expect_order(make_queue(ranks), "012");
}

Test(load_order, only_loads_let_others_pass)
{
    static const struct inf_load_rank ranks[] = {
        {.name = "b"}, {.name = ""}, {.name = "a", .wanted = true}, {.name = NULL}};
    struct inf_load_job *queue = make_queue(ranks);
    jobs[1].kind = INF_LOAD_JOB_SCAN;
    expect_order(queue, "201");
    queue = make_queue(ranks);
    jobs[0].kind = INF_LOAD_JOB_INSPECT;
    expect_order(queue, "021");
}

Test(load_order, an_admin_waits_for_its_load)
{
    static const struct inf_load_rank ranks[] = {
        {.name = "a", .priority = INF_MODEL_PRIORITY_HIGH}, {.name = "b"}, {.name = NULL}};
    struct inf_load_job *queue = make_queue(ranks);
    jobs[1].model.by_admin = true;
    expect_order(queue, "10");
}

Test(load_order, loads_that_are_put_off_let_others_pass)
{
    static const struct inf_load_rank ranks[] = {
        {.name = "a", .wanted = true}, {.name = "b"}, {.name = "c"}, {.name = NULL}};
    struct inf_load_job *queue = make_queue(ranks);
    jobs[0].model.not_before_ns = NOW_NS + 2;
    jobs[2].model.not_before_ns = NOW_NS;
    cr_expect_eq(inf_load_order_next_ns(queue), NOW_NS);
    cr_expect_eq(*inf_load_order_choose(&queue, NOW_NS), &jobs[1]);
    jobs[0].next = &jobs[2];
    cr_expect_eq(*inf_load_order_choose(&queue, NOW_NS), &jobs[2]);
    cr_expect_null(inf_load_order_choose(&queue, NOW_NS - 1));
    jobs[0].next = NULL;
    cr_expect_null(inf_load_order_choose(&queue, NOW_NS + 1));
    cr_expect_eq(inf_load_order_next_ns(queue), NOW_NS + 2);
    inf_load_job_cancel(&jobs[0], INF_LOAD_STOP_UNLOADED);
    cr_expect_eq(*inf_load_order_choose(&queue, NOW_NS), &jobs[0], "it reports that at once");
    queue = NULL;
    cr_expect_null(inf_load_order_choose(&queue, NOW_NS));
    cr_expect_eq(inf_load_order_next_ns(queue), UINT64_MAX);
}
