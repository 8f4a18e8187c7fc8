// SPDX-License-Identifier: Apache-2.0
// Reads the ZIP archive at the end of a model file, which holds its associated files. The bytes are
// not trusted: every position is checked, and a file is unpacked only into memory of the size that
// the caller accepts.
#ifndef INF_BACKENDS_IMPORT_TFLITE_ARCHIVE_H
#define INF_BACKENDS_IMPORT_TFLITE_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// An archive that is being read. The bytes are borrowed.
struct inf_archive {
    struct inf_span file;
    uint64_t at;     // position of the next entry of the directory
    uint64_t end;    // position behind the directory
    uint64_t prefix; // bytes before the archive that its own positions do not count
    uint32_t left;   // entries that were not read
};

// One packed file.
struct inf_archive_entry {
    struct inf_span name;   // without NUL; may be any bytes
    uint64_t size_bytes;    // when unpacked
    struct inf_span packed; // borrowed from the file
    uint32_t method, checksum;
};

// Opens the archive at the end of `file`. Returns false if there is none.
bool inf_archive_open(struct inf_archive *archive, struct inf_span file);

// Reads the next entry, if archive->left is not 0.
//
// INF_INVALID      an entry is malformed, or reaches beyond the file.
// INF_UNSUPPORTED  it is encrypted or larger than 4 GiB.
enum inf_code inf_archive_next(struct inf_archive *archive, struct inf_archive_entry *entry,
                               struct inf_error *err) INF_NODISCARD;

// Unpacks an entry into `out`, which has entry->size_bytes bytes, and checks its checksum.
//
// INF_INVALID      the packed bytes or the checksum are wrong.
// INF_UNSUPPORTED  a method other than stored and deflated.
// INF_EXHAUSTED    memory.
enum inf_code inf_archive_unpack(const struct inf_archive_entry *entry, void *out,
                                 struct inf_error *err) INF_NODISCARD;

#endif
