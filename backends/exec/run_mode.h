// SPDX-License-Identifier: Apache-2.0
// A way to compute that is chosen when a model is placed.
#ifndef INF_BACKENDS_EXEC_RUN_MODE_H
#define INF_BACKENDS_EXEC_RUN_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/precision.h"

// All zero: in fp32, with all threads.
struct inf_mode {
    enum inf_precision precision; // AUTO: fp32
    uint32_t threads;             // 0: all that the device has
};

// The mode as modes are compared: fp32 by its name.
struct inf_mode inf_mode_plain(struct inf_mode mode);

// Whether two modes are written alike: inf_mode_plain() both where AUTO may be among them.
bool inf_mode_equal(const struct inf_mode *a, const struct inf_mode *b);

#endif
