// SPDX-License-Identifier: Apache-2.0
// Latency against throughput as a picture: an SVG file that stands alone.
#ifndef INF_CLIENT_INFERCTL_PLOT_H
#define INF_CLIENT_INFERCTL_PLOT_H

#include <stddef.h>

// One measurement.
struct plot_point {
    double per_second;
    double median_ms, p99_ms;
};

// Writes the points (one or more), joined in the order they come, with both axes from 0. Prints what
// is wrong and returns an exit code.
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
