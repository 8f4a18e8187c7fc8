// SPDX-License-Identifier: Apache-2.0
// A cache of programs of single nodes, keyed by shapes. An interpreted loop uses the same shapes
// repeatedly; then a compiled program is faster than the evaluator.
#include "backends/exec/dynamic/node_programs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/constants.h"
#include "backends/exec/dynamic/node_graph.h"
#include "backends/exec/dynamic/node_packs.h"
#include "backends/storage/record.h"
#include "proto/core/span.h"

// The cache of a slot holds at most SETS * WAYS programs. It is set-associative: the key of a
// program selects one of SETS sets, in which the least recently used of WAYS programs is evicted.
#define SETS 128u
#define WAYS 4u
// A node whose operands and results together have fewer elements than this is computed by the
// evaluator, because looking up a program would take longer.
#define ELEMENTS_MIN ((size_t)512)
// Limit of the memory of the programs in a slot. A slot that needs more drops all programs first.
#define BYTES_MAX (UINT64_C(6) << 20)

struct entry {
    uint64_t key; // hash of node and shapes; 0: the entry is empty
    uint64_t used;
    struct inf_node_graph alone;
    struct inf_program *program; // NULL: the device declines the node
};

struct table {
    struct entry entries[SETS][WAYS];
    uint64_t clock;
    struct inf_binding *bindings; // memory of the operands and results of the current run
    size_t binding_count;
};

struct inf_node_programs {
    struct inf_device *device; // holds a reference
    struct table *tables;      // one for each slot
    uint32_t slots;
    struct inf_node_packs *packs;
    _Atomic uint64_t bytes;
};

enum inf_code inf_node_programs_create(struct inf_node_programs **out_programs,
                                       struct inf_device *const *devices, uint32_t device_count,
                                       uint32_t slots, const struct inf_graph *graph,
                                       struct inf_error *err)
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
        enum inf_code code = inf_node_packs_create(&programs->packs, graph, programs->device, err);
        if (code == INF_OK)
            *out_programs = programs;
        else
            inf_node_programs_destroy(&programs);
        return code;
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
    inf_node_graph_fini(&entry->alone);
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
    inf_node_packs_destroy(&programs->packs);
    inf_device_unref(&programs->device);
    free(programs);
}

uint64_t inf_node_programs_bytes(const struct inf_node_programs *programs)
{
    return programs != NULL ? atomic_load_explicit(&programs->bytes, memory_order_relaxed) : 0;
}

// --- keys of the cache: hashes of a node and the shapes of its operands and results ---

bool inf_node_programs_hold(const struct inf_node_programs *programs, const struct inf_graph *graph,
                            uint32_t value)
{
    return programs != NULL && inf_node_packs_form(programs->packs, graph, value) != NULL;
}

enum inf_code inf_node_programs_list_constants(const struct inf_node_programs *programs,
                                               const struct inf_graph *graph,
                                               struct inf_constants *constants,
                                               struct inf_error *err)
{
    for (uint32_t v = 0; v < graph->value_count; v++) {
        struct inf_blob_form *form =
            programs != NULL ? inf_node_packs_form(programs->packs, graph, v) : NULL;
        if (graph->values[v].data != NULL)
            INF_TRY(inf_constants_add(constants, graph->values[v].data, form, err));
    }
    return INF_OK;
}

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

// Returns true if the cache entry is for this node with operands and results of these shapes. Equal
// keys do not suffice, because the keys are hashes.
static bool fits_program(const struct entry *entry, const struct inf_node_run *run)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    const struct inf_node *mine = &entry->alone.graph->nodes[0];
    if (mine->input_count != node->input_count || mine->output_count != node->output_count ||
        strcmp(mine->name, node->name) != 0)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if ((entry->alone.operands[i] == INF_VALUE_NONE) != (node->inputs[i] == INF_VALUE_NONE))
            return false;
        if (node->inputs[i] == INF_VALUE_NONE || is_const(run, node->inputs[i]))
            continue;
        const struct inf_value *value = &run->graph->values[node->inputs[i]];
        const struct inf_value *like = &entry->alone.graph->values[entry->alone.operands[i]];
        if (value->dtype != like->dtype || !inf_shape_equal(&value->shape, &like->shape))
            return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!inf_shape_equal(&run->graph->values[node->outputs[i]].shape,
                             &entry->alone.graph->values[mine->outputs[i]].shape))
            return false;
    return true;
}

