// SPDX-License-Identifier: Apache-2.0
// Reads and writes NumPy's .npy files. The header is the text of a Python dictionary. The reader
// only accepts dictionaries as NumPy writes them.
#include "proto/npy/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC      "\x93NUMPY"
#define MAGIC_SIZE 6
#define ALIGNMENT  64

static const char *const descriptions[INF_DTYPE_COUNT] = {
    [INF_DTYPE_BOOL] = "|b1", [INF_DTYPE_U8] = "|u1",  [INF_DTYPE_U16] = "<u2",
    [INF_DTYPE_U32] = "<u4",  [INF_DTYPE_U64] = "<u8", [INF_DTYPE_I8] = "|i1",
    [INF_DTYPE_I16] = "<i2",  [INF_DTYPE_I32] = "<i4", [INF_DTYPE_I64] = "<i8",
    [INF_DTYPE_F16] = "<f2",  [INF_DTYPE_F32] = "<f4", [INF_DTYPE_F64] = "<f8",
};

// --- the header: a Python dictionary of three entries ---

struct cursor {
    const char *at, *end;
};

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && strchr(" \t\n", *cursor->at) != NULL && *cursor->at != '\0')
        cursor->at++;
}

// Skips white space and then `symbol`. Returns false if another character follows.
static bool accept_symbol(struct cursor *cursor, char symbol)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != symbol)
        return false;
    cursor->at++;
    return true;
}

// Parses a quoted string without escapes. The string must be shorter than `size`.
static bool take_string(struct cursor *cursor, char *text, size_t size)
{
    char quote = accept_symbol(cursor, '\'') ? '\'' : '"';
    if (quote == '"' && !accept_symbol(cursor, '"'))
        return false;
    const char *start = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != quote && *cursor->at != '\\')
        cursor->at++;
    size_t length = (size_t)(cursor->at - start);
    if (cursor->at == cursor->end || *cursor->at != quote || length >= size)
        return false;
    cursor->at++;
    memcpy(text, start, length);
    text[length] = '\0';
    return true;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    skip_space(cursor);
    size_t length = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool take_dim(struct cursor *cursor, int64_t *dim)
{
    skip_space(cursor);
    const char *start = cursor->at;
    *dim = 0;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        *dim = *dim * 10 + (*cursor->at++ - '0');
        if (*dim >= INF_LIMIT_DIM)
            return false;
    }
    return cursor->at > start;
}

// Parses a shape that is written as a Python tuple: "(2, 3)", "(2,)" or "()".
static bool take_shape(struct cursor *cursor, struct inf_shape *shape)
{
    *shape = (struct inf_shape){0};
    if (!accept_symbol(cursor, '('))
        return false;
    while (!accept_symbol(cursor, ')')) {
        if (shape->rank == INF_LIMIT_RANK || !take_dim(cursor, &shape->dims[shape->rank]))
            return false;
        shape->rank++;
        // Elements are separated by commas; a tuple of one element ends with a comma.
        if (!accept_symbol(cursor, ','))
            return accept_symbol(cursor, ')') && shape->rank != 1;
    }
    return true;
}

static enum inf_dtype parse_description(const char *text)
{
    for (enum inf_dtype dtype = INF_DTYPE_NONE; dtype < INF_DTYPE_COUNT; dtype++) {
        const char *known = descriptions[dtype];
        if (known == NULL || strcmp(known + 1, text + 1) != 0)
            continue;
        // The byte order does not matter for elements of one byte. "=" stands for the byte order of
        // the machine, which is little-endian.
        bool single = inf_dtype_size(dtype) == 1;
        if (text[0] == known[0] || text[0] == '=' || (single && strchr("<>", text[0]) != NULL))
            return dtype;
    }
    return INF_DTYPE_NONE;
}

enum {
    SEEN_DESCR = 1,
    SEEN_ORDER = 2,
    SEEN_SHAPE = 4,
    SEEN_ALL = 7
};

static enum inf_code parse_descr(struct inf_npy *npy, struct cursor *cursor, struct inf_error *err)
{
    char text[16];
    if (!take_string(cursor, text, sizeof(text)))
        return inf_fail(err, INF_UNSUPPORTED, ".npy: 'descr' is no plain element type");
    npy->dtype = text[0] != '\0' ? parse_description(text) : INF_DTYPE_NONE;
    if (npy->dtype == INF_DTYPE_NONE)
        return inf_fail(err, INF_UNSUPPORTED,
                        ".npy: element type '%s' is none of bool, (u)int8..64 and float16..64, "
                        "little-endian",
                        text);
    return INF_OK;
}

