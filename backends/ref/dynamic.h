// SPDX-License-Identifier: Apache-2.0
// Operators whose output sizes depend on values. The caller first asks for the sizes, and then runs
// the kernel on outputs of these sizes. Unlike other kernels, these kernels may allocate memory
// while they run.
#ifndef INF_BACKENDS_REF_DYNAMIC_H
#define INF_BACKENDS_REF_DYNAMIC_H

#include "backends/ref/kernels.h"

// Computes how many rows the outputs of a call have, that is their size along the dimension that
// depends on the values of the inputs. Stores the number in *rows.
typedef enum inf_code inf_ref_rows(const struct inf_ref_call *call, int64_t *rows,
                                   struct inf_error *err);

// The implementations of inf_ref_rows, one for each operator whose output size depends on values.
inf_ref_rows inf_ref_nonzero_rows, inf_ref_nms_rows, inf_ref_unique_rows, inf_ref_list_diff_rows,
    inf_ref_list_set_rows, inf_ref_string_split_rows, inf_ref_string_tokens_rows,
    inf_ref_string_ngrams_rows, inf_ref_sparse_fill_rows_rows;

// Fills in the unknown dimensions of shapes[i], the inferred shape of output i, from the inputs'
// values.
//
// INF_UNSUPPORTED  the operator's sizes do not depend on values.
enum inf_code inf_ref_measure_shapes(const struct inf_ref_call *call, struct inf_shape *shapes,
                                     struct inf_error *err) INF_NODISCARD;

#endif
