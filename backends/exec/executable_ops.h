// SPDX-License-Identifier: Apache-2.0
// The functions that an implementation of executables provides; called by executable.c. There are
// two implementations: a static one (static_executable.h), in which all shapes are known, and a
// dynamic one (dynamic/dynamic_executable.h).
#ifndef INF_BACKENDS_EXEC_EXECUTABLE_OPS_H
#define INF_BACKENDS_EXEC_EXECUTABLE_OPS_H

#include "backends/exec/executable.h"

// Each entry does what the function of executable.h with the same name does. The first argument is
// the implementation's own struct, whose first member is a struct inf_executable.
struct inf_executable_ops {
    void (*destroy)(struct inf_executable *executable);

    // Returns the static executable that holds the plan: `executable` itself, or its planned part.
    const struct inf_executable *(*planned)(const struct inf_executable *executable);

    // The next two functions are called only for the executable that planned() returned. NULL if
    // planned() never returns this implementation.
    const struct inf_plan *(*plan)(const struct inf_executable *executable);
    const struct inf_device_info *(*device)(const struct inf_executable *executable,
                                            uint32_t device);

    enum inf_precision (*precision)(const struct inf_executable *executable);

    void (*add_own_memory)(const struct inf_executable *executable,
                           struct inf_executable_memory *memory);

    // Adds to the list how runs use the constants. executable.c has already added the constants of
    // the graph.
    enum inf_code (*list_constants)(const struct inf_executable *executable,
                                    struct inf_constants *constants, struct inf_error *err);

    bool (*lost)(const struct inf_executable *executable);

    enum inf_code (*run)(struct inf_executable *executable, const struct inf_execution *execution,
                         struct inf_error *err);

    // Returns an output whose size is known only after a run. NULL if all output sizes are known
    // before a run.
    bool (*result)(const struct inf_executable *executable, uint32_t slot, uint32_t output,
                   struct inf_result *result);
    void (*drop_results)(struct inf_executable *executable, uint32_t slot);

    uint32_t (*profile)(const struct inf_executable *executable, uint32_t slot,
                        struct inf_node_profile *nodes, uint32_t capacity);
};

// First member of an implementation's own struct.
struct inf_executable {
    const struct inf_executable_ops *ops;
    struct inf_graph *graph; // owned; returned by inf_executable_graph()
    uint32_t new_rows;       // returned by inf_executable_new_rows()
};

#endif
