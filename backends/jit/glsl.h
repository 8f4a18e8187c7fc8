// SPDX-License-Identifier: Apache-2.0
// Compiles GLSL to SPIR-V at run time, if inferd is built with shaderc. Results are kept on disk,
// so that the next start need not compile them again.
#ifndef INF_BACKENDS_JIT_GLSL_H
#define INF_BACKENDS_JIT_GLSL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// The largest size of a shader's source.
#define INF_GLSL_BYTES_MAX ((size_t)256 << 10)

struct inf_spirv {
    uint32_t *words; // freed by the caller
    size_t size_bytes;
};

// Returns true if inferd is built with a GLSL compiler.
bool inf_glsl_available(void);

// Compiles a compute shader for Vulkan 1.2. Any thread except the event loop.
//
// INF_UNSUPPORTED  inferd is built without a compiler.
// INF_INTERNAL     the first error message of the compiler.
enum inf_code inf_glsl_compile(struct inf_spirv *spirv, const char *source,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads the compiled shader from a cache file in `directory`; if there is none, compiles the source
// and stores the result there. If `directory` is NULL, always compiles. *compiled is true if the
// shader was compiled. Returns the same errors as inf_glsl_compile().
enum inf_code inf_glsl_fetch(struct inf_spirv *spirv, const char *source, const char *directory,
                             bool *compiled, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns a 64-bit hash (FNV-1a) of the source.
uint64_t inf_glsl_hash(const char *source);

#endif
