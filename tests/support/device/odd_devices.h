// SPDX-License-Identifier: Apache-2.0
// Devices with faults or special behaviour, for tests. Each wraps the reference device, and is
// slow, wrong, refuses to compile, or computes below fp32 by rounding the result of every step.
#ifndef INF_TESTS_SUPPORT_DEVICE_ODD_DEVICES_H
#define INF_TESTS_SUPPORT_DEVICE_ODD_DEVICES_H

#include "backends/device/backend.h"

// Each run takes 5 ms longer. Like all devices here, it reports itself as a CPU.
extern const struct inf_backend inf_slow_backend;

// Adds 0.01 to the third element of the last node's output, or to the last element if there are
// fewer than three.
extern const struct inf_backend inf_wrong_backend;

// Returns correct results until its 200th run, and then behaves like inf_wrong_backend.
extern const struct inf_backend inf_turning_backend;

// Can be opened, but refuses to compile any node.
extern const struct inf_backend inf_refusing_backend;

// Cannot be opened.
extern const struct inf_backend inf_absent_backend;

// Supports fp16 and bf16: rounds constants, and all results of nodes that are not pinned. In fp32
// each run takes 5 ms longer, so that reduced precision is faster.
extern const struct inf_backend inf_half_backend;

// Supports fp16 and bf16 as inf_half_backend does. In addition, reports whether the result of a
// node overflowed.
extern const struct inf_backend inf_telling_backend;

#endif
