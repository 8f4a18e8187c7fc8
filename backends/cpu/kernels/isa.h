// SPDX-License-Identifier: Apache-2.0
// ISA levels: the sets of vector instructions that the loops are compiled for. Each level has the
// loops of a lower level, or better ones. The architecture decides which levels exist
// (isa_x86_64.c, isa_aarch64.c, isa_generic.c), and the processor decides which of them are
// present. A processor may lack a level and have a higher one: Zen 4 has AVX-512, but not AVX-VNNI.
// So a level uses only loops of levels that all its processors have.
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
    const char *name;  // value of the setting cpu_isa_max
    const char *title; // shown to users
    const struct inf_simd *simd;
    const struct inf_element *element;
    const struct inf_rnn *rnn;
    const struct inf_pick *pick;
    const struct inf_norm *norm;
    const struct inf_nn *nn;
    const struct inf_q8 *q8;
};

// Returns a level of this processor: 0 is the lowest that it has, 1 the next one that it has.
// Returns NULL if `level` is their number or more. Any thread.
const struct inf_isa *inf_isa_level(unsigned level);

// Returns the best level of this processor. Any thread.
const struct inf_isa *inf_isa_best(void);

// Returns the best level of this processor that is not above the level called `name`. "auto", ""
// and NULL select the best level of all. Returns NULL if this architecture has no level of that
// name. Any thread.
const struct inf_isa *inf_isa_at_most(const char *name);

// --- tables that each architecture defines ---

// An ISA level of this architecture, and a function that returns whether this processor has the
// level.
struct inf_isa_row {
    struct inf_isa isa;
    bool (*present)(void);
};

// The levels of this architecture, the lowest first. The first level is always present. An entry
// without present() ends the list.
extern const struct inf_isa_row inf_isa_rows[];

// As inf_isa_level() and inf_isa_at_most(), with the list `rows` in place of inf_isa_rows. Tests
// use lists for processors that do not exist. Any thread.
const struct inf_isa *inf_isa_level_of(const struct inf_isa_row *rows, unsigned level);
const struct inf_isa *inf_isa_at_most_of(const struct inf_isa_row *rows, const char *name);

#endif
