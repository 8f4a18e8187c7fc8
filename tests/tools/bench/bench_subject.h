// SPDX-License-Identifier: Apache-2.0
// A model to be timed in process: it is compiled and has input and output tensors.
#ifndef INF_TESTS_TOOLS_BENCH_BENCH_SUBJECT_H
#define INF_TESTS_TOOLS_BENCH_BENCH_SUBJECT_H

#include "backends/base/blob.h"
#include "proto/npy/npy.h"
#include "tests/tools/run/engine.h"

struct bench_subject {
    // name of the model: the last part of its path, without .json or .tfjs, that is not "model"
    char name[256];
    struct inf_model *model;
    struct inf_executable *executable;
    const struct inf_graph *graph; // the graph after the passes, from which the model was compiled
    struct inf_npy files[INF_LIMIT_TENSORS];
    struct inf_blob *inputs[INF_LIMIT_TENSORS], *outputs[INF_LIMIT_TENSORS];
    const void *input_data[INF_LIMIT_TENSORS];
    void *output_data[INF_LIMIT_TENSORS];
};

// How the inputs of the model are made.
struct bench_inputs {
    const char *files[INF_LIMIT_TENSORS]; // .npy files of the first inputs
    uint32_t file_count;
    int64_t dim; // value of unknown dimensions except the batch, which is 1
};

// Loads and compiles a model file. `model` is the file itself, or NAME for NAME.tfjs/model.json,
// NAME.json, NAME/model.json or NAME.onnx. Float inputs without a file are filled with numbers from
// 0 to 1, other inputs with 0. Release *subject with bench_subject_unload(), also on failure.
//
// INF_NOT_FOUND, INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED
enum inf_code bench_subject_load(struct bench_subject *subject, const struct tool_engine *engine,
                                 const char *model, const struct bench_inputs *inputs,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the model and its tensors.
void bench_subject_unload(struct bench_subject *subject);

// Runs the model once. Outputs whose size is known only after the run are dropped.
enum inf_code bench_subject_run(const struct bench_subject *subject, bool profile,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
