// SPDX-License-Identifier: Apache-2.0
// Rules for element types: the types that an operator accepts, and the types of its outputs.
#include "backends/graph/shape/rules.h"

enum domain {
    DOMAIN_ANY,
    DOMAIN_PLAIN,   // all element types except BYTES
    DOMAIN_NUMERIC, // all element types except bool and BYTES
    DOMAIN_FLOAT,
    DOMAIN_INTEGER,
    DOMAIN_BOOL,
};

static const char *const domain_names[] = {"any type", "numbers or bool", "numbers",
                                           "floats",   "integers",        "bool"};

static enum domain unary_domain(enum inf_unary_kind kind)
{
    switch (kind) {
    case INF_UNARY_NEG:
    case INF_UNARY_ABS:
    case INF_UNARY_SIGN:
    case INF_UNARY_SQUARE:
    case INF_UNARY_RELU:
    case INF_UNARY_RELU6:
    case INF_UNARY_SIGN_OR_ZERO:
    case INF_UNARY_STEP:
        return DOMAIN_NUMERIC;
    case INF_UNARY_BITWISE_NOT:
        return DOMAIN_INTEGER;
    case INF_UNARY_LOGICAL_NOT:
        return DOMAIN_BOOL;
    default:
        return DOMAIN_FLOAT;
    }
}

static enum domain binary_domain(enum inf_binary_kind kind)
{
    switch (kind) {
    case INF_BINARY_LOGICAL_AND:
    case INF_BINARY_LOGICAL_OR:
    case INF_BINARY_LOGICAL_XOR:
        return DOMAIN_BOOL;
    case INF_BINARY_ATAN2:
        return DOMAIN_FLOAT;
    case INF_BINARY_BITWISE_AND:
    case INF_BINARY_BITWISE_OR:
    case INF_BINARY_BITWISE_XOR:
    case INF_BINARY_SHIFT_LEFT:
    case INF_BINARY_SHIFT_RIGHT:
        return DOMAIN_INTEGER;
    default:
        return DOMAIN_NUMERIC;
    }
}

static enum inf_activation fused_activation(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_BINARY:
        return node->attrs.binary.activation;
    case INF_OP_CONV2D:
        return node->attrs.conv2d.activation;
    case INF_OP_DEPTHWISE_CONV2D:
        return node->attrs.depthwise_conv2d.activation;
    case INF_OP_CONV2D_TRANSPOSE:
        return node->attrs.conv2d_transpose.activation;
    case INF_OP_MATMUL:
        return node->attrs.matmul.activation;
    default:
        return INF_ACTIVATION_NONE;
    }
}

