// SPDX-License-Identifier: Apache-2.0
// Sets the operands of steps, creates steps of single nodes, and runs steps, which XNNPACK or a
// native kernel computes.
#include "backends/cpu/program/step.h"

#include "backends/base/clock.h"
#include "backends/cpu/core/counted_memory.h"
#include "backends/cpu/native/eltwise.h"
#include "backends/cpu/xnnpack/library.h"
#include "proto/core/span.h"

// A placeholder for the operand addresses before the first run. XNNPACK allocates only in the first
// setup of an operator; later setups store how far the pointers moved. Therefore the first setup is
// done with this address when a program is compiled, and runs do not allocate. The address is not
// NULL, because XNNPACK refuses NULL, and it is so low that no real operand can have it.
#define PLACEHOLDER ((void *)64)

enum inf_code inf_cpu_step_init_operands(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    step->operands = node->inputs;
    step->operand_count = node->input_count;
    step->outputs = inf_arena_alloc(step->arena, (node->output_count + 1) * sizeof(*step->outputs));
    step->inputs = inf_arena_alloc(step->arena, (node->input_count + 1) * sizeof(*step->inputs));
    if (step->inputs == NULL || step->outputs == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", node->name);
    return INF_OK;
}

void inf_cpu_step_bind_placeholders(struct inf_cpu_step *step)
{
    step->output = PLACEHOLDER;
    for (uint32_t i = 0; i < step->operand_count; i++) {
        uint32_t value = step->operands[i];
        if (value == INF_VALUE_NONE)
            continue;
        bool constant = inf_graph_is_const(step->graph, value);
        step->inputs[i] = constant ? step->graph->values[value].data->data : PLACEHOLDER;
    }
}

enum inf_code inf_cpu_step_create(struct inf_cpu_step *step, const struct inf_cpu_kernel *kernel,
                                  struct inf_error *err)
{
    INF_TRY(inf_cpu_restore_constants(step->graph, step->index, kernel->packs, err));
    inf_cpu_step_bind_placeholders(step);
    return kernel->create(step, err);
}

static enum xnn_status after_setup(struct inf_cpu_step *step)
{
    const struct inf_xnn_unary *unary = &step->post_op.unary;
    if (unary->op == NULL)
        return xnn_status_success;
    return unary->setup(unary->op, unary->batch, step->output, step->output, step->pool);
}

enum inf_code inf_cpu_step_setup(struct inf_cpu_step *step, struct inf_error *err)
{
    enum xnn_status status = step->setup != NULL ? step->setup(step) : xnn_status_success;
    if (status == xnn_status_success)
        status = after_setup(step);
    return inf_xnn_check(status, step->node, step->kernel, err);
}

// Runs an operator of XNNPACK, on several threads if the core set grants the thread pool.
static enum xnn_status run_operator(const struct inf_cpu_step *step, xnn_operator_t op)
{
    struct inf_cpu_team *team = step->team;
    pthreadpool_t pool = step->pool != NULL ? inf_cpu_core_set_acquire_pool(team->cores) : NULL;
    uint64_t start_ns = pool != NULL ? inf_clock_ns() : 0;
    enum xnn_status status = xnn_run_operator(op, pool);
    if (pool != NULL) {
        team->pool_ns += (team->threads - 1) * (inf_clock_ns() - start_ns);
        inf_cpu_core_set_release_pool(team->cores);
        team->used = INF_MAX(team->used, team->threads);
    }
    return status;
}

enum inf_code inf_cpu_step_run(struct inf_cpu_step *step, struct inf_error *err)
{
    enum xnn_status status = xnn_status_success;
    enum inf_code code = step->prepare != NULL ? step->prepare(step, err) : INF_OK;
    if (code != INF_OK)
        return inf_error_prefix(err, code, "node '%s' (%s)", step->node->name,
                                inf_op_info(step->node->op)->name);
    if (step->run != NULL)
        step->run(step);
    else
        status = run_operator(step, step->op);
    if (status == xnn_status_success && step->post_op.unary.op != NULL)
        status = run_operator(step, step->post_op.unary.op);
    if (step->post_op.map != NULL)
        inf_native_map_in_place(step, step->post_op.map, step->post_op.count, step->output);
    return inf_xnn_check(status, step->node, step->kernel, err);
}

bool inf_cpu_step_is_xnn(const struct inf_cpu_step *step)
{
    return step->op != NULL || step->post_op.unary.op != NULL;
}

void inf_cpu_step_fini(struct inf_cpu_step *step)
{
    xnn_delete_operator(step->op);
    xnn_delete_operator(step->post_op.unary.op);
    inf_cpu_memory_free(&step->memory);
    inf_cpu_step_unpack(step);
}
