// SPDX-License-Identifier: Apache-2.0
// Reads TensorProtos. Elements are in a typed field, in raw_data, or in an external file. Elements
// of less than 8 bits are unpacked to bytes. Large raw_data is copied piece by piece, and its pages
// are returned to the system during the copy, so that the weights are not in memory twice.
#include "backends/import/onnx/tensor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/bulk/parallel.h"
#include "backends/import/common/beside.h"
#include "backends/import/onnx/proto.h"
#include "backends/storage/file.h"

// Raw data of at least this size is copied piece by piece, and the file's pages are released
// meanwhile.
#define TAKEN_BYTES_MIN ((size_t)256 << 10)
#define PIECE_BYTES     ((size_t)1 << 20)

enum field {
    FIELD_DIMS = 1,
    FIELD_TYPE = 2,
    FIELD_SEGMENT = 3,
    FIELD_FLOATS = 4,
    FIELD_INT32S = 5,
    FIELD_STRINGS = 6,
    FIELD_INT64S = 7,
    FIELD_NAME = 8,
    FIELD_RAW = 9,
    FIELD_DOUBLES = 10,
    FIELD_UINT64S = 11,
    FIELD_EXTERNAL = 13,
    FIELD_LOCATION = 14,
};

// Indexed by TensorProto.DataType: the name, the element type, and the typed field that may hold
// the elements.
static const struct {
    const char *name;
    enum inf_dtype dtype;
    enum field field;
} types[] = {
    [1] = {"FLOAT", INF_DTYPE_F32, FIELD_FLOATS},
    [2] = {"UINT8", INF_DTYPE_U8, FIELD_INT32S},
    [3] = {"INT8", INF_DTYPE_I8, FIELD_INT32S},
    [4] = {"UINT16", INF_DTYPE_U16, FIELD_INT32S},
    [5] = {"INT16", INF_DTYPE_I16, FIELD_INT32S},
    [6] = {"INT32", INF_DTYPE_I32, FIELD_INT32S},
    [7] = {"INT64", INF_DTYPE_I64, FIELD_INT64S},
    [8] = {"STRING", INF_DTYPE_BYTES, FIELD_STRINGS},
    [9] = {"BOOL", INF_DTYPE_BOOL, FIELD_INT32S},
    [10] = {"FLOAT16", INF_DTYPE_F16, FIELD_INT32S},
    [11] = {"DOUBLE", INF_DTYPE_F64, FIELD_DOUBLES},
    [12] = {"UINT32", INF_DTYPE_U32, FIELD_UINT64S},
    [13] = {"UINT64", INF_DTYPE_U64, FIELD_UINT64S},
    [14] = {"COMPLEX64", INF_DTYPE_NONE, FIELD_FLOATS},
    [15] = {"COMPLEX128", INF_DTYPE_NONE, FIELD_DOUBLES},
    [16] = {"BFLOAT16", INF_DTYPE_BF16, FIELD_INT32S},
    [17] = {"FLOAT8E4M3FN", INF_DTYPE_NONE, FIELD_INT32S},
    [18] = {"FLOAT8E4M3FNUZ", INF_DTYPE_NONE, FIELD_INT32S},
    [19] = {"FLOAT8E5M2", INF_DTYPE_NONE, FIELD_INT32S},
    [20] = {"FLOAT8E5M2FNUZ", INF_DTYPE_NONE, FIELD_INT32S},
    [21] = {"UINT4", INF_DTYPE_NONE, FIELD_INT32S},
    [22] = {"INT4", INF_DTYPE_NONE, FIELD_INT32S},
    [23] = {"FLOAT4E2M1", INF_DTYPE_NONE, FIELD_INT32S},
    [24] = {"FLOAT8E8M0", INF_DTYPE_NONE, FIELD_INT32S},
    [25] = {"UINT2", INF_DTYPE_NONE, FIELD_INT32S},
    [26] = {"INT2", INF_DTYPE_NONE, FIELD_INT32S},
};

enum inf_dtype inf_onnx_dtype(int64_t type)
{
    return type > 0 && type < (int64_t)INF_ARRAY_LENGTH(types) ? types[type].dtype : INF_DTYPE_NONE;
}

const char *inf_onnx_type_name(int64_t type)
{
    return type > 0 && type < (int64_t)INF_ARRAY_LENGTH(types) ? types[type].name : "?";
}

