// SPDX-License-Identifier: Apache-2.0
// Shared by tools that compare results: opens a device by name, and prepares a model file for it.
#ifndef INF_TESTS_TOOLS_RUN_ENGINE_H
#define INF_TESTS_TOOLS_RUN_ENGINE_H

#include <stdio.h>

#include "backends/exec/model/model.h"
#include "backends/import/import.h"

struct tool_engine {
    struct inf_device *device;   // the one that is judged
    struct inf_device *hosts[2]; // that it falls back on: cpu, where there is one, and ref
    uint32_t host_count;
    struct inf_run_options options; // how models are compiled for `device`
    FILE *report; // NULL, or where the operators that a model lacks go, all of them
};

// Opens `backend` ("cpu", or "vulkan:fp16" where another precision than fp32 is meant) and what it
// falls back on, with one slot and `threads` threads (0: the backend's choice).
enum inf_code tool_engine_open(struct tool_engine *engine, const char *backend, uint32_t threads,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The same, with all options of devices.
enum inf_code tool_engine_open_with(struct tool_engine *engine, const char *backend,
                                    const struct inf_device_options *options,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Drops the devices.
void tool_engine_close(struct tool_engine *engine);

// Imports the model file at `path`. *out_graph is the caller's to destroy.
enum inf_code tool_engine_import(const struct tool_engine *engine, const char *path,
                                 struct inf_graph **out_graph,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Takes over `graph` (also on failure) and runs the passes. The caller gives *out_model back with
// inf_model_unref().
enum inf_code tool_engine_prepare(const struct tool_engine *engine, struct inf_graph **graph,
                                  struct inf_model **out_model,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// tool_engine_import() and tool_engine_prepare() in one.
enum inf_code tool_engine_load(const struct tool_engine *engine, const char *path,
                               struct inf_model **out_model,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
