// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, version 1 and 2: one tensor, little-endian, C order.
#ifndef INF_PROTO_NPY_NPY_H
#define INF_PROTO_NPY_NPY_H

#include "proto/core/shape.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Zero bytes after the data of a loaded file, for kernels that read past the end.
#define INF_NPY_SLACK_BYTES 64

// The maximum length of a header that is read or written. Typical headers have 128 bytes.
#define INF_NPY_HEADER_MAX 4096

// One tensor that is read from a file, or is written to a file.
struct inf_npy {
    enum inf_dtype dtype;
    struct inf_shape shape; // all dimensions are known
    size_t size_bytes;
    void *data; // after inf_npy_load(): aligned to 64 bytes, valid until inf_npy_unload()
};

// Reads the header at the start of `file` into dtype, shape and size_bytes, and sets *data_offset
// to the offset of the first element. `file` may end after the header, because the data are not
// read.
//
// INF_INVALID      the file is no .npy file, or its header is truncated or malformed.
// INF_UNSUPPORTED  the version, element type, byte order or Fortran order is not supported.
enum inf_code inf_npy_parse_header(struct inf_npy *npy, size_t *data_offset, struct inf_span file,
                                   struct inf_error *err) INF_NODISCARD;

// Writes the header of a file with this `dtype` and `shape`, whose dimensions must be known. Sets
// *size to the length of the header, a multiple of 64 bytes. The data follow the header.
//
// INF_UNSUPPORTED  NumPy has no such element type (BF16).
enum inf_code inf_npy_format_header(char header[INF_NPY_HEADER_MAX], size_t *size,
                                    enum inf_dtype dtype, const struct inf_shape *shape,
                                    struct inf_error *err) INF_NODISCARD;

// Reads the file `path`. On success the caller frees the data with inf_npy_unload().
//
// INF_NOT_FOUND    the file cannot be opened.
// INF_INVALID      the header is malformed, the number of data bytes does not fit the header, or a
//                  BOOL is neither 0 nor 1.
// INF_UNSUPPORTED  the version, element type, byte order or Fortran order is not supported.
// INF_EXHAUSTED    there is no memory.
enum inf_code inf_npy_load(struct inf_npy *npy, const char *path,
                           struct inf_error *err) INF_NODISCARD;

// Frees the data of a loaded file. Allowed for a zero-initialised or already unloaded `npy`.
void inf_npy_unload(struct inf_npy *npy);

// Writes a tensor to the file `path`, and replaces an existing file.
//
// INF_DENIED       the file cannot be written; the error text has the reason.
// INF_UNSUPPORTED  NumPy has no such element type (BF16).
enum inf_code inf_npy_save(const char *path, enum inf_dtype dtype, const struct inf_shape *shape,
                           const void *data, struct inf_error *err) INF_NODISCARD;

#endif
