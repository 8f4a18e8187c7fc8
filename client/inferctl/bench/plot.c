// SPDX-License-Identifier: Apache-2.0
// Draws measurements as SVG without a library: curves of latency against throughput with labels
// that do not overlap, or bars of devices. All coordinates are pixels from the top left.
#include "client/inferctl/bench/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/inferctl/cli/command.h"

// Sizes in pixels: the picture, and the margins around the curves.
#define WIDTH  720.0
#define HEIGHT 440.0
#define LEFT   70.0
#define RIGHT  20.0
#define TOP    56.0
#define BOTTOM 50.0
#define TICKS  5

#define MEDIAN_COLOUR "#36c"
#define P99_COLOUR    "#c33"

// The ends of the axes. Throughput starts at 0; the axis of times is logarithmic.
struct scale {
    double x_max;
    double y_min, y_max;
};

// Returns the smallest of the numbers 1, 2, 5, 10, 20, ... that is at least `value` or, if `down`
// is true, the largest one that is at most `value`.
static double round_to(double value, bool down)
{
    static const double factors[] = {1, 2, 5, 10};
    double step = pow(10, floor(log10(fmax(value, 1e-9))));
    double last = step;
    // Compare with a tolerance, because computed powers of ten are not exact.
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        double next = step * factors[i];
        if (next >= value * (1 - 1e-9))
            return down && next > value * (1 + 1e-9) ? last : next;
        last = next;
    }
    return last;
}

static struct scale scale_of(const struct plot_point *points, size_t count)
{
    double x = 0;
    double low = points[0].median_ms;
    double high = points[0].p99_ms;
    for (size_t i = 0; i < count; i++) {
        x = fmax(x, points[i].per_second);
        low = fmin(low, fmin(points[i].median_ms, points[i].p99_ms));
        high = fmax(high, fmax(points[i].median_ms, points[i].p99_ms));
    }
    low = round_to(low, true);
    high = round_to(high, false);
    return (struct scale){round_to(x, false), low, high > low ? high : 2 * low};
}

static double to_x(const struct scale *scale, double per_second)
{
    return LEFT + per_second / scale->x_max * (WIDTH - LEFT - RIGHT);
}

static double to_y(const struct scale *scale, double ms)
{
    double part = log(fmax(ms, scale->y_min) / scale->y_min) / log(scale->y_max / scale->y_min);
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

// Writes text with the special characters of XML escaped.
static void write_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", file);
        else
            fputc(*text, file);
    }
}

static void write_label(FILE *file, double x, double y, const char *anchor, const char *text)
{
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    write_text(file, text);
    fputs("</text>\n", file);
}

static void write_axes(FILE *file, const struct scale *scale)
{
    char text[32];
    for (int i = 0; i <= TICKS; i++) {
        double x = scale->x_max * i / TICKS;
        fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", to_x(scale, x), TOP,
                HEIGHT - BOTTOM);
        snprintf(text, sizeof text, "%g", x);
        write_label(file, to_x(scale, x), HEIGHT - BOTTOM + 18, "middle", text);
    }
    for (double y = scale->y_min; y <= scale->y_max * (1 + 1e-6); y = round_to(y * 1.01, false)) {
        fprintf(file, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", LEFT, to_y(scale, y),
                WIDTH - RIGHT);
        snprintf(text, sizeof text, "%g", y);
        write_label(file, LEFT - 8, to_y(scale, y) + 4, "end", text);
    }
    write_label(file, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "middle", "answers a second");
    write_label(file, LEFT - 8, TOP - 16, "end", "ms");
}

// --- curves of latency against throughput ---

// Draws the mark of a measured point: a disc for a closed loop, a square for an open loop.
static void write_mark(FILE *file, double x, double y, bool open, const char *colour)
{
    if (open)
        fprintf(file,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"7\" height=\"7\" fill=\"#fff\" stroke=\"%s\" "
                "stroke-width=\"2\"/>\n",
                x - 3.5, y - 3.5, colour);
    else
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, colour);
}

// Draws the points of all closed loops, or of all open loops, and joins them by lines.
static void write_curve(FILE *file, const struct scale *scale, const struct plot_point *points,
                        size_t count, bool open, bool p99)
{
    const char *colour = p99 ? P99_COLOUR : MEDIAN_COLOUR;
    fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colour,
            open ? " stroke-dasharray=\"6 4\"" : "");
    for (size_t i = 0; i < count; i++)
        if (points[i].open == open)
            fprintf(file, "%.1f,%.1f ", to_x(scale, points[i].per_second),
                    to_y(scale, p99 ? points[i].p99_ms : points[i].median_ms));
    fputs("\"/>\n", file);
    for (size_t i = 0; i < count; i++)
        if (points[i].open == open)
            write_mark(file, to_x(scale, points[i].per_second),
                       to_y(scale, p99 ? points[i].p99_ms : points[i].median_ms), open, colour);
}

// Draws a thin line from the median of each load to its p99, so that one label is enough for both
// points.
static void write_ties(FILE *file, const struct scale *scale, const struct plot_point *points,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#999\" stroke-width=\"0.7\"/>\n",
                to_x(scale, points[i].per_second), to_y(scale, points[i].median_ms),
                to_y(scale, points[i].p99_ms));
}

// --- labels that name the load of a point ---

#define LETTER_WIDTH 6.6
#define LINE_HEIGHT  12.0
#define MARK_SIZE    5.0 // half the width of a mark

