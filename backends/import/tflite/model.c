// SPDX-License-Identifier: Apache-2.0
// Reads the tables of a TFLite file into structs, and checks every index that one table has into
// another. Failures latch in the file (flatbuffer.h), so that a reading function is a plain list of
// fields.
#include "backends/import/tflite/model.h"

#include <math.h>
#include <string.h>

#include "proto/core/limits.h"

// Numbers of the union QuantizationDetails.
#define DETAILS_BLOCKWISE  2
#define DETAILS_MULTI_AXIS 3
// Data of a Buffer lie outside of the flatbuffer if its offset is above this number.
#define INLINE_OFFSET_MAX 1

struct reader {
    struct inf_fb_file *file;
    struct inf_arena *arena;
    struct inf_span *buffers; // bytes of each Buffer
    struct inf_tflite_external *external;
    uint32_t buffer_count;
    uint64_t tensor_total, operator_total; // of all subgraphs
};

// Returns zeroed memory for `count` elements. Latches a failure if there is none.
static void *make_array(struct reader *reader, uint64_t count, size_t element_bytes)
{
    void *memory = inf_fb_ok(reader->file)
                       ? inf_arena_alloc(reader->arena, (size_t)(count + 1) * element_bytes)
                       : NULL;
    if (memory == NULL && inf_fb_ok(reader->file))
        reader->file->code = inf_fail_reason(reader->file->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                             "no memory for the tables of the model");
    return memory;
}

#define fail_reading(reader, fault, ...)                                                           \
    do {                                                                                           \
        if (inf_fb_ok((reader)->file))                                                             \
            (reader)->file->code = inf_fail((reader)->file->err, (fault), __VA_ARGS__);            \
    } while (0)

bool inf_tflite_looks_like(struct inf_span beginning)
{
    return beginning.size >= 8 && memcmp(beginning.data + 4, "TFL3", 4) == 0;
}

// --- buffers ---

static struct inf_span read_buffer(struct reader *reader, const struct inf_fb_table *table)
{
    int64_t offset = inf_fb_int(table, INF_FB_U64, 1, "offset", 0);
    int64_t size = inf_fb_int(table, INF_FB_U64, 2, "size", 0);
    if (offset <= INLINE_OFFSET_MAX)
        return inf_fb_bytes(table, 0, "data");
    if (!inf_range_ok((uint64_t)offset, (uint64_t)size, reader->file->size)) {
        inf_fb_fail(table, "offset", INF_INVALID, "%lld bytes at byte %lld of the %zu bytes",
                    (long long)size, (long long)offset, reader->file->size);
        return (struct inf_span){0};
    }
    return (struct inf_span){reader->file->data + offset, (size_t)size};
}

static void read_buffers(struct reader *reader, const struct inf_fb_table *root)
{
    struct inf_fb_vector list = inf_fb_vector(root, 4, "buffers", 4);
    reader->buffers = make_array(reader, list.count, sizeof *reader->buffers);
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table table = inf_fb_table_at(&list, i, "Buffer");
        reader->buffers[i] = read_buffer(reader, &table);
    }
    reader->buffer_count = list.count;
}

// --- tensors ---

static void read_blockwise(struct inf_tflite_quantization *quantization,
                           const struct inf_fb_table *table)
{
    struct inf_fb_table details = inf_fb_child(table, 5, "details", "BlockwiseQuantization");
    quantization->block_scales = (int32_t)inf_fb_int(&details, INF_FB_I32, 0, "scales", 0);
    quantization->block_zeros = (int32_t)inf_fb_int(&details, INF_FB_I32, 1, "zero_points", 0);
    quantization->block = (int32_t)inf_fb_int(&details, INF_FB_I32, 2, "block_size", 0);
    if (quantization->block < 1)
        inf_fb_fail(&details, "block_size", INF_INVALID, "is %d, wanted 1 or more",
                    quantization->block);
}

