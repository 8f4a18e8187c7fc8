// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/inferctl/command.h"

// Pixels: the picture, and what is left around the field of the curves.
#define WIDTH  720.0
#define HEIGHT 440.0
#define LEFT   70.0
#define RIGHT  20.0
#define TOP    40.0
#define BOTTOM 50.0
#define TICKS  5

struct scale {
    double x_max, y_max;
};

// The next of 1, 2, 5, 10, 20 ... that is at least `value`.
static double round_up(double value)
{
    double step = pow(10, floor(log10(fmax(value, 1e-9))));
    static const double factors[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (step * factors[i] >= value)
            return step * factors[i];
    return step * 10;
}

static struct scale scale_of(const struct plot_point *points, size_t count)
{
    double x = 0;
    double y = 0;
    for (size_t i = 0; i < count; i++) {
        x = fmax(x, points[i].per_second);
        y = fmax(y, fmax(points[i].median_ms, points[i].p99_ms));
    }
    return (struct scale){round_up(x), round_up(y)};
}

static double to_x(const struct scale *scale, double per_second)
{
    return LEFT + per_second / scale->x_max * (WIDTH - LEFT - RIGHT);
}

static double to_y(const struct scale *scale, double ms)
{
    return HEIGHT - BOTTOM - ms / scale->y_max * (HEIGHT - TOP - BOTTOM);
}

// Text between tags: what XML reads otherwise is written as it wants.
static void write_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", file);
        else
            fputc(*text, file);
    }
}

static void write_axes(FILE *file, const struct scale *scale)
{
    for (int i = 0; i <= TICKS; i++) {
        double x = scale->x_max * i / TICKS;
        double y = scale->y_max * i / TICKS;
        fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", to_x(scale, x), TOP,
                HEIGHT - BOTTOM);
        fprintf(file, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", LEFT, to_y(scale, y),
                WIDTH - RIGHT);
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                to_x(scale, x), HEIGHT - BOTTOM + 18, x);
        fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8,
                to_y(scale, y) + 4, y);
    }
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">answers a second</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
    fprintf(file, "<text x=\"12\" y=\"%.1f\">ms</text>\n", TOP - 10);
}

static void write_curve(FILE *file, const struct scale *scale, const struct plot_point *points,
                        size_t count, bool p99)
{
    const char *colour = p99 ? "#c33" : "#36c";
    fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%.1f,%.1f ", to_x(scale, points[i].per_second),
                to_y(scale, p99 ? points[i].p99_ms : points[i].median_ms));
    fputs("\"/>\n", file);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n",
                to_x(scale, points[i].per_second),
                to_y(scale, p99 ? points[i].p99_ms : points[i].median_ms), colour);
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\" text-anchor=\"end\">%s</text>\n",
            WIDTH - RIGHT - (p99 ? 0 : 50), TOP - 10, colour, p99 ? "p99" : "median");
}

static FILE *begin(const char *path, const char *title, double height)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return NULL;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%.1f\" y=\"%.1f\" "
            "font-size=\"14\">",
            WIDTH, height, LEFT, TOP - 10);
    write_text(file, title);
    fputs("</text>\n", file);
    return file;
}

// `file` NULL: it could not be opened.
static int end(FILE *file, const char *path)
{
    if (file != NULL)
        fputs("</svg>\n", file);
    bool failed = file == NULL || ferror(file) != 0;
    if ((file != NULL && fclose(file) != 0) || failed)
        return command_say(EXIT_FILE, "%s: %s", path, strerror(errno));
    return EXIT_OK;
}

int plot_write(const char *path, const char *title, const struct plot_point *points, size_t count)
{
    struct scale scale = scale_of(points, count);
    FILE *file = begin(path, title, HEIGHT);
    if (file != NULL) {
        write_axes(file, &scale);
        write_curve(file, &scale, points, count, false);
        write_curve(file, &scale, points, count, true);
    }
    return end(file, path);
}

// --- bars ---

#define BAR_HEIGHT 28.0
#define BAR_LEFT   110.0
#define BAR_RIGHT  120.0

// The powers of ten that all times lie between.
struct decades {
    double first, last;
};

static struct decades decades_of(const struct plot_bar *bars, size_t count)
{
    double least = bars[0].median_ms, most = bars[0].p99_ms;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, bars[i].median_ms);
        most = fmax(most, bars[i].p99_ms);
    }
    double first = floor(log10(fmax(least, 1e-6)) - 0.2), last = ceil(log10(fmax(most, 1e-6)));
    return (struct decades){first, fmax(last, first + 1)};
}

static double bar_end(const struct decades *decades, double ms)
{
    double part = (log10(fmax(ms, 1e-6)) - decades->first) / (decades->last - decades->first);
    return BAR_LEFT + part * (WIDTH - BAR_LEFT - BAR_RIGHT);
}

static void write_bar(FILE *file, const struct decades *decades, const struct plot_bar *bar,
                      double y)
{
    double median = bar_end(decades, bar->median_ms), p99 = bar_end(decades, bar->p99_ms);
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", BAR_LEFT - 8, y + 14);
    write_text(file, bar->name);
    fprintf(file,
            "</text>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"18\" "
            "fill=\"#36c\"/>\n<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
            "stroke=\"#c33\" stroke-width=\"2\"/>\n"
            "<text x=\"%.1f\" y=\"%.1f\">%.3g ms, p99 %.3g</text>\n",
            BAR_LEFT, y, fmax(median - BAR_LEFT, 1), median, y + 9, p99, y + 9, p99 + 6, y + 14,
            bar->median_ms, bar->p99_ms);
}

int plot_write_bars(const char *path, const char *title, const struct plot_bar *bars, size_t count)
{
    struct decades decades = decades_of(bars, count);
    double bottom = TOP + BAR_HEIGHT * (double)count;
    FILE *file = begin(path, title, bottom + BOTTOM);
    if (file == NULL)
        return end(NULL, path);
    for (double decade = decades.first; decade <= decades.last; decade++) {
        double x = bar_end(&decades, pow(10, decade));
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ccc\"/>\n"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                x, TOP, x, bottom, x, bottom + 16, pow(10, decade));
    }
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\">ms, logarithmic</text>\n", BAR_LEFT, bottom + 34);
    for (size_t i = 0; i < count; i++)
        write_bar(file, &decades, &bars[i], TOP + BAR_HEIGHT * (double)i);
    return end(file, path);
}
