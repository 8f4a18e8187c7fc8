// SPDX-License-Identifier: Apache-2.0
// Tensors of ONNX's narrow types: floats of 4 and 8 bits, integers of 2 and 4 bits. The graph has
// no such element types. It stores one element in a byte: an integer as INT8 or UINT8, a float as
// UINT8 that holds its bits. A name of the model that stands for such a tensor has a handle instead
// of a value, so that only the operators that are made for narrow types take it.
//
// A handle is a number larger than any value: it contains the TensorProto.DataType and the value.
#ifndef INF_BACKENDS_IMPORT_ONNX_NARROW_H
#define INF_BACKENDS_IMPORT_ONNX_NARROW_H

#include "backends/import/onnx/scope.h"

// How a handle is composed. The types are 17 (FLOAT8E4M3FN) to 26 (INT2). Sequences have smaller
// numbers, INF_VALUE_NONE is larger.
#define INF_ONNX_NARROW_FIRST      0xc0000000u
#define INF_ONNX_NARROW_VALUE_BITS 26
#define INF_ONNX_NARROW_TYPE_MIN   17
#define INF_ONNX_NARROW_TYPE_MAX   26

// Returns true if a number is the handle of a narrow tensor; false for values, sequences and
// INF_VALUE_NONE.
static inline bool inf_onnx_is_narrow(uint32_t value)
{
    return value >= INF_ONNX_NARROW_FIRST &&
           (value - INF_ONNX_NARROW_FIRST) >> INF_ONNX_NARROW_VALUE_BITS <=
               INF_ONNX_NARROW_TYPE_MAX - INF_ONNX_NARROW_TYPE_MIN;
}

// Returns the TensorProto.DataType of a handle.
static inline int32_t inf_onnx_narrow_type(uint32_t handle)
{
    return (int32_t)((handle - INF_ONNX_NARROW_FIRST) >> INF_ONNX_NARROW_VALUE_BITS) +
           INF_ONNX_NARROW_TYPE_MIN;
}

// Returns the value that a handle stands for. Any other number is returned as it is.
static inline uint32_t inf_onnx_narrow_value(uint32_t handle)
{
    return inf_onnx_is_narrow(handle) ? handle & ((1u << INF_ONNX_NARROW_VALUE_BITS) - 1) : handle;
}

// Returns the element type with which the graph stores a narrow type; INF_DTYPE_NONE for every
// other number of TensorProto.DataType.
enum inf_dtype inf_onnx_narrow_dtype(int64_t type);

// Returns the handle of the tensor of narrow type `type` that is stored in `value`; INF_VALUE_NONE
// after a failure. Latches a failure if the graph has too many values.
uint32_t inf_onnx_narrow_wrap(struct inf_onnx_scope *s, uint32_t value, int32_t type);

// Adds nodes that make every byte of `value` a valid element of the narrow type: only the lowest
// bits count. Clients can send any bytes. Returns the handle of the result.
uint32_t inf_onnx_narrow_input(struct inf_onnx_scope *s, uint32_t value, int32_t type);

// Adds nodes that convert a narrow tensor to `dtype`. The conversion is exact if `dtype` can
// represent the numbers.
uint32_t inf_onnx_narrow_widen(struct inf_onnx_scope *s, uint32_t handle, enum inf_dtype dtype);

// What Cast's attributes say about numbers that the narrow float type cannot represent.
struct inf_onnx_rounding {
    bool saturate;    // numbers beyond the largest one become it, instead of infinity or NaN
    const char *mode; // FLOAT8E8M0 only: "up", "down" or "nearest"
};

// Adds nodes that convert x to a narrow type as ONNX's Cast does, and returns the handle of the
// result. Floats round to the nearest number, ties to even; integers keep their lowest bits. A NaN
// loses its sign.
uint32_t inf_onnx_narrow_round(struct inf_onnx_scope *s, uint32_t x, int32_t type,
                               const struct inf_onnx_rounding *rounding);

// Returns the range of a narrow integer type. Returns false for floats and for other types.
bool inf_onnx_narrow_range(int32_t type, double *low, double *high);

#endif