// Returns the allowed types of a node's main operand.
static enum domain node_domain(const struct inf_node *node)
{
    if (fused_activation(node) != INF_ACTIVATION_NONE)
        return DOMAIN_FLOAT;
    switch (node->op) {
    case INF_OP_UNARY:
        return unary_domain(node->attrs.unary.kind);
    case INF_OP_BINARY:
        return binary_domain(node->attrs.binary.kind);
    case INF_OP_COMPARE:
        return node->attrs.compare.kind <= INF_COMPARE_NOT_EQUAL ? DOMAIN_ANY : DOMAIN_NUMERIC;
    case INF_OP_REDUCE:
        return node->attrs.reduce.kind == INF_REDUCE_ALL ||
                       node->attrs.reduce.kind == INF_REDUCE_ANY
                   ? DOMAIN_BOOL
                   : DOMAIN_NUMERIC;
    case INF_OP_PRELU:
    case INF_OP_SOFTMAX:
    case INF_OP_CONV2D:
    case INF_OP_DEPTHWISE_CONV2D:
    case INF_OP_CONV2D_TRANSPOSE:
    case INF_OP_BATCH_NORM:
    case INF_OP_NMS:
    case INF_OP_CONV_ND:
    case INF_OP_CONV_ND_TRANSPOSE:
    case INF_OP_LRN:
    case INF_OP_NORMALIZE:
    case INF_OP_ROI_ALIGN:
    case INF_OP_GRID_SAMPLE:
    case INF_OP_RNN:
    case INF_OP_PAIR_COUPLING:
        return DOMAIN_FLOAT;
    case INF_OP_SCATTER_ND:
        return node->attrs.scatter_nd.kind == INF_SCATTER_NONE ? DOMAIN_ANY : DOMAIN_NUMERIC;
    case INF_OP_SCATTER_ELEMENTS:
        return node->attrs.scatter_elements.kind == INF_SCATTER_NONE ? DOMAIN_ANY : DOMAIN_NUMERIC;
    case INF_OP_ARG:
    case INF_OP_NONZERO:
        return DOMAIN_PLAIN;
    case INF_OP_CUMULATE:
    case INF_OP_TOPK:
    case INF_OP_SEARCH_SORTED:
    case INF_OP_BINCOUNT:
    case INF_OP_POOL_ND:
    case INF_OP_DILATION2D:
    case INF_OP_RESAMPLE:
    case INF_OP_CROP_AND_RESIZE:
    case INF_OP_IMAGE_TRANSFORM:
    case INF_OP_CLIP:
    case INF_OP_MATMUL:
    case INF_OP_POOL2D:
    case INF_OP_RESIZE:
    case INF_OP_RANGE:
        return DOMAIN_NUMERIC;
    default:
        return DOMAIN_ANY;
    }
}

static bool is_whole(enum inf_dtype dtype)
{
    return !inf_dtype_is_float(dtype) && dtype != INF_DTYPE_BOOL && dtype != INF_DTYPE_NONE &&
           dtype != INF_DTYPE_BYTES;
}

static bool in_domain(enum inf_dtype dtype, enum domain domain)
{
    switch (domain) {
    case DOMAIN_PLAIN:
        return dtype != INF_DTYPE_BYTES;
    case DOMAIN_NUMERIC:
        return dtype != INF_DTYPE_BOOL && dtype != INF_DTYPE_BYTES;
    case DOMAIN_FLOAT:
        return inf_dtype_is_float(dtype);
    case DOMAIN_INTEGER:
        return is_whole(dtype);
    case DOMAIN_BOOL:
        return dtype == INF_DTYPE_BOOL;
    default:
        return true;
    }
}

static enum inf_dtype input_dtype(const struct inf_infer *infer, uint32_t index)
{
    return infer->graph->values[infer->node->inputs[index]].dtype;
}

static enum inf_code want_type(struct inf_infer *infer, uint32_t index, enum inf_dtype dtype)
{
    if (!inf_infer_has_input(infer, index) || input_dtype(infer, index) == dtype)
        return INF_OK;
    return inf_fail_reason(infer->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                           "input %u is %s, wanted %s", index,
                           inf_dtype_name(input_dtype(infer, index)), inf_dtype_name(dtype));
}

static enum inf_code want_index(struct inf_infer *infer, uint32_t index)
{
    if (!inf_infer_has_input(infer, index) || input_dtype(infer, index) == INF_DTYPE_I64)
        return INF_OK;
    return want_type(infer, index, INF_DTYPE_I32);
}

// Checks that all inputs from number `first` on have the same element type, except input number
// `except`.
static enum inf_code want_alike(struct inf_infer *infer, uint32_t first, uint32_t except)
{
    for (uint32_t i = first + 1; i < infer->node->input_count; i++)
        if (i != except)
            INF_TRY(want_type(infer, i, input_dtype(infer, first)));
    return INF_OK;
}

