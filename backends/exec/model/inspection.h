// SPDX-License-Identifier: Apache-2.0
// Inspects a model: the time of each node, the range of its values, where NaN or infinity first
// appears, and where two devices first differ. Uses its own executables, so that requests are not
// affected.
#ifndef INF_BACKENDS_EXEC_MODEL_INSPECTION_H
#define INF_BACKENDS_EXEC_MODEL_INSPECTION_H

#include "backends/exec/model/model.h"

struct inf_inspection;

// Compiles the model as described by `request`. If the request keeps values, every value can be
// read after a run. The caller destroys *out_inspection before the last reference to the model.
//
// Errors are those of inf_model_compile_private(); INF_INVALID if the size of an output is not
// known.
enum inf_code inf_inspection_create(struct inf_inspection **out_inspection, struct inf_model *model,
                                    const struct inf_private_request *request,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the inspection. NULL is allowed.
void inf_inspection_destroy(struct inf_inspection **inspection) INF_MAY_BLOCK;

// Returns the memory of input `index`, which the caller fills before a run.
void *inf_inspection_input(struct inf_inspection *inspection, uint32_t index, size_t *out_bytes);

// Fills every float input with numbers from 0 to 1, the same on each call. Other inputs stay 0.
void inf_inspection_fill_inputs(struct inf_inspection *inspection);

// Runs once to warm up, then `runs` times, and keeps the times of the fastest run.
enum inf_code inf_inspection_run(struct inf_inspection *inspection, uint32_t runs,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns the graph that ran. Valid as long as the inspection.
const struct inf_graph *inf_inspection_graph(const struct inf_inspection *inspection);

// Returns the total time of the fastest run.
uint64_t inf_inspection_run_ns(const struct inf_inspection *inspection);

// The time and the output statistics of one node after a run.
struct inf_node_report {
    uint64_t start_ns;           // time within the run, estimated from the times of earlier steps
    uint64_t time_ns;            // 0: the node has no step of its own
    const char *kernel, *device; // static; "" if the node has no step of its own
    uint32_t threads;            // threads that computed the node; 0: not reported
    double dot_rate;             // as in struct inf_step_profile
    // Statistics over the elements of the node's outputs, if values are kept and are floats.
    uint64_t nan_count, inf_count;
    double least, largest; // finite elements only; both are 0 if there are none
    double magnitude;      // the largest |x|
};

// Fills *report for node `node` of the graph.
void inf_inspection_report_node(const struct inf_inspection *inspection, uint32_t node,
                                struct inf_node_report *report);

// Returns the number of NaN and infinite elements of `value`, which is an input, a constant, or a
// kept value. Returns 0 if the elements are not floats.
uint64_t inf_inspection_count_non_finite(const struct inf_inspection *inspection, uint32_t value);

// The difference between two inspections at a node. Both inspections must be of the same model,
// keep values, and have run on the same inputs.
struct inf_node_difference {
    double max_abs, max_rel; // infinity if one element is finite and the other is not
    // true: every element is within `tolerance`, by the rule of inf_trial_run_find_difference().
    bool within;
};

// Compares the outputs of node `node` in both inspections. Returns false if the outputs are not
// floats.
bool inf_inspection_compare_node(const struct inf_inspection *a, const struct inf_inspection *b,
                                 uint32_t node, double tolerance,
                                 struct inf_node_difference *difference);

#endif
