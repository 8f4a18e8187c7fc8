// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/node_programs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/record.h"
#include "proto/core/span.h"

// Programs that a slot keeps: places by key, in sets of some, of which the one that was not used for the
// longest time is given up for another.
#define SETS 128u
#define WAYS 4u
// Operands and results of a node together: fewer elements are computed before a program is found.
#define ELEMENTS_MIN ((size_t)512)
// Of all programs of a slot; a slot that wants more begins anew.
#define BYTES_MAX (UINT64_C(6) << 20)

struct entry {
    uint64_t key; // 0: none
    uint64_t used;
    struct inf_graph *graph;     // the node alone
    uint32_t *operands;          // by input of the node: value of `graph`, or INF_VALUE_NONE
    struct inf_program *program; // NULL: the device declines the node
};

struct table {
    struct entry entries[SETS][WAYS];
    uint64_t clock;
    struct inf_binding *bindings; // of the run
    size_t binding_count;
};

struct inf_node_programs {
    struct inf_device *device; // a reference
    struct table *tables;      // by slot
    uint32_t slots;
    _Atomic uint64_t bytes;
};

enum inf_code inf_node_programs_create(struct inf_node_programs **out_programs,
                                       struct inf_device *const *devices, uint32_t device_count,
                                       uint32_t slots, struct inf_error *err)
{
    *out_programs = NULL;
    for (uint32_t i = 0; i + 1 < device_count; i++) {
        if (!inf_device_info(devices[i])->host_memory)
            continue;
        struct inf_node_programs *programs = calloc(1, sizeof *programs);
        if (programs != NULL)
            programs->tables = calloc((size_t)slots + 1, sizeof *programs->tables);
        if (programs == NULL || programs->tables == NULL) {
            free(programs);
            return inf_fail(err, INF_EXHAUSTED, "no memory for programs of nodes");
        }
        programs->device = inf_device_ref(devices[i]);
        programs->slots = slots;
        *out_programs = programs;
        return INF_OK;
    }
    return INF_OK;
}

static uint64_t bytes_of(const struct inf_program *program)
{
    return program != NULL ? inf_program_weight_bytes(program) + inf_program_scratch_bytes(program)
                           : 0;
}

static void entry_clear(struct inf_node_programs *programs, struct entry *entry)
{
    atomic_fetch_sub_explicit(&programs->bytes, bytes_of(entry->program), memory_order_relaxed);
    inf_program_destroy(&entry->program);
    inf_graph_destroy(&entry->graph);
    free(entry->operands);
    *entry = (struct entry){0};
}

static void table_clear(struct inf_node_programs *programs, struct table *table)
{
    for (uint32_t i = 0; i < SETS * WAYS; i++)
        entry_clear(programs, &table->entries[i / WAYS][i % WAYS]);
}

void inf_node_programs_destroy(struct inf_node_programs **pointer)
{
    struct inf_node_programs *programs = *pointer;
    *pointer = NULL;
    if (programs == NULL)
        return;
    for (uint32_t slot = 0; slot < programs->slots; slot++) {
        table_clear(programs, &programs->tables[slot]);
        free(programs->tables[slot].bindings);
    }
    free(programs->tables);
    inf_device_unref(&programs->device);
    free(programs);
}

uint64_t inf_node_programs_bytes(const struct inf_node_programs *programs)
{
    return programs != NULL ? atomic_load_explicit(&programs->bytes, memory_order_relaxed) : 0;
}

// --- keys ---

static bool is_const(const struct inf_node_run *run, uint32_t value)
{
    return run->source->values[value].data != NULL;
}

static uint64_t key_of(const struct inf_node_run *run)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    uint64_t key =
        inf_record_hash(INF_RECORD_HASH_INIT, (const void *)&run->source, sizeof run->source);
    key = inf_record_hash(key, &run->node, sizeof run->node);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == INF_VALUE_NONE || is_const(run, node->inputs[i]))
            continue;
        const struct inf_shape *shape = &run->graph->values[node->inputs[i]].shape;
        key = inf_record_hash(key, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]);
        key = inf_record_hash(key, &shape->rank, sizeof shape->rank);
    }
    return key != 0 ? key : 1;
}

