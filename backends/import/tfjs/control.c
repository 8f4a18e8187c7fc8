// SPDX-License-Identifier: Apache-2.0
// Finds the branches and loops of TensorFlow 1 in a graph of single nodes. TensorFlow 1 writes
// control flow as dataflow:
//     loop:    variable = Merge(Enter(x), NextIteration(next)); Switch(variable,
//              LoopCond(condition)) sends it to the body (true) or to Exit (false)
//     branch:  Switch(x, p) sends x to one of two sides; Merge(a, b) takes the value of the side
//              that ran
// Loops: all Enter nodes with the same frame name belong to one loop. A Merge with a NextIteration
// is one of its variables. Switch and Exit are found from the variable.
// Branches: a walk in the order of inputs computes the context of every node, which is the set of
// choices (predicate and side) that must have been taken for the node to run. A Switch output adds
// a choice; other nodes unite the contexts of their inputs. The two inputs of a Merge then differ
// in one choice. The predicate of this choice is the predicate of the branch, and the context of
// the Merge has the choices that both inputs have in common. Example:
//     s = Switch(x, p); a = f(s:0) has {!p}; b = g(s:1) has {p}; Merge(a, b) is a branch by p with
//     context {}
// Finally the nodes inside each side are found by walking back from the Merge to the border. Values
// whose context lacks the choice are captured from outside. The cost stays linear because the
// number of captures in a branch is limited. A cycle that is not a loop is cut here and reported by
// lowering.
#include "backends/import/tfjs/control.h"

#include <stdlib.h>
#include <string.h>

#include "backends/import/tfjs/attr.h"

#define NO_NODE UINT32_MAX
// The largest number of Identity nodes between a Switch and its predicate.
#define HOPS_MAX 64
// The largest number of branches that are nested around one node.
#define LITERALS_MAX 64

// A sorted set of choices. A choice says which alternative of a branch is taken: it is a predicate
// and the value, true or false, that the predicate has.
struct inf_tfjs_literals {
    uint32_t count;
    uint64_t items[];
};

struct finder {
    struct inf_tfjs_graph *graph;
    uint32_t *stack; // nodes that a search has found and not yet finished
    uint8_t *state;  // indexed by node: whether the search has not reached, entered or finished it
    uint32_t *marks; // indexed by node: number of the last search that reached it
    uint32_t mark;
    struct inf_error *err;
};

static enum inf_code fail_no_memory(struct inf_error *err)
{
    return inf_fail(err, INF_EXHAUSTED, "no memory for the control flow of the model");
}

static bool is_op(const struct inf_tfjs_graph *graph, uint32_t node, const char *op)
{
    return strcmp(graph->nodes[node].op, op) == 0;
}

#define node_fail(finder, index, code, ...)                                                        \
    (inf_fail((finder)->err, (code), __VA_ARGS__),                                                 \
     inf_tfjs_node_error(&(finder)->graph->nodes[index], (code), (finder)->err))

// Follows a reference through Identity nodes, and returns the reference to the first other node.
static struct inf_tfjs_ref skip_identities(const struct inf_tfjs_graph *graph,
                                           struct inf_tfjs_ref ref)
{
    for (int hop = 0; hop < HOPS_MAX && is_op(graph, ref.node, "Identity") &&
                      graph->nodes[ref.node].input_count > 0;
         hop++)
        ref = graph->nodes[ref.node].inputs[0];
    return ref;
}

// --- finding loops ---

struct keyed_enter {
    const char *key;
    uint32_t node;
};

static int compare_enters(const void *a, const void *b)
{
    const struct keyed_enter *left = a, *right = b;
    int order = strcmp(left->key, right->key);
    return order != 0 ? order : (left->node > right->node) - (left->node < right->node);
}

