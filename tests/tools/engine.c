// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/registry.h"

enum inf_code tool_engine_open(struct tool_engine *engine, const char *backend, uint32_t threads,
                               struct inf_error *err)
{
    *engine = (struct tool_engine){0};
    const struct inf_backend *ref = inf_registry_find("ref");
    const struct inf_backend *wanted = inf_registry_find(backend);
    if (wanted == NULL || ref == NULL)
        return inf_fail(err, INF_INVALID, "there is no backend '%s'", backend);
    struct inf_device_options options = {.slots = 1, .threads = threads};
    INF_TRY(inf_device_open(&engine->ref, ref, 0, &options, err));
    if (wanted == ref) {
        engine->device = inf_device_ref(engine->ref);
        return INF_OK;
    }
    enum inf_code code = inf_device_open(&engine->device, wanted, 0, &options, err);
    if (code != INF_OK)
        tool_engine_close(engine);
    return code;
}

void tool_engine_close(struct tool_engine *engine)
{
    inf_device_unref(&engine->device);
    inf_device_unref(&engine->ref);
}

enum inf_code tool_engine_load(const struct tool_engine *engine, const char *path,
                               struct inf_model **out_model, struct inf_error *err)
{
    char directory[4096];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    int length = slash != NULL ? (int)(slash - path) : 1;
    snprintf(directory, sizeof(directory), "%.*s", length,
             slash == path   ? "/"
             : slash != NULL ? path
                             : ".");
    int fd;
    struct inf_graph *graph = NULL;
    struct inf_model_info info;
    INF_TRY(inf_directory_open(&fd, directory, err));
    struct inf_import_options import = {.evaluator = inf_registry_evaluator()};
    enum inf_code code = inf_model_import_with(&graph, &info, fd, name, &import, err);
    close(fd);
    INF_TRY(code);
    struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    return inf_model_create(out_model, &graph, engine->ref, &options, err);
}
