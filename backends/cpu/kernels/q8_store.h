// SPDX-License-Identifier: Apache-2.0
// The end of products of 8-bit numbers, which all kernels share: how the sums of a pixel become
// results.
#ifndef INF_BACKENDS_CPU_KERNELS_Q8_STORE_H
#define INF_BACKENDS_CPU_KERNELS_Q8_STORE_H

#include <string.h>

#include "backends/cpu/kernels/q8.h"
#include "backends/cpu/kernels/qvec.h"

INF_QVEC_INLINE void store_pixel(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm,
                                 inf_qvec sum, const size_t pixel, const size_t vector,
                                 const size_t vectors)
{
    const size_t first = vector * INF_QVEC_WIDTH;
    size_t at = pixel * panel->y_step + first;
    size_t count = panel->columns - first;
    // Only the last vector may have padding columns, which are not stored.
    if (vector + 1 < vectors || count > INF_QVEC_WIDTH)
        count = INF_QVEC_WIDTH;
    if (panel->zeros != NULL)
        sum = qvec_less(sum, qvec_load(panel->zeros + first), gemm->sums[pixel]);
    if (panel->requant.scale == NULL) {
        qvec_store((int32_t *)gemm->y + at, sum, count);
        return;
    }
    inf_qvec_float scaled =
        qvec_times(qvec_to_float(sum), qvec_float_load(panel->requant.scale + first));
    inf_qvec y =
        qvec_round(scaled, qvec_float_all(panel->requant.low), qvec_float_all(panel->requant.high));
    y = qvec_add(y, qvec_all(panel->requant.zero - panel->requant.flip));
    if (count == INF_QVEC_WIDTH)
        qvec_store_all_bytes((uint8_t *)gemm->y + at, y);
    else
        qvec_store_bytes((uint8_t *)gemm->y + at, y, count);
}

// True if results are bytes and the kernel subtracts no zero points.
INF_QVEC_INLINE bool is_plain(const struct inf_q8_panel *panel)
{
    return panel->zeros == NULL && panel->requant.scale != NULL;
}

// Copies `count` bytes, fewer than `most`, in two pieces of constant size, which may overlap.
// `most` is a power of two, up to 32.
INF_QVEC_INLINE void copy_some(uint8_t *to, const uint8_t *from, size_t count, const size_t most)
{
    INF_QVEC_UNROLL
    for (size_t size = 16; size > 0; size /= 2) {
        if (size >= most || count < size)
            continue;
        memcpy(to, from, size);
        memcpy(to + count - size, from + count - size, size);
        return;
    }
}

// Stores the sums of a plain panel: four vectors, which are one or two of each pixel. `pixel` is
// the first of two or four pixels.
INF_QVEC_INLINE void store_four(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm,
                                const inf_qvec *sums, const size_t pixel, const size_t vectors,
                                const inf_qvec_end *end)
{
    const size_t size = vectors * INF_QVEC_WIDTH;
    inf_qvec_float scaled[4];
    uint8_t bytes[4 * INF_QVEC_WIDTH];
    uint8_t *y = (uint8_t *)gemm->y + pixel * panel->y_step;
    INF_QVEC_UNROLL
    for (size_t i = 0; i < 4; i++)
        scaled[i] =
            qvec_times(qvec_to_float(sums[i]),
                       qvec_float_load(panel->requant.scale + i % vectors * INF_QVEC_WIDTH));
    qvec_bytes_store(bytes, qvec_in_order(qvec_finish(scaled, end)));
    const bool whole = panel->columns == size;
    INF_QVEC_UNROLL
    for (size_t i = 0; i < 4 / vectors; i++) {
        if (whole)
            memcpy(y + i * panel->y_step, bytes + i * size, size);
        else
            copy_some(y + i * panel->y_step, bytes + i * size, panel->columns, size);
    }
}

// Prepares store_four().
INF_QVEC_INLINE inf_qvec_end end_of(const struct inf_q8_requant *requant)
{
    return qvec_end(requant->low, requant->high, requant->zero, requant->flip);
}

#endif
