// SPDX-License-Identifier: Apache-2.0
// Inspects a model: the time of each node, the range of its values, where NaN or infinity first
// appears, and where two devices first differ. Uses its own executables, so that requests are not
// affected.
#ifndef INF_BACKENDS_EXEC_MODEL_INSPECTION_H
#define INF_BACKENDS_EXEC_MODEL_INSPECTION_H

#include "backends/exec/model/model.h"

struct inf_inspection;

// Compiles the model as `request` says; where it keeps them, every value can be looked at after a
// run. *out_inspection is the caller's to destroy, before the model's last reference.
//
// As inf_model_compile_private(); INF_INVALID where the size of an output is not known.
enum inf_code inf_inspection_create(struct inf_inspection **out_inspection, struct inf_model *model,
                                    const struct inf_private_request *request,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees it. NULL is fine.
void inf_inspection_destroy(struct inf_inspection **inspection) INF_MAY_BLOCK;

// Memory of input `index`, to be filled before a run.
void *inf_inspection_input(struct inf_inspection *inspection, uint32_t index, size_t *out_bytes);

// Fills every input of floats with numbers of 0 to 1, the same each time; others stay 0.
void inf_inspection_fill_inputs(struct inf_inspection *inspection);

// Runs once to warm up, then `runs` times, and keeps the times of the quickest.
enum inf_code inf_inspection_run(struct inf_inspection *inspection, uint32_t runs,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The graph that ran. Valid as long as the inspection.
const struct inf_graph *inf_inspection_graph(const struct inf_inspection *inspection);

// How long the quickest run took as a whole.
uint64_t inf_inspection_run_ns(const struct inf_inspection *inspection);

// What is known of one node after a run.
struct inf_node_report {
    uint64_t start_ns;           // within the run, as far as the times of its steps tell
    uint64_t time_ns;            // 0: it has no step of its own
    const char *kernel, *device; // static; "" where it has no step of its own
    // Of its outputs' elements, where values are kept and are floats:
    uint64_t nan_count, inf_count;
    double least, largest; // finite ones; both 0 where there are none
    double magnitude;      // the largest |x|
};

// Reports node `node` of the graph.
void inf_inspection_report_node(const struct inf_inspection *inspection, uint32_t node,
                                struct inf_node_report *report);

// Elements of `value` that are no finite number: of an input, a constant, or a value that is kept;
// 0 of values that are no floats.
uint64_t inf_inspection_count_non_finite(const struct inf_inspection *inspection, uint32_t value);

// How far two inspections of one model, both kept and run on the same inputs, are apart at a node.
struct inf_node_difference {
    double max_abs, max_rel; // infinity where one is finite and the other is not
    bool within; // every element by `tolerance`, as inf_trial_run_find_difference() judges
};

// Compares what node `node` made in both; false where its outputs are no floats.
bool inf_inspection_compare_node(const struct inf_inspection *a, const struct inf_inspection *b,
                                 uint32_t node, double tolerance,
                                 struct inf_node_difference *difference);

#endif
