// SPDX-License-Identifier: Apache-2.0
// Compiles GLSL with shaderc.
#include <shaderc/shaderc.h>
#include <stdlib.h>
#include <string.h>

#include "backends/jit/glsl.h"

bool inf_glsl_available(void)
{
    return true;
}

static enum inf_code copy_result(struct inf_spirv *spirv, shaderc_compilation_result_t result,
                                 struct inf_error *err)
{
    if (result == NULL ||
        shaderc_result_get_compilation_status(result) != shaderc_compilation_status_success) {
        const char *text = result != NULL ? shaderc_result_get_error_message(result) : "no memory";
        return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BACKEND, "shaderc: %.*s",
                               (int)strcspn(text, "\n"), text);
    }
    spirv->size_bytes = shaderc_result_get_length(result);
    spirv->words = malloc(spirv->size_bytes + 1);
    if (spirv->words == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a shader");
    memcpy(spirv->words, shaderc_result_get_bytes(result), spirv->size_bytes);
    return INF_OK;
}

enum inf_code inf_glsl_compile(struct inf_spirv *spirv, const char *source, struct inf_error *err)
{
    inf_role_check_may_block();
    shaderc_compiler_t compiler = shaderc_compiler_initialize();
    shaderc_compile_options_t options = shaderc_compile_options_initialize();
    enum inf_code code;
    if (compiler == NULL || options == NULL) {
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for shaderc");
    } else {
        shaderc_compile_options_set_optimization_level(options,
                                                       shaderc_optimization_level_performance);
        shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan,
                                               shaderc_env_version_vulkan_1_2);
        shaderc_compilation_result_t result = shaderc_compile_into_spv(
            compiler, source, strlen(source), shaderc_compute_shader, "fused", "main", options);
        code = copy_result(spirv, result, err);
        shaderc_result_release(result);
    }
    shaderc_compile_options_release(options);
    shaderc_compiler_release(compiler);
    return code;
}
