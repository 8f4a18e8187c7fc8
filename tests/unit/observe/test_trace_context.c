// SPDX-License-Identifier: Apache-2.0
// Parsing of W3C Trace Context. The cases are those of the standard.
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/observe/trace_context.h"

Test(trace_context, takes_the_examples_of_the_standard)
{
    static const uint8_t trace[] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                    0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
    static const uint8_t parent[] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
    struct inf_trace_context context = {.recorded = false};
    bool sampled = false;
    cr_assert(inf_trace_context_parse(
        &context, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", &sampled));
    cr_expect_arr_eq(context.trace_id, trace, sizeof trace);
    cr_expect_arr_eq(context.parent_id, parent, sizeof parent);
    cr_expect(sampled);
    cr_assert(inf_trace_context_parse(
        &context, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", &sampled));
    cr_expect(!sampled);
    cr_assert(inf_trace_context_parse(
        &context, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe", &sampled));
    cr_expect(!sampled, "only the lowest bit is the sampled flag");
    // A text of a later version of the standard may have more fields.
    cr_assert(inf_trace_context_parse(
        &context, "cc-12345678901234567890123456789012-1234567890123456-01-what-the-future",
        &sampled));
    cr_expect(sampled);
    cr_assert(inf_trace_context_parse(
        &context, "cc-12345678901234567890123456789012-1234567890123456-01", &sampled));
}

Test(trace_context, ignores_what_is_malformed)
{
    static const char *const texts[] = {
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b:-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0/",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "cc-12345678901234567890123456789012-1234567890123456-01.what",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct inf_trace_context context = {.recorded = false};
        bool sampled = false;
        cr_expect(!inf_trace_context_parse(&context, texts[i], &sampled), "%s", texts[i]);
    }
}

Test(trace_context, keeps_a_printable_state_only)
{
    struct inf_trace_context context = {.recorded = false};
    char text[INF_LIMIT_TRACE_STATE + 2];
    inf_trace_context_set_state(&context, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
    cr_expect_str_eq(context.state, "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7");
    inf_trace_context_set_state(&context, "a=\n");
    cr_expect_str_eq(context.state, "");
    inf_trace_context_set_state(&context, " ~");
    cr_expect_str_eq(context.state, " ~");
    inf_trace_context_set_state(&context, "\x7f");
    cr_expect_str_eq(context.state, "");
    memset(text, 'x', sizeof text);
    text[INF_LIMIT_TRACE_STATE + 1] = '\0';
    inf_trace_context_set_state(&context, text);
    cr_expect_str_eq(context.state, "", "a state that is too long is left out");
    text[INF_LIMIT_TRACE_STATE] = '\0';
    inf_trace_context_set_state(&context, text);
    cr_expect_eq(strlen(context.state), (size_t)INF_LIMIT_TRACE_STATE);
}