// The state of reading one tensor.
struct reading {
    struct inf_onnx_tensor *tensor;
    const struct inf_onnx_files *files;
    bool takes;            // true: the bytes of the file are not read again and may be released
    struct inf_span bytes; // bytes of the TensorProto
    struct inf_span raw;
    bool has_raw;
    int64_t type, location;
    size_t size_bytes;               // size of all elements according to the shape
    struct inf_string_pool *strings; // receives the strings
    struct inf_error *err;
};

#define fail(reading, code, format, ...)                                                           \
    inf_fail((reading)->err, (code), "tensor '%.200s': " format,                                   \
             (reading)->tensor->name __VA_OPT__(, ) __VA_ARGS__)

// --- reading the shape ---

static enum inf_code add_dim(struct reading *reading, uint64_t dim)
{
    struct inf_shape *shape = &reading->tensor->shape;
    if (shape->rank == INF_LIMIT_RANK)
        return fail(reading, INF_UNSUPPORTED, "has more than %d dimensions", INF_LIMIT_RANK);
    if (dim >= (uint64_t)INF_LIMIT_DIM)
        return fail(reading, INF_INVALID, "dimension %d is %lld, wanted 0 to %lld", shape->rank,
                    (long long)dim, (long long)INF_LIMIT_DIM - 1);
    shape->dims[shape->rank++] = (int64_t)dim;
    return INF_OK;
}

static enum inf_code add_dims(struct reading *reading, const struct inf_pb_field *field)
{
    struct inf_span packed = field->bytes;
    uint64_t dim;
    if (field->type != INF_PB_BYTES)
        return add_dim(reading, field->value);
    while (packed.size > 0) {
        if (!inf_pb_varint(&packed, &dim))
            return fail(reading, INF_INVALID, "its dims do not end");
        INF_TRY(add_dim(reading, dim));
    }
    return INF_OK;
}

static enum inf_code read_head(struct reading *reading, struct inf_arena *arena)
{
    struct inf_pb pb = {reading->bytes};
    struct inf_pb_field field;
    bool more;
    inf_onnx_field(reading->bytes, FIELD_NAME, &field);
    INF_TRY(inf_onnx_text(&reading->tensor->name, arena, field.bytes, reading->err));
    for (;;) {
        INF_TRY(inf_pb_next(&pb, &field, &more, reading->err));
        if (!more)
            return INF_OK;
        if (field.number == FIELD_DIMS)
            INF_TRY(add_dims(reading, &field));
        else if (field.number == FIELD_TYPE)
            reading->type = (int64_t)field.value;
        else if (field.number == FIELD_LOCATION)
            reading->location = (int64_t)field.value;
        else if (field.number == FIELD_SEGMENT)
            return fail(reading, INF_UNSUPPORTED, "is stored in segments");
        if (field.number != FIELD_RAW)
            continue;
        if (field.type != INF_PB_BYTES || reading->has_raw)
            return fail(reading, INF_INVALID, "its raw_data is no bytes, or there twice");
        reading->has_raw = true;
        reading->raw = field.bytes;
    }
}

// --- reading elements from typed fields ---

static bool take_element(struct inf_span *packed, enum field field, uint64_t *bits)
{
    size_t size = field == FIELD_FLOATS ? 4 : 8;
    if (field != FIELD_FLOATS && field != FIELD_DOUBLES)
        return inf_pb_varint(packed, bits);
    if (packed->size < size)
        return false;
    *bits = 0;
    memcpy(bits, packed->data, size);
    packed->data += size;
    packed->size -= size;
    return true;
}

// Stores the low bytes of the bits of an element. This works because the format and all supported
// machines are little-endian.
static enum inf_code store_element(struct reading *reading, size_t *count, uint64_t bits)
{
    size_t size = inf_dtype_size(reading->tensor->dtype);
    if ((*count + 1) * size > reading->size_bytes)
        return fail(reading, INF_INVALID, "holds more elements than its dims say");
    if (reading->tensor->dtype == INF_DTYPE_BOOL)
        bits = bits != 0;
    memcpy((char *)reading->tensor->data->data + *count * size, &bits, size);
    ++*count;
    return INF_OK;
}

