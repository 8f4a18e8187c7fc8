// SPDX-License-Identifier: Apache-2.0
// Latency against throughput as a picture: an SVG file that stands alone.
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

// Writes the points (1 to PLOT_POINTS_MAX), those of closed loops and those of open ones joined in the order
// they come; throughput from 0, times logarithmic. Prints what is wrong and returns an exit code.
int plot_write(const char *path, const char *title, const struct plot_point *points, size_t count);

// One device's times.
struct plot_bar {
    const char *name;
    double median_ms, p99_ms;
};

// Writes a bar for each device, as long as its median, with a line up to the p99; lengths are
// logarithmic, since devices differ a hundredfold. Prints what is wrong and returns an exit code.
int plot_write_bars(const char *path, const char *title, const struct plot_bar *bars, size_t count);

#endif