// Parses one entry "'key': value" of the header, and sets the bit of that key in *seen.
static enum inf_code parse_entry(struct inf_npy *npy, struct cursor *cursor, unsigned *seen,
                                 struct inf_error *err)
{
    char key[16];
    if (!take_string(cursor, key, sizeof(key)) || !accept_symbol(cursor, ':'))
        return inf_fail(err, INF_INVALID, ".npy: the header is no dictionary of three entries");
    if (strcmp(key, "descr") == 0) {
        *seen = SEEN_DESCR;
        return parse_descr(npy, cursor, err);
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen = SEEN_ORDER;
        if (take_word(cursor, "False"))
            return INF_OK;
        if (take_word(cursor, "True"))
            return inf_fail(err, INF_UNSUPPORTED, ".npy: Fortran order; save a C-ordered array");
        return inf_fail(err, INF_INVALID, ".npy: 'fortran_order' is neither True nor False");
    }
    if (strcmp(key, "shape") == 0) {
        *seen = SEEN_SHAPE;
        if (take_shape(cursor, &npy->shape))
            return INF_OK;
        return inf_fail(err, INF_INVALID,
                        ".npy: 'shape' is no tuple of at most %d dimensions below 2^31",
                        INF_LIMIT_RANK);
    }
    return inf_fail(err, INF_INVALID, ".npy: unknown header entry '%s'", key);
}

static enum inf_code parse_dictionary(struct inf_npy *npy, struct cursor *cursor,
                                      struct inf_error *err)
{
    unsigned all = 0;
    if (!accept_symbol(cursor, '{'))
        return inf_fail(err, INF_INVALID, ".npy: the header is no dictionary");
    while (!accept_symbol(cursor, '}')) {
        unsigned seen = 0;
        INF_TRY(parse_entry(npy, cursor, &seen, err));
        if ((all & seen) != 0)
            return inf_fail(err, INF_INVALID, ".npy: a header entry comes twice");
        all |= seen;
        if (accept_symbol(cursor, ','))
            continue;
        if (!accept_symbol(cursor, '}'))
            return inf_fail(err, INF_INVALID, ".npy: the header's dictionary does not end");
        break;
    }
    skip_space(cursor);
    if (cursor->at != cursor->end)
        return inf_fail(err, INF_INVALID, ".npy: something follows the header's dictionary");
    if (all != SEEN_ALL)
        return inf_fail(err, INF_INVALID,
                        ".npy: the header lacks 'descr', 'fortran_order' or 'shape'");
    return INF_OK;
}

enum inf_code inf_npy_parse_header(struct inf_npy *npy, size_t *data_offset, struct inf_span file,
                                   struct inf_error *err)
{
    *npy = (struct inf_npy){0};
    if (file.size < MAGIC_SIZE + 4 || memcmp(file.data, MAGIC, MAGIC_SIZE) != 0)
        return inf_fail(err, INF_INVALID, "no .npy file: it does not start with \\x93NUMPY");
    unsigned version = file.data[MAGIC_SIZE];
    if (version != 1 && version != 2)
        return inf_fail(err, INF_UNSUPPORTED, ".npy: version %u is neither 1 nor 2", version);
    size_t start = MAGIC_SIZE + (version == 1 ? 4 : 6);
    if (file.size < start)
        return inf_fail(err, INF_INVALID, ".npy: the file ends in its header");
    size_t length = file.data[8] | (size_t)file.data[9] << 8;
    if (version == 2)
        length |= (size_t)file.data[10] << 16 | (size_t)file.data[11] << 24;
    if (length > INF_NPY_HEADER_MAX - start)
        return inf_fail(err, INF_INVALID, ".npy: a header of %zu bytes, more than %d", length,
                        INF_NPY_HEADER_MAX);
    if (!inf_range_ok(start, length, file.size))
        return inf_fail(err, INF_INVALID, ".npy: the file ends in its header");
    const char *text = (const char *)file.data + start;
    struct cursor cursor = {text, text + length};
    INF_TRY(parse_dictionary(npy, &cursor, err));
    if (!inf_shape_bytes(&npy->shape, npy->dtype, &npy->size_bytes)) {
        char shape[INF_SHAPE_TEXT_SIZE];
        return inf_fail(err, INF_INVALID, ".npy: shape %s is more than a tensor may have",
                        inf_shape_print(&npy->shape, shape));
    }
    *data_offset = start + length;
    return INF_OK;
}

