// SPDX-License-Identifier: Apache-2.0
// Tile registers (AMX): matrices of up to 16 rows of 64 bytes. An instruction multiplies two of
// them and adds the products to a third. The shapes of all tile registers are set once, for many
// products of one depth; setting them is slow and clears the registers.
//
// Registers 0 to 3 are sums of 2 x 2 blocks of 16 pixels and 16 columns, 4 and 5 are operands of 16
// pixels, 6 and 7 are weights of 16 columns. A row of operands and a column of weights have up to
// INF_TILE_DEPTH words of 32 bits: pairs of bf16, or groups of four bytes.
#ifndef INF_BACKENDS_CPU_KERNELS_AMX_TILE_H
#define INF_BACKENDS_CPU_KERNELS_AMX_TILE_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/tile_shape.h"

#define INF_TILE_COLUMNS 16 // columns of a block, and floats or 32-bit sums in a row of a register

// The memory that the sums of a kernel call are stored to.
typedef int32_t inf_tile_sums[INF_TILE_CALL_ROWS][2 * INF_TILE_COLUMNS];

// The operand of LDTILECFG.
struct inf_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16]; // indexed by tile register
    uint8_t rows[16];
};

#define INF_TILE_CONFIG(depth)                                                                     \
    {                                                                                              \
        .palette = 1, .row_bytes = {64, 64, 64, 64, 4 * (depth), 4 * (depth), 64, 64},             \
        .rows = {16, 16, 16, 16, 16, 16, (depth), (depth)},                                        \
    }

// Sets the shapes of all tile registers for steps of `depth` words. Constant tables are used
// because compilers do not know that the instruction reads the whole operand.
static inline void inf_tile_begin(size_t depth)
{
    _Alignas(64) static const struct inf_tile_config configs[INF_TILE_DEPTH] = {
        INF_TILE_CONFIG(1),  INF_TILE_CONFIG(2),  INF_TILE_CONFIG(3),  INF_TILE_CONFIG(4),
        INF_TILE_CONFIG(5),  INF_TILE_CONFIG(6),  INF_TILE_CONFIG(7),  INF_TILE_CONFIG(8),
        INF_TILE_CONFIG(9),  INF_TILE_CONFIG(10), INF_TILE_CONFIG(11), INF_TILE_CONFIG(12),
        INF_TILE_CONFIG(13), INF_TILE_CONFIG(14), INF_TILE_CONFIG(15), INF_TILE_CONFIG(16)};
    _tile_loadconfig(&configs[depth - 1]);
}

// Clears the tile registers, so that switching threads does not save them.
static inline void inf_tile_end(void)
{
    _tile_release();
}

// Sets the sums of all blocks to 0.
static inline void inf_tile_clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

// Stores the sums of one block, or of more: `wide` and `high` say whether there is a second block
// of columns and of pixels.
static inline __attribute__((always_inline)) void
inf_tile_store_sums(inf_tile_sums sums, const int wide, const int high)
{
    _tile_stored(0, sums[0], sizeof(sums[0]));
    if (wide)
        _tile_stored(1, sums[0] + INF_TILE_COLUMNS, sizeof(sums[0]));
    if (high)
        _tile_stored(2, sums[INF_TILE_ROWS], sizeof(sums[0]));
    if (high && wide)
        _tile_stored(3, sums[INF_TILE_ROWS] + INF_TILE_COLUMNS, sizeof(sums[0]));
}

#endif