// --- compiling programs of single nodes ---

// Compiles the program of a cache entry. If that fails and the evaluator can compute the node, the
// entry remains without a program.
static enum inf_code make_program(struct inf_node_programs *programs, struct entry *entry,
                                  const struct inf_node_run *run,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    static const uint32_t nodes[] = {0};
    const struct inf_node *node = &run->graph->nodes[run->node];
    bool packed = inf_node_packs_has(programs->packs, run->source, run->node);
    bool must = packed && inf_shape_elements(&run->graph->values[node->outputs[0]].shape) > 0;
    struct inf_error *why = must ? err : NULL;
    INF_TRY(inf_node_graph_init(&entry->alone, run->graph, run->source, run->node, packed, err));
    const struct inf_segment segment = {
        .graph = entry->alone.graph, .nodes = nodes, .node_count = 1, .slots = 1, .by_rule = true};
    enum inf_code code = inf_device_supports(programs->device, entry->alone.graph, 0, why);
    if (code == INF_OK)
        code = inf_program_compile(&entry->program, programs->device, &segment, 0, why);
    if (code != INF_OK) {
        entry->program = NULL;
        return must ? code : INF_OK;
    }
    atomic_fetch_add_explicit(&programs->bytes, bytes_of(entry->program), memory_order_relaxed);
    return INF_OK;
}

// Returns the cache entry for the node with these shapes. Compiles a program if there is no entry.
static enum inf_code find_program(struct inf_node_programs *programs,
                                  const struct inf_node_run *run, struct entry **out_entry,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    struct table *table = &programs->tables[run->slot];
    uint64_t key = key_of(run);
    struct entry *set = table->entries[key % SETS];
    struct entry *entry = &set[0];
    for (uint32_t way = 0; way < WAYS; way++) {
        if (set[way].key == key && fits_program(&set[way], run)) {
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
    enum inf_code code = make_program(programs, entry, run, err);
    if (code != INF_OK) {
        entry_clear(programs, entry);
        return code;
    }
    entry->key = key;
    entry->used = ++table->clock;
    *out_entry = entry;
    return INF_OK;
}

// --- running programs of single nodes ---

// Returns true if a program may run the node: it is large enough and has no empty tensor.
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

static enum inf_code bind_operands(struct table *table, const struct entry *entry,
                                   const struct inf_node_run *run, struct inf_error *err)
{
    const struct inf_node *node = &run->graph->nodes[run->node];
    if (table->binding_count < entry->alone.graph->value_count) {
        free(table->bindings);
        table->binding_count = 0;
        table->bindings = calloc(entry->alone.graph->value_count, sizeof *table->bindings);
        if (table->bindings == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
        table->binding_count = entry->alone.graph->value_count;
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE &&
            entry->alone.graph->values[entry->alone.operands[i]].data == NULL)
            table->bindings[entry->alone.operands[i]] =
                (struct inf_binding){.host = run->graph->values[node->inputs[i]].data->data};
    for (uint32_t i = 0; i < node->output_count; i++)
        table->bindings[entry->alone.graph->nodes[0].outputs[i]] =
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
    INF_TRY(find_program(programs, run, &entry, err));
    if (entry->program == NULL)
        return INF_OK;
    INF_TRY(bind_operands(&programs->tables[run->slot], entry, run, err));
    const struct inf_run of_program = {.bindings = programs->tables[run->slot].bindings,
                                       .cancelled = run->cancelled,
                                       .strings = run->graph->run_strings,
                                       .core_use = run->core_use};
    INF_TRY(inf_program_run(entry->program, &of_program, &ticket, err));
    INF_TRY(inf_device_wait(programs->device, ticket, UINT64_MAX, err));
    INF_TRY(inf_program_finish(entry->program, &of_program, err));
    *out_done = true;
    return INF_OK;
}
