// SPDX-License-Identifier: Apache-2.0
// Nodes and constants of quantised tensors. Weights are brought to the graph's order of axes while
// they are copied from the file, so that no transpose of a large constant is left for the passes.
#include "backends/import/tflite/quantize.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/tensor.h"

// The most bytes of a variable tensor, which takes no room in the file.
#define VARIABLE_BYTES_MAX ((size_t)64 << 20)

uint32_t inf_tflite_add_blob(struct inf_builder *b, const char *name, enum inf_dtype dtype,
                             const struct inf_shape *shape, struct inf_blob *data)
{
    uint32_t value = INF_VALUE_NONE;
    if (!inf_build_ok(b)) {
        inf_blob_unref(&data);
        return value;
    }
    b->code = inf_graph_add_const(b->graph, *name != '\0' ? name : b->name, dtype, shape, data,
                                  &value, b->err);
    return inf_build_ok(b) ? value : INF_VALUE_NONE;
}

void inf_tflite_stored_range(const struct inf_tflite_tensor *tensor, int32_t *low, int32_t *high)
{
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    *low = dtype == INF_DTYPE_I32   ? INT32_MIN
           : dtype == INF_DTYPE_I16 ? INT16_MIN
           : dtype == INF_DTYPE_I8  ? INT8_MIN
                                    : 0;
    *high = dtype == INF_DTYPE_I32   ? INT32_MAX
            : dtype == INF_DTYPE_I16 ? INT16_MAX
            : dtype == INF_DTYPE_I8  ? INT8_MAX
                                     : UINT8_MAX;
}

uint32_t inf_tflite_add_zeros(struct inf_builder *b, const struct inf_tflite_tensor *tensor)
{
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    size_t size_bytes;
    uint8_t *data;
    if (dtype == INF_DTYPE_NONE || !inf_shape_bytes(&tensor->shape, dtype, &size_bytes) ||
        size_bytes > VARIABLE_BYTES_MAX)
        inf_build_fail(b, INF_UNSUPPORTED, "variable '%.200s' has too many elements", tensor->name);
    uint32_t value = inf_build_const(b, dtype, &tensor->shape, &data);
    bool is_byte = dtype == INF_DTYPE_I8 || dtype == INF_DTYPE_U8;
    if (data != NULL && size_bytes > 0 && is_byte && tensor->quantization.count > 0)
        memset(data, (uint8_t)tensor->quantization.zeros[0], size_bytes);
    return value;
}

// --- axes of constants ---

// Rows and columns of a tile of a matrix that is transposed.
#define TILE 32

// Copies a tile of a matrix [rows, columns] of elements of `size` bytes to its transpose. The tile
// has `side` rows and columns; those behind the end of the matrix are left out. The constant `size`
// of the callers lets the compiler make plain loads and stores.
static inline void transpose_tile(uint8_t *to, const uint8_t *from, size_t size, size_t rows,
                                  size_t columns, size_t row, size_t column, size_t side)
{
    size_t row_end = INF_MIN(row + side, rows), column_end = INF_MIN(column + side, columns);
    for (size_t c = column; c < column_end; c++)
        for (size_t r = row; r < row_end; r++)
            memcpy(to + (c * rows + r) * size, from + (r * columns + c) * size, size);
}

// Rows and columns of a square of bytes.
#define SQUARE 16
typedef uint8_t square_row __attribute__((vector_size(SQUARE)));

// Transposes a square of bytes. A pass interleaves the rows of the upper half with those of the
// lower half. It rotates the index 16 * row + column of each byte left by one bit, so that four
// passes swap row and column.
static void transpose_square(uint8_t *to, size_t to_step, const uint8_t *from, size_t from_step)
{
    square_row rows[SQUARE], mixed[SQUARE];
    for (size_t i = 0; i < SQUARE; i++)
        memcpy(&rows[i], from + i * from_step, SQUARE);
    for (size_t size = SQUARE; size > 1; size /= 2) {
        for (size_t i = 0; i < SQUARE / 2; i++) {
            square_row a = rows[i], b = rows[i + SQUARE / 2];
            mixed[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                                   6, 22, 7, 23);
            mixed[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                                       13, 29, 14, 30, 15, 31);
        }
        memcpy(rows, mixed, sizeof rows);
    }
    for (size_t i = 0; i < SQUARE; i++)
        memcpy(to + i * to_step, &rows[i], SQUARE);
}

