// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, version 1 and 2: one tensor, little-endian, C order.
#ifndef INF_CLIENT_INFERCTL_TENSOR_NPY_H
#define INF_CLIENT_INFERCTL_TENSOR_NPY_H

#include "proto/core/shape.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Zero bytes behind the data of a loaded file, for kernels that read past the end.
#define INF_NPY_SLACK_BYTES 64

// The longest header that is read or written: real ones have 128 bytes.
#define INF_NPY_HEADER_MAX 4096

// One tensor.
struct inf_npy {
    enum inf_dtype dtype;
    struct inf_shape shape; // known
    size_t size_bytes;
    void *data; // inf_npy_load(): aligned to 64, the caller's until inf_npy_unload()
};

// Reads the header at the start of `file` into dtype, shape and size_bytes, and *data_offset =
// where the elements start. `file` may end behind the header; data is not looked at.
//
// INF_INVALID      no .npy file, or a header that is cut short or makes no sense.
// INF_UNSUPPORTED  version, element type, byte order or Fortran order.
enum inf_code inf_npy_parse_header(struct inf_npy *npy, size_t *data_offset, struct inf_span file,
                                   struct inf_error *err) INF_NODISCARD;

// Writes the header for `dtype` and `shape` (known) in front of which data belongs, and
// *size = its length, a multiple of 64.
//
// INF_UNSUPPORTED  NumPy has no such element type (BF16).
enum inf_code inf_npy_format_header(char header[INF_NPY_HEADER_MAX], size_t *size,
                                    enum inf_dtype dtype, const struct inf_shape *shape,
                                    struct inf_error *err) INF_NODISCARD;

// Reads the file `path`. On success `npy` is given back with inf_npy_unload().
//
// INF_NOT_FOUND    it cannot be opened.
// INF_INVALID      as inf_npy_parse_header(), or more or fewer bytes than the header says, or a
//                  BOOL that is neither 0 nor 1.
// INF_UNSUPPORTED  as inf_npy_parse_header().
// INF_EXHAUSTED    memory.
enum inf_code inf_npy_load(struct inf_npy *npy, const char *path,
                           struct inf_error *err) INF_NODISCARD;

// Frees the data of a loaded file. A zeroed or unloaded `npy` is fine.
void inf_npy_unload(struct inf_npy *npy);

// Writes a tensor to the file `path`, replacing what was there.
//
// INF_DENIED       it cannot be written; the text says why.
// INF_UNSUPPORTED  as inf_npy_format_header().
enum inf_code inf_npy_save(const char *path, enum inf_dtype dtype, const struct inf_shape *shape,
                           const void *data, struct inf_error *err) INF_NODISCARD;

#endif
