// SPDX-License-Identifier: Apache-2.0
// Operands, options and results of the operator that is being lowered. A tensor has up to two
// values in the graph: its stored form, and its dequantised form, which is made once for all
// operators that read it.
#include "backends/import/tflite/scope.h"

#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/tensor.h"

// --- operands ---

// Returns the number of the tensor that is input `index`; INF_TFLITE_ABSENT if it is absent.
static int32_t find_input(const struct inf_tflite_scope *s, uint32_t index)
{
    return index < s->op->inputs.count ? s->op->inputs.items[index] : INF_TFLITE_ABSENT;
}

bool inf_tflite_has_input(const struct inf_tflite_scope *s, uint32_t index)
{
    return find_input(s, index) != INF_TFLITE_ABSENT;
}

const struct inf_tflite_tensor *inf_tflite_input_tensor(const struct inf_tflite_scope *s,
                                                        uint32_t index)
{
    int32_t tensor = find_input(s, index);
    return tensor != INF_TFLITE_ABSENT ? &s->frame->subgraph->tensors[tensor] : NULL;
}

const struct inf_tflite_tensor *inf_tflite_output_tensor(const struct inf_tflite_scope *s,
                                                         uint32_t index)
{
    return &s->frame->subgraph->tensors[s->op->outputs.items[index]];
}

// Adds the constant of a tensor in its stored type.
static uint32_t add_constant(struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor)
{
    struct inf_blob *data = NULL;
    if (inf_build_ok(&s->b))
        s->b.code = inf_tflite_tensor_read(&data, tensor, s->b.err);
    return inf_tflite_add_blob(&s->b, tensor->name, inf_tflite_type_info(tensor->type).dtype,
                               &tensor->shape, data);
}

uint32_t inf_tflite_tensor_value(struct inf_tflite_scope *s, int32_t number)
{
    const struct inf_tflite_tensor *tensor = &s->frame->subgraph->tensors[number];
    uint32_t *value = &s->frame->values[number];
    if (*value != INF_VALUE_NONE || !inf_build_ok(&s->b))
        return *value;
    if (inf_tflite_tensor_is_const(tensor))
        *value = add_constant(s, tensor);
    else if (tensor->is_variable)
        *value = s->import->begin_variable(s, number);
    else
        inf_build_fail(&s->b, INF_INVALID,
                       "takes tensor %d '%.200s', which nothing before it makes", number,
                       tensor->name);
    return *value;
}

uint32_t inf_tflite_stored(struct inf_tflite_scope *s, uint32_t index)
{
    int32_t tensor = find_input(s, index);
    if (index == 0 && s->replace != INF_VALUE_NONE)
        return s->replace;
    return tensor != INF_TFLITE_ABSENT ? inf_tflite_tensor_value(s, tensor) : INF_VALUE_NONE;
}

// Makes the real form of a tensor.
static uint32_t make_real(struct inf_tflite_scope *s, int32_t number)
{
    const struct inf_tflite_tensor *tensor = &s->frame->subgraph->tensors[number];
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    bool is_half = dtype == INF_DTYPE_F16 || dtype == INF_DTYPE_BF16;
    bool is_quantized = inf_tflite_tensor_is_quantized(tensor);
    if (!is_half && !is_quantized)
        return inf_tflite_tensor_value(s, number);
    // Constants become floats here, but bytes of a quantised operator stay bytes for the passes.
    bool has_scales = tensor->quantization.count > 0;
    if (inf_tflite_tensor_is_const(tensor) && (is_half || !has_scales))
        return inf_tflite_add_floats(s, tensor, NULL);
    uint32_t value = inf_tflite_tensor_value(s, number);
    return is_half ? inf_build_cast(&s->b, value, INF_DTYPE_F32)
                   : inf_tflite_dequantize(&s->b, value, tensor, tensor->quantization.axis);
}

uint32_t inf_tflite_tensor_real(struct inf_tflite_scope *s, int32_t tensor)
{
    uint32_t *real = &s->frame->reals[tensor];
    if (*real == INF_VALUE_NONE && inf_build_ok(&s->b))
        *real = make_real(s, tensor);
    return *real;
}

uint32_t inf_tflite_real(struct inf_tflite_scope *s, uint32_t index)
{
    int32_t tensor = find_input(s, index);
    if (index == 0 && s->replace != INF_VALUE_NONE)
        return s->replace;
    return tensor != INF_TFLITE_ABSENT ? inf_tflite_tensor_real(s, tensor) : INF_VALUE_NONE;
}

uint32_t inf_tflite_data(struct inf_tflite_scope *s, uint32_t index)
{
    return s->as_stored ? inf_tflite_stored(s, index) : inf_tflite_real(s, index);
}

uint32_t inf_tflite_list(struct inf_tflite_scope *s, uint32_t index)
{
    uint32_t list = inf_tflite_stored(s, index);
    return list != INF_VALUE_NONE ? inf_build_cast(&s->b, list, INF_DTYPE_I32) : list;
}

void inf_tflite_bind(struct inf_tflite_scope *s, int32_t tensor, uint32_t value)
{
    if (!inf_build_ok(&s->b))
        return;
    if (s->frame->values[tensor] != INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "makes tensor %d '%.200s', which has a value already",
                       tensor, s->frame->subgraph->tensors[tensor].name);
    s->frame->values[tensor] = value;
}

// --- options ---

// Latches a failure of reading options.
static void check_reading(struct inf_tflite_scope *s, const struct inf_fb_table *options)
{
    if (inf_build_ok(&s->b) && options->file != NULL && !inf_fb_ok(options->file))
        s->b.code = options->file->code;
}