// Checks that every input has a type, and that the operator accepts the type of the main input.
static enum inf_code check_domain(struct inf_infer *infer, uint32_t main_input)
{
    for (uint32_t i = 0; i < infer->node->input_count; i++)
        if (inf_infer_has_input(infer, i) && inf_dtype_size(input_dtype(infer, i)) == 0)
            return inf_fail_reason(infer->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                                   "input %u has no element type", i);
    enum domain domain = node_domain(infer->node);
    if (!in_domain(input_dtype(infer, main_input), domain))
        return inf_fail_reason(infer->err, INF_UNSUPPORTED, INF_REASON_DTYPE_MISMATCH,
                               "it is not defined for %s, wanted %s",
                               inf_dtype_name(input_dtype(infer, main_input)),
                               domain_names[domain]);
    return INF_OK;
}

static enum inf_code attribute_dtype(struct inf_infer *infer)
{
    const struct inf_node *node = infer->node;
    bool is_arg = node->op == INF_OP_ARG;
    enum inf_dtype dtype = is_arg ? node->attrs.arg.dtype : node->attrs.cast.dtype;
    if (is_arg ? dtype != INF_DTYPE_I32 && dtype != INF_DTYPE_I64 : dtype == INF_DTYPE_NONE)
        return inf_fail(infer->err, INF_INVALID, "dtype is %s, wanted %s", inf_dtype_name(dtype),
                        is_arg ? "INT32 or INT64" : "an element type");
    infer->dtype = dtype;
    return INF_OK;
}

// Fails because input `index` has the wrong type. The text says which type it must have.
static enum inf_code is_unwanted(struct inf_infer *infer, uint32_t index, const char *wanted)
{
    return inf_fail_reason(infer->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                           "input %u is %s, wanted %s", index,
                           inf_dtype_name(input_dtype(infer, index)), wanted);
}

static enum inf_code quantize_types(struct inf_infer *infer)
{
    infer->dtype = infer->node->attrs.quantize.dtype;
    if (!is_whole(infer->dtype))
        return inf_fail(infer->err, INF_INVALID, "dtype is %s, wanted an integer type",
                        inf_dtype_name(infer->dtype));
    bool from_i32 = input_dtype(infer, 0) == INF_DTYPE_I32;
    if (!from_i32 && !inf_dtype_is_float(input_dtype(infer, 0)))
        return is_unwanted(infer, 0, "a float or INT32");
    INF_TRY(want_type(infer, 1, from_i32 ? INF_DTYPE_F32 : input_dtype(infer, 0)));
    return want_type(infer, 2, infer->dtype);
}

static enum inf_code dequantize_types(struct inf_infer *infer)
{
    infer->dtype = input_dtype(infer, 1);
    if (!is_whole(input_dtype(infer, 0)))
        return is_unwanted(infer, 0, "an integer type");
    if (!inf_dtype_is_float(infer->dtype))
        return is_unwanted(infer, 1, "a float");
    return want_type(infer, 2, input_dtype(infer, 0));
}