// Whether the entry was made of this node with operands and results of these shapes: other ones may have
// the same key.
static bool fits(const struct entry *entry, const struct inf_node_run *run)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    const struct inf_node *mine = &entry->graph->nodes[0];
    if (mine->input_count != node->input_count || mine->output_count != node->output_count ||
        strcmp(mine->name, node->name) != 0)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if ((entry->operands[i] == INF_VALUE_NONE) != (node->inputs[i] == INF_VALUE_NONE))
            return false;
        if (node->inputs[i] == INF_VALUE_NONE || is_const(run, node->inputs[i]))
            continue;
        const struct inf_value *value = &run->graph->values[node->inputs[i]];
        const struct inf_value *like = &entry->graph->values[entry->operands[i]];
        if (value->dtype != like->dtype || !inf_shape_equal(&value->shape, &like->shape))
            return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!inf_shape_equal(&run->graph->values[node->outputs[i]].shape,
                             &entry->graph->values[mine->outputs[i]].shape))
            return false;
    return true;
}

// --- making ---

// A convolution that is a product of each pixel with a matrix: it may be written as one.
static bool is_product(const struct inf_node_run *run, const struct inf_node *node)
{
    if (node->op != INF_OP_CONV2D)
        return false;
    const struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    const struct inf_shape *x = &run->graph->values[node->inputs[0]].shape;
    const struct inf_shape *filter = &run->graph->values[node->inputs[1]].shape;
    const struct inf_shape *y = &run->graph->values[node->outputs[0]].shape;
    return filter->dims[0] == 1 && filter->dims[1] == 1 && filter->dims[2] == x->dims[3] &&
           attrs->stride_h == 1 && attrs->stride_w == 1 && y->dims[1] == x->dims[1] &&
           y->dims[2] == x->dims[2];
}

// Whether the operand is the matrix of a product: packed for a program of its own it would take as much
// memory again, so that it is read in each run.
static bool is_matrix(const struct inf_node_run *run, const struct inf_node *node, uint32_t input)
{
    return input == 1 && (node->op == INF_OP_MATMUL || is_product(run, node));
}

static enum inf_code add_operand(struct entry *entry, const struct inf_node_run *run,
                                 uint32_t input, struct inf_error *err)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    uint32_t value = node->inputs[input];
    entry->operands[input] = INF_VALUE_NONE;
    if (value == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_value *like = &run->graph->values[value];
    struct inf_shape shape = like->shape;
    if (input == 1 && is_product(run, node))
        shape = INF_SHAPE(like->shape.dims[2], like->shape.dims[3]);
    if (is_const(run, value) && !is_matrix(run, node, input))
        return inf_graph_add_const(entry->graph, like->name, like->dtype, &shape,
                                   inf_blob_ref(like->data), &entry->operands[input], err);
    return inf_graph_add_value(entry->graph, like->name, like->dtype, &shape,
                               &entry->operands[input], err);
}

static void set_attrs(struct inf_node *node, const struct inf_node *like)
{
    if (node->op == like->op) {
        node->attrs = like->attrs;
        return;
    }
    const struct inf_attrs_conv2d *attrs = &like->attrs.conv2d;
    node->attrs.matmul.activation = attrs->activation;
    node->attrs.matmul.activation_alpha = attrs->activation_alpha;
    node->attrs.matmul.activation_min = attrs->activation_min;
    node->attrs.matmul.activation_max = attrs->activation_max;
}

// Makes the graph of the node alone.
static enum inf_code make_graph(struct entry *entry, const struct inf_node_run *run,
                                struct inf_error *err)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    uint32_t index;
    enum inf_op op = is_product(run, node) ? INF_OP_MATMUL : node->op;
    INF_TRY(inf_graph_create(&entry->graph, err));
    entry->operands = calloc((size_t)node->input_count + 1, sizeof *entry->operands);
    if (entry->operands == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a program of a node");
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(add_operand(entry, run, i, err));
    INF_TRY(inf_graph_add_node(entry->graph, op, node->name, node->source, entry->operands,
                               node->input_count, node->output_count, &index, err));
    struct inf_node *mine = &entry->graph->nodes[index];
    set_attrs(mine, node);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *like = &run->graph->values[node->outputs[i]];
        entry->graph->values[mine->outputs[i]].dtype = like->dtype;
        entry->graph->values[mine->outputs[i]].shape = like->shape;
    }
    return INF_OK;
}

