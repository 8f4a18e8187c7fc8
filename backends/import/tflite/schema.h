// SPDX-License-Identifier: Apache-2.0
// Names and numbers of LiteRT's schema.fbs: builtin operators, tensor types and the types of
// operator options.
#ifndef INF_BACKENDS_IMPORT_TFLITE_SCHEMA_H
#define INF_BACKENDS_IMPORT_TFLITE_SCHEMA_H

#include <stdint.h>

#include "proto/core/dtype.h"

// The numbers of builtin operators.
enum inf_tflite_builtin {
#define INF_TFLITE_BUILTIN(name, code) INF_TFLITE_##name = code,
#include "backends/import/tflite/builtins.def"
};

// Returns the name of a builtin operator ("CONV_2D"); NULL if the schema has no such number.
const char *inf_tflite_builtin_name(int32_t code);

// The numbers of tensor types that the importer treats specially.
enum inf_tflite_type {
    INF_TFLITE_TYPE_FLOAT32 = 0,
    INF_TFLITE_TYPE_FLOAT16 = 1,
    INF_TFLITE_TYPE_UINT8 = 3,
    INF_TFLITE_TYPE_STRING = 5,
    INF_TFLITE_TYPE_COMPLEX64 = 8,
    INF_TFLITE_TYPE_INT8 = 9,
    INF_TFLITE_TYPE_RESOURCE = 13,
    INF_TFLITE_TYPE_INT4 = 17,
    INF_TFLITE_TYPE_INT2 = 19,
    INF_TFLITE_TYPE_UINT4 = 20,
};

// How a tensor type is stored in a file and in the graph.
struct inf_tflite_type_info {
    const char *name;      // "INT4"; NULL if the schema has no such number
    enum inf_dtype dtype;  // element type in the graph; INF_DTYPE_NONE if it is not supported
    uint32_t element_bits; // bits of an element in the file; 0 if the type is not supported
};

// Returns the description of a tensor type. All fields are 0 if the schema has no such number.
struct inf_tflite_type_info inf_tflite_type_info(int64_t type);