static void read_scales(struct reader *reader, const struct inf_fb_table *table,
                        struct inf_tflite_quantization *quantization)
{
    struct inf_fb_vector scales = inf_fb_vector(table, 2, "scale", 4);
    struct inf_fb_vector zeros = inf_fb_vector(table, 3, "zero_point", 8);
    if (zeros.count > 1 && zeros.count != scales.count)
        inf_fb_fail(table, "zero_point", INF_INVALID, "has %u elements for %u scales", zeros.count,
                    scales.count);
    float *scale = make_array(reader, scales.count, sizeof *scale);
    int64_t *zero = make_array(reader, scales.count, sizeof *zero);
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < scales.count; i++) {
        scale[i] = inf_fb_float_at(&scales, i);
        if (!isfinite(scale[i]) || scale[i] < 0)
            inf_fb_fail(table, "scale", INF_INVALID,
                        "element %u is %g, wanted a finite number of 0 or more", i,
                        (double)scale[i]);
        if (zeros.count > 0)
            zero[i] = inf_fb_int_at(&zeros, INF_FB_I64, zeros.count > 1 ? i : 0);
    }
    quantization->count = scales.count;
    quantization->scales = scale;
    quantization->zeros = zero;
    quantization->axis = (int32_t)inf_fb_int(table, INF_FB_I32, 6, "quantized_dimension", 0);
}

static void read_quantization(struct reader *reader, const struct inf_fb_table *tensor,
                              struct inf_tflite_quantization *quantization)
{
    struct inf_fb_table table = inf_fb_child(tensor, 4, "quantization", "QuantizationParameters");
    if (!inf_fb_exists(&table))
        return;
    int64_t details = inf_fb_int(&table, INF_FB_U8, 4, "details_type", 0);
    if (details == DETAILS_BLOCKWISE)
        read_blockwise(quantization, &table);
    else if (details == DETAILS_MULTI_AXIS)
        inf_fb_fail(&table, "details", INF_UNSUPPORTED, "is MultiAxisQuantization");
    else
        read_scales(reader, &table, quantization);
}

static void read_shape(const struct inf_fb_table *table, uint32_t id, const char *field,
                       int64_t least, struct inf_shape *shape)
{
    struct inf_fb_vector dims = inf_fb_vector(table, id, field, 4);
    if (dims.count > INF_LIMIT_RANK) {
        inf_fb_fail(table, field, INF_UNSUPPORTED, "has %u axes, at most %d are supported",
                    dims.count, INF_LIMIT_RANK);
        return;
    }
    shape->rank = (int32_t)dims.count;
    for (uint32_t i = 0; i < dims.count; i++) {
        shape->dims[i] = inf_fb_int_at(&dims, INF_FB_I32, i);
        if (shape->dims[i] < least)
            inf_fb_fail(table, field, INF_INVALID, "axis %u has size %lld, wanted %lld or more", i,
                        (long long)shape->dims[i], (long long)least);
    }
}

// Fails unless a constant has as many bytes as its shape and type say.
static void check_data(const struct inf_fb_table *table, const struct inf_tflite_tensor *tensor)
{
    struct inf_tflite_type_info type = inf_tflite_type_info(tensor->type);
    size_t count, bits;
    if (type.element_bits == 0 || tensor->data.size == 0 || inf_fb_exists(&tensor->sparsity))
        return;
    if (!inf_shape_count(&tensor->shape, &count) || !inf_size_mul(count, type.element_bits, &bits))
        inf_fb_fail(table, "shape", INF_INVALID, "of '%.80s' has too many elements", tensor->name);
    else if (tensor->data.size != bits / 8 + (bits % 8 != 0))
        inf_fb_fail(table, "buffer", INF_INVALID, "of '%.80s' has %zu bytes, its shape says %zu",
                    tensor->name, tensor->data.size, bits / 8 + (bits % 8 != 0));
}

