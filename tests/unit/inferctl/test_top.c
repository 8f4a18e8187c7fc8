// SPDX-License-Identifier: Apache-2.0
// Tests of the screen that `inferctl top` draws, and of the rates on it.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/top/sample.h"
#include "client/inferctl/top/view.h"

static inferd_device_row devices[2] = {
    {.name = "cpu", .kind = "cpu", .health = "ok", .slots = 2, .busy_ns = 1000, .requests = 10},
    {.name = "vulkan0", .kind = "discrete", .health = "lost", .slots = 1}};
static inferd_model_row models[3] = {
    {.name = "alpha", .state = "READY", .device = "cpu", .requests = 100, .memory_bytes = 3 << 20},
    {.name = "beta", .state = "READY", .device = "cpu", .requests = 100, .memory_bytes = 1 << 20},
    {.name = "gamma", .state = "UNAVAILABLE", .memory_bytes = 2 << 20}};
static inferd_client_row clients[1] = {{.client_id = 7,
                                        .uid = 4294967295u,
                                        .pid = 4194303,
                                        .name = "a\x1b[31m\xc3\xa4 very long name of a client",
                                        .requests = 50,
                                        .region_bytes = 1ull << 60,
                                        .unread_bytes = 1ull << 60}};
static inferd_request_row requests[1] = {
    {.client_id = UINT64_MAX,
     .stream_id = UINT64_MAX,
     .model = "a_name_of_64_characters_a_name_of_64_characters_a_name_of_64_cha",
     .device = "cpu",
     .phase = "queue",
     .age_ns = UINT64_MAX,
     .data_bytes = UINT64_MAX}};
static struct sample before, now;

static void fill_samples(void)
{
    before = (struct sample){.at_ns = 1000000000,
                             .status = {.version = "0.1.0", .state = "ready", .requests_ok = 100},
                             .devices = devices,
                             .device_count = 2,
                             .models = models,
                             .model_count = 3,
                             .clients = clients,
                             .client_count = 1,
                             .requests = requests,
                             .request_count = 1};
    now = before;
    now.at_ns += 2000000000;
}

// Draws the screen and returns its text, which the caller frees.
static char *draw_screen(const struct view *view)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cr_assert_not_null(out);
    view_draw(view, &before, &now, out);
    cr_assert_eq(fclose(out), 0);
    return text;
}

static const struct view plain = {.width = 80, .line_end = "", .filter = ""};

// Returns the length of the longest line in characters. Sets *lines to the number of lines.
static size_t measure_text(const char *text, size_t *lines)
{
    size_t longest = 0, length = 0;
    *lines = 0;
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            longest = length > longest ? length : longest;
            length = 0;
            ++*lines;
        } else {
            length += ((unsigned char)*text & 0xc0) != 0x80;
        }
    }
    return longest;
}

TestSuite(top, .init = fill_samples);

Test(top, a_screen_has_80_columns_whatever_the_rows_hold)
{
    size_t lines;
    char *text = draw_screen(&plain);
    cr_expect_leq(measure_text(text, &lines), 80, "%s", text);
    cr_expect_eq(strchr(text, '\x1b'), NULL, "no escape sequence without colours");
    cr_expect_not_null(strstr(text, "a?[31m\xc3\xa4 very"), "%s", text);
    cr_expect_not_null(strstr(text, "alpha"), "%s", text);
    free(text);
    struct view narrow = plain;
    for (narrow.width = 1; narrow.width < 80; narrow.width++) {
        text = draw_screen(&narrow);
        cr_expect_leq(measure_text(text, &lines), narrow.width, "%s", text);
        free(text);
    }
}

