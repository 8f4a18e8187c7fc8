// SPDX-License-Identifier: Apache-2.0
// The check of a model: inputs and the outputs that are known for them. A model is only served if
// it computes these outputs.
#ifndef INF_DAEMON_LOAD_MODEL_CHECK_H
#define INF_DAEMON_LOAD_MODEL_CHECK_H

#include <stdatomic.h>

#include "daemon/load/served.h"

// Runs the model on the inputs in the folder "check" of the directory `directory_fd`, and compares
// the results with the outputs in that folder. If there is no such folder, returns INF_OK. The
// folder must have a file input.N.npy for every input N of the model, and output.N.npy for at least
// one output N, both counted from 0. The optional text file `tolerance` has the tolerance for
// FP32 outputs (inf_trial_run_find_difference()). A cancelled check ends with
// INF_CANCELLED.
//
// INF_INVALID       the folder is not as described; the text names the file.
// INF_PRECONDITION  (MODEL_FAILED) an output differs; the text names it and the element.
enum inf_code inf_model_check_run(struct inf_served *served, int directory_fd,
                                  const atomic_bool *cancelled, const struct inf_log *log,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
