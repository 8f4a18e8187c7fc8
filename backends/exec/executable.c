// SPDX-License-Identifier: Apache-2.0
// Checks the calls of executable.h and passes them to the implementation (executable_ops.h), static
// or dynamic. Code that both implementations share, such as adding up constants, is here too.
// Executables are created by static_executable.h and dynamic/dynamic_executable.h.
#include "backends/exec/executable.h"

#include <assert.h>

#include "backends/exec/executable_ops.h"

void inf_executable_destroy(struct inf_executable **pointer)
{
    struct inf_executable *executable = *pointer;
    *pointer = NULL;
    if (executable != NULL)
        executable->ops->destroy(executable);
}

const struct inf_graph *inf_executable_graph(const struct inf_executable *executable)
{
    return executable->graph;
}

// --- the graph, plan and devices of an executable ---

static const struct inf_executable *planned_part(const struct inf_executable *executable)
{
    const struct inf_executable *planned = executable->ops->planned(executable);
    assert(planned != NULL && planned->ops->plan != NULL);
    return planned;
}

const struct inf_plan *inf_executable_plan(const struct inf_executable *executable)
{
    const struct inf_executable *planned = planned_part(executable);
    return planned->ops->plan(planned);
}

const struct inf_graph *inf_executable_planned_graph(const struct inf_executable *executable)
{
    return planned_part(executable)->graph;
}

const struct inf_device_info *inf_executable_device(const struct inf_executable *executable,
                                                    uint32_t device)
{
    const struct inf_executable *planned = planned_part(executable);
    return planned->ops->device(planned, device);
}

uint32_t inf_executable_new_rows(const struct inf_executable *executable)
{
    return executable->new_rows;
}

uint32_t inf_executable_interpreted_nodes(const struct inf_executable *executable)
{
    return executable->graph->node_count - planned_part(executable)->graph->node_count;
}

enum inf_precision inf_executable_precision(const struct inf_executable *executable)
{
    return executable->ops->precision(executable);
}

// --- adding up constants and memory ---

enum inf_code inf_executable_list_constants(const struct inf_executable *executable,
                                            struct inf_constants *constants, struct inf_error *err)
{
    INF_TRY(inf_constants_add_graph(constants, executable->graph, err));
    return executable->ops->list_constants(executable, constants, err);
}

void inf_executable_add_own_memory(const struct inf_executable *executable,
                                   struct inf_executable_memory *memory)
{
    executable->ops->add_own_memory(executable, memory);
}

enum inf_code inf_executable_memory(const struct inf_executable *executable,
                                    struct inf_executable_memory *memory, struct inf_error *err)
{
    struct inf_constants constants = {0};
    *memory = (struct inf_executable_memory){0};
    inf_executable_add_own_memory(executable, memory);
    enum inf_code code = inf_executable_list_constants(executable, &constants, err);
    if (code == INF_OK) {
        struct inf_form_cost forms = inf_constants_form_cost(&constants);
        memory->shared_bytes = forms.bytes;
        memory->packing_ns = forms.made_ns;
        inf_constants_merge(&constants);
    }
    for (size_t i = 0; code == INF_OK && i < constants.count; i++)
        if (!inf_constant_is_evictable(&constants.uses[i]))
            memory->const_bytes += constants.uses[i].blob->size_bytes;
    inf_constants_fini(&constants);
    return code;
}

bool inf_executable_lost(const struct inf_executable *executable)
{
    return executable->ops->lost(executable);
}

// --- running, and reading results and profiles ---

enum inf_code inf_executable_run(struct inf_executable *executable,
                                 const struct inf_execution *execution, struct inf_error *err)
{
    inf_role_check_may_block();
    assert(execution->outputs != NULL);
    struct inf_string_pool own = {0};
    struct inf_execution whole = *execution;
    if (whole.strings == NULL)
        whole.strings = &own;
    enum inf_code code = executable->ops->run(executable, &whole, err);
    inf_run_step_clear(execution->step);
    inf_string_pool_fini(&own);
    return code;
}

bool inf_executable_result(const struct inf_executable *executable, uint32_t slot, uint32_t output,
                           struct inf_result *result)
{
    assert(output < executable->graph->output_count);
    return executable->ops->result != NULL &&
           executable->ops->result(executable, slot, output, result);
}

void inf_executable_drop_results(struct inf_executable *executable, uint32_t slot)
{
    if (executable->ops->drop_results != NULL)
        executable->ops->drop_results(executable, slot);
}

uint32_t inf_executable_profile(const struct inf_executable *executable, uint32_t slot,
                                struct inf_node_profile *nodes, uint32_t capacity)
{
    return executable->ops->profile(executable, slot, nodes, capacity);
}
