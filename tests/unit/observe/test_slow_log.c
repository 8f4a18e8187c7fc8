// SPDX-License-Identifier: Apache-2.0
// Tests of the log of slow requests, and of the JSON writer that prints it.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/observe/report_text.h"
#include "daemon/observe/slow_log.h"

static struct inf_slow_log *slow_log;

static void create_log(void)
{
    cr_assert_eq(inf_slow_log_create(&slow_log, NULL), INF_OK);
}

static void destroy_log(void)
{
    inf_slow_log_destroy(&slow_log);
}

TestSuite(slow_log, .init = create_log, .fini = destroy_log);

#define HOUR_NS ((uint64_t)3600 * INF_NS_PER_S)

// Offers a request to the log as the daemon does. Returns true if the log keeps the request.
static bool offer_request(uint32_t series, uint64_t duration_ns, uint64_t threshold_ns,
                          uint64_t now_ns)
{
    inf_role_enter_loop();
    const struct inf_slow_request request = {.duration_ns = duration_ns};
    if (!inf_slow_log_wants(slow_log, series, duration_ns, threshold_ns, now_ns))
        return false;
    inf_slow_log_add(slow_log, series, &request, threshold_ns > 0 && duration_ns >= threshold_ns,
                     now_ns);
    return true;
}

// Returns the durations in ns of the requests in the log, in the log's order, as a text such as
// "5 4 ", which is valid until the next call.
static const char *list_durations(uint64_t now_ns)
{
    static char text[4096];
    size_t size = 0;
    uint32_t cursor = 0;
    const struct inf_slow_request *request;
    inf_role_enter_loop();
    text[0] = '\0';
    while ((request = inf_slow_log_next(slow_log, &cursor, now_ns)) != NULL)
        size += (size_t)snprintf(text + size, sizeof text - size, "%d ", (int)request->duration_ns);
    return text;
}

Test(slow_log, keeps_the_four_slowest_of_a_series)
{
    for (uint64_t duration = 1; duration <= 4; duration++)
        cr_expect(offer_request(0, duration, 0, 1000));
    cr_expect_not(offer_request(0, 1, 0, 1000));
    cr_expect(offer_request(0, 9, 0, 1000));
    cr_expect_not(offer_request(0, 2, 0, 1000));
    cr_expect(offer_request(0, 8, 0, 1000));
    cr_expect(offer_request(1, 1, 0, 1000), "another series has its own slowest requests");
    cr_expect_str_eq(list_durations(1000), "9 8 3 4 1 ");
}

Test(slow_log, forgets_the_slowest_after_an_hour)
{
    for (int i = 0; i < 4; i++)
        cr_expect(offer_request(7, 100, 0, 1000));
    cr_expect_not(offer_request(7, 50, 0, HOUR_NS));
    cr_expect_str_eq(list_durations(HOUR_NS + 1000), "");
    cr_expect(offer_request(7, 50, 0, HOUR_NS + 1000));
    cr_expect_str_eq(list_durations(HOUR_NS + 1000), "50 ");
}

Test(slow_log, keeps_those_over_the_threshold_newest_first_and_once)
{
    cr_expect(offer_request(0, 500, 400, 1000));
    cr_expect(offer_request(0, 400, 400, 1000));
    cr_expect(offer_request(0, 399, 400, 1000));
    cr_expect_str_eq(list_durations(1000), "400 500 399 ");
    cr_expect_str_eq(list_durations(HOUR_NS + 1000), "400 500 ", "the ring keeps them for longer");
}

Test(slow_log, the_ring_is_bounded)
{
    for (uint64_t i = 0; i < INF_SLOW_LOG_RECENT + 10; i++)
        cr_expect(offer_request(3, 1000 + i, 1, 1000));
    int count = 0;
    for (const char *at = list_durations(1000); *at != '\0'; at++)
        count += *at == ' ';
    cr_expect_eq(count, INF_SLOW_LOG_RECENT);
    cr_expect_eq(strncmp(list_durations(1000), "1137 1136 ", 10), 0, "%s", list_durations(1000));
}

Test(slow_log, lines_are_limited_and_those_left_out_are_counted)
{
    uint64_t left_out;
    inf_role_enter_loop();
    for (uint32_t i = 0; i < INF_SLOW_LOG_LINES; i++) {
        cr_expect(inf_slow_log_may_write(slow_log, 5, &left_out));
        cr_expect_eq(left_out, 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_not(inf_slow_log_may_write(slow_log, 6, &left_out));
    cr_expect(inf_slow_log_may_write(slow_log, 5 + 60 * INF_NS_PER_S, &left_out));
    cr_expect_eq(left_out, 3);
    cr_expect(inf_slow_log_may_write(slow_log, 6 + 60 * INF_NS_PER_S, &left_out));
    cr_expect_eq(left_out, 0);
}

Test(report, texts_of_clients_are_escaped)
{
    char memory[256];
    struct inf_report_text report;
    inf_report_begin(&report, memory, sizeof memory);
    inf_report_open(&report, NULL, '[');
    inf_report_open(&report, NULL, '{');
    inf_report_add_text(&report, "id", "a\"b\\c\n\x1b\xff\xc3\xa4");
    inf_report_add_number(&report, "n", UINT64_MAX);
    inf_report_open(&report, "list", '[');
    inf_report_add_real(&report, NULL, -0.125);
    inf_report_add_real(&report, NULL, 1e-20);
    inf_report_close(&report, ']');
    inf_report_close(&report, '}');
    inf_report_open(&report, NULL, '{');
    inf_report_close(&report, '}');
    inf_report_close(&report, ']');
    memory[report.size] = '\0';
    cr_expect_not(report.full);
    cr_expect_str_eq(memory,
                     "[{\"id\":\"a\\\"b\\\\c\\u000a\\u001b?\xc3\xa4\","
                     "\"n\":18446744073709551615,\"list\":[-0.125,1e-20]},{}]");
}

Test(report, a_text_that_does_not_fit_is_marked)
{
    char memory[8];
    struct inf_report_text report;
    inf_report_begin(&report, memory, sizeof memory);
    inf_report_add_text(&report, NULL, "123456");
    cr_expect_not(report.full);
    inf_report_add_text(&report, NULL, "7");
    cr_expect(report.full);
    cr_expect_leq(report.size, sizeof memory);
}
