// SPDX-License-Identifier: Apache-2.0
// Seeded random nodes for the conformance test: odd shapes, all attributes, all element types.
#ifndef INF_TESTS_CONFORMANCE_CASES_H
#define INF_TESTS_CONFORMANCE_CASES_H

#include "tests/support/models/one_node.h"

// The element type and shape that the first operand of a case should have, if the operator allows
// it. The generator of random graphs later replaces that operand by the result of another node.
struct wish {
    enum inf_dtype dtype; // element type; reset to INF_DTYPE_NONE once the operand has this type
    struct inf_shape shape;
    bool shape_granted;
};

// A pseudo-random number generator that gives the same numbers on every machine.
struct random {
    uint64_t state;
    struct wish *wish; // NULL if the first operand may have any type and shape
    bool tame;         // true if operands must have no extreme values, and pictures must be small
};

// The maximum number of elements of the largest operand.
#define CASE_ELEMENTS_MAX 4096

// Selects the random values with which an operand is filled.
enum filling {
    FILL_UNIFORM,  // elements in -2 .. 2
    FILL_POSITIVE, // elements in 0.1 .. 4
    FILL_UNIT,     // elements in -0.95 .. 0.95
    FILL_QUARTERS, // multiples of 1/4 in -8 .. 8; sums and products are exact, and some are equal
    FILL_POWERS,   // 1/4, 1/2, 1, 2 or 4 of either sign, so that divisions are exact
};

// Extreme values that may occur among the elements of an operand. The constants are bits of a mask.
enum extreme {
    EXTREME_ZERO = 1 << 0,     // operands may contain 0 and -0
    EXTREME_INFINITE = 1 << 1, // operands may contain inf and -inf
    EXTREME_NAN = 1 << 2,
    EXTREME_LARGE = 1 << 3,  // operands may contain numbers up to the largest float
    EXTREME_DENORM = 1 << 4, // operands may contain numbers below the smallest normal float
    EXTREME_ALL = (1 << 5) - 1,
};

struct operand {
    enum inf_dtype dtype;
    struct inf_shape shape;
    enum filling filling;
    unsigned extremes; // bits of enum extreme: the extreme values that may occur among the elements
    bool constant;
};

// Returns the next 64 random bits of the generator.
uint64_t random_bits(struct random *random);

// Returns a number in [low, high].
int64_t random_in(struct random *random, int64_t low, int64_t high);

// Returns true once in `times` calls on average.
bool random_once_in(struct random *random, int64_t times);

// Returns a dimension that is difficult for kernels, such as 1, a small prime, 4k+-1, or rarely 0.
int64_t random_dim(struct random *random);

// Returns a random rank in [low, high]. If random->wish has a shape, returns the rank of that
// shape.
int32_t random_rank(struct random *random, int32_t low, int32_t high);

// If the shape in random->wish has `rank` axes, copies it to *shape, sets shape_granted and returns
// true. Otherwise returns false.
bool random_wished_shape(struct random *random, int32_t rank, struct inf_shape *shape);

// Returns a shape of random_dim()s with `rank` axes and at most CASE_ELEMENTS_MAX elements.
struct inf_shape random_shape(struct random *random, int32_t rank);

// Returns a shape that broadcasts to `shape`: some leading axes are left out, some others are 1.
struct inf_shape random_broadcastable(struct random *random, const struct inf_shape *shape);

// Returns one of the types in `mask` (bits of enum inf_dtype), usually FP32.
enum inf_dtype random_dtype(struct random *random, unsigned mask);

#define DTYPE(name)    (1u << INF_DTYPE_##name)
#define DTYPES_FLOAT   (DTYPE(F16) | DTYPE(BF16) | DTYPE(F32) | DTYPE(F64))
#define DTYPES_INTEGER (((1u << (INF_DTYPE_I64 + 1)) - 1) & ~(DTYPE(NONE) | DTYPE(BOOL)))
#define DTYPES_NUMBER  (DTYPES_FLOAT | DTYPES_INTEGER)
#define DTYPES_ANY     (DTYPES_NUMBER | DTYPE(BOOL))

// Adds an input of the node, with random elements.
void add_operand(struct one_node *one, struct random *random, const struct operand *operand);

// Adds an input of the node: a constant list of i32.
void add_list(struct one_node *one, const int32_t *elements, int64_t count);

// Adds the operands and attributes of test case `number` for one operator. If the operator has
// several kinds, such as add and sub, consecutive numbers select consecutive kinds. The node may be
// invalid, for example if its window does not fit.
typedef void case_maker(struct one_node *one, struct random *random, uint32_t number);

// Describes how to make the cases of one operator.
struct case_family {
    case_maker *make;
    uint32_t count; // number of cases that are needed to cover the operator
};

// The family of every operator, indexed by enum inf_op. The test fails if the `make` of an operator
// is NULL.
extern const struct case_family case_families[INF_OP_COUNT];

// Functions that make test cases for element-wise operators and reductions.
case_maker make_unary, make_binary, make_compare, make_select, make_clip, make_prelu, make_cast,
    make_bitcast, make_reduce, make_arg, make_softmax;
// Functions that make test cases for operators with windows, matrix products and pictures.
case_maker make_conv2d, make_depthwise_conv2d, make_conv2d_transpose, make_matmul, make_pool2d,
    make_batch_norm, make_resize;
// Functions that make test cases for operators that move or create data.
case_maker make_identity, make_reshape, make_expand_dims, make_squeeze, make_transpose, make_concat,
    make_split, make_slice, make_pad, make_tile, make_broadcast, make_gather, make_space_to_depth,
    make_depth_to_space, make_shape, make_fill, make_range, make_random;
// Functions that make test cases for gather and scatter operators, windows of any rank, sampling,
// normalisation, quantisation and recurrent networks.
case_maker make_reverse, make_reverse_sequence, make_cumulate, make_topk, make_search_sorted,
    make_pair_coupling, make_nms, make_bincount, make_one_hot, make_band, make_gather_nd,
    make_scatter_nd, make_append, make_gather_elements, make_scatter_elements, make_space_to_batch,
    make_batch_to_space, make_conv_nd, make_conv_nd_transpose, make_pool_nd, make_dilation2d,
    make_lrn, make_normalize, make_resample, make_crop_and_resize, make_roi_align, make_grid_sample,
    make_image_transform, make_quantize, make_dequantize, make_rnn;
// Functions that make test cases for operators on quantised numbers.
case_maker make_qconv2d, make_qmatmul, make_matmul_blocks, make_qbinary, make_lookup;

#endif