// Groups Enter nodes by frame name. Each group is one loop.
static enum inf_code group_enters(struct finder *finder, struct keyed_enter *enters, uint32_t count)
{
    struct inf_tfjs_graph *graph = finder->graph;
    struct inf_arena *arena = &graph->arena;
    qsort(enters, count, sizeof *enters, compare_enters);
    graph->frames = inf_arena_alloc(arena, ((size_t)count + 1) * sizeof *graph->frames);
    if (graph->frames == NULL)
        return fail_no_memory(finder->err);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && strcmp(enters[i].key, enters[next].key) == 0;)
            next++;
        size_t size = (size_t)(next - i) * sizeof(uint32_t);
        struct inf_tfjs_frame *frame = &graph->frames[graph->frame_count];
        *frame = (struct inf_tfjs_frame){
            .condition = NO_NODE,
            .first_exit = NO_NODE,
            .enters = inf_arena_alloc(arena, size),
            .merges = inf_arena_alloc(arena, size),
            .nexts = inf_arena_alloc(arena, size),
            .entrances = inf_arena_alloc(arena, size),
        };
        if (frame->enters == NULL || frame->merges == NULL || frame->nexts == NULL ||
            frame->entrances == NULL)
            return fail_no_memory(finder->err);
        for (uint32_t k = i; k < next; k++) {
            frame->enters[frame->enter_count++] = enters[k].node;
            graph->control[enters[k].node].frame = graph->frame_count;
        }
        graph->frame_count++;
    }
    return INF_OK;
}

static enum inf_code find_enters(struct finder *finder)
{
    struct inf_tfjs_graph *graph = finder->graph;
    uint32_t count = 0;
    struct keyed_enter *enters = calloc((size_t)graph->node_count + 1, sizeof *enters);
    enum inf_code code = enters == NULL ? fail_no_memory(finder->err) : INF_OK;
    for (uint32_t i = 0; i < graph->node_count && code == INF_OK; i++) {
        if (!graph->nodes[i].reachable || !is_op(graph, i, "Enter"))
            continue;
        graph->control[i].role = INF_TFJS_LOOP_ENTER;
        enters[count].node = i;
        code = graph->nodes[i].input_count == 1
                   ? inf_tfjs_attr_key(&graph->nodes[i], "frame_name", &graph->arena,
                                       &enters[count].key, finder->err)
                   : node_fail(finder, i, INF_INVALID, "has %u inputs, wanted 1",
                               graph->nodes[i].input_count);
        count++;
    }
    if (code == INF_OK)
        code = group_enters(finder, enters, count);
    free(enters);
    return code;
}

// Finds a variable of a loop, which is a Merge with a NextIteration. Its other input is an Enter of
// the loop.
static enum inf_code find_variable(struct finder *finder, uint32_t index)
{
    struct inf_tfjs_graph *graph = finder->graph;
    const struct inf_tfjs_node *node = &graph->nodes[index];
    if (node->input_count != 2)
        return node_fail(finder, index, INF_UNSUPPORTED, "merges %u values, wanted 2",
                         node->input_count);
    bool first = is_op(graph, node->inputs[0].node, "NextIteration");
    bool second = is_op(graph, node->inputs[1].node, "NextIteration");
    graph->control[index].role = INF_TFJS_BRANCH_MERGE;
    if (!first && !second)
        return INF_OK;
    uint32_t next = node->inputs[first ? 0 : 1].node, enter = node->inputs[first ? 1 : 0].node;
    if (graph->control[enter].role != INF_TFJS_LOOP_ENTER || graph->nodes[next].input_count != 1)
        return node_fail(finder, index, INF_INVALID, "is a loop's, and '%.100s' does not enter it",
                         graph->nodes[enter].name);
    struct inf_tfjs_frame *frame = &graph->frames[graph->control[enter].frame];
    if (frame->variable_count == frame->enter_count)
        return node_fail(finder, index, INF_INVALID, "its loop has more variables than entrances");
    graph->control[index] = (struct inf_tfjs_control){.role = INF_TFJS_LOOP_MERGE,
                                                      .frame = graph->control[enter].frame,
                                                      .variable = frame->variable_count};
    graph->control[enter].is_entrance = true;
    graph->control[next].role = INF_TFJS_LOOP_NEXT;
    graph->control[next].frame = graph->control[enter].frame;
    frame->merges[frame->variable_count] = index;
    frame->nexts[frame->variable_count] = next;
    frame->entrances[frame->variable_count++] = enter;
    return INF_OK;
}

