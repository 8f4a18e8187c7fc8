// SPDX-License-Identifier: Apache-2.0
// Draws latency against throughput as an SVG file.
#ifndef INF_CLIENT_INFERCTL_BENCH_PLOT_H
#define INF_CLIENT_INFERCTL_BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#define PLOT_POINTS_MAX 64

// One measurement.
struct plot_point {
    bool open; // of an open loop
    unsigned long
        load; // requests in flight, of an open loop requests sent a second: the point's label
    double per_second;
    double median_ms, p99_ms;
};

// Writes a picture of 1 to PLOT_POINTS_MAX points. The points of closed loops are joined in the
// order of the array, and so are those of open loops. Prints what is wrong and returns an exit
// code.
int plot_write(const char *path, const char *title, const struct plot_point *points, size_t count);

// The times of one device.
struct plot_bar {
    const char *name;
    double median_ms, p99_ms;
};

// Writes a picture with a bar for each device: its length is the median, and a line goes up to the
// p99. The scale is logarithmic, because devices differ by a factor of a hundred. Prints what is
// wrong and returns an exit code.
int plot_write_bars(const char *path, const char *title, const struct plot_bar *bars, size_t count);

#endif