static void transpose_bytes(uint8_t *to, const uint8_t *from, size_t rows, size_t columns)
{
    for (size_t row = 0; row < rows; row += SQUARE)
        for (size_t column = 0; column < columns; column += SQUARE)
            if (rows - row >= SQUARE && columns - column >= SQUARE)
                transpose_square(to + column * rows + row, rows, from + row * columns + column,
                                 columns);
            else
                transpose_tile(to, from, 1, rows, columns, row, column, SQUARE);
}

// Transposes a matrix tile by tile, so that both sides stay in the cache.
static void transpose_matrix(uint8_t *to, const uint8_t *from, size_t size, size_t rows,
                             size_t columns)
{
    if (size == 1) {
        transpose_bytes(to, from, rows, columns);
        return;
    }
    for (size_t row = 0; row < rows; row += TILE)
        for (size_t column = 0; column < columns; column += TILE) {
            if (size == 4)
                transpose_tile(to, from, 4, rows, columns, row, column, TILE);
            else
                transpose_tile(to, from, size, rows, columns, row, column, TILE);
        }
}

// Copies elements so that axis i of `to` is axis perm[i] of `from`. Elements have `size` bytes.
static void permute_elements(uint8_t *to, const uint8_t *from, size_t size,
                             const struct inf_shape *shape, const int64_t *perm)
{
    int64_t strides[INF_LIMIT_RANK], index[INF_LIMIT_RANK] = {0};
    int64_t dims[INF_LIMIT_RANK], steps[INF_LIMIT_RANK];
    int32_t rank = shape->rank, moved = 0;
    size_t count = inf_shape_elements(shape);
    // The first axis goes to the end, and the others keep their order: a transpose.
    while (moved < rank && perm[moved] == (moved + 1) % rank)
        moved++;
    if (moved == rank) {
        size_t rows = (size_t)shape->dims[0];
        transpose_matrix(to, from, size, rows, count / rows);
        return;
    }
    inf_shape_strides(shape, strides);
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = shape->dims[perm[i]];
        steps[i] = strides[perm[i]] * (int64_t)size;
    }
    int64_t row_size = dims[rank - 1], row_step = steps[rank - 1];
    for (size_t row = 0; row < count / (size_t)row_size; row++) {
        const uint8_t *at = from;
        for (int32_t i = 0; i < rank - 1; i++)
            at += index[i] * steps[i];
        if (row_step == (int64_t)size)
            memcpy(to, at, (size_t)row_size * size);
        for (int64_t i = 0; row_step != (int64_t)size && i < row_size; i++)
            memcpy(to + (size_t)i * size, at + i * row_step, size);
        to += (size_t)row_size * size;
        for (int32_t i = rank - 2; i >= 0 && ++index[i] == dims[i]; i--)
            index[i] = 0;
    }
}

static bool is_identity(const struct inf_tflite_layout *layout)
{
    for (int32_t i = 0; i < layout->rank; i++)
        if (layout->perm[i] != i)
            return false;
    return true;
}

uint32_t inf_tflite_add_permuted(struct inf_builder *b, const struct inf_tflite_tensor *tensor,
                                 enum inf_dtype dtype, struct inf_blob *data,
                                 const struct inf_tflite_layout *layout)
{
    struct inf_shape shape = tensor->shape;
    if (layout == NULL || is_identity(layout) || !inf_build_ok(b))
        return inf_tflite_add_blob(b, tensor->name, dtype, &tensor->shape, data);
    assert(layout->rank == tensor->shape.rank);
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = tensor->shape.dims[layout->perm[i]];
    struct inf_blob *permuted = inf_blob_create(data->size_bytes);
    if (permuted == NULL)
        inf_build_fail(b, INF_EXHAUSTED, "no memory for %zu bytes", data->size_bytes);
    else if (data->size_bytes > 0)
        permute_elements(permuted->data, data->data, inf_dtype_size(dtype), &tensor->shape,
                         layout->perm);
    inf_blob_unref(&data);
    return inf_tflite_add_blob(b, tensor->name, dtype, &shape, permuted);
}

