// SPDX-License-Identifier: Apache-2.0
// Devices with faults or habits of their own, each the reference device underneath: slow, wrong,
// refusing, or computing in less than fp32 by rounding what every step makes.
#ifndef INF_TESTS_SUPPORT_DEVICE_ODD_DEVICES_H
#define INF_TESTS_SUPPORT_DEVICE_ODD_DEVICES_H

#include "backends/device/backend.h"

// Takes 5 ms longer for each run. Calls itself a CPU, as all here do.
extern const struct inf_backend inf_slow_backend;

// Adds 0.01 to the third element of the last node's output, or to the last where there are fewer.
extern const struct inf_backend inf_wrong_backend;

// As inf_wrong_backend from its 200th run on; until then it is right.
extern const struct inf_backend inf_turning_backend;

// Opens, and compiles nothing.
extern const struct inf_backend inf_refusing_backend;

// Does not even open.
extern const struct inf_backend inf_absent_backend;

// Offers fp16 and bf16: rounds constants and whatever a node stores that is not pinned. In fp32 each
// run takes 5 ms longer, so that less than fp32 is worth something.
extern const struct inf_backend inf_half_backend;

// As inf_half_backend, and tells of what overflowed on the way.
extern const struct inf_backend inf_telling_backend;

#endif
