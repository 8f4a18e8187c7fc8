// SPDX-License-Identifier: Apache-2.0
// Reads ZIP archives from untrusted bytes. An archive ends with a directory of its files:
//
//     ... [local header] [packed bytes] ...   [directory entry] ...   [end record] [comment]
//
// The directory is read, and of a local header only its size, which may differ from that of the
// directory entry. Positions count from the first byte of the file or, if the archive was appended
// as a whole, from its own first byte; the position of the end record tells which. Archives with
// 64-bit sizes or several parts are left out.
#include "backends/import/tflite/archive.h"

#include <string.h>
#include <zlib.h>

// Sizes of the records, without names and comments.
#define END_BYTES   22u
#define ENTRY_BYTES 46u
#define LOCAL_BYTES 30u
// The most bytes of the comment behind the end record.
#define COMMENT_MAX 65535u
// The methods that can be unpacked.
#define METHOD_STORED   0u
#define METHOD_DEFLATED 8u
#define FLAG_ENCRYPTED  1u

static uint32_t read_u16(struct inf_span file, uint64_t at)
{
    return file.data[at] | (uint32_t)file.data[at + 1] << 8;
}

static uint32_t read_u32(struct inf_span file, uint64_t at)
{
    return read_u16(file, at) | read_u16(file, at + 2) << 16;
}

static bool has_mark(struct inf_span file, uint64_t at, const char *mark)
{
    return memcmp(file.data + at, mark, 4) == 0;
}

// Reads the end record at a position. Returns false if there is none, or if what it says does not
// fit the file.
static bool read_end(struct inf_archive *archive, uint64_t at)
{
    struct inf_span file = archive->file;
    if (!has_mark(file, at, "PK\005\006") || read_u16(file, at + 20) != file.size - at - END_BYTES)
        return false;
    uint64_t size = read_u32(file, at + 12), start = read_u32(file, at + 16);
    if (size > at || start > at - size)
        return false;
    archive->left = read_u16(file, at + 10);
    archive->end = at;
    archive->at = at - size;
    archive->prefix = archive->at - start;
    return true;
}

bool inf_archive_open(struct inf_archive *archive, struct inf_span file)
{
    *archive = (struct inf_archive){.file = file};
    for (uint64_t back = END_BYTES; back <= file.size && back <= END_BYTES + COMMENT_MAX; back++)
        if (read_end(archive, file.size - back))
            return true;
    return false;
}

// Finds the packed bytes of an entry, behind its local header.
static enum inf_code locate_bytes(const struct inf_archive *archive, uint64_t at,
                                  uint64_t size_bytes, struct inf_archive_entry *entry,
                                  struct inf_error *err)
{
    struct inf_span file = archive->file;
    if (!inf_range_ok(at, LOCAL_BYTES, file.size) || !has_mark(file, at, "PK\003\004"))
        return inf_fail(err, INF_INVALID, "the archive has no file at byte %llu",
                        (unsigned long long)at);
    uint64_t data = at + LOCAL_BYTES + read_u16(file, at + 26) + read_u16(file, at + 28);
    if (!inf_range_ok(data, size_bytes, file.size))
        return inf_fail(err, INF_INVALID,
                        "a file of the archive has %llu bytes at byte %llu of %zu",
                        (unsigned long long)size_bytes, (unsigned long long)data, file.size);
    entry->packed = (struct inf_span){file.data + data, (size_t)size_bytes};
    return INF_OK;
}

enum inf_code inf_archive_next(struct inf_archive *archive, struct inf_archive_entry *entry,
                               struct inf_error *err)
{
    struct inf_span file = archive->file;
    uint64_t at = archive->at;
    *entry = (struct inf_archive_entry){0};
    if (archive->left == 0 || !inf_range_ok(at, ENTRY_BYTES, archive->end) ||
        !has_mark(file, at, "PK\001\002"))
        return inf_fail(err, INF_INVALID, "the directory of the archive has no entry at byte %llu",
                        (unsigned long long)at);
    uint32_t name_bytes = read_u16(file, at + 28);
    uint64_t more = (uint64_t)name_bytes + read_u16(file, at + 30) + read_u16(file, at + 32);
    uint32_t packed_bytes = read_u32(file, at + 20), start = read_u32(file, at + 42);
    if (!inf_range_ok(at + ENTRY_BYTES, more, archive->end))
        return inf_fail(err, INF_INVALID, "an entry of the archive ends beyond its directory");
    entry->name = (struct inf_span){file.data + at + ENTRY_BYTES, name_bytes};
    entry->method = read_u16(file, at + 10);
    entry->checksum = read_u32(file, at + 16);
    entry->size_bytes = read_u32(file, at + 24);
    archive->at = at + ENTRY_BYTES + more;
    archive->left--;
    if ((read_u16(file, at + 8) & FLAG_ENCRYPTED) != 0)
        return inf_fail(err, INF_UNSUPPORTED, "a file of the archive is encrypted");
    if (packed_bytes == UINT32_MAX || entry->size_bytes == UINT32_MAX || start == UINT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "a file of the archive has a 64-bit size");
    return locate_bytes(archive, archive->prefix + start, packed_bytes, entry, err);
}

// Unpacks deflated bytes. Fails unless they fill `out` exactly.
static enum inf_code inflate_bytes(const struct inf_archive_entry *entry, void *out,
                                   struct inf_error *err)
{
    z_stream stream = {.next_in = (Bytef *)entry->packed.data,
                       .avail_in = (uInt)entry->packed.size,
                       .next_out = out,
                       .avail_out = (uInt)entry->size_bytes};
    // A negative number of bits: there is no header of zlib.
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to unpack a file");
    int result = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (result != Z_STREAM_END || stream.avail_out != 0)
        return inf_fail(err, INF_INVALID, "a file of the archive cannot be unpacked");
    return INF_OK;
}

enum inf_code inf_archive_unpack(const struct inf_archive_entry *entry, void *out,
                                 struct inf_error *err)
{
    if (entry->method == METHOD_DEFLATED)
        INF_TRY(inflate_bytes(entry, out, err));
    else if (entry->method != METHOD_STORED)
        return inf_fail(err, INF_UNSUPPORTED,
                        "a file of the archive is packed by method %u, wanted 0 (stored) or 8 "
                        "(deflated)",
                        entry->method);
    else if (entry->packed.size != entry->size_bytes)
        return inf_fail(err, INF_INVALID, "a stored file of the archive has %zu bytes, not %llu",
                        entry->packed.size, (unsigned long long)entry->size_bytes);
    else if (entry->size_bytes > 0)
        memcpy(out, entry->packed.data, (size_t)entry->size_bytes);
    if (crc32(0, out, (uInt)entry->size_bytes) != entry->checksum)
        return inf_fail(err, INF_INVALID, "a file of the archive does not have its checksum");
    return INF_OK;
}