int64_t inf_tflite_option(struct inf_tflite_scope *s, enum inf_fb_type type, uint32_t id,
                          const char *field, int64_t fallback)
{
    const struct inf_fb_table *options = &s->op->options;
    int64_t number = inf_fb_int(options, type, id, field, fallback);
    check_reading(s, options);
    return number;
}

int32_t inf_tflite_option_int(struct inf_tflite_scope *s, uint32_t id, const char *field)
{
    return (int32_t)inf_tflite_option(s, INF_FB_I32, id, field, 0);
}

bool inf_tflite_option_bool(struct inf_tflite_scope *s, uint32_t id, const char *field)
{
    return inf_tflite_option(s, INF_FB_BOOL, id, field, 0) != 0;
}

float inf_tflite_option_float(struct inf_tflite_scope *s, uint32_t id, const char *field)
{
    float number = inf_fb_float(&s->op->options, id, field, 0);
    if (!isfinite(number)) {
        inf_build_fail(&s->b, INF_INVALID, "option %s is %g, wanted a finite number", field,
                       (double)number);
        return 0;
    }
    return number;
}

enum inf_dtype inf_tflite_option_dtype(struct inf_tflite_scope *s, uint32_t id, const char *field,
                                       enum inf_tflite_type fallback)
{
    int64_t type = inf_tflite_option(s, INF_FB_I8, id, field, fallback);
    struct inf_tflite_type_info info = inf_tflite_type_info(type);
    if (info.dtype == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "option %s is type %s (%lld)", field,
                       info.name != NULL ? info.name : "?", (long long)type);
    return info.dtype;
}

// Returns options 2; latches INF_INVALID if they are of another type.
static const struct inf_fb_table *find_options_2(struct inf_tflite_scope *s,
                                                 enum inf_tflite_options_2 type)
{
    if (s->op->options_2_type != (int32_t)type)
        inf_build_fail(&s->b, INF_INVALID, "has builtin options 2 of type %d, wanted %d",
                       s->op->options_2_type, (int)type);
    return &s->op->options_2;
}

int64_t inf_tflite_option_2_int(struct inf_tflite_scope *s, enum inf_tflite_options_2 type,
                                enum inf_fb_type number, uint32_t id, const char *field)
{
    const struct inf_fb_table *options = find_options_2(s, type);
    int64_t value = inf_build_ok(&s->b) ? inf_fb_int(options, number, id, field, 0) : 0;
    check_reading(s, options);
    return value;
}

struct inf_build_ints inf_tflite_option_2_list(struct inf_tflite_scope *s,
                                               enum inf_tflite_options_2 type, uint32_t id,
                                               const char *field)
{
    struct inf_build_ints list = {0};
    const struct inf_fb_table *options = find_options_2(s, type);
    if (!inf_build_ok(&s->b))
        return list;
    struct inf_fb_vector values = inf_fb_vector(options, id, field, 8);
    if (values.count > INF_LIMIT_RANK * 2)
        inf_build_fail(&s->b, INF_INVALID, "option %s has %u elements, at most %d are allowed",
                       field, values.count, INF_LIMIT_RANK * 2);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < values.count; i++)
        list.values[list.count++] = inf_fb_int_at(&values, INF_FB_I64, i);
    check_reading(s, options);
    return list;
}

bool inf_tflite_option_words(struct inf_tflite_scope *s, int32_t *words, size_t count)
{
    struct inf_span options = s->op->custom_options;
    if (options.size < count * sizeof *words) {
        inf_build_fail(&s->b, INF_INVALID, "has options of %zu bytes, wanted at least %zu",
                       options.size, count * sizeof *words);
        return false;
    }
    memcpy(words, options.data, count * sizeof *words); // the file and this machine: little endian
    return true;
}

// --- results ---

// The numbers of the enum ActivationFunctionType.
enum activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_RELU_N1_TO_1,
    ACTIVATION_RELU6,
    ACTIVATION_TANH,
    ACTIVATION_SIGN_BIT,
};

void inf_tflite_activation_bounds(struct inf_tflite_scope *s, uint32_t id, float *low, float *high)
{
    int64_t kind = inf_tflite_option(s, INF_FB_I8, id, "fused_activation_function", 0);
    *low = kind == ACTIVATION_RELU || kind == ACTIVATION_RELU6 ? 0
           : kind == ACTIVATION_RELU_N1_TO_1                   ? -1
                                                               : -INFINITY;
    *high = kind == ACTIVATION_RELU6 ? 6 : kind == ACTIVATION_RELU_N1_TO_1 ? 1 : INFINITY;
    // The runtimes compute no other activation behind arithmetic, convolutions and pooling.
    if (kind < ACTIVATION_NONE || kind > ACTIVATION_SIGN_BIT)
        inf_build_fail(&s->b, INF_INVALID, "fused activation %lld is none of the schema",
                       (long long)kind);
}

uint32_t inf_tflite_activate(struct inf_tflite_scope *s, uint32_t value, uint32_t id)
{
    const struct inf_tflite_tensor *y = inf_tflite_output_tensor(s, 0);
    float low, high;
    int32_t stored_low, stored_high;
    inf_tflite_activation_bounds(s, id, &low, &high);
    if ((isinf(low) && isinf(high)) || !inf_tflite_clamps(y, low, high))
        return value;
    if (s->as_stored && inf_tflite_tensor_is_quantized(y)) {
        inf_tflite_store_bounds(y, low, high, &stored_low, &stored_high);
        return inf_build_clip(&s->b, value, stored_low, stored_high);
    }
    if (low == 0)
        return inf_build_unary(&s->b, high == 6 ? INF_UNARY_RELU6 : INF_UNARY_RELU, value);
    return inf_build_clip(&s->b, value, low, high);
}