// Finds the loop of a Switch whose predicate is a LoopCond. The loop is found from the variable
// that is switched.
static enum inf_code find_switch(struct finder *finder, uint32_t index)
{
    struct inf_tfjs_graph *graph = finder->graph;
    const struct inf_tfjs_node *node = &graph->nodes[index];
    if (node->input_count != 2)
        return node->reachable ? node_fail(finder, index, INF_INVALID, "has %u inputs, wanted 2",
                                           node->input_count)
                               : INF_OK;
    uint32_t predicate = skip_identities(graph, node->inputs[1]).node;
    uint32_t data = skip_identities(graph, node->inputs[0]).node;
    graph->control[index].role = INF_TFJS_BRANCH_SWITCH;
    if (!is_op(graph, predicate, "LoopCond"))
        return INF_OK;
    if (!graph->nodes[predicate].reachable)
        return INF_OK;
    if (graph->nodes[predicate].input_count != 1)
        return node_fail(finder, predicate, INF_INVALID, "has %u inputs, wanted 1",
                         graph->nodes[predicate].input_count);
    graph->control[index].role = INF_TFJS_LOOP_SWITCH;
    graph->control[predicate].role = INF_TFJS_LOOP_CONDITION;
    if (graph->control[data].role != INF_TFJS_LOOP_MERGE)
        return INF_OK;
    graph->control[predicate].frame = graph->control[data].frame;
    struct inf_tfjs_frame *frame = &graph->frames[graph->control[data].frame];
    if (frame->condition != NO_NODE && frame->condition != predicate)
        return node_fail(finder, index, INF_INVALID, "its loop has two conditions");
    frame->condition = predicate;
    return INF_OK;
}

static enum inf_code find_exit(struct finder *finder, uint32_t index)
{
    struct inf_tfjs_graph *graph = finder->graph;
    const struct inf_tfjs_node *node = &graph->nodes[index];
    uint32_t from = node->input_count == 1 ? node->inputs[0].node : NO_NODE;
    if (from == NO_NODE || graph->control[from].role != INF_TFJS_LOOP_SWITCH)
        return node_fail(finder, index, INF_INVALID, "wanted one input, a Switch by a LoopCond");
    uint32_t data = skip_identities(graph, graph->nodes[from].inputs[0]).node;
    if (graph->control[data].role != INF_TFJS_LOOP_MERGE)
        return node_fail(finder, index, INF_INVALID,
                         "gives '%.100s', which is no variable of a loop", graph->nodes[data].name);
    graph->control[index].role = INF_TFJS_LOOP_EXIT;
    graph->control[index].frame = graph->control[data].frame;
    graph->control[index].variable = graph->control[data].variable;
    struct inf_tfjs_frame *frame = &graph->frames[graph->control[data].frame];
    graph->control[index].next_exit = frame->first_exit;
    frame->first_exit = index;
    return INF_OK;
}

// Calls `find` for the reachable nodes of one operator. For Switch it is called for all nodes,
// because a node may wait for a Switch whose data is not used.
static enum inf_code for_each(struct finder *finder, const char *op,
                              enum inf_code (*find)(struct finder *finder, uint32_t index))
{
    for (uint32_t i = 0; i < finder->graph->node_count; i++)
        if ((finder->graph->nodes[i].reachable || find == find_switch) &&
            is_op(finder->graph, i, op))
            INF_TRY(find(finder, i));
    return INF_OK;
}