// The types of operator options that have fields which the importer reads: the numbers of the union
// BuiltinOptions.
enum inf_tflite_options {
    INF_TFLITE_OPTIONS_NONE = 0,
    INF_TFLITE_OPTIONS_CONV_2D = 1,
    INF_TFLITE_OPTIONS_DEPTHWISE_CONV_2D = 2,
    INF_TFLITE_OPTIONS_POOL_2D = 5,
    INF_TFLITE_OPTIONS_SVDF = 6,
    INF_TFLITE_OPTIONS_RNN = 7,
    INF_TFLITE_OPTIONS_FULLY_CONNECTED = 8,
    INF_TFLITE_OPTIONS_SOFTMAX = 9,
    INF_TFLITE_OPTIONS_CONCATENATION = 10,
    INF_TFLITE_OPTIONS_ADD = 11,
    INF_TFLITE_OPTIONS_L2_NORM = 12,
    INF_TFLITE_OPTIONS_LOCAL_RESPONSE_NORM = 13,
    INF_TFLITE_OPTIONS_LSTM = 14,
    INF_TFLITE_OPTIONS_RESIZE_BILINEAR = 15,
    INF_TFLITE_OPTIONS_CALL = 16,
    INF_TFLITE_OPTIONS_RESHAPE = 17,
    INF_TFLITE_OPTIONS_SPACE_TO_DEPTH = 19,
    INF_TFLITE_OPTIONS_EMBEDDING_LOOKUP_SPARSE = 20,
    INF_TFLITE_OPTIONS_MUL = 21,
    INF_TFLITE_OPTIONS_GATHER = 23,
    INF_TFLITE_OPTIONS_REDUCER = 27,
    INF_TFLITE_OPTIONS_SUB = 28,
    INF_TFLITE_OPTIONS_DIV = 29,
    INF_TFLITE_OPTIONS_SQUEEZE = 30,
    INF_TFLITE_OPTIONS_SEQUENCE_RNN = 31,
    INF_TFLITE_OPTIONS_STRIDED_SLICE = 32,
    INF_TFLITE_OPTIONS_SPLIT = 35,
    INF_TFLITE_OPTIONS_CAST = 37,
    INF_TFLITE_OPTIONS_ARG_MAX = 40,
    INF_TFLITE_OPTIONS_TRANSPOSE_CONV = 49,
    INF_TFLITE_OPTIONS_SHAPE = 55,
    INF_TFLITE_OPTIONS_ARG_MIN = 57,
    INF_TFLITE_OPTIONS_FAKE_QUANT = 58,
    INF_TFLITE_OPTIONS_PACK = 59,
    INF_TFLITE_OPTIONS_ONE_HOT = 61,
    INF_TFLITE_OPTIONS_UNPACK = 64,
    INF_TFLITE_OPTIONS_BIDIRECTIONAL_SEQUENCE_LSTM = 69,
    INF_TFLITE_OPTIONS_BIDIRECTIONAL_SEQUENCE_RNN = 70,
    INF_TFLITE_OPTIONS_UNIDIRECTIONAL_SEQUENCE_LSTM = 71,
    INF_TFLITE_OPTIONS_RESIZE_NEAREST = 74,
    INF_TFLITE_OPTIONS_LEAKY_RELU = 75,
    INF_TFLITE_OPTIONS_MIRROR_PAD = 77,
    INF_TFLITE_OPTIONS_SPLIT_V = 79,
    INF_TFLITE_OPTIONS_UNIQUE = 80,
    INF_TFLITE_OPTIONS_REVERSE_SEQUENCE = 87,
    INF_TFLITE_OPTIONS_IF = 92,
    INF_TFLITE_OPTIONS_WHILE = 93,
    INF_TFLITE_OPTIONS_DEPTH_TO_SPACE = 94,
    INF_TFLITE_OPTIONS_BATCH_MATMUL = 101,
    INF_TFLITE_OPTIONS_CUMSUM = 102,
    INF_TFLITE_OPTIONS_CALL_ONCE = 103,
    INF_TFLITE_OPTIONS_CONV_3D = 106,
    INF_TFLITE_OPTIONS_VAR_HANDLE = 111,
    INF_TFLITE_OPTIONS_RANDOM = 114,
    INF_TFLITE_OPTIONS_BUCKETIZE = 115,
    INF_TFLITE_OPTIONS_GELU = 116,
};

// The numbers of the union BuiltinOptions2 that the importer reads.
enum inf_tflite_options_2 {
    INF_TFLITE_OPTIONS_2_CONCATENATE = 1,
    INF_TFLITE_OPTIONS_2_BROADCAST_IN_DIM = 2,
    INF_TFLITE_OPTIONS_2_SLICE = 3,
    INF_TFLITE_OPTIONS_2_REDUCE = 6,
    INF_TFLITE_OPTIONS_2_COMPARE = 8,
    INF_TFLITE_OPTIONS_2_DYNAMIC_SLICE = 9,
    INF_TFLITE_OPTIONS_2_PAD = 10,
    INF_TFLITE_OPTIONS_2_IOTA = 11,
    INF_TFLITE_OPTIONS_2_DOT_GENERAL = 12,
    INF_TFLITE_OPTIONS_2_REDUCE_WINDOW = 13,
    INF_TFLITE_OPTIONS_2_WHILE = 15,
    INF_TFLITE_OPTIONS_2_GATHER = 16,
    INF_TFLITE_OPTIONS_2_TRANSPOSE = 17,
    INF_TFLITE_OPTIONS_2_REDUCE_WINDOW_OLD = 20,
    INF_TFLITE_OPTIONS_2_COMPOSITE = 21,
};

#endif
