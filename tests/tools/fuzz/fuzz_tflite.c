// SPDX-License-Identifier: Apache-2.0
// The reader of TFLite files: tables, metadata and the archive behind the model. Everything that
// the reader returns is read, so that a sanitizer sees what lies outside of the file.
#include <stdlib.h>
#include <string.h>

#include "backends/import/tflite/metadata.h"
#include "tests/tools/fuzz/fuzz.h"
#include "tests/tools/fuzz/tflite_seeds.h"

static void read_tensors(const struct inf_tflite_subgraph *subgraph)
{
    for (uint32_t i = 0; i < subgraph->tensor_count; i++) {
        const struct inf_tflite_tensor *tensor = &subgraph->tensors[i];
        fuzz_read_bytes(tensor->name, strlen(tensor->name));
        fuzz_read_bytes(tensor->data.data, tensor->data.size);
    }
}

static void read_operators(const struct inf_tflite_subgraph *subgraph)
{
    for (uint32_t i = 0; i < subgraph->operator_count; i++) {
        const struct inf_tflite_operator *op = &subgraph->operators[i];
        for (uint32_t k = 0; k < op->inputs.count; k++)
            if (op->inputs.items[k] < INF_TFLITE_ABSENT ||
                op->inputs.items[k] >= (int64_t)subgraph->tensor_count)
                abort();
        for (uint32_t k = 0; k < op->outputs.count; k++)
            if (op->outputs.items[k] < 0 || op->outputs.items[k] >= (int64_t)subgraph->tensor_count)
                abort();
        fuzz_read_bytes(op->custom_options.data, op->custom_options.size);
    }
}

static void read_described(const struct inf_described_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *label = tensors[i].labels;
        fuzz_read_bytes(tensors[i].title, strlen(tensors[i].title));
        for (uint32_t k = 0; k < tensors[i].label_count; k++)
            label += strlen(label) + 1;
        fuzz_read_bytes(tensors[i].labels, (size_t)(label - tensors[i].labels));
        fuzz_read_bytes(tensors[i].mean, tensors[i].channel_count * sizeof(float));
    }
}

static void read_description(const struct inf_tflite_model *model, struct inf_span bytes)
{
    struct inf_model_description *description;
    struct inf_error err;
    if (inf_model_description_create(&description, &err) != INF_OK)
        abort();
    inf_tflite_describe(description, model, 0, bytes);
    read_described(description->inputs, description->input_count);
    read_described(description->outputs, description->output_count);
    for (uint32_t i = 0; i < description->file_count; i++)
        fuzz_read_bytes(description->files[i].name, strlen(description->files[i].name));
    inf_model_description_unref(&description);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct inf_arena arena = {0};
    struct inf_error err = {0};
    struct inf_tflite_model model;
    struct inf_fb_file file;
    struct inf_span span = {bytes, size};
    inf_fb_file_init(&file, span, &err);
    if (inf_tflite_model_read(&model, &file, NULL, &arena) == INF_OK) {
        for (uint32_t i = 0; i < model.subgraph_count; i++) {
            read_tensors(&model.subgraphs[i]);
            read_operators(&model.subgraphs[i]);
        }
        read_description(&model, span);
    } else if (err.text[0] == '\0') {
        abort();
    }
    inf_arena_fini(&arena);
    return 0;
}