static void read_tensor(struct reader *reader, const struct inf_fb_table *table,
                        struct inf_tflite_tensor *tensor)
{
    size_t size_bytes;
    tensor->name = inf_fb_string(table, 3, "name", reader->arena);
    tensor->type = (int32_t)inf_fb_int(table, INF_FB_I8, 1, "type", 0);
    if (inf_tflite_type_info(tensor->type).name == NULL)
        inf_fb_fail(table, "type", INF_INVALID, "of '%.80s' is %d, which is no type of the schema",
                    tensor->name, tensor->type);
    read_shape(table, 0, "shape", 0, &tensor->shape);
    read_shape(table, 7, "shape_signature", INF_DIM_UNKNOWN, &tensor->signature);
    if (tensor->signature.rank != tensor->shape.rank)
        tensor->signature = tensor->shape;
    if (inf_fb_ok(reader->file) && !inf_shape_bytes(&tensor->shape, INF_DTYPE_U8, &size_bytes))
        inf_fb_fail(table, "shape", INF_INVALID, "of '%.80s' has too many elements", tensor->name);
    int64_t buffer = inf_fb_int(table, INF_FB_U32, 2, "buffer", 0);
    if (buffer >= reader->buffer_count && buffer != 0)
        inf_fb_fail(table, "buffer", INF_INVALID, "of '%.80s' is %lld, there are %u", tensor->name,
                    (long long)buffer, reader->buffer_count);
    int64_t external = inf_fb_int(table, INF_FB_U32, 10, "external_buffer", 0);
    read_quantization(reader, table, &tensor->quantization);
    tensor->is_variable = inf_fb_int(table, INF_FB_BOOL, 5, "is_variable", 0) != 0;
    tensor->sparsity = inf_fb_child(table, 6, "sparsity", "SparsityParameters");
    if (inf_fb_ok(reader->file) && buffer < reader->buffer_count)
        tensor->data = reader->buffers[buffer];
    if (inf_fb_ok(reader->file) && external != 0)
        tensor->data = inf_tflite_external_find(reader->external, external, table, tensor->name);
    check_data(table, tensor);
}

static void read_tensors(struct reader *reader, const struct inf_fb_table *table,
                         struct inf_tflite_subgraph *subgraph)
{
    struct inf_fb_vector list = inf_fb_vector(table, 0, "tensors", 4);
    reader->tensor_total += list.count;
    if (reader->tensor_total > INF_LIMIT_GRAPH_VALUES)
        inf_fb_fail(table, "tensors", INF_EXHAUSTED, "there are more than %u",
                    INF_LIMIT_GRAPH_VALUES);
    subgraph->tensors = make_array(reader, list.count, sizeof *subgraph->tensors);
    subgraph->tensor_count = list.count;
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table tensor = inf_fb_table_at(&list, i, "Tensor");
        if (inf_fb_ok(reader->file))
            read_tensor(reader, &tensor, &subgraph->tensors[i]);
    }
}

// --- operators ---

// Reads a list of tensor indices from `least` on.
static struct inf_tflite_indices read_indices(struct reader *reader,
                                              const struct inf_fb_table *table, uint32_t id,
                                              const char *field, int32_t least,
                                              uint32_t tensor_count)
{
    struct inf_fb_vector list = inf_fb_vector(table, id, field, 4);
    int32_t *items = make_array(reader, list.count, sizeof *items);
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        items[i] = (int32_t)inf_fb_int_at(&list, INF_FB_I32, i);
        if (items[i] < least || items[i] >= (int64_t)tensor_count)
            inf_fb_fail(table, field, INF_INVALID, "element %u is %d, there are %u tensors", i,
                        items[i], tensor_count);
    }
    return (struct inf_tflite_indices){items, list.count};
}

static void read_operator(struct reader *reader, const struct inf_fb_table *table,
                          const struct inf_tflite_model *model,
                          const struct inf_tflite_subgraph *subgraph,
                          struct inf_tflite_operator *operator)
{
    uint32_t tensors = subgraph->tensor_count;
    int64_t code = inf_fb_int(table, INF_FB_U32, 0, "opcode_index", 0);
    if (code >= model->code_count) {
        inf_fb_fail(table, "opcode_index", INF_INVALID, "is %lld, there are %u operator codes",
                    (long long)code, model->code_count);
        return;
    }
    operator->code = & model->codes[code];
    operator->inputs = read_indices(reader, table, 1, "inputs", INF_TFLITE_ABSENT, tensors);
    operator->outputs = read_indices(reader, table, 2, "outputs", 0, tensors);
    operator->options_type =(int32_t) inf_fb_int(table, INF_FB_U8, 3, "builtin_options_type", 0);
    operator->options = inf_fb_child(table, 4, "builtin_options", "builtin options");
    operator->custom_options = inf_fb_bytes(table, 5, "custom_options");
    operator->intermediates = read_indices(reader, table, 8, "intermediates", 0, tensors);
    operator->options_2_type =(int32_t)
        inf_fb_int(table, INF_FB_U8, 11, "builtin_options_2_type", 0);
    operator->options_2 = inf_fb_child(table, 12, "builtin_options_2", "builtin options 2");
    int64_t offset = inf_fb_int(table, INF_FB_U64, 9, "large_custom_options_offset", 0);
    int64_t size = inf_fb_int(table, INF_FB_U64, 10, "large_custom_options_size", 0);
    if (offset <= INLINE_OFFSET_MAX)
        return;
    if (inf_range_ok((uint64_t)offset, (uint64_t)size, reader->file->size))
        operator->custom_options =(struct inf_span){reader->file->data + offset, (size_t)size};
    else
        inf_fb_fail(table, "large_custom_options_offset", INF_INVALID,
                    "%lld bytes at byte %lld of the %zu bytes", (long long)size, (long long)offset,
                    reader->file->size);
}

