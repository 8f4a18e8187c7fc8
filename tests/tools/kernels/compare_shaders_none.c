// SPDX-License-Identifier: Apache-2.0
// Stub for builds without a vulkan device, which have no shaders to compare.
#include "tests/tools/kernels/compare_shaders.h"

enum inf_code tool_compare_shaders(struct inf_device *device,
                                   const struct inf_executable *executable, struct inf_error *err)
{
    (void)device;
    (void)executable;
    return inf_fail(err, INF_UNSUPPORTED, "there are no shaders to compare in this build");
}
