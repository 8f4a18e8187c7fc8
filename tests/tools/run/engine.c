// SPDX-License-Identifier: Apache-2.0
// Opens a device and its threads in process, for tools that do not use a daemon.
#include "tests/tools/run/engine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/registry.h"
#include "backends/storage/file.h"
#include "proto/core/span.h"

// Splits "NAME" or "NAME:PRECISION".
static enum inf_code parse_backend(struct tool_engine *engine, const char *text, char name[64],
                                   struct inf_error *err)
{
    const char *colon = strchr(text, ':');
    snprintf(name, 64, "%.*s", colon != NULL ? (int)(colon - text) : 63, text);
    if (colon != NULL && !inf_precision_parse(colon + 1, &engine->options.precision))
        return inf_fail(err, INF_INVALID, "'%s' is no precision", colon + 1);
    return INF_OK;
}

// Fails if the device does not compute in the requested precision.
static enum inf_code check_precision(const struct tool_engine *engine, struct inf_error *err)
{
    const struct inf_device_info *info = inf_device_info(engine->device);
    enum inf_precision wanted = engine->options.precision;
    if (wanted <= INF_PRECISION_FP32 || (info->precisions & INF_PRECISION_BIT(wanted)) != 0)
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED, "device '%s' does not compute in %s", info->name,
                    inf_precision_name(wanted));
}

enum inf_code tool_engine_open(struct tool_engine *engine, const char *backend, uint32_t threads,
                               struct inf_error *err)
{
    const struct inf_device_options options = {.slots = 1, .threads = threads};
    return tool_engine_open_with(engine, backend, &options, err);
}

enum inf_code tool_engine_open_with(struct tool_engine *engine, const char *backend,
                                    const struct inf_device_options *options, struct inf_error *err)
{
    char name[64];
    *engine = (struct tool_engine){0};
    INF_TRY(parse_backend(engine, backend, name, err));
    static const char *const hosts[] = {"cpu", "ref"};
    const struct inf_backend *wanted = inf_registry_find(name);
    enum inf_code code = INF_OK;
    if (wanted == NULL)
        return inf_fail(err, INF_INVALID, "there is no backend '%s'", name);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(hosts) && code == INF_OK; i++) {
        const struct inf_backend *host = inf_registry_find(hosts[i]);
        if (host == NULL)
            continue; // this build does not have the backend
        code = inf_device_open(&engine->hosts[engine->host_count], host, 0, options, err);
        if (code == INF_OK && host == wanted)
            engine->device = inf_device_ref(engine->hosts[engine->host_count]);
        engine->host_count += code == INF_OK;
    }
    if (code == INF_OK && engine->device == NULL)
        code = inf_device_open(&engine->device, wanted, 0, options, err);
    if (code == INF_OK)
        code = check_precision(engine, err);
    if (code != INF_OK)
        tool_engine_close(engine);
    return code;
}

void tool_engine_close(struct tool_engine *engine)
{
    inf_device_unref(&engine->device);
    while (engine->host_count > 0)
        inf_device_unref(&engine->hosts[--engine->host_count]);
}

enum inf_code tool_engine_import(const struct tool_engine *engine, const char *path,
                                 struct inf_graph **out_graph, struct inf_error *err)
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
    struct inf_model_info info;
    INF_TRY(inf_directory_open(&fd, directory, err));
    struct inf_import_options import = {.evaluator = inf_registry_evaluator(),
                                        .signature = engine->signature,
                                        .report = engine->report};
    enum inf_code code = inf_model_import_with(out_graph, &info, fd, name, &import, err);
    close(fd);
    return code;
}

enum inf_code tool_engine_prepare(const struct tool_engine *engine, struct inf_graph **graph,
                                  struct inf_model **out_model, struct inf_error *err)
{
    struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    return inf_model_create(out_model, graph, engine->hosts, engine->host_count, &options, err);
}

enum inf_code tool_engine_load(const struct tool_engine *engine, const char *path,
                               struct inf_model **out_model, struct inf_error *err)
{
    struct inf_graph *graph = NULL;
    INF_TRY(tool_engine_import(engine, path, &graph, err));
    return tool_engine_prepare(engine, &graph, out_model, err);
}
