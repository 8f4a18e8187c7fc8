// SPDX-License-Identifier: Apache-2.0
// Imports a model from a folder of its own, for tests of the TensorFlow.js importer. One model at a
// time.
#ifndef INF_TESTS_SUPPORT_MODELS_TFJS_CASE_H
#define INF_TESTS_SUPPORT_MODELS_TFJS_CASE_H

#include <stddef.h>

#include "backends/import/import.h"
#include "tests/support/models/tfjs_writer.h"

struct inf_tfjs_case {
    char path[40];
    int fd;                  // descriptor of the folder
    struct inf_graph *graph; // the last imported model; NULL if that failed
    struct inf_model_info info;
    struct inf_error err;
};

// The case: made by inf_tfjs_case_init(), the fixture of a suite.
extern struct inf_tfjs_case inf_tfjs_case;

// Makes the folder; fixture before each test.
void inf_tfjs_case_init(void);

// Frees the graph and removes the folder; fixture after each test.
void inf_tfjs_case_fini(void);

// Writes a file into the folder.
void inf_tfjs_case_write(const char *name, const void *data, size_t size);

// Reads a file of the folder; the caller frees it. A NUL follows the last byte.
char *inf_tfjs_case_read(const char *name, size_t *out_size);

// Imports "model.json" of the folder.
enum inf_code inf_tfjs_case_import(void);

// Writes `json` as model.json, with ' replaced by ", and imports it.
enum inf_code inf_tfjs_case_import_text(const char *json);

// Ends the writer and imports the model, which must succeed.
void inf_tfjs_case_accept(struct inf_tfjs_writer *writer);

// Ends the writer and imports the model, which must fail with `code` and a text that contains
// `part`.
void inf_tfjs_case_refuse(struct inf_tfjs_writer *writer, enum inf_code code, const char *part);

// The node with index `index` of the imported graph, which must be an `op`.
const struct inf_node *inf_tfjs_case_node(uint32_t index, enum inf_op op);

// The type and shape of output `index` of the imported graph, as "FP32 [1,?]".
const char *inf_tfjs_case_output(uint32_t index);

#endif
