// SPDX-License-Identifier: Apache-2.0
// Stub for builds without a cpu device, which cannot measure a peak.
#include "tests/tools/kernels/peak.h"

struct tool_peaks tool_peaks(void)
{
    return (struct tool_peaks){0};
}
