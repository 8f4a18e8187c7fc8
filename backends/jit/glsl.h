// SPDX-License-Identifier: Apache-2.0
// GLSL to SPIR-V while the process runs, where it is built with shaderc. What was compiled once is kept on
// disk, so that a second start compiles nothing.
#ifndef INF_BACKENDS_JIT_GLSL_H
#define INF_BACKENDS_JIT_GLSL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// Text of a compute shader that is looked at, at most.
#define INF_GLSL_BYTES_MAX ((size_t)256 << 10)

struct inf_spirv {
    uint32_t *words; // the caller's to free
    size_t size_bytes;
};

// Whether it is built with a compiler.
bool inf_glsl_available(void);

// Compiles a compute shader for Vulkan 1.2. Any thread but the loop.
//
// INF_UNSUPPORTED  built without a compiler.
// INF_INTERNAL     the compiler's first complaint.
enum inf_code inf_glsl_compile(struct inf_spirv *spirv, const char *source,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_glsl_compile(), but looks in `directory` first (NULL: nowhere), and leaves the result there: in a file
// named after a hash of the source, which it has in it. *compiled: it was not there.
enum inf_code inf_glsl_fetch(struct inf_spirv *spirv, const char *source, const char *directory,
                             bool *compiled, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// 64 bits that change when the text does (FNV-1a).
uint64_t inf_glsl_hash(const char *source);

#endif