uint32_t inf_tflite_add_floats(struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor,
                               const struct inf_tflite_layout *layout)
{
    struct inf_blob *data = NULL;
    if (inf_build_ok(&s->b))
        s->b.code = inf_tflite_tensor_read_floats(&data, s->frame->subgraph, tensor, s->b.err);
    return inf_tflite_add_permuted(&s->b, tensor, INF_DTYPE_F32, data, layout);
}

// --- nodes ---

void inf_tflite_add_scales(struct inf_builder *b, const struct inf_tflite_tensor *tensor,
                           uint32_t *out_scale, uint32_t *out_zero)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    struct inf_shape shape = {.rank = q->count > 1 ? 1 : 0, .dims = {q->count > 1 ? q->count : 0}};
    int32_t low, high;
    bool has_zero = false;
    float *scales;
    uint8_t *zeros = NULL;
    inf_tflite_stored_range(tensor, &low, &high);
    for (uint32_t i = 0; i < q->count; i++) {
        has_zero |= q->zeros[i] != 0;
        if (q->zeros[i] < low || q->zeros[i] > high)
            inf_build_fail(b, INF_INVALID, "tensor '%.200s' has zero point %lld, wanted %d to %d",
                           tensor->name, (long long)q->zeros[i], low, high);
    }
    *out_scale = inf_build_const(b, INF_DTYPE_F32, &shape, &scales);
    if (scales != NULL)
        memcpy(scales, q->scales, q->count * sizeof *scales);
    *out_zero = has_zero ? inf_build_const(b, dtype, &shape, &zeros) : INF_VALUE_NONE;
    size_t size = inf_dtype_size(dtype);
    for (uint32_t i = 0; zeros != NULL && i < q->count; i++)
        memcpy(zeros + i * size, &q->zeros[i], size);
}

uint32_t inf_tflite_dequantize(struct inf_builder *b, uint32_t value,
                               const struct inf_tflite_tensor *tensor, int32_t axis)
{
    uint32_t scale, zero;
    inf_tflite_add_scales(b, tensor, &scale, &zero);
    struct inf_build_node node = inf_build_describe(INF_OP_DEQUANTIZE, value, scale, zero);
    node.attrs.dequantize.axis = tensor->quantization.count > 1 ? axis : 0;
    return inf_build_value(b, &node);
}

uint32_t inf_tflite_quantize(struct inf_builder *b, uint32_t value,
                             const struct inf_tflite_tensor *tensor)
{
    uint32_t scale, zero;
    const struct inf_tflite_quantization *q = &tensor->quantization;
    for (uint32_t i = 0; i < q->count; i++)
        if (q->scales[i] == 0)
            inf_build_fail(b, INF_INVALID, "output '%.200s' has scale 0", tensor->name);
    if (q->count == 0)
        inf_build_fail(b, INF_UNSUPPORTED, "output '%.200s' is quantised in blocks", tensor->name);
    inf_tflite_add_scales(b, tensor, &scale, &zero);
    struct inf_build_node node = inf_build_describe(INF_OP_QUANTIZE, value, scale, zero);
    node.attrs.quantize.dtype = inf_tflite_type_info(tensor->type).dtype;
    node.attrs.quantize.axis = q->count > 1 ? q->axis : 0;
    return inf_build_value(b, &node);
}

void inf_tflite_store_bounds(const struct inf_tflite_tensor *tensor, float min, float max,
                             int32_t *low, int32_t *high)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    int32_t first, last;
    inf_tflite_stored_range(tensor, &first, &last);
    float from = rintf(min / q->scales[0]) + (float)q->zeros[0];
    float to = rintf(max / q->scales[0]) + (float)q->zeros[0];
    *low = (int32_t)fminf(fmaxf(from, (float)first), (float)last);
    *high = (int32_t)fminf(fmaxf(to, (float)first), (float)last);
}

bool inf_tflite_clamps(const struct inf_tflite_tensor *tensor, float min, float max)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    int32_t first, last, low, high;
    if (!inf_tflite_tensor_is_quantized(tensor) || q->count != 1 || q->scales[0] == 0)
        return true;
    inf_tflite_stored_range(tensor, &first, &last);
    inf_tflite_store_bounds(tensor, min, max, &low, &high);
    return low > first || high < last;
}
