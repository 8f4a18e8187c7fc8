// SPDX-License-Identifier: Apache-2.0
// Decides in which precision a model computes, and records why. Used on the loader threads.
#ifndef INF_DAEMON_LOAD_PRECISION_H
#define INF_DAEMON_LOAD_PRECISION_H

#include "backends/base/precision.h"
#include "backends/exec/model/model.h"
#include "backends/precision/precision_check.h"
#include "backends/registry.h"
#include "daemon/load/placement.h"
#include "daemon/model/precision_results.h"

// Buffer size for the text that explains a choice of precision.
#define INF_PRECISION_REASON 256

// Evaluates how much the outputs of the model would change if it computed in `precision` at
// `shapes`. Runs the model with noise between 0 and 1, and, if the model takes pictures, also with
// a synthetic picture. The report describes the worse of the two runs. `hosts` are devices that
// compute in host memory, of which the last one is `ref`; the others compute large products. With
// `ref` alone a large model takes too long, and is refused.
//
// INF_CANCELLED    *cancelled was set (NULL: the evaluation cannot be cancelled).
// INF_UNSUPPORTED  the change cannot be evaluated; the text gives the reason.
enum inf_code inf_precision_evaluate(struct inf_precision_report *report,
                                     enum inf_precision precision, struct inf_model *model,
                                     const struct inf_shape *shapes,
                                     struct inf_device *const *hosts, uint32_t host_count,
                                     const atomic_bool *cancelled,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// A model whose precision is to be decided.
struct inf_precision_question {
    enum inf_precision wanted;
    struct inf_model *model;
    const struct inf_shape *shapes; // of its inputs; NULL: not known
    uint32_t input_count;
    const struct inf_device_list *devices;
    const struct inf_device *device;       // the device that will run it; NULL: any
    struct inf_precision_results *results; // of earlier checks; NULL: none are kept
    uint64_t content_hash;                 // hash of the model's bytes, for `results`
    const char *version;                   // version or build of inferd, for `results`
    const char *name;                      // of the model, for log lines
    const struct inf_log *log;
    const atomic_bool *cancelled; // set: the check ends soon; NULL: it cannot be cancelled
};

// Decides whether the wanted precision is used. If it is less than fp32, the values of the model
// are checked, unless the result of an earlier check of the same model is known, and nodes that
// must stay in fp32 are pinned. A check takes seconds; its begin and its end are logged. `reason`
// receives an explanation.
//
// INF_PRECONDITION  a precision below fp32 was named and is not available; the text says why, and
//                   which precision the model would use otherwise.
enum inf_code inf_precision_decide(const struct inf_precision_question *question,
                                   char reason[INF_PRECISION_REASON],
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Writes to `reason` why a model that was loaded with precision "auto" computes in its precision.
// If the placement does not record a reason, `reason` is left unchanged.
void inf_precision_explain(const struct inf_placement *placement,
                           char reason[INF_PRECISION_REASON]);

#endif