static bool is_byte(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

static enum inf_code want_byte(struct inf_infer *infer, uint32_t index)
{
    return is_byte(input_dtype(infer, index)) ? INF_OK : is_unwanted(infer, index, "UINT8 or INT8");
}

// Applies INF_TYPES_QPRODUCT, the element type rule of qconv2d and qmatmul.
static enum inf_code product_types(struct inf_infer *infer)
{
    const union inf_attrs *attrs = &infer->node->attrs;
    infer->dtype = infer->node->op == INF_OP_QMATMUL ? attrs->qmatmul.dtype : attrs->qconv2d.dtype;
    bool sums = infer->dtype == INF_DTYPE_I32;
    INF_TRY(want_byte(infer, 0));
    INF_TRY(want_byte(infer, 1));
    INF_TRY(want_type(infer, 2, INF_DTYPE_I32));
    INF_TRY(want_type(infer, 3, input_dtype(infer, 0)));
    INF_TRY(want_type(infer, 4, input_dtype(infer, 1)));
    INF_TRY(want_type(infer, 5, INF_DTYPE_F32));
    INF_TRY(want_type(infer, 6, infer->dtype));
    if (!sums && !is_byte(infer->dtype))
        return inf_fail(infer->err, INF_INVALID, "dtype is %s, wanted UINT8, INT8 or INT32",
                        inf_dtype_name(infer->dtype));
    if (sums == inf_infer_has_input(infer, 5) || (sums && inf_infer_has_input(infer, 6)))
        return inf_fail(infer->err, INF_INVALID, "dtype is %s %s", inf_dtype_name(infer->dtype),
                        sums ? "and there is a scale or zero point" : "without a scale");
    return INF_OK;
}

static enum inf_code qbinary_types(struct inf_infer *infer)
{
    const struct inf_attrs_qbinary *attrs = &infer->node->attrs.qbinary;
    infer->dtype = attrs->dtype;
    for (uint32_t i = 0; i < 2; i++) {
        INF_TRY(want_byte(infer, i));
        INF_TRY(want_type(infer, 5 + i, input_dtype(infer, i)));
    }
    for (uint32_t i = 2; i < 5; i++)
        INF_TRY(want_type(infer, i, INF_DTYPE_F32));
    INF_TRY(want_type(infer, 7, infer->dtype));
    if (!is_byte(infer->dtype))
        return inf_fail(infer->err, INF_INVALID, "dtype is %s, wanted UINT8 or INT8",
                        inf_dtype_name(infer->dtype));
    if (attrs->kind != INF_BINARY_ADD && attrs->kind != INF_BINARY_SUB &&
        attrs->kind != INF_BINARY_MUL)
        return inf_fail(infer->err, INF_INVALID, "kind is %s, wanted add, sub or mul",
                        inf_binary_name(attrs->kind));
    return INF_OK;
}

// Applies INF_TYPES_BLOCKS, the element type rule of matmul_blocks.
static enum inf_code blocks_types(struct inf_infer *infer)
{
    infer->dtype = INF_DTYPE_F32;
    INF_TRY(want_type(infer, 0, INF_DTYPE_F32));
    INF_TRY(want_type(infer, 1, INF_DTYPE_U8));
    INF_TRY(want_type(infer, 2, INF_DTYPE_F32));
    if (inf_infer_has_input(infer, 3) && input_dtype(infer, 3) != INF_DTYPE_F32)
        INF_TRY(want_type(infer, 3, INF_DTYPE_U8));
    return want_type(infer, 4, INF_DTYPE_F32);
}

// Applies the type rules of operators that look up, count and place elements.
static enum inf_code index_types(struct inf_infer *infer, enum inf_types rule)
{
    switch (rule) {
    case INF_TYPES_ONE_HOT:
        INF_TRY(want_index(infer, 0));
        INF_TRY(want_index(infer, 1));
        return want_alike(infer, 2, INF_VALUE_NONE);
    case INF_TYPES_SCATTER:
        INF_TRY(want_index(infer, 1));
        return want_alike(infer, 0, 1);
    case INF_TYPES_BINCOUNT:
        INF_TRY(want_index(infer, 0));
        return want_index(infer, 1);
    case INF_TYPES_RESAMPLE:
        INF_TRY(want_index(infer, 1));
        INF_TRY(want_type(infer, 2, INF_DTYPE_F32));
        return want_type(infer, 3, INF_DTYPE_F32);
    case INF_TYPES_CROP:
        infer->dtype = INF_DTYPE_F32;
        INF_TRY(want_type(infer, 1, INF_DTYPE_F32));
        INF_TRY(want_index(infer, 2));
        return want_index(infer, 3);
    case INF_TYPES_TRANSFORM:
        INF_TRY(want_type(infer, 1, INF_DTYPE_F32));
        return want_index(infer, 2);
    default:
        return INF_OK;
    }
}

// Returns the number of the input whose element type decides whether the operator is defined for
// the node.
static uint32_t main_operand(enum inf_types rule)
{
    switch (rule) {
    case INF_TYPES_SELECT:
    case INF_TYPES_FILL:
        return 1;
    case INF_TYPES_ONE_HOT:
    case INF_TYPES_BINCOUNT:
        return 2;
    default:
        return 0;
    }
}

enum inf_code inf_infer_types(struct inf_infer *infer)
{
    enum inf_types rule = inf_op_info(infer->node->op)->types;
    uint32_t main_input = main_operand(rule);
    INF_TRY(check_domain(infer, main_input));
    infer->dtype = input_dtype(infer, main_input);
    switch (rule) {
    case INF_TYPES_SAME:
        return want_alike(infer, 0, INF_VALUE_NONE);
    case INF_TYPES_FIRST:
        for (uint32_t i = 1; i < infer->node->input_count; i++)
            INF_TRY(want_index(infer, i));
        return INF_OK;
    case INF_TYPES_TO_BOOL:
        infer->dtype = INF_DTYPE_BOOL;
        return want_alike(infer, 0, INF_VALUE_NONE);
    case INF_TYPES_TO_I32:
        infer->dtype = INF_DTYPE_I32;
        return INF_OK;
    case INF_TYPES_LIST_TO_F32:
        infer->dtype = INF_DTYPE_F32;
        return want_index(infer, 0);
    case INF_TYPES_ATTR:
        return attribute_dtype(infer);
    case INF_TYPES_SELECT:
        INF_TRY(want_type(infer, 0, INF_DTYPE_BOOL));
        return want_alike(infer, 1, INF_VALUE_NONE);
    case INF_TYPES_CONV_TRANSPOSE:
        INF_TRY(want_type(infer, 2, INF_DTYPE_I32));
        return want_alike(infer, 0, 2);
    case INF_TYPES_PAD:
        INF_TRY(want_type(infer, 1, INF_DTYPE_I32));
        return want_alike(infer, 0, 1);
    case INF_TYPES_GATHER:
        return want_index(infer, 1);
    case INF_TYPES_FILL:
        return want_type(infer, 0, INF_DTYPE_I32);
    case INF_TYPES_BRANCH:
        return want_type(infer, 0, INF_DTYPE_BOOL);
    case INF_TYPES_NMS:
        INF_TRY(want_type(infer, 2, INF_DTYPE_I32));
        return want_alike(infer, 0, 2);
    case INF_TYPES_LOOP:
        return INF_OK;
    case INF_TYPES_UNIQUE:
        return want_alike(infer, 0, INF_VALUE_NONE);
    case INF_TYPES_SPARSE_FILL:
        INF_TRY(want_index(infer, 0));
        INF_TRY(want_index(infer, 2));
        return want_type(infer, 3, input_dtype(infer, 1));
    case INF_TYPES_NGRAMS:
        INF_TRY(want_index(infer, 1));
        for (uint32_t i = 0; i < infer->node->input_count; i++)
            INF_TRY(i == 1 ? INF_OK : want_type(infer, i, INF_DTYPE_BYTES));
        return INF_OK;
    case INF_TYPES_STRINGS:
        for (uint32_t i = 0; i < infer->node->input_count; i++)
            INF_TRY(want_type(infer, i, INF_DTYPE_BYTES));
        return INF_OK;
    case INF_TYPES_ALIKE_TO_I32:
        infer->dtype = INF_DTYPE_I32;
        return want_alike(infer, 0, INF_VALUE_NONE);
    case INF_TYPES_QUANTIZE:
        return quantize_types(infer);
    case INF_TYPES_DEQUANTIZE:
        return dequantize_types(infer);
    case INF_TYPES_QPRODUCT:
        return product_types(infer);
    case INF_TYPES_QBINARY:
        return qbinary_types(infer);
    case INF_TYPES_BLOCKS:
        return blocks_types(infer);
    case INF_TYPES_LOOKUP:
        infer->dtype = input_dtype(infer, 1);
        return want_byte(infer, 0);
    case INF_TYPES_RNN:
        INF_TRY(want_type(infer, 4, INF_DTYPE_I32));
        return want_alike(infer, 0, 4);
    default:
        return index_types(infer, rule);
    }
    return INF_OK;
}