struct box {
    double left, top, right, bottom;
};

static bool boxes_overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

// The possible positions of a label, the best one first: the offset of the label's centre from the
// point, in units of the label's width and of the line height.
static const struct place {
    double widths, lines;
} places[] = {{0, -1},     {0.5, -0.7},  {-0.5, -0.7}, {0.5, 0.4}, {-0.5, 0.4},
              {0.6, -1.6}, {-0.6, -1.6}, {0, -2},      {0, -3},    {0, -4}};
#define PLACES (sizeof places / sizeof places[0])

static struct box box_of(double x, double y, double width, const struct place *place)
{
    double middle = x + place->widths * (width + 2 * MARK_SIZE);
    double base = y + place->lines * LINE_HEIGHT;
    return (struct box){middle - width / 2, base - LINE_HEIGHT / 2, middle + width / 2,
                        base + LINE_HEIGHT / 2};
}

static bool is_free(const struct box *box, const struct box *taken, size_t count)
{
    if (box->left < LEFT || box->right > WIDTH - RIGHT || box->top < TOP - LINE_HEIGHT ||
        box->bottom > HEIGHT - BOTTOM)
        return false;
    for (size_t i = 0; i < count; i++)
        if (boxes_overlap(box, &taken[i]))
            return false;
    return true;
}

// Labels each p99 with its load. Labels must not cover marks and other labels; a label for which
// there is no free place is not drawn.
static void write_loads(FILE *file, const struct scale *scale, const struct plot_point *points,
                        size_t count)
{
    struct box taken[3 * PLOT_POINTS_MAX];
    size_t taken_count = 0;
    for (size_t i = 0; i < count; i++) {
        double x = to_x(scale, points[i].per_second);
        const double marks[] = {to_y(scale, points[i].median_ms), to_y(scale, points[i].p99_ms)};
        for (size_t k = 0; k < 2; k++)
            taken[taken_count++] = (struct box){x - MARK_SIZE, marks[k] - MARK_SIZE, x + MARK_SIZE,
                                                marks[k] + MARK_SIZE};
    }
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, points[i].open ? "%lu/s" : "%lu", points[i].load);
        double width = LETTER_WIDTH * (double)strlen(text);
        for (size_t k = 0; k < PLACES; k++) {
            struct box box = box_of(to_x(scale, points[i].per_second),
                                    to_y(scale, points[i].p99_ms), width, &places[k]);
            if (!is_free(&box, taken, taken_count))
                continue;
            fputs("<g stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">", file);
            write_label(file, (box.left + box.right) / 2, box.bottom - 2, "middle", text);
            fputs("</g>\n", file);
            taken[taken_count++] = box;
            break;
        }
    }
}

// --- the whole picture: axes, title, legend and file ---

static FILE *begin_plot(const char *path, const char *title, double height)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return NULL;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%.1f\" y=\"%.1f\" "
            "font-size=\"14\">",
            WIDTH, height, LEFT, 22.0);
    write_text(file, title);
    fputs("</text>\n", file);
    return file;
}

// Ends the file. Returns an exit code, and prints a message on failure. `file` is NULL if it could
// not be opened.
static int end_plot(FILE *file, const char *path)
{
    if (file != NULL)
        fputs("</svg>\n", file);
    bool failed = file == NULL || ferror(file) != 0;
    if ((file != NULL && fclose(file) != 0) || failed)
        return command_say(EXIT_FILE, "%s: %s", path, strerror(errno));
    return EXIT_OK;
}

// Draws the legend of colours and marks, to the right of the title and below it.
static void write_legend(FILE *file, const bool *has)
{
    static const char *const loops[] = {"4: requests in flight", "4/s: requests sent a second"};
    static const double widths[] = {150, 185};
    double x = WIDTH - RIGHT;
    write_mark(file, x - 100, 14, false, MEDIAN_COLOUR);
    write_label(file, x - 92, 18, "start", "median");
    write_mark(file, x - 34, 14, false, P99_COLOUR);
    write_label(file, x - 26, 18, "start", "p99");
    for (int open = 1; open >= 0; open--) {
        if (!has[open])
            continue;
        x -= widths[open];
        write_mark(file, x, 32, open != 0, "#666");
        write_label(file, x + 8, 36, "start", loops[open]);
    }
}

int plot_write(const char *path, const char *title, const struct plot_point *points, size_t count)
{
    struct scale scale = scale_of(points, count);
    FILE *file = begin_plot(path, title, HEIGHT);
    bool has[2] = {false, false};
    for (size_t i = 0; i < count; i++)
        has[points[i].open] = true;
    if (file != NULL) {
        write_axes(file, &scale);
        write_ties(file, &scale, points, count);
        for (int curve = 0; curve < 4; curve++)
            if (has[curve / 2])
                write_curve(file, &scale, points, count, curve / 2 != 0, curve % 2 != 0);
        write_loads(file, &scale, points, count);
        write_legend(file, has);
    }
    return end_plot(file, path);
}

// --- bars of devices ---

#define BAR_HEIGHT 28.0
#define BAR_LEFT   110.0
#define BAR_RIGHT  120.0

// The smallest range of whole powers of ten that contains all times of the bars.
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
    FILE *file = begin_plot(path, title, bottom + BOTTOM);
    if (file == NULL)
        return end_plot(NULL, path);
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
    return end_plot(file, path);
}
