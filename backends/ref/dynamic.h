// SPDX-License-Identifier: Apache-2.0
// Operators whose output sizes depend on values: how large the outputs are is asked first, then the
// kernel runs on outputs of that size. Unlike other kernels these may allocate what they need while
// they run.
#ifndef INF_BACKENDS_REF_DYNAMIC_H
#define INF_BACKENDS_REF_DYNAMIC_H

#include "backends/ref/kernels.h"

// *rows = how many slices the outputs have along the dimension that is not known without values.
typedef enum inf_code inf_ref_rows(const struct inf_ref_call *call, int64_t *rows,
                                   struct inf_error *err);

// As inf_ref_rows says, for the operator of the name.
inf_ref_rows inf_ref_nonzero_rows, inf_ref_nms_rows, inf_ref_unique_rows, inf_ref_list_diff_rows,
    inf_ref_list_set_rows;

// Fills in the unknown dimensions of shapes[i], the inferred shape of output i, from the values of
// the inputs.
//
// INF_UNSUPPORTED  the operator is none of these.
enum inf_code inf_ref_measure_shapes(const struct inf_ref_call *call, struct inf_shape *shapes,
                                     struct inf_error *err) INF_NODISCARD;

#endif