static void read_operators(struct reader *reader, const struct inf_fb_table *table,
                           const struct inf_tflite_model *model,
                           struct inf_tflite_subgraph *subgraph)
{
    struct inf_fb_vector list = inf_fb_vector(table, 3, "operators", 4);
    reader->operator_total += list.count;
    if (reader->operator_total > INF_LIMIT_GRAPH_NODES)
        inf_fb_fail(table, "operators", INF_EXHAUSTED, "there are more than %u",
                    INF_LIMIT_GRAPH_NODES);
    subgraph->operators = make_array(reader, list.count, sizeof *subgraph->operators);
    subgraph->operator_count = list.count;
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table operator= inf_fb_table_at(&list, i, "Operator");
        if (inf_fb_ok(reader->file))
            read_operator(reader, &operator, model, subgraph, &subgraph->operators[i]);
    }
}

// --- operator codes and subgraphs ---

static void read_codes(struct reader *reader, const struct inf_fb_table *root,
                       struct inf_tflite_model *model)
{
    struct inf_fb_vector list = inf_fb_vector(root, 1, "operator_codes", 4);
    model->codes = make_array(reader, list.count, sizeof *model->codes);
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table table = inf_fb_table_at(&list, i, "OperatorCode");
        // Codes up to 127 were stored in the first field. Newer files have both, and the larger one
        // is valid.
        int64_t old = inf_fb_int(&table, INF_FB_I8, 0, "deprecated_builtin_code", 0);
        int64_t code = inf_fb_int(&table, INF_FB_I32, 3, "builtin_code", 0);
        model->codes[i] = (struct inf_tflite_code){
            .builtin = (int32_t)INF_MAX(old, code),
            .custom = inf_fb_string(&table, 1, "custom_code", reader->arena),
            .version = (int32_t)inf_fb_int(&table, INF_FB_I32, 2, "version", 1)};
    }
    model->code_count = list.count;
}

static void read_subgraphs(struct reader *reader, const struct inf_fb_table *root,
                           struct inf_tflite_model *model)
{
    struct inf_fb_vector list = inf_fb_vector(root, 2, "subgraphs", 4);
    if (list.count == 0)
        inf_fb_fail(root, "subgraphs", INF_INVALID, "there is none, wanted at least one");
    model->subgraphs = make_array(reader, list.count, sizeof *model->subgraphs);
    model->subgraph_count = list.count;
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table table = inf_fb_table_at(&list, i, "SubGraph");
        struct inf_tflite_subgraph *subgraph = &model->subgraphs[i];
        subgraph->name = inf_fb_string(&table, 4, "name", reader->arena);
        read_tensors(reader, &table, subgraph);
        subgraph->inputs = read_indices(reader, &table, 1, "inputs", 0, subgraph->tensor_count);
        subgraph->outputs = read_indices(reader, &table, 2, "outputs", 0, subgraph->tensor_count);
        if (inf_fb_ok(reader->file))
            read_operators(reader, &table, model, subgraph);
    }
}

// --- signatures ---

