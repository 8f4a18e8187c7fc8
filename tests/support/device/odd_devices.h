// SPDX-License-Identifier: Apache-2.0
// Devices with faults or special behaviour, for tests. Each wraps the reference device, and is
// slow, wrong, refuses to compile, or computes below fp32 by rounding the result of every step.
#ifndef INF_TESTS_SUPPORT_DEVICE_ODD_DEVICES_H
#define INF_TESTS_SUPPORT_DEVICE_ODD_DEVICES_H

#include "backends/device/backend.h"

// A device whose runs take 5 ms longer. Like all devices in this file, it reports itself as a CPU.
extern const struct inf_backend inf_slow_backend;
// A device whose runs take INF_STEADY_MS longer than on ref. A busy machine changes the ratio of
// two run times little.
extern const struct inf_backend inf_steady_backend;
#define INF_STEADY_MS 40

// If the first element of the first input is INF_LAZY_UNTIL_CANCELLED, a run lasts until it is
// cancelled, at most INF_LAZY_MS_MAX. If the element is INF_LAZY_DEAF, a run takes INF_LAZY_DEAF_MS
// and ignores its cancellation. If the element is INF_LAZY_CRASH, the process gets SIGSEGV.
extern const struct inf_backend inf_lazy_backend;
#define INF_LAZY_UNTIL_CANCELLED 12345.0f
#define INF_LAZY_DEAF            54321.0f
#define INF_LAZY_CRASH           66666.0f
#define INF_LAZY_MS_MAX          60000
#define INF_LAZY_DEAF_MS         4000

// A device that adds 0.01 to the third element of the last node's output, or to the last element if
// there are fewer than three.
extern const struct inf_backend inf_wrong_backend;

// A device that returns correct results until its 200th run, and then is like inf_wrong_backend.
extern const struct inf_backend inf_turning_backend;

// A device that can be opened, but refuses to compile any node.
extern const struct inf_backend inf_refusing_backend;

// A device that cannot be opened.
extern const struct inf_backend inf_absent_backend;

// A device that supports fp16 and bf16: it rounds constants, and all results of nodes that are not
// pinned. In fp32 each run takes 5 ms longer, so that reduced precision is faster.
extern const struct inf_backend inf_half_backend;

// A device that supports fp16 and bf16 as inf_half_backend does and, in addition, reports whether
// the result of a node overflowed.
extern const struct inf_backend inf_telling_backend;

#endif