// --- listing what must be lowered before a node ---

uint32_t inf_tfjs_dependency_count(const struct inf_tfjs_graph *graph, uint32_t index)
{
    const struct inf_tfjs_control *control = &graph->control[index];
    switch (control->role) {
    case INF_TFJS_LOOP_EXIT:
        return graph->frames[control->frame].enter_count;
    case INF_TFJS_LOOP_SWITCH:
        return 1;
    case INF_TFJS_BRANCH_MERGE:
        return control->branch != NULL ? control->branch->capture_count + 1 : 0;
    case INF_TFJS_LOOP_ENTER:
    case INF_TFJS_LOOP_MERGE:
    case INF_TFJS_LOOP_NEXT:
    case INF_TFJS_LOOP_CONDITION:
        return 0; // a node at the border of a loop has none, because it is lowered with the loop
    default:
        return graph->nodes[index].input_count;
    }
}

struct inf_tfjs_ref inf_tfjs_dependency(const struct inf_tfjs_graph *graph, uint32_t index,
                                        uint32_t which)
{
    const struct inf_tfjs_control *control = &graph->control[index];
    if (control->role == INF_TFJS_LOOP_EXIT)
        return graph->nodes[graph->frames[control->frame].enters[which]].inputs[0];
    if (control->role != INF_TFJS_BRANCH_MERGE)
        return graph->nodes[index].inputs[which];
    return which == 0 ? control->branch->predicate : control->branch->captures[which - 1].outer;
}

// --- finding branches ---

static uint64_t make_literal(struct inf_tfjs_ref predicate, bool side)
{
    return (uint64_t)predicate.node << 32 | (uint64_t)(predicate.port & 0x7fffffffu) << 1 | side;
}

static bool has_literal(const struct inf_tfjs_literals *set, uint64_t literal)
{
    for (uint32_t i = 0; set != NULL && i < set->count; i++)
        if (set->items[i] == literal)
            return true;
    return false;
}

// Adds a choice (a predicate and its value, true or false) to a set of choices. Fails if branches
// are nested too deep.
static enum inf_code add_literal(struct finder *finder, uint64_t *items, uint32_t *count,
                                 uint64_t literal)
{
    for (uint32_t i = 0; i < *count; i++)
        if (items[i] == literal)
            return INF_OK;
    if (*count == LITERALS_MAX)
        return inf_fail(finder->err, INF_EXHAUSTED, "more than %d branches within each other",
                        LITERALS_MAX);
    items[(*count)++] = literal;
    return INF_OK;
}

static enum inf_code add_literals(struct finder *finder, uint64_t *items, uint32_t *count,
                                  const struct inf_tfjs_literals *set)
{
    for (uint32_t i = 0; set != NULL && i < set->count; i++)
        INF_TRY(add_literal(finder, items, count, set->items[i]));
    return INF_OK;
}

static enum inf_code set_context(struct finder *finder, uint32_t index, const uint64_t *items,
                                 uint32_t count)
{
    if (count == 0)
        return INF_OK;
    struct inf_tfjs_literals *set =
        inf_arena_alloc(&finder->graph->arena, sizeof *set + count * sizeof *items);
    if (set == NULL)
        return fail_no_memory(finder->err);
    set->count = count;
    memcpy(set->items, items, count * sizeof *items);
    finder->graph->control[index].context = set;
    return INF_OK;
}

// Adds the choices of branches that must have been taken for a reference to have a value.
static enum inf_code add_context_of(struct finder *finder, struct inf_tfjs_ref ref, uint64_t *items,
                                    uint32_t *count)
{
    const struct inf_tfjs_graph *graph = finder->graph;
    INF_TRY(add_literals(finder, items, count, graph->control[ref.node].context));
    if (graph->control[ref.node].role != INF_TFJS_BRANCH_SWITCH)
        return INF_OK;
    struct inf_tfjs_ref predicate = skip_identities(graph, graph->nodes[ref.node].inputs[1]);
    return add_literal(finder, items, count, make_literal(predicate, ref.port == 1));
}