static enum inf_code read_typed(struct reading *reading)
{
    struct inf_pb pb = {reading->bytes};
    struct inf_pb_field field;
    enum field wanted = types[reading->type].field;
    size_t count = 0;
    for (;;) {
        bool more;
        uint64_t bits;
        INF_TRY(inf_pb_next(&pb, &field, &more, reading->err));
        if (!more)
            break;
        if (field.number != wanted)
            continue;
        if (field.type != INF_PB_BYTES)
            INF_TRY(store_element(reading, &count, field.value));
        while (field.bytes.size > 0) {
            if (!take_element(&field.bytes, wanted, &bits))
                return fail(reading, INF_INVALID, "its elements do not end");
            INF_TRY(store_element(reading, &count, bits));
        }
    }
    if (count * inf_dtype_size(reading->tensor->dtype) != reading->size_bytes)
        return fail(reading, INF_INVALID, "holds %zu elements, its dims say %zu", count,
                    reading->size_bytes / inf_dtype_size(reading->tensor->dtype));
    return INF_OK;
}

// --- reading elements from raw_data or external files ---

// Returns the entry `key` of a tensor's external_data.
static struct inf_span find_entry(struct inf_span bytes, const char *key)
{
    struct inf_pb pb = {bytes};
    struct inf_pb_field field, part;
    bool more;
    while (inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        if (field.number != FIELD_EXTERNAL)
            continue;
        inf_onnx_field(field.bytes, 1, &part);
        if (part.bytes.size != strlen(key) || memcmp(part.bytes.data, key, part.bytes.size) != 0)
            continue;
        inf_onnx_field(field.bytes, 2, &part);
        return part.bytes;
    }
    return (struct inf_span){0};
}

// Reads a decimal number. Returns `fallback` if the entry is absent.
static enum inf_code read_number(const struct reading *reading, const char *key, uint64_t fallback,
                                 uint64_t *out)
{
    struct inf_span text = find_entry(reading->bytes, key);
    *out = text.size == 0 ? fallback : 0;
    for (size_t i = 0; i < text.size; i++) {
        uint64_t digit = (uint64_t)text.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, digit, out))
            return fail(reading, INF_INVALID, "external %s '%.*s' is not a number", key,
                        (int)INF_MIN(text.size, 40), (const char *)text.data);
    }
    return INF_OK;
}

static enum inf_code read_file(struct reading *reading, int fd, const char *name,
                               uint64_t file_bytes)
{
    uint64_t offset, length;
    INF_TRY(read_number(reading, "offset", 0, &offset));
    if (offset > file_bytes)
        return fail(reading, INF_INVALID,
                    "external offset %llu is beyond the %llu bytes of '%.200s'",
                    (unsigned long long)offset, (unsigned long long)file_bytes, name);
    INF_TRY(read_number(reading, "length", reading->size_bytes, &length));
    if (length != reading->size_bytes)
        return fail(reading, INF_INVALID, "external length is %llu, its dims say %zu bytes",
                    (unsigned long long)length, reading->size_bytes);
    if (!inf_range_ok(offset, length, file_bytes))
        return fail(reading, INF_INVALID,
                    "external data at %llu of %llu bytes goes beyond the %llu bytes of '%.200s'",
                    (unsigned long long)offset, (unsigned long long)length,
                    (unsigned long long)file_bytes, name);
    reading->tensor->data = inf_blob_create_unset(reading->size_bytes);
    if (reading->tensor->data == NULL)
        return fail(reading, INF_EXHAUSTED, "no memory for %zu bytes", reading->size_bytes);
    return inf_tally_read(reading->files->tally, fd, name, offset, reading->tensor->data->data,
                          reading->size_bytes, reading->err);
}

static enum inf_code read_external(struct reading *reading)
{
    struct inf_span location = find_entry(reading->bytes, "location");
    char path[INF_BESIDE_PATH];
    int fd;
    uint64_t file_bytes;
    enum inf_code code =
        inf_beside_open(&fd, &file_bytes, path, &reading->files->place, location, reading->err);
    if (code != INF_OK)
        return inf_error_prefix(reading->err, code, "tensor '%.200s'", reading->tensor->name);
    code = read_file(reading, fd, path, file_bytes);
    close(fd);
    return code;
}

// Releases the pages that are completely within a range of the file.
static void release_pages(const uint8_t *from, const uint8_t *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)from + page - 1) & ~(page - 1), end = (uintptr_t)to & ~(page - 1);
    // A failure is ignored, because it costs only memory.
    if (end > first)
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

