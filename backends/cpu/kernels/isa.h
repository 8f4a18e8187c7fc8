// SPDX-License-Identifier: Apache-2.0
// The instruction sets that our own loops are compiled for, as levels: each has the loops of the one
// below it, or better ones. Which levels there are depends on the architecture (isa_x86_64.c,
// isa_aarch64.c, isa_other.c), how many of them on the processor.
#ifndef INF_BACKENDS_CPU_KERNELS_ISA_H
#define INF_BACKENDS_CPU_KERNELS_ISA_H

#include "backends/cpu/kernels/element.h"
#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/kernels/norm.h"
#include "backends/cpu/kernels/pick.h"
#include "backends/cpu/kernels/q8.h"
#include "backends/cpu/kernels/rnn.h"
#include "backends/cpu/kernels/simd.h"

struct inf_isa {
    const char *name;  // as the setting cpu_isa_max has it
    const char *title; // for people
    const struct inf_simd *simd;
    const struct inf_element *element;
    const struct inf_rnn *rnn;
    const struct inf_pick *pick;
    const struct inf_norm *norm;
    const struct inf_nn *nn;
    const struct inf_q8 *q8;
};

// The levels that this processor has, from the least (0) up; NULL behind the best. Any thread.
const struct inf_isa *inf_isa_level(unsigned level);

// The best level of this processor. Any thread.
const struct inf_isa *inf_isa_best(void);

// The best level of this processor that is not above the one called `name`; inf_isa_best() for "auto",
// "" and NULL. NULL where no processor of this architecture has a level of that name. Any thread.
const struct inf_isa *inf_isa_at_most(const char *name);

// --- for the files of architectures ---

// A level, and whether this processor has it.
struct inf_isa_row {
    struct inf_isa isa;
    bool (*present)(void);
};

// The levels of this architecture, the least first; one without present() ends them. The first is
// always present.
extern const struct inf_isa_row inf_isa_rows[];

#endif
