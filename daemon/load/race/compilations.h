// SPDX-License-Identifier: Apache-2.0
// For which devices, precisions and shapes a load has compiled a model, so that another copy of the
// model can be compiled likewise.
#ifndef INF_DAEMON_LOAD_RACE_COMPILATIONS_H
#define INF_DAEMON_LOAD_RACE_COMPILATIONS_H

#include "backends/exec/model/model.h"

struct inf_compilation {
    const struct inf_device *device; // only compared
    struct inf_run_options options;  // precision and threads
    struct inf_shape *shapes;        // owned; one for each input
};

struct inf_compilations {
    struct inf_compilation *items;
    uint32_t count;
    bool out_of_memory; // the list is not complete
};

// Lists the executables of a model. Returns NULL if there is no memory. Only while no other thread
// uses the model. The caller destroys the list.
struct inf_compilations *inf_compilations_list(struct inf_model *model) INF_NODISCARD INF_MAY_BLOCK;

// Frees a list and sets the pointer to NULL. NULL is allowed.
void inf_compilations_destroy(struct inf_compilations **list);

#endif
