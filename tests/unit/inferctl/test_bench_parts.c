// SPDX-License-Identifier: Apache-2.0
// Tests of the parts of inferctl bench: the schedule of an open loop, and the SVG plot.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/inferctl/bench/open_loop.h"
#include "client/inferctl/bench/plot.h"
#include "client/inferctl/cli/command.h"

Test(bench_parts, even_arrivals_are_equally_far_apart)
{
    uint64_t state = 1;
    for (int i = 0; i < 10; i++)
        cr_expect_eq(open_loop_gap_ms(250, false, &state), 4.0);
}

Test(bench_parts, poisson_arrivals_have_the_mean_and_spread_of_their_rate)
{
    enum {
        COUNT = 200000
    };
    uint64_t state = 7;
    double sum = 0;
    double squares = 0;
    int above = 0;
    for (int i = 0; i < COUNT; i++) {
        double gap = open_loop_gap_ms(1000, true, &state);
        cr_assert_geq(gap, 0);
        sum += gap;
        squares += gap * gap;
        above += gap > 1;
    }
    // In an exponential distribution the standard deviation equals the mean, and a fraction 1/e of
    // the values exceeds the mean.
    double mean = sum / COUNT;
    cr_expect_float_eq(mean, 1, 0.01);
    cr_expect_float_eq(sqrt(squares / COUNT - mean * mean), 1, 0.02);
    cr_expect_float_eq((double)above / COUNT, exp(-1), 0.005);
}

Test(bench_parts, the_same_seed_gives_the_same_arrivals)
{
    uint64_t a = 5;
    uint64_t b = 5;
    for (int i = 0; i < 10; i++)
        cr_expect_eq(open_loop_gap_ms(10, true, &a), open_loop_gap_ms(10, true, &b));
}

static char path[] = "/tmp/inferd-plot-XXXXXX";

static const char *read_plot(void)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    return text;
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    while ((text = strstr(text, what)) != NULL) {
        count++;
        text++;
    }
    return count;
}

Test(bench_parts, a_plot_has_both_curves_through_all_points)
{
    static const struct plot_point points[] = {
        {false, 1, 100, 1, 2}, {false, 2, 200, 2, 4}, {false, 8, 400, 5, 10}};
    close(mkstemp(path));
    cr_assert_eq(plot_write(path, "a<b&c", points, 3), EXIT_OK);
    const char *text = read_plot();
    cr_expect_eq(strncmp(text, "<svg ", 5), 0);
    cr_expect_eq(strcmp(text + strlen(text) - 7, "</svg>\n"), 0);
    cr_expect_eq(count_of(text, "<polyline"), 2);
    cr_expect_eq(count_of(text, "<circle"), 6 + 3, "and those of the legend");
    cr_expect_eq(count_of(text, "in flight"), 1);
    cr_expect_eq(count_of(text, "sent a second"), 0);
    cr_expect_eq(count_of(text, ">8</text>"), 1);
    cr_expect_not_null(strstr(text, "a&lt;b&amp;c"));
    // The axes end at 500 requests per second, at 1 ms and at 10 ms. So the last p99 is at the top
    // at 4/5 of the width, and the first median at the bottom at 1/5.
    cr_expect_not_null(strstr(text, "cx=\"574.0\" cy=\"56.0\""), "%s", text);
    cr_expect_not_null(strstr(text, "cx=\"196.0\" cy=\"390.0\""), "%s", text);
}

Test(bench_parts, a_plot_has_open_and_closed_loops_with_their_loads)
{
    static const struct plot_point points[] = {
        {false, 1, 100, 3, 3}, {false, 4, 150, 3, 3}, {true, 90, 90, 3, 3}, {true, 140, 140, 3, 3}};
    close(mkstemp(path));
    cr_assert_eq(plot_write(path, "m", points, 4), EXIT_OK);
    const char *text = read_plot();
    cr_expect_eq(count_of(text, "<polyline"), 4);
    cr_expect_eq(count_of(text, "stroke-dasharray"), 2);
    static const char *const labels[] = {">1</text>", ">4</text>", ">90/s</text>", ">140/s</text>"};
    for (int i = 0; i < 4; i++)
        cr_expect_eq(count_of(text, labels[i]), 1, "%s", labels[i]);
    cr_expect_null(strstr(text, "nan"));
    cr_expect_null(strstr(text, "inf\""));
}

Test(bench_parts, labels_that_have_no_room_are_left_out)
{
    struct plot_point points[PLOT_POINTS_MAX];
    for (size_t i = 0; i < PLOT_POINTS_MAX; i++)
        points[i] = (struct plot_point){i % 2 != 0, 1000 + i, 500, 1, 1.5};
    close(mkstemp(path));
    cr_assert_eq(plot_write(path, "m", points, PLOT_POINTS_MAX), EXIT_OK);
    int labels = count_of(read_plot(), "<g ");
    cr_expect(labels > 0 && labels < 12, "%d", labels);
}

Test(bench_parts, a_plot_that_cannot_be_written_is_said)
{
    static const struct plot_point point = {false, 1, 1, 1, 1};
    cr_expect_eq(plot_write("/proc/none/plot.svg", "m", &point, 1), EXIT_FILE);
}
