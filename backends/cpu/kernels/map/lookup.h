// SPDX-License-Identifier: Apache-2.0
// Looks bytes up in a table, which replaces a function of bytes.
#ifndef INF_BACKENDS_CPU_KERNELS_MAP_LOOKUP_H
#define INF_BACKENDS_CPU_KERNELS_MAP_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

struct inf_q8_lookup {
    // y[i] = table[x[i]] for i below `count`. The table has 256 bytes. y may be x.
    void (*bytes)(const uint8_t *table, size_t count, const uint8_t *x, uint8_t *y);
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_q8_lookup inf_lookup_q8_baseline, inf_lookup_q8_vbmi, inf_lookup_q8_neon;

#endif
