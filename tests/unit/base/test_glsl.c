// SPDX-License-Identifier: Apache-2.0
// Compilation of GLSL at run time, and the on-disk cache of its results. This file is built twice,
// the second time without a compiler.
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/jit/glsl.h"

#define SHADER                                                                                     \
    "#version 450\nlayout(local_size_x = 8) in;\nlayout(binding = 0) buffer X { float x[]; };\n"   \
    "void main() { x[gl_GlobalInvocationID.x] += 1.0; }\n"

#define SPIRV_MAGIC 0x07230203u // from the SPIR-V specification, section 2.3

Test(glsl, compiles_a_shader_or_says_that_it_cannot)
{
    struct inf_spirv spirv = {0};
    struct inf_error err = {0};
    enum inf_code code = inf_glsl_compile(&spirv, SHADER, &err);
    if (!inf_glsl_available()) {
        cr_assert_eq(code, INF_UNSUPPORTED);
        cr_assert_not_null(strstr(err.text, "shaderc"), "%s", err.text);
        return;
    }
    cr_assert_eq(code, INF_OK, "%s", err.text);
    cr_assert_eq(spirv.words[0], SPIRV_MAGIC);
    cr_assert_eq(spirv.size_bytes % 4, 0u);
    free(spirv.words);
}

Test(glsl, tells_what_the_compiler_says)
{
    struct inf_spirv spirv = {0};
    struct inf_error err = {0};
    if (!inf_glsl_available())
        cr_skip_test("built without shaderc");
    cr_assert_eq(inf_glsl_compile(&spirv, "#version 450\nvoid main() { nothing(); }\n", &err),
                 INF_INTERNAL);
    cr_assert_not_null(strstr(err.text, "nothing"), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'), "%s", err.text);
    cr_assert_null(spirv.words);
}

Test(glsl, hashes_as_fnv_1a_does)
{
    // The expected hashes are published test vectors of 64-bit FNV-1a.
    cr_assert_eq(inf_glsl_hash(""), UINT64_C(0xcbf29ce484222325));
    cr_assert_eq(inf_glsl_hash("a"), UINT64_C(0xaf63dc4c8601ec8c));
    cr_assert_eq(inf_glsl_hash("foobar"), UINT64_C(0x85944171f73967e8));
}

// Changes one byte at offset `at` of the only file in the directory, or truncates the file there if
// `cut`. Returns the file's size before the change.
static off_t damage_file(const char *directory, off_t at, bool cut)
{
    char path[300];
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL)
        if (entry->d_name[0] != '.')
            snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
    closedir(entries);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    off_t size = lseek(fd, 0, SEEK_END);
    char byte;
    if (at < size && cut) {
        cr_assert_eq(ftruncate(fd, at), 0);
    } else if (at < size) {
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        byte = (char)(byte + 1);
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    return size;
}

static bool fetch_shader(const char *source, const char *directory)
{
    struct inf_spirv spirv = {0};
    struct inf_error err = {0};
    bool compiled;
    cr_assert_eq(inf_glsl_fetch(&spirv, source, directory, &compiled, &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(spirv.words[0], SPIRV_MAGIC);
    free(spirv.words);
    return compiled;
}

Test(glsl, keeps_on_disk_what_it_compiled_and_trusts_only_what_is_whole)
{
    char directory[] = "/tmp/inferd-glsl-XXXXXX", line[64];
    if (!inf_glsl_available())
        cr_skip_test("built without shaderc");
    cr_assert_not_null(mkdtemp(directory));
    cr_assert(fetch_shader(SHADER, NULL));
    cr_assert(fetch_shader(SHADER, directory));
    cr_assert_not(fetch_shader(SHADER, directory));
    off_t size = damage_file(directory, 1 << 30, false);
    for (off_t at = 0; at < size; at += size / 7 + 1) {
        damage_file(directory, at, false);
        cr_assert(fetch_shader(SHADER, directory), "byte %d was not missed", (int)at);
        cr_assert_not(fetch_shader(SHADER, directory));
    }
    damage_file(directory, size - 4, true);
    cr_assert(fetch_shader(SHADER, directory));
    cr_assert_not(fetch_shader(SHADER, directory));
    cr_assert(fetch_shader(SHADER "// another", directory));
    cr_assert(fetch_shader(SHADER, "/nonexistent"));
    snprintf(line, sizeof(line), "rm -r %s", directory);
    cr_assert_eq(system(line), 0);
}
