// SPDX-License-Identifier: Apache-2.0
// Draws latency against throughput as an SVG file.
#ifndef INF_CLIENT_INFERCTL_BENCH_PLOT_H
#define INF_CLIENT_INFERCTL_BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#define PLOT_POINTS_MAX 64

// One point of the plot: a load, and the throughput and latency that were measured under the load.
struct plot_point {
    bool open; // the point was measured by an open loop
    unsigned long
        // The point's label: requests in flight or, for an open loop, requests sent per second.
        load;
    double per_second;
    double median_ms, p99_ms;
};

// Writes a picture of 1 to PLOT_POINTS_MAX points. The points of closed loops are joined in the
// order of the array, and likewise the points of open loops. Returns an exit code, and prints a
// message on failure.
int plot_write(const char *path, const char *title, const struct plot_point *points, size_t count);

// One bar of the plot: the name of a device, and the latency that was measured on the device.
struct plot_bar {
    const char *name;
    double median_ms, p99_ms;
};

// Writes a picture with a bar for each device. The length of the bar is the median, and a thin line
// extends to the p99. The scale is logarithmic, because the times of devices may differ by a factor
// of a hundred. Returns an exit code, and prints a message on failure.
int plot_write_bars(const char *path, const char *title, const struct plot_bar *bars, size_t count);

#endif