static struct inf_tflite_binding *read_bindings(struct reader *reader,
                                                const struct inf_fb_table *table, uint32_t id,
                                                const char *field, uint32_t tensor_count,
                                                uint32_t *out_count)
{
    struct inf_fb_vector list = inf_fb_vector(table, id, field, 4);
    struct inf_tflite_binding *bindings = make_array(reader, list.count, sizeof *bindings);
    *out_count = list.count;
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table map = inf_fb_table_at(&list, i, "TensorMap");
        int64_t tensor = inf_fb_int(&map, INF_FB_U32, 1, "tensor_index", 0);
        if (tensor >= tensor_count)
            inf_fb_fail(&map, "tensor_index", INF_INVALID, "is %lld, there are %u tensors",
                        (long long)tensor, tensor_count);
        bindings[i] = (struct inf_tflite_binding){inf_fb_string(&map, 0, "name", reader->arena),
                                                  (uint32_t)tensor};
    }
    return bindings;
}

static void read_signatures(struct reader *reader, const struct inf_fb_table *root,
                            struct inf_tflite_model *model)
{
    struct inf_fb_vector list = inf_fb_vector(root, 7, "signature_defs", 4);
    model->signatures = make_array(reader, list.count, sizeof *model->signatures);
    model->signature_count = list.count;
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table table = inf_fb_table_at(&list, i, "SignatureDef");
        struct inf_tflite_signature *signature = &model->signatures[i];
        int64_t subgraph = inf_fb_int(&table, INF_FB_U32, 4, "subgraph_index", 0);
        signature->key = inf_fb_string(&table, 2, "signature_key", reader->arena);
        if (subgraph >= model->subgraph_count) {
            inf_fb_fail(&table, "subgraph_index", INF_INVALID, "is %lld, there are %u subgraphs",
                        (long long)subgraph, model->subgraph_count);
            return;
        }
        signature->subgraph = (uint32_t)subgraph;
        uint32_t tensors = model->subgraphs[subgraph].tensor_count;
        signature->inputs =
            read_bindings(reader, &table, 0, "inputs", tensors, &signature->input_count);
        signature->outputs =
            read_bindings(reader, &table, 1, "outputs", tensors, &signature->output_count);
    }
}

// --- metadata ---

// Finds the buffer with the metadata for people (metadata.h). Other metadata of the file are not
// used.
static void find_metadata(struct reader *reader, const struct inf_fb_table *root,
                          struct inf_tflite_model *model)
{
    struct inf_fb_vector list = inf_fb_vector(root, 6, "metadata", 4);
    for (uint32_t i = 0; inf_fb_ok(reader->file) && i < list.count; i++) {
        struct inf_fb_table table = inf_fb_table_at(&list, i, "Metadata");
        const char *name = inf_fb_string(&table, 0, "name", reader->arena);
        int64_t buffer = inf_fb_int(&table, INF_FB_U32, 1, "buffer", 0);
        if (buffer >= reader->buffer_count)
            inf_fb_fail(&table, "buffer", INF_INVALID, "is %lld, there are %u", (long long)buffer,
                        reader->buffer_count);
        else if (strcmp(name, "TFLITE_METADATA") == 0)
            model->metadata = reader->buffers[buffer];
    }
}

enum inf_code inf_tflite_model_read(struct inf_tflite_model *model, struct inf_fb_file *file,
                                    const struct inf_tflite_files *files, struct inf_arena *arena)
{
    struct reader reader = {.file = file, .arena = arena, .external = &model->external};
    *model = (struct inf_tflite_model){.description = "", .external = {.files = files}};
    if (!inf_tflite_looks_like((struct inf_span){file->data, file->size}))
        fail_reading(&reader, INF_INVALID, "lacks the identifier TFL3 at byte 4");
    struct inf_fb_table root = inf_fb_root(file, "Model");
    int64_t version = inf_fb_int(&root, INF_FB_U32, 0, "version", 0);
    if (version != 3)
        inf_fb_fail(&root, "version", INF_UNSUPPORTED, "is %lld, wanted 3", (long long)version);
    model->description = inf_fb_string(&root, 3, "description", arena);
    read_buffers(&reader, &root);
    inf_tflite_external_list(&model->external, &root, arena);
    read_codes(&reader, &root, model);
    if (inf_fb_ok(file))
        read_subgraphs(&reader, &root, model);
    if (inf_fb_ok(file))
        read_signatures(&reader, &root, model);
    if (inf_fb_ok(file))
        find_metadata(&reader, &root, model);
    return file->code;
}

void inf_tflite_model_fini(struct inf_tflite_model *model)
{
    inf_tflite_external_fini(&model->external);
}
