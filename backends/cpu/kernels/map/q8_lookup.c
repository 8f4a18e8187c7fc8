// SPDX-License-Identifier: Apache-2.0
// Looks bytes up in a table. Compiled for each set of instructions that has a loop of its own
// (lookup_loop.h); INF_Q8_LOOKUP is the name of the table of loops that this file defines.
#include "backends/cpu/kernels/map/lookup.h"
#include "backends/cpu/kernels/map/lookup_loop.h"

const struct inf_q8_lookup INF_Q8_LOOKUP = {look_up_bytes};
