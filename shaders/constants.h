// SPDX-License-Identifier: Apache-2.0
// Constants shared by the shaders and the Vulkan backend. GLSL and C both include this file, so it
// contains only plain definitions. The numbers are independent of the graph's enums, so that a new
// kind of operator does not renumber them.
#ifndef INF_SHADERS_CONSTANTS_H
#define INF_SHADERS_CONSTANTS_H

// The most storage buffers that one dispatch binds. Binding i is a storage buffer, and binding
// BINDINGS_MAX + i is the texel view of the same buffer.
#define BINDINGS_MAX 6
// The binding of the status words, through which a dispatch reports errors to the host.
#define STATUS_BINDING 12
// Index of a status word: not 0 if a result stored as a 16-bit float is not finite.
#define STATUS_OVERFLOWED 0
#define STATUS_BY_ZERO    1 // index of a status word: not 0 if an integer was divided by 0
// Index of a status word: not 0 if an index was out of range; the next two words hold that index.
#define STATUS_BAD_INDEX 2
#define STATUS_WORDS     5

// The most specialisation constants that a shader may have, starting at 1. Constant 0 is the size
// of a work group in all shaders.
#define CONSTANTS_MAX 13
// The id of the specialisation constant that follows the shader's own constants. Bit i of this
// constant is set if the floats of binding i are 16-bit. If the number of elements that a dispatch
// writes is not a multiple of four, the bits from HALVES_BEHIND on hold how many elements of the
// last vector lie after the end of the tensor.
#define HALVES_CONSTANT 14
#define HALVES_BEHIND   28
// Floats of at least this magnitude become infinity when they are rounded to 16 bits.
#define HALF_BEYOND 65520.0

// Ids of the functions that shaders apply to single elements: as operators of their own, and as
// activations of convolutions and products. Each has at most two parameters, `low` and `high`.
#define FN_NONE       0
#define FN_CLIP       1 // min(max(x, low), high); NaN stays NaN. relu is clip(0, inf)
#define FN_SIGMOID    2
#define FN_TANH       3
#define FN_ELU        4 // `low` is the scale of negative results
#define FN_LEAKY_RELU 5 // `low` is the slope; for prelu each channel has its own slope
#define FN_HARD_SWISH 6
#define FN_NEG        7
#define FN_ABS        8
#define FN_SIGN       9
#define FN_FLOOR      10
#define FN_CEIL       11
#define FN_ROUND      12
#define FN_TRUNC      13
#define FN_SQUARE     14
#define FN_SQRT       15
#define FN_RSQRT      16
#define FN_RECIPROCAL 17
#define FN_EXP        18
#define FN_EXPM1      19
#define FN_LOG        20
#define FN_LOG1P      21
#define FN_SIN        22
#define FN_COS        23
#define FN_TAN        24
#define FN_ASIN       25
#define FN_ACOS       26
#define FN_ATAN       27
#define FN_SINH       28
#define FN_COSH       29
#define FN_ASINH      30
#define FN_ACOSH      31
#define FN_ATANH      32
#define FN_ERF        33
#define FN_SOFTPLUS   34
#define FN_SELU       35
#define FN_IS_NAN     36
#define FN_GELU       37
#define FN_GELU_TANH  38
#define FN_SILU       39

// Ids of the arithmetic functions of two elements.
#define BINARY_ADD                0
#define BINARY_SUB                1
#define BINARY_MUL                2
#define BINARY_DIV                3
#define BINARY_DIV_NO_NAN         4
#define BINARY_FLOOR_DIV          5
#define BINARY_FLOOR_MOD          6
#define BINARY_MOD                7
#define BINARY_POW                8
#define BINARY_MIN                9
#define BINARY_MAX                10
#define BINARY_SQUARED_DIFFERENCE 11
#define BINARY_PRELU              12

#define COMPARE_EQUAL         0
#define COMPARE_NOT_EQUAL     1
#define COMPARE_LESS          2
#define COMPARE_LESS_EQUAL    3
#define COMPARE_GREATER       4
#define COMPARE_GREATER_EQUAL 5

// Ids of the element types for which shaders are specialised.
#define TYPE_F32  0
#define TYPE_I32  1
#define TYPE_U8   2
#define TYPE_BOOL 3

// How an operand of an element-wise operator is broadcast to the result. An invocation computes
// four neighbouring elements of the result.
#define MODE_FLAT   0 // the operand has the shape of the result, so it is not broadcast
#define MODE_SCALAR 1 // the operand has one element, which is used for the whole result
// The operand is one row, which is repeated for all rows of the result; its length is a multiple of
// four elements.
#define MODE_ROW 2
// The four elements that an invocation reads are contiguous in the operand.
#define MODE_INNER_VECTOR 3
#define MODE_INNER_SCALAR 4 // all four results of an invocation use the same element of the operand
#define MODE_GENERAL      5

#define PAD_CONSTANT  0
#define PAD_REFLECT   1
#define PAD_SYMMETRIC 2
#define PAD_EDGE      3

// How a convolution loads the residual, a tensor that is added to its result.
#define ADDED_NOTHING 0
// The residual is read in vectors: its number of channels is a multiple of four.
#define ADDED_VECTORS 1
#define ADDED_NUMBERS 2

// A work group of conv_block.comp has BLOCK_SIDE * BLOCK_SIDE invocations and keeps BLOCK_DEPTH
// values of each pixel and channel in shared memory. PIXELS * BLOCK_DEPTH must be a multiple of
// 4 * BLOCK_SIDE, so that all invocations copy equally much.
#define BLOCK_SIDE  8
#define BLOCK_DEPTH 16

// A work group of conv_matrix.comp has MATRIX_SIDES * MATRIX_SIDES subgroups. It keeps MATRIX_DEPTH
// values of each pixel and channel in shared memory, where rows are longer than the block by
// MATRIX_GAP numbers, so that neighbouring rows lie in different banks of the memory.
#define MATRIX_SIDES 2
#define MATRIX_DEPTH 32
#define MATRIX_GAP   8

// The vectors of four channels that a work group of conv_split.comp computes.
#define SPLIT_COLUMNS 8

// A work group of matmul_blocks.comp computes BLOCKS_COLUMNS columns, each by BLOCKS_PARTS
// invocations, a power of two. Every device has work groups of this size.
#define BLOCKS_COLUMNS 32
#define BLOCKS_PARTS   4
// The zero points of matmul_blocks.comp: half of the range of the numbers, bytes or floats.
#define BLOCKS_ZEROS_NONE   0
#define BLOCKS_ZEROS_BYTES  1
#define BLOCKS_ZEROS_FLOATS 2

// A work group of attention.comp computes ATTENTION_ROWS rows, each by ATTENTION_SIDE invocations.
// It keeps the rows of queries in shared memory, so they have at most ATTENTION_DEPTH columns, and
// goes through the keys in tiles of ATTENTION_TILE.
#define ATTENTION_ROWS  8
#define ATTENTION_SIDE  8
#define ATTENTION_DEPTH 128
#define ATTENTION_TILE  32

#define REDUCE_SUM  0
#define REDUCE_MAX  1
#define REDUCE_MIN  2
#define REDUCE_PROD 3

// The largest number of axes in the push constants of a shader.
#define BROADCAST_AXES 5
#define MOVE_AXES      8
#define PAD_AXES       6
#define REDUCE_AXES    4
#define BATCH_AXES     4
#define GATHER_AXES    8
#define ATTENTION_AXES 5

#endif
