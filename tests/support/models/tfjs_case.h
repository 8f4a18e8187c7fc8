// SPDX-License-Identifier: Apache-2.0
// Imports a model from a temporary folder, for tests of the TensorFlow.js importer. Only one model
// exists at a time.
#ifndef INF_TESTS_SUPPORT_MODELS_TFJS_CASE_H
#define INF_TESTS_SUPPORT_MODELS_TFJS_CASE_H

#include <stddef.h>

#include "backends/import/import.h"
#include "tests/support/models/tfjs_writer.h"

struct inf_tfjs_case {
    char path[40];
    int fd;                  // descriptor of the folder
    struct inf_graph *graph; // the last imported model; NULL if the import failed
    struct inf_model_info info;
    struct inf_error err;
};

// The folder and model of the current test. inf_tfjs_case_init() initialises it before each test.
extern struct inf_tfjs_case inf_tfjs_case;

// Creates the folder. Runs before each test.
void inf_tfjs_case_init(void);

// Frees the graph and removes the folder. Runs after each test.
void inf_tfjs_case_fini(void);

// Writes a file into the folder.
void inf_tfjs_case_write(const char *name, const void *data, size_t size);

// Reads a file of the folder and adds a NUL after the last byte. The caller frees the result.
char *inf_tfjs_case_read(const char *name, size_t *out_size);

// Imports "model.json" of the folder.
enum inf_code inf_tfjs_case_import(void);

// Writes `json` as model.json, with ' replaced by ", and imports the model.
enum inf_code inf_tfjs_case_import_text(const char *json);

// Ends the writer and imports the model. The import must succeed.
void inf_tfjs_case_accept(struct inf_tfjs_writer *writer);

// Ends the writer and imports the model. The import must fail with `code` and a text that contains
// `part`.
void inf_tfjs_case_refuse(struct inf_tfjs_writer *writer, enum inf_code code, const char *part);

// Returns node number `index` of the imported graph, whose operator must be `op`.
const struct inf_node *inf_tfjs_case_node(uint32_t index, enum inf_op op);

// Returns the type and shape of output `index` of the imported graph, as "FP32 [1,?]".
const char *inf_tfjs_case_output(uint32_t index);

#endif