// Finds the branch decision that separates the two inputs of a Merge. A choice is one branch of a
// Switch; its opposite is the other branch of the same Switch. `a` and `b` are the choices under
// which the first and the second input are computed. Finds the first choice in `a` whose opposite
// is in `b`; if `opposite` is false, finds the first choice in `a` that is not in `b`.
static bool find_choice(const uint64_t *a, uint32_t a_count, const uint64_t *b, uint32_t b_count,
                        bool opposite, uint64_t *choice)
{
    for (uint32_t i = 0; i < a_count; i++) {
        bool same = false, other = false;
        for (uint32_t k = 0; k < b_count; k++) {
            same |= b[k] == a[i];
            other |= b[k] == (a[i] ^ 1);
        }
        *choice = a[i];
        if (opposite ? other : !same)
            return true;
    }
    return false;
}

// Returns true for nodes, such as constants, that can be copied into a branch at no cost.
static bool is_free(const struct inf_tfjs_graph *graph, uint32_t index)
{
    return is_op(graph, index, "Const");
}

static enum inf_code add_capture(struct finder *finder, struct inf_tfjs_branch *branch,
                                 uint32_t *capacity, struct inf_tfjs_capture capture)
{
    for (uint32_t i = 0; i < branch->capture_count; i++)
        if (branch->captures[i].inner.node == capture.inner.node &&
            branch->captures[i].inner.port == capture.inner.port)
            return INF_OK;
    // The limit prevents the search above from taking quadratic time for a malicious file.
    if (branch->capture_count == INF_LIMIT_NODE_INPUTS - 1)
        return inf_fail(finder->err, INF_EXHAUSTED, "a branch takes more than %u values",
                        INF_LIMIT_NODE_INPUTS - 1);
    if (branch->capture_count == *capacity) {
        uint32_t wanted = *capacity == 0 ? 8 : *capacity * 2;
        struct inf_tfjs_capture *grown =
            inf_arena_alloc(&finder->graph->arena, wanted * sizeof *grown);
        if (grown == NULL)
            return fail_no_memory(finder->err);
        if (branch->capture_count > 0)
            memcpy(grown, branch->captures, branch->capture_count * sizeof *grown);
        branch->captures = grown;
        *capacity = wanted;
    }
    branch->captures[branch->capture_count++] = capture;
    return INF_OK;
}

// Handles one reference during the search for the nodes of a branch, which runs from the Merge back
// to the inputs. The reference is either captured, because its value is from outside the branch, or
// its node is inside and is pushed to the stack.
static enum inf_code visit_reference(struct finder *finder, struct inf_tfjs_branch *branch,
                                     uint32_t *capacity, struct inf_tfjs_ref ref, bool side,
                                     uint32_t *stack, uint32_t *depth)
{
    const struct inf_tfjs_graph *graph = finder->graph;
    const struct inf_tfjs_control *control = &graph->control[ref.node];
    if (control->role == INF_TFJS_BRANCH_SWITCH) {
        struct inf_tfjs_ref predicate = skip_identities(graph, graph->nodes[ref.node].inputs[1]);
        if (predicate.node == branch->predicate.node && predicate.port == branch->predicate.port) {
            struct inf_tfjs_ref inner = {.node = ref.node, .output_name = ""};
            return add_capture(finder, branch, capacity,
                               (struct inf_tfjs_capture){graph->nodes[ref.node].inputs[0], inner});
        }
    }
    if (!is_free(graph, ref.node) &&
        !has_literal(control->context, make_literal(branch->predicate, side)))
        return add_capture(finder, branch, capacity, (struct inf_tfjs_capture){ref, ref});
    if (finder->marks[ref.node] == finder->mark)
        return INF_OK;
    finder->marks[ref.node] = finder->mark;
    stack[(*depth)++] = ref.node;
    return INF_OK;
}