// Copies a piece of raw_data, so that the file's memory can be released during the copy. A page
// that two pieces share is released with all of raw_data.
static void copy_raw_piece(void *context, size_t piece)
{
    const struct reading *reading = context;
    size_t at = piece * PIECE_BYTES, size = INF_MIN(reading->size_bytes - at, PIECE_BYTES);
    const uint8_t *from = reading->raw.data + at;
    memcpy((uint8_t *)reading->tensor->data->data + at, from, size);
    if (reading->takes && reading->size_bytes >= TAKEN_BYTES_MIN)
        release_pages(from, from + size);
}

static enum inf_code read_raw(struct reading *reading) INF_MAY_BLOCK
{
    const uint8_t *raw = reading->raw.data;
    if (reading->raw.size != reading->size_bytes)
        return fail(reading, INF_INVALID, "raw_data has %zu bytes, its dims say %zu",
                    reading->raw.size, reading->size_bytes);
    inf_parallel_run(
        &(struct inf_parallel){.run = copy_raw_piece,
                               .context = reading,
                               .pieces = (reading->size_bytes + PIECE_BYTES - 1) / PIECE_BYTES,
                               .bytes = reading->size_bytes});
    if (reading->takes && reading->size_bytes >= TAKEN_BYTES_MIN)
        release_pages(raw, raw + reading->size_bytes);
    return INF_OK;
}

static enum inf_code read_data(struct reading *reading)
{
    struct inf_onnx_tensor *tensor = reading->tensor;
    if (reading->location == 1)
        return read_external(reading);
    // Check before allocating, because every element needs at least one byte in the file.
    if (reading->size_bytes / inf_dtype_size(tensor->dtype) > reading->bytes.size)
        return fail(reading, INF_INVALID, "its dims say %zu bytes, the file has %zu for it",
                    reading->size_bytes, reading->bytes.size);
    tensor->data = inf_blob_create_unset(reading->size_bytes);
    if (tensor->data == NULL)
        return fail(reading, INF_EXHAUSTED, "no memory for %zu bytes", reading->size_bytes);
    return reading->has_raw ? read_raw(reading) : read_typed(reading);
}

// --- unpacking elements of narrow types ---

struct narrow {
    int64_t type;
    uint32_t bits;
    enum inf_dtype dtype; // element type after unpacking
};