Test(top, a_screen_fits_the_height)
{
    size_t lines;
    struct view low = plain;
    for (low.height = 1; low.height < 30; low.height++) {
        char *text = draw_screen(&low);
        measure_text(text, &lines);
        cr_expect_leq(lines, low.height, "height %u: %s", low.height, text);
        free(text);
    }
    low.height = 24;
    char *text = draw_screen(&low);
    cr_expect_not_null(strstr(text, "queue"), "all rows fit 24 lines: %s", text);
    cr_expect_null(strstr(text, "more"), "%s", text);
    free(text);
    inferd_model_row many[50];
    for (int i = 0; i < 50; i++)
        many[i] = models[i % 3];
    now.models = many;
    now.model_count = 50;
    text = draw_screen(&low);
    measure_text(text, &lines);
    cr_expect_leq(lines, 24);
    cr_expect_not_null(strstr(text, "... 47 more"), "%s", text);
    cr_expect_not_null(strstr(text, "REQUEST "), "the other lists keep their share: %s", text);
    free(text);
}

Test(top, rates_are_those_between_the_samples)
{
    inferd_model_row later[3];
    inferd_device_row busy[2];
    memcpy(later, models, sizeof later);
    memcpy(busy, devices, sizeof busy);
    later[0].requests = 105;
    later[1].requests = 60; // fewer than before: the model was reloaded and its counter began at 0
    busy[0].busy_ns += 3000000000;
    busy[0].requests += 7;
    now.models = later;
    now.devices = busy;
    cr_expect_float_eq(sample_model_rate(&before, &now, &later[0]), 2.5, 1e-9);
    cr_expect_float_eq(sample_model_rate(&before, &now, &later[1]), 30, 1e-9);
    cr_expect_float_eq(sample_device_rate(&before, &now, &busy[0]), 3.5, 1e-9);
    cr_expect_float_eq(sample_device_busy(&before, &now, &busy[0]), 0.75, 1e-9);
    cr_expect_float_eq(sample_client_rate(&before, &now, &clients[0]), 0, 1e-9);
    busy[0].busy_ns += 9000000000;
    cr_expect_float_eq(sample_device_busy(&before, &now, &busy[0]), 1, 1e-9);
    const inferd_model_row fresh = {.name = "fresh", .requests = 9};
    cr_expect_float_eq(sample_model_rate(&before, &now, &fresh), 0, 1e-9);
    now.at_ns = before.at_ns;
    cr_expect_float_eq(sample_model_rate(&before, &now, &later[0]), 0, 1e-9, "the first screen");
}

// Draws the screen with models sorted by `order`. Returns true if `first` stands before `second`.
static bool stands_before(enum view_order order, const char *first, const char *second)
{
    struct view view = plain;
    view.order = order;
    char *text = draw_screen(&view);
    const char *a = strstr(text, first);
    const char *b = strstr(text, second);
    cr_assert(a != NULL && b != NULL, "%s", text);
    bool result = a < b;
    free(text);
    return result;
}

Test(top, models_are_sorted_and_filtered)
{
    inferd_model_row later[3];
    memcpy(later, models, sizeof later);
    later[1].requests = 105;
    now.models = later;
    cr_expect(stands_before(VIEW_BY_RATE, "beta", "alpha"));
    cr_expect(stands_before(VIEW_BY_NAME, "alpha", "beta"));
    cr_expect(stands_before(VIEW_BY_NAME, "beta", "gamma"));
    cr_expect(stands_before(VIEW_BY_MEMORY, "gamma", "beta"));
    struct view view = plain;
    view.filter = "amm";
    char *text = draw_screen(&view);
    cr_expect_null(strstr(text, "alpha"));
    cr_expect_not_null(strstr(text, "gamma"));
    free(text);
}

Test(top, colours_mark_what_is_wrong)
{
    struct view view = plain;
    view.colour = true;
    char *text = draw_screen(&view);
    cr_expect_not_null(strstr(text, "\x1b[31mgamma"), "%s", text);
    cr_expect_not_null(strstr(text, "\x1b[31mvulkan0"), "%s", text);
    cr_expect_null(strstr(text, "\x1b[31mcpu"), "%s", text);
    free(text);
}