static enum inf_code find_captures(struct finder *finder, struct inf_tfjs_branch *branch)
{
    const struct inf_tfjs_graph *graph = finder->graph;
    uint32_t capacity = 0, depth = 0;
    uint32_t *stack = calloc((size_t)graph->node_count + 1, sizeof *stack);
    enum inf_code code = stack == NULL ? fail_no_memory(finder->err) : INF_OK;
    for (int side = 0; side < 2 && code == INF_OK; side++) {
        finder->mark++;
        code = visit_reference(finder, branch, &capacity, branch->sides[side], side, stack, &depth);
        while (depth > 0 && code == INF_OK) {
            uint32_t node = stack[--depth];
            uint32_t count = inf_tfjs_dependency_count(graph, node);
            for (uint32_t i = 0; i < count && code == INF_OK; i++)
                code = visit_reference(finder, branch, &capacity,
                                       inf_tfjs_dependency(graph, node, i), side, stack, &depth);
        }
    }
    free(stack);
    return code;
}

// Finds the predicate of a Merge and, for both values of the predicate, the value that it returns.
static enum inf_code find_branch(struct finder *finder, uint32_t index)
{
    struct inf_tfjs_graph *graph = finder->graph;
    const struct inf_tfjs_node *node = &graph->nodes[index];
    uint64_t items[2][LITERALS_MAX], both[LITERALS_MAX], choice;
    uint32_t counts[2] = {0, 0}, both_count = 0;
    for (int i = 0; i < 2; i++)
        INF_TRY(add_context_of(finder, node->inputs[i], items[i], &counts[i]));
    bool first = find_choice(items[0], counts[0], items[1], counts[1], true, &choice) ||
                 find_choice(items[0], counts[0], items[1], counts[1], false, &choice);
    if (!first && !find_choice(items[1], counts[1], items[0], counts[0], false, &choice))
        return node_fail(finder, index, INF_INVALID, "no Switch parts the values it merges");
    bool first_side = first ? choice & 1 : !(choice & 1);
    struct inf_tfjs_branch *branch = inf_arena_alloc(&graph->arena, sizeof *branch);
    if (branch == NULL)
        return fail_no_memory(finder->err);
    branch->predicate = (struct inf_tfjs_ref){.node = (uint32_t)(choice >> 32),
                                              .port = (uint32_t)(choice & 0xffffffffu) >> 1,
                                              .output_name = ""};
    branch->sides[first_side] = node->inputs[0];
    branch->sides[!first_side] = node->inputs[1];
    INF_TRY(find_captures(finder, branch));
    graph->control[index].branch = branch;
    for (uint32_t i = 0; i < counts[0]; i++)
        for (uint32_t k = 0; k < counts[1]; k++)
            if (items[0][i] == items[1][k] && (items[0][i] | 1) != (choice | 1))
                both[both_count++] = items[0][i];
    return set_context(finder, index, both, both_count);
}

// Computes the context of a node: the set of branch choices that must have been taken for the node
// to run. The contexts of its dependencies must have been computed.
static enum inf_code finish_node(struct finder *finder, uint32_t index)
{
    const struct inf_tfjs_graph *graph = finder->graph;
    const struct inf_tfjs_node *node = &graph->nodes[index];
    uint64_t items[LITERALS_MAX];
    uint32_t count = 0;
    if (graph->control[index].role == INF_TFJS_BRANCH_MERGE)
        return find_branch(finder, index);
    uint32_t dependencies = inf_tfjs_dependency_count(graph, index);
    for (uint32_t i = 0; i < dependencies; i++)
        INF_TRY(add_context_of(finder, inf_tfjs_dependency(graph, index, i), items, &count));
    for (uint32_t i = 0; i < node->control_count; i++)
        INF_TRY(add_literals(finder, items, &count, graph->control[node->controls[i]].context));
    return set_context(finder, index, items, count);
}

