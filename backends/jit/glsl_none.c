// SPDX-License-Identifier: Apache-2.0
// Used in a build without shaderc: all functions that compile GLSL return INF_UNSUPPORTED.
#include "backends/jit/glsl.h"

#include <string.h>

bool inf_glsl_available(void)
{
    return false;
}

enum inf_code inf_glsl_compile(struct inf_spirv *spirv, const char *source, struct inf_error *err)
{
    (void)spirv;
    return inf_fail(err, INF_UNSUPPORTED, "built without shaderc: %zu bytes are not compiled",
                    strlen(source));
}