// Compiles the node; an entry without a program where that fails.
static enum inf_code make(struct inf_node_programs *programs, struct entry *entry,
                          const struct inf_node_run *run, struct inf_error *err) INF_MAY_BLOCK
{
    static const uint32_t nodes[] = {0};
    INF_TRY(make_graph(entry, run, err));
    const struct inf_segment segment = {
        .graph = entry->graph, .nodes = nodes, .node_count = 1, .slots = 1, .by_rule = true};
    if (inf_device_supports(programs->device, entry->graph, 0, NULL) != INF_OK ||
        inf_program_compile(&entry->program, programs->device, &segment, 0, NULL) != INF_OK)
        entry->program = NULL;
    atomic_fetch_add_explicit(&programs->bytes, bytes_of(entry->program), memory_order_relaxed);
    return INF_OK;
}

// The entry for the node with these shapes, made now if there is none.
static enum inf_code find(struct inf_node_programs *programs, const struct inf_node_run *run,
                          struct entry **out_entry, struct inf_error *err) INF_MAY_BLOCK
{
    struct table *table = &programs->tables[run->slot];
    uint64_t key = key_of(run);
    struct entry *set = table->entries[key % SETS];
    struct entry *entry = &set[0];
    for (uint32_t way = 0; way < WAYS; way++) {
        if (set[way].key == key && fits(&set[way], run)) {
            set[way].used = ++table->clock;
            *out_entry = &set[way];
            return INF_OK;
        }
        if (set[way].used < entry->used)
            entry = &set[way];
    }
    entry_clear(programs, entry);
    if (inf_node_programs_bytes(programs) > BYTES_MAX * programs->slots)
        table_clear(programs, table);
    enum inf_code code = make(programs, entry, run, err);
    if (code != INF_OK) {
        entry_clear(programs, entry);
        return code;
    }
    entry->key = key;
    entry->used = ++table->clock;
    *out_entry = entry;
    return INF_OK;
}

// --- running ---

// Whether the node is large enough, and has no tensor that is empty.
static bool is_worth_it(const struct inf_node_run *run)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    size_t elements = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE)
            elements += inf_shape_elements(&run->graph->values[node->inputs[i]].shape);
    for (uint32_t i = 0; i < node->output_count; i++)
        elements += inf_shape_elements(&run->graph->values[node->outputs[i]].shape);
    return elements >= ELEMENTS_MIN;
}

static enum inf_code bind(struct table *table, const struct entry *entry,
                          const struct inf_node_run *run, struct inf_error *err)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    if (table->binding_count < entry->graph->value_count) {
        free(table->bindings);
        table->binding_count = 0;
        table->bindings = calloc(entry->graph->value_count, sizeof *table->bindings);
        if (table->bindings == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
        table->binding_count = entry->graph->value_count;
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE)
            table->bindings[entry->operands[i]] =
                (struct inf_binding){.host = run->graph->values[node->inputs[i]].data->data};
    for (uint32_t i = 0; i < node->output_count; i++)
        table->bindings[entry->graph->nodes[0].outputs[i]] =
            (struct inf_binding){.host = run->outputs[i]->data};
    return INF_OK;
}

enum inf_code inf_node_programs_run(struct inf_node_programs *programs,
                                    const struct inf_node_run *run, bool *out_done,
                                    struct inf_error *err)
{
    struct entry *entry;
    struct inf_ticket ticket;
    *out_done = false;
    if (!is_worth_it(run))
        return INF_OK;
    INF_TRY(find(programs, run, &entry, err));
    if (entry->program == NULL)
        return INF_OK;
    INF_TRY(bind(&programs->tables[run->slot], entry, run, err));
    const struct inf_run of_program = {.bindings = programs->tables[run->slot].bindings,
                                       .cancelled = run->cancelled};
    INF_TRY(inf_program_run(entry->program, &of_program, &ticket, err));
    INF_TRY(inf_device_wait(programs->device, ticket, UINT64_MAX, err));
    INF_TRY(inf_program_finish(entry->program, &of_program, err));
    *out_done = true;
    return INF_OK;
}
