// SPDX-License-Identifier: Apache-2.0
// Stub for builds without a cpu device, which have no kernels to compare.
#include "tests/tools/kernels/compare_kernels.h"

enum inf_code tool_compare_kernels(struct inf_device *device,
                                   const struct inf_executable *executable, struct inf_error *err)
{
    (void)device;
    (void)executable;
    return inf_fail(err, INF_UNSUPPORTED, "there are no kernels to compare in this build");
}