enum {
    NEW,
    OPEN,
    DONE
};

// Returns dependency `which` of a node: first its inputs, then its control inputs.
static uint32_t find_successor(const struct inf_tfjs_graph *graph, uint32_t index, uint32_t which)
{
    const struct inf_tfjs_node *node = &graph->nodes[index];
    bool is_merge = graph->control[index].role == INF_TFJS_BRANCH_MERGE;
    uint32_t count = is_merge ? node->input_count : inf_tfjs_dependency_count(graph, index);
    if (which < count)
        return is_merge ? node->inputs[which].node : inf_tfjs_dependency(graph, index, which).node;
    which -= count;
    // Ignore control inputs inside a loop, because they do not affect choices outside.
    bool is_border = graph->control[index].role == INF_TFJS_LOOP_MERGE ||
                     graph->control[index].role == INF_TFJS_LOOP_ENTER;
    return which < node->control_count && !is_border ? node->controls[which] : NO_NODE;
}

// Computes the contexts of `root` and of all nodes on which it depends, dependencies first. Ignores
// an edge that closes a cycle; lowering reports the cycle.
static enum inf_code walk_from(struct finder *finder, uint32_t root)
{
    uint32_t depth = 0;
    if (finder->state[root] != NEW)
        return INF_OK;
    finder->state[root] = OPEN;
    finder->graph->nodes[root].next = 0;
    finder->stack[depth++] = root;
    while (depth > 0) {
        uint32_t index = finder->stack[depth - 1];
        uint32_t next = find_successor(finder->graph, index, finder->graph->nodes[index].next++);
        if (next == NO_NODE) {
            INF_TRY(finish_node(finder, index));
            finder->state[index] = DONE;
            depth--;
        } else if (finder->state[next] == NEW) {
            finder->state[next] = OPEN;
            finder->graph->nodes[next].next = 0;
            finder->stack[depth++] = next;
        }
    }
    return INF_OK;
}

static enum inf_code find_branches(struct finder *finder)
{
    for (uint32_t i = 0; i < finder->graph->node_count; i++)
        if (finder->graph->nodes[i].reachable)
            INF_TRY(walk_from(finder, i));
    return INF_OK;
}

static enum inf_code find_control(struct finder *finder)
{
    INF_TRY(find_enters(finder));
    INF_TRY(for_each(finder, "Merge", find_variable));
    INF_TRY(for_each(finder, "Switch", find_switch));
    INF_TRY(for_each(finder, "Exit", find_exit));
    bool has_branches = false;
    for (uint32_t i = 0; i < finder->graph->node_count; i++)
        has_branches |= finder->graph->control[i].role == INF_TFJS_BRANCH_MERGE;
    return has_branches ? find_branches(finder) : INF_OK;
}

enum inf_code inf_tfjs_control_find(struct inf_tfjs_graph *graph, struct inf_error *err)
{
    size_t count = (size_t)graph->node_count + 1;
    graph->control = inf_arena_alloc(&graph->arena, count * sizeof *graph->control);
    struct finder finder = {
        .graph = graph,
        .stack = calloc(count, sizeof *finder.stack),
        .state = calloc(count, sizeof *finder.state),
        .marks = calloc(count, sizeof *finder.marks),
        .err = err,
    };
    enum inf_code code = INF_OK;
    if (graph->control == NULL || finder.stack == NULL || finder.state == NULL ||
        finder.marks == NULL)
        code = fail_no_memory(err);
    for (uint32_t i = 0; i < graph->node_count && code == INF_OK; i++)
        graph->control[i].frame = INF_TFJS_NO_FRAME;
    if (code == INF_OK)
        code = find_control(&finder);
    free(finder.stack);
    free(finder.state);
    free(finder.marks);
    return code;
}
