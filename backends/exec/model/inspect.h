// SPDX-License-Identifier: Apache-2.0
// A model looked into: how long each node takes, what it makes, where a value first is no number,
// and where two devices first part. On executables of its own, so that nobody else's runs are
// touched.
#ifndef INF_BACKENDS_EXEC_MODEL_INSPECT_H
#define INF_BACKENDS_EXEC_MODEL_INSPECT_H

#include "backends/exec/model/model.h"

struct inf_dissection;

// Compiles the model as `apart` says; where it keeps them, every value can be looked at after a
// run. *out_dissection is the caller's to destroy, before the model's last reference.
//
// As inf_model_compile_apart(); INF_INVALID where the size of an output is not known.
enum inf_code inf_dissection_create(struct inf_dissection **out_dissection, struct inf_model *model,
                                    const struct inf_apart *apart,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees it. NULL is fine.
void inf_dissection_destroy(struct inf_dissection **dissection) INF_MAY_BLOCK;

// Memory of input `index`, to be filled before a run.
void *inf_dissection_input(struct inf_dissection *dissection, uint32_t index, size_t *out_bytes);

// Fills every input of floats with numbers of 0 to 1, the same each time; others stay 0.
void inf_dissection_fill_inputs(struct inf_dissection *dissection);

// Runs once to warm up, then `runs` times, and keeps the times of the quickest.
enum inf_code inf_dissection_run(struct inf_dissection *dissection, uint32_t runs,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The graph that ran. Valid as long as the dissection.
const struct inf_graph *inf_dissection_graph(const struct inf_dissection *dissection);

// How long the quickest run took as a whole.
uint64_t inf_dissection_run_ns(const struct inf_dissection *dissection);

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
void inf_dissection_report(const struct inf_dissection *dissection, uint32_t node,
                           struct inf_node_report *report);

// Elements of `value` that are no finite number: of an input, a constant, or a value that is kept;
// 0 of values that are no floats.
uint64_t inf_dissection_bad_elements(const struct inf_dissection *dissection, uint32_t value);

// How far two dissections of one model, both kept and run on the same inputs, are apart at a node.
struct inf_node_difference {
    double max_abs, max_rel; // infinity where one is finite and the other is not
    bool within; // every element by `tolerance`, as inf_trial_run_first_difference() judges
};

// Compares what node `node` made in both; false where its outputs are no floats.
bool inf_dissection_compare(const struct inf_dissection *a, const struct inf_dissection *b,
                            uint32_t node, double tolerance,
                            struct inf_node_difference *difference);

#endif