static const struct narrow *find_narrow(int64_t type)
{
    static const struct narrow rows[] = {
        {17, 8, INF_DTYPE_U8}, {18, 8, INF_DTYPE_U8}, {19, 8, INF_DTYPE_U8}, {20, 8, INF_DTYPE_U8},
        {21, 4, INF_DTYPE_U8}, {22, 4, INF_DTYPE_I8}, {23, 4, INF_DTYPE_U8}, {24, 8, INF_DTYPE_U8},
        {25, 2, INF_DTYPE_U8}, {26, 2, INF_DTYPE_I8}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

// Unpacks elements to one byte each. The first element is in the lowest bits of a byte.
static enum inf_code unpack_narrow(struct reading *reading, const struct narrow *narrow,
                                   size_t count)
{
    struct inf_onnx_tensor *tensor = reading->tensor;
    struct inf_blob *wide = inf_blob_create_unset(count);
    if (wide == NULL)
        return fail(reading, INF_EXHAUSTED, "no memory for %zu bytes", count);
    const uint8_t *packed = tensor->data->data;
    uint8_t *elements = wide->data, sign = (uint8_t)(1u << (narrow->bits - 1));
    for (size_t i = 0; i < count; i++) {
        size_t bit = i * narrow->bits;
        uint8_t value = (uint8_t)(packed[bit / 8] >> bit % 8 & ((1u << narrow->bits) - 1));
        elements[i] = narrow->dtype == INF_DTYPE_I8 ? (uint8_t)((value ^ sign) - sign) : value;
    }
    inf_blob_unref(&tensor->data);
    tensor->data = wide;
    tensor->dtype = narrow->dtype;
    return INF_OK;
}

static enum inf_code read_narrow(struct reading *reading, const struct narrow *narrow)
{
    size_t count;
    if (!inf_shape_count(&reading->tensor->shape, &count) || count > INF_LIMIT_TENSOR_BYTES)
        return fail(reading, INF_INVALID, "is larger than a tensor may be");
    reading->tensor->dtype = INF_DTYPE_U8;
    reading->tensor->narrow = (int32_t)narrow->type;
    reading->size_bytes = (count * narrow->bits + 7) / 8;
    INF_TRY(read_data(reading));
    return narrow->bits == 8 ? INF_OK : unpack_narrow(reading, narrow, count);
}

// --- reading strings, which are always in their own field ---

static enum inf_code read_strings(struct reading *reading)
{
    struct inf_pb pb = {reading->bytes};
    struct inf_pb_field field;
    size_t count = 0, capacity = reading->size_bytes / sizeof(uint64_t);
    bool more;
    // Each string takes at least two bytes of the file, so the shape alone cannot ask for memory.
    if (capacity > reading->bytes.size)
        return fail(reading, INF_INVALID, "holds fewer than the %zu strings that its dims say",
                    capacity);
    reading->tensor->data = inf_blob_create(reading->size_bytes);
    if (reading->tensor->data == NULL)
        return fail(reading, INF_EXHAUSTED, "no memory for %zu bytes", reading->size_bytes);
    for (;;) {
        INF_TRY(inf_pb_next(&pb, &field, &more, reading->err));
        if (!more)
            break;
        if (field.number != FIELD_STRINGS || field.type != INF_PB_BYTES)
            continue;
        if (count == capacity)
            return fail(reading, INF_INVALID, "holds more strings than its dims say");
        uint64_t *handles = reading->tensor->data->data;
        INF_TRY(
            inf_string_pool_add(reading->strings, field.bytes, &handles[count++], reading->err));
    }
    if (count < capacity)
        return fail(reading, INF_INVALID, "holds %zu strings, its dims say %zu", count, capacity);
    return INF_OK;
}

// --- reading a whole tensor ---

static enum inf_code read_wide(struct reading *reading)
{
    struct inf_onnx_tensor *tensor = reading->tensor;
    tensor->dtype = inf_onnx_dtype(reading->type);
    if (tensor->dtype == INF_DTYPE_NONE)
        return fail(reading, INF_UNSUPPORTED, "element type %s (%lld)",
                    inf_onnx_type_name(reading->type), (long long)reading->type);
    if (!inf_shape_bytes(&tensor->shape, tensor->dtype, &reading->size_bytes))
        return fail(reading, INF_INVALID, "is larger than a tensor may be");
    if (tensor->dtype == INF_DTYPE_BYTES)
        return read_strings(reading);
    INF_TRY(read_data(reading));
    // Convert all nonzero bools to 1, because kernels assume that a bool is 0 or 1.
    if (tensor->dtype == INF_DTYPE_BOOL)
        for (size_t i = 0; i < reading->size_bytes; i++)
            ((uint8_t *)tensor->data->data)[i] = ((uint8_t *)tensor->data->data)[i] != 0;
    return INF_OK;
}

static enum inf_code read_tensor(struct reading *reading, struct inf_arena *arena)
{
    *reading->tensor = (struct inf_onnx_tensor){.name = ""};
    INF_TRY(read_head(reading, arena));
    const struct narrow *narrow = find_narrow(reading->type);
    enum inf_code code = narrow != NULL ? read_narrow(reading, narrow) : read_wide(reading);
    if (code != INF_OK)
        inf_blob_unref(&reading->tensor->data);
    return code;
}

enum inf_code inf_onnx_tensor_read(struct inf_onnx_tensor *tensor, struct inf_arena *arena,
                                   const struct inf_onnx_files *files, struct inf_span bytes,
                                   struct inf_string_pool *strings, struct inf_error *err)
{
    struct reading reading = {
        .tensor = tensor, .files = files, .bytes = bytes, .strings = strings, .err = err};
    return read_tensor(&reading, arena);
}

enum inf_code inf_onnx_tensor_take(struct inf_onnx_tensor *tensor, struct inf_arena *arena,
                                   const struct inf_onnx_files *files, struct inf_span bytes,
                                   struct inf_string_pool *strings, struct inf_error *err)
{
    struct reading reading = {.tensor = tensor,
                              .files = files,
                              .bytes = bytes,
                              .takes = true,
                              .strings = strings,
                              .err = err};
    return read_tensor(&reading, arena);
}
