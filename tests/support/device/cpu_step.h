// SPDX-License-Identifier: Apache-2.0
// Runs one kernel of the cpu device, even if no rule and no race would choose that kernel.
#ifndef INF_TESTS_SUPPORT_DEVICE_CPU_STEP_H
#define INF_TESTS_SUPPORT_DEVICE_CPU_STEP_H

#include "backends/cpu/core/kernel.h"

struct cpu_step_options {
    const char *isa_max; // highest ISA level of kernels; NULL: the highest available
    uint32_t threads;
};

// Computes the last node of the graph with `kernel`. If other nodes are before it, all nodes must
// form a fused chain (native/fusion.h), and the kernel must be able to compute chains. `inputs` are
// the operands of the step that are not constant, in the order of the operands. The result is
// written to `y`. Scratch memory is filled with NaN before the run. Returns the error of the
// kernel's create() or create_chain(), and aborts the process on other errors.
enum inf_code cpu_step_run(const struct inf_graph *graph, const struct inf_cpu_kernel *kernel,
                           const struct cpu_step_options *options, const float *const *inputs,
                           float *y);

#endif