enum inf_code inf_npy_format_header(char header[INF_NPY_HEADER_MAX], size_t *size,
                                    enum inf_dtype dtype, const struct inf_shape *shape,
                                    struct inf_error *err)
{
    if ((unsigned)dtype >= INF_DTYPE_COUNT || descriptions[dtype] == NULL)
        return inf_fail(err, INF_UNSUPPORTED, ".npy has no element type for %s",
                        inf_dtype_name(dtype));
    // The buffer is large enough for 8 dimensions of 10 digits.
    char *text = header + MAGIC_SIZE + 4;
    size_t room = INF_NPY_HEADER_MAX - MAGIC_SIZE - 4;
    size_t used = (size_t)snprintf(text, room, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                                   descriptions[dtype]);
    for (int32_t i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, i > 0 ? ", " : "",
                                 shape->dims[i]);
    used += (size_t)snprintf(text + used, room - used, "%s), }", shape->rank == 1 ? "," : "");
    // Pad the header with blanks and a line end, so that the data begins at a multiple of
    // ALIGNMENT.
    *size = inf_size_align(MAGIC_SIZE + 4 + used + 1, ALIGNMENT);
    size_t length = *size - MAGIC_SIZE - 4;
    memset(text + used, ' ', length - used - 1);
    text[length - 1] = '\n';
    memcpy(header, MAGIC, MAGIC_SIZE);
    header[MAGIC_SIZE] = 1;
    header[MAGIC_SIZE + 1] = 0;
    header[MAGIC_SIZE + 2] = (char)(length & 0xff);
    header[MAGIC_SIZE + 3] = (char)(length >> 8);
    return INF_OK;
}

// --- reading and writing files ---

static enum inf_code read_all(int fd, const char *path, uint64_t offset, void *buffer, size_t size,
                              struct inf_error *err)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return inf_fail(err, INF_INVALID, "%s: %s", path, strerror(errno));
        if (got == 0)
            return inf_fail(err, INF_INVALID, "%s: the file ends %zu bytes early", path,
                            size - done);
        done += (size_t)got;
    }
    return INF_OK;
}

static enum inf_code read_data(struct inf_npy *npy, int fd, const char *path, uint64_t offset,
                               struct inf_error *err)
{
    size_t room = inf_size_align(npy->size_bytes + INF_NPY_SLACK_BYTES, ALIGNMENT);
    npy->data = aligned_alloc(ALIGNMENT, room);
    if (npy->data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "%s: no memory for %zu bytes", path, npy->size_bytes);
    memset((char *)npy->data + npy->size_bytes, 0, room - npy->size_bytes);
    INF_TRY(read_all(fd, path, offset, npy->data, npy->size_bytes, err));
    const uint8_t *bytes = npy->data;
    for (size_t i = 0; npy->dtype == INF_DTYPE_BOOL && i < npy->size_bytes; i++) {
        if (bytes[i] > 1)
            return inf_fail(err, INF_INVALID, "%s: element %zu is %u, no bool", path, i, bytes[i]);
    }
    return INF_OK;
}

static enum inf_code load_fd(struct inf_npy *npy, int fd, const char *path, struct inf_error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return inf_fail(err, INF_INVALID, "%s: no regular file", path);
    uint64_t size = (uint64_t)status.st_size;
    uint8_t header[INF_NPY_HEADER_MAX];
    size_t head = size < sizeof(header) ? (size_t)size : sizeof(header);
    INF_TRY(read_all(fd, path, 0, header, head, err));
    size_t offset;
    enum inf_code code = inf_npy_parse_header(npy, &offset, (struct inf_span){header, head}, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "%s", path);
    if (size - offset != npy->size_bytes) {
        char shape[INF_SHAPE_TEXT_SIZE];
        return inf_fail(err, INF_INVALID, "%s: %" PRIu64 " bytes of data, %s of %s has %zu", path,
                        size - offset, inf_dtype_name(npy->dtype),
                        inf_shape_print(&npy->shape, shape), npy->size_bytes);
    }
    return read_data(npy, fd, path, offset, err);
}

enum inf_code inf_npy_load(struct inf_npy *npy, const char *path, struct inf_error *err)
{
    *npy = (struct inf_npy){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return inf_fail(err, INF_NOT_FOUND, "%s: %s", path, strerror(errno));
    enum inf_code code = load_fd(npy, fd, path, err);
    close(fd);
    if (code != INF_OK)
        inf_npy_unload(npy);
    return code;
}

void inf_npy_unload(struct inf_npy *npy)
{
    free(npy->data);
    *npy = (struct inf_npy){0};
}

static bool write_all(int fd, const void *buffer, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t put = write(fd, (const char *)buffer + done, size - done);
        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

enum inf_code inf_npy_save(const char *path, enum inf_dtype dtype, const struct inf_shape *shape,
                           const void *data, struct inf_error *err)
{
    char header[INF_NPY_HEADER_MAX];
    size_t header_size;
    size_t size;
    INF_TRY(inf_npy_format_header(header, &header_size, dtype, shape, err));
    if (!inf_shape_bytes(shape, dtype, &size))
        return inf_fail(err, INF_INVALID, "%s: the shape is more than a tensor may have", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return inf_fail(err, INF_DENIED, "%s: %s", path, strerror(errno));
    bool ok = write_all(fd, header, header_size) && write_all(fd, data, size);
    int error = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (!ok)
        return inf_fail(err, INF_DENIED, "%s: %s", path, strerror(error));
    return INF_OK;
}
