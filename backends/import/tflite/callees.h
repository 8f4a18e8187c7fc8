// SPDX-License-Identifier: Apache-2.0
// The subgraphs that an operator runs.
#ifndef INF_BACKENDS_IMPORT_TFLITE_CALLEES_H
#define INF_BACKENDS_IMPORT_TFLITE_CALLEES_H

#include "backends/import/tflite/model.h"

// The most subgraphs of one operator.
#define INF_TFLITE_CALLEES_MAX 2

// Stores the numbers of the subgraphs that `op` runs in `callees`, in the order of the options, and
// returns how many there are. The numbers are not checked. An IF has the branches for true and for
// false, a WHILE its condition and its body.
uint32_t inf_tflite_callees(const struct inf_tflite_operator *op,
                            int32_t callees[INF_TFLITE_CALLEES_MAX]);

#endif
