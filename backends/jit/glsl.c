// SPDX-License-Identifier: Apache-2.0
// Compiles GLSL and keeps the results in cache files. The name of a cache file is the hash of the
// GLSL source.
#include "backends/jit/glsl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "proto/core/hash.h"

// The header of a cache file. It is followed by the GLSL source and the SPIR-V words. A file is
// used only if it is complete and contains the same source.
struct header {
    char magic[8];
    uint64_t source_bytes, spirv_bytes;
    uint64_t checksum; // checksum of all bytes that follow
};

static const char magic[8] = "infglsl";

uint64_t inf_glsl_hash(const char *source)
{
    return inf_hash_bytes(INF_HASH_INIT, source, strlen(source));
}

static void file_name(const char *source, char name[40])
{
    snprintf(name, 40, "fused-%016" PRIx64 ".spv", inf_glsl_hash(source));
}

// Copies the SPIR-V words from the bytes of a cache file. Returns false if the file is damaged or
// was written for another source.
static bool parse_file(struct inf_spirv *spirv, const char *file, size_t size, const char *source)
{
    struct header header;
    size_t source_bytes = strlen(source);
    if (size < sizeof header)
        return false;
    memcpy(&header, file, sizeof header);
    const char *rest = file + sizeof header;
    size_t left = size - sizeof header;
    if (memcmp(header.magic, magic, sizeof magic) != 0 || header.source_bytes != source_bytes ||
        left < source_bytes || header.spirv_bytes != left - source_bytes ||
        header.spirv_bytes % sizeof(uint32_t) != 0 || header.spirv_bytes == 0 ||
        memcmp(rest, source, source_bytes) != 0 ||
        header.checksum != inf_hash_bytes(INF_HASH_INIT, rest, left))
        return false;
    spirv->words = malloc(header.spirv_bytes);
    if (spirv->words == NULL)
        return false;
    spirv->size_bytes = header.spirv_bytes;
    memcpy(spirv->words, rest + source_bytes, spirv->size_bytes);
    return true;
}

static bool read_file(struct inf_spirv *spirv, const char *source, int directory, const char *name)
{
    char *file = NULL;
    size_t size = 0;
    if (inf_file_read_all(&file, &size, directory, name, 16 * INF_GLSL_BYTES_MAX, NULL) != INF_OK)
        return false;
    bool whole = parse_file(spirv, file, size, source);
    free(file);
    return whole;
}

static bool write_parts(int fd, const struct header *header, const char *source,
                        const struct inf_spirv *spirv)
{
    const struct {
        const void *data;
        size_t size;
    } parts[] = {{header, sizeof *header},
                 {source, (size_t)header->source_bytes},
                 {spirv->words, spirv->size_bytes}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(parts); i++)
        if (write(fd, parts[i].data, parts[i].size) != (ssize_t)parts[i].size)
            return false;
    return fsync(fd) == 0;
}

// Writes a cache file completely or not at all. If writing fails, the next start of inferd compiles
// the shader again.
static void write_file(const struct inf_spirv *spirv, const char *source, int directory,
                       const char *name)
{
    char temporary[64];
    struct header header = {.source_bytes = strlen(source), .spirv_bytes = spirv->size_bytes};
    memcpy(header.magic, magic, sizeof magic);
    header.checksum =
        inf_hash_bytes(inf_hash_bytes(INF_HASH_INIT, source, (size_t)header.source_bytes),
                       spirv->words, spirv->size_bytes);
    snprintf(temporary, sizeof temporary, "%s.%d", name, (int)gettid());
    int fd =
        openat(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool ok = write_parts(fd, &header, source, spirv);
    ok = close(fd) == 0 && ok;
    if (!ok || renameat(directory, temporary, directory, name) != 0)
        (void)unlinkat(directory, temporary, 0);
}

enum inf_code inf_glsl_fetch(struct inf_spirv *spirv, const char *source, const char *directory,
                             bool *compiled, struct inf_error *err)
{
    int fd = -1;
    char name[40];
    *compiled = false;
    file_name(source, name);
    if (directory != NULL && inf_directory_open(&fd, directory, NULL) != INF_OK)
        fd = -1;
    enum inf_code code = INF_OK;
    if (fd < 0 || !read_file(spirv, source, fd, name)) {
        *compiled = true;
        code = inf_glsl_compile(spirv, source, err);
        if (code == INF_OK && fd >= 0)
            write_file(spirv, source, fd, name);
    }
    if (fd >= 0)
        close(fd);
    return code;
}
