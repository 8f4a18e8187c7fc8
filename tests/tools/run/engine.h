// SPDX-License-Identifier: Apache-2.0
// Shared by tools that compare results: opens a device by name, and prepares a model file for it.
#ifndef INF_TESTS_TOOLS_RUN_ENGINE_H
#define INF_TESTS_TOOLS_RUN_ENGINE_H

#include <stdio.h>

#include "backends/exec/model/model.h"
#include "backends/import/import.h"

struct tool_engine {
    struct inf_device *device; // the device under test
    // devices that `device` falls back on: cpu, if available, and the reference device `ref`
    struct inf_device *hosts[2];
    uint32_t host_count;
    struct inf_run_options options; // how models are compiled for `device`
    const char *signature;          // key of the signature to import; NULL: the default
    FILE *report; // file that receives the list of all operators that a model lacks; NULL for none
};

// Opens `backend` and its fallback devices. `backend` is a name, with a precision if it is not
// fp32: "cpu" or "vulkan:fp16". The devices have one slot (one concurrent run) and `threads`
// threads (0: the backend chooses).
enum inf_code tool_engine_open(struct tool_engine *engine, const char *backend, uint32_t threads,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Opens `backend` and its fallback devices as tool_engine_open() does, but the caller sets all
// options of the devices.
enum inf_code tool_engine_open_with(struct tool_engine *engine, const char *backend,
                                    const struct inf_device_options *options,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Drops the references to the devices.
void tool_engine_close(struct tool_engine *engine);

// Imports the model file at `path`. The caller destroys *out_graph.
enum inf_code tool_engine_import(const struct tool_engine *engine, const char *path,
                                 struct inf_graph **out_graph,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Runs the passes on `graph` and makes a model of it. Takes over `graph`, also on failure. The
// caller releases *out_model with inf_model_unref().
enum inf_code tool_engine_prepare(const struct tool_engine *engine, struct inf_graph **graph,
                                  struct inf_model **out_model,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Calls tool_engine_import() and then tool_engine_prepare().
enum inf_code tool_engine_load(const struct tool_engine *engine, const char *path,
                               struct inf_model **out_model,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
