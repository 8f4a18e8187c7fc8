// SPDX-License-Identifier: Apache-2.0
// The end of products of 8-bit numbers, which all kernels share: how the sums of a pixel become
// results.
#ifndef INF_BACKENDS_CPU_KERNELS_Q8_STORE_H
#define INF_BACKENDS_CPU_KERNELS_Q8_STORE_H

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
    y = qvec_add(y, qvec_all(panel->requant.zero));
    if (count == INF_QVEC_WIDTH)
        qvec_store_all_bytes((uint8_t *)gemm->y + at, y);
    else
        qvec_store_bytes((uint8_t *)gemm->y + at, y, count);
}

// Stores the results of one vector in the common case: results are bytes, and no column is padding.
INF_QVEC_INLINE void store_plain(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm,
                                 inf_qvec sum, const size_t pixel, const size_t vector)
{
    const size_t first = vector * INF_QVEC_WIDTH;
    inf_qvec_float scaled =
        qvec_times(qvec_to_float(sum), qvec_float_load(panel->requant.scale + first));
    inf_qvec y =
        qvec_round(scaled, qvec_float_all(panel->requant.low), qvec_float_all(panel->requant.high));
    qvec_store_all_bytes((uint8_t *)gemm->y + pixel * panel->y_step + first,
                         qvec_add(y, qvec_all(panel->requant.zero)));
}

#endif
