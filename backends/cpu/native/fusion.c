// SPDX-License-Identifier: Apache-2.0
// Finds fused chains and row pipelines in a graph. Starts at the last node and follows values
// backwards to their producers. Nodes form a chain only if no node outside of the chain reads its
// intermediate results.
#include "backends/cpu/native/fusion.h"

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/depthwise.h"
#include "backends/device/segment_nodes.h"

// Returns the node that produces operand `input` of `node`, if that node is of kind `op` and `node`
// is the only reader of the operand; otherwise INF_NODE_NONE.
static uint32_t find_sole_producer(const struct inf_graph *graph, uint32_t node, uint32_t input,
                                   enum inf_op op, const struct inf_segment *segment)
{
    uint32_t value = graph->nodes[node].inputs[input];
    uint32_t producer = value != INF_VALUE_NONE ? graph->values[value].producer : INF_NODE_NONE;
    if (producer == INF_NODE_NONE || graph->nodes[producer].op != op ||
        !inf_segment_has(segment, producer) ||
        inf_segment_sole_reader(graph, value, segment) != node)
        return INF_NODE_NONE;
    return producer;
}

static bool find_conv(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t node,
                      const struct inf_segment *segment)
{
    if (inf_conv_packed_check(graph, &graph->nodes[node], NULL) != INF_OK)
        return false;
    chain->conv = node;
    if (!inf_conv_packed_is_pointwise(graph, &graph->nodes[node]))
        return true;
    uint32_t depthwise = find_sole_producer(graph, node, 0, INF_OP_DEPTHWISE_CONV2D, segment);
    if (depthwise != INF_NODE_NONE &&
        inf_native_depthwise_check(graph, &graph->nodes[depthwise], NULL) == INF_OK)
        chain->depthwise = depthwise;
    return true;
}

// Returns true if the pad node only appends channels of zeros.
static bool pads_channels(const struct inf_graph *graph, const struct inf_node *node)
{
    int64_t paddings[2 * INF_LIMIT_RANK];
    uint32_t count;
    if (node->attrs.pad.mode != INF_PAD_CONSTANT ||
        graph->values[node->inputs[0]].dtype != INF_DTYPE_F32 ||
        !inf_graph_const_ints(graph, node->inputs[1], paddings, INF_ARRAY_LENGTH(paddings),
                              &count) ||
        count < 2)
        return false;
    if (inf_cpu_has_input(node, 2)) {
        if (!inf_graph_is_const(graph, node->inputs[2]) || *inf_cpu_const_f32(graph, node, 2) != 0)
            return false;
    }
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (paddings[i] != 0)
            return false;
    }
    return paddings[count - 1] >= 0;
}

static bool find_add(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t index,
                     const struct inf_segment *segment)
{
    const struct inf_node *node = &graph->nodes[index];
    const struct inf_attrs_binary *attrs = &node->attrs.binary;
    if (attrs->kind != INF_BINARY_ADD || attrs->activation > INF_ACTIVATION_CLIP ||
        (attrs->activation == INF_ACTIVATION_CLIP &&
         !(attrs->activation_min < attrs->activation_max)))
        return false;
    for (uint32_t from = 2; from-- > 0;) {
        uint32_t conv = find_sole_producer(graph, index, from, INF_OP_CONV2D, segment);
        const struct inf_shape *other = inf_cpu_input_shape(graph, node, 1 - from);
        if (conv == INF_NODE_NONE ||
            graph->nodes[conv].attrs.conv2d.activation != INF_ACTIVATION_NONE ||
            !inf_shape_equal(other, inf_cpu_input_shape(graph, node, from)) ||
            !find_conv(chain, graph, conv, segment))
            continue;
        chain->add = index;
        chain->residual = node->inputs[1 - from];
        uint32_t pad = find_sole_producer(graph, index, 1 - from, INF_OP_PAD, segment);
        if (pad != INF_NODE_NONE && pads_channels(graph, &graph->nodes[pad])) {
            chain->pad = pad;
            chain->residual = graph->nodes[pad].inputs[0];
        }
        return true;
    }
    return false;
}

static bool find_prelu(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t index,
                       const struct inf_segment *segment)
{
    const struct inf_node *node = &graph->nodes[index];
    size_t channels = inf_shape_elements(inf_cpu_input_shape(graph, node, 1));
    const struct inf_shape *slopes = inf_cpu_input_shape(graph, node, 1);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    uint32_t add = find_sole_producer(graph, index, 0, INF_OP_BINARY, segment);
    if (add == INF_NODE_NONE || y->rank < 1 || slopes->rank < 1 ||
        graph->nodes[add].attrs.binary.activation != INF_ACTIVATION_NONE ||
        channels != (size_t)y->dims[y->rank - 1] ||
        slopes->dims[slopes->rank - 1] != y->dims[y->rank - 1] ||
        inf_cpu_need_const(graph, node, 1, channels, NULL) != INF_OK ||
        !find_add(chain, graph, add, segment))
        return false;
    chain->prelu = index;
    return true;
}

bool inf_cpu_chain_find(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment)
{
    *chain = (struct inf_cpu_chain){INF_NODE_NONE, INF_NODE_NONE,  INF_NODE_NONE,
                                    INF_NODE_NONE, INF_VALUE_NONE, INF_NODE_NONE};
    if (!inf_isa_best()->nn->fast)
        return false;
    switch (graph->nodes[node].op) {
    case INF_OP_CONV2D:
        return find_conv(chain, graph, node, segment);
    case INF_OP_BINARY:
        return find_add(chain, graph, node, segment);
    case INF_OP_PRELU:
        return find_prelu(chain, graph, node, segment);
    default:
        return false;
    }
}

bool inf_cpu_chain_is_node(const struct inf_cpu_chain *chain)
{
    return chain->depthwise == INF_NODE_NONE && chain->add == INF_NODE_NONE;
}

uint32_t inf_cpu_chain_input(const struct inf_cpu_chain *chain, const struct inf_graph *graph)
{
    uint32_t first = chain->depthwise != INF_NODE_NONE ? chain->depthwise : chain->conv;
    return graph->nodes[first].inputs[0];
}

// Returns the last node of the chain that contains `node`; INF_NODE_NONE if `node` is in no chain
// or is itself the last node.
static uint32_t find_chain_end(const struct inf_graph *graph, uint32_t node,
                               const struct inf_segment *segment)
{
    enum inf_op op = graph->nodes[node].op;
    if (op != INF_OP_DEPTHWISE_CONV2D && op != INF_OP_CONV2D && op != INF_OP_BINARY &&
        op != INF_OP_PAD)
        return INF_NODE_NONE;
    struct inf_cpu_chain chain;
    uint32_t reader = inf_segment_sole_reader(graph, graph->nodes[node].outputs[0], segment);
    if (reader == INF_NODE_NONE || !inf_segment_has(segment, reader) ||
        !inf_cpu_chain_find(&chain, graph, reader, segment))
        return INF_NODE_NONE;
    bool part =
        chain.depthwise == node || chain.conv == node || chain.add == node || chain.pad == node;
    return part ? reader : INF_NODE_NONE;
}

// --- row pipelines ---

// Chains are joined to a row pipeline only if the value between them has at least this size. A
// smaller value stays in the caches, so that a pipeline would not be faster.
#define LINK_BYTES_MIN ((size_t)384 << 10)
// A chain may be part of a row pipeline only if its weights have at most this size. The weights of
// all chains of a pipeline must stay in the cache while rows pass through the pipeline.
#define LINK_WEIGHT_BYTES_MAX ((size_t)160 << 10)

// Lists the nodes that read the first output of node `node`. Walks through the whole graph only if
// the segment has no list of readers.
static struct inf_readers find_readers(const struct inf_graph *graph, uint32_t node,
                                       const struct inf_segment *segment)
{
    struct inf_readers found = {.count = 0};
    uint32_t value = graph->nodes[node].outputs[0];
    if (segment != NULL && segment->readers != NULL)
        return segment->readers[node];
    for (uint32_t n = 0; n < graph->node_count; n++) {
        bool reads = false;
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++)
            reads |= graph->nodes[n].inputs[i] == value;
        if (reads && found.count < INF_READERS_MAX)
            found.nodes[found.count] = n;
        found.count += reads;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i].value == value)
            found.count = INF_READERS_MAX + 1;
    }
    return found;
}

static bool is_light(const struct inf_cpu_chain *chain, const struct inf_graph *graph)
{
    const struct inf_shape *filter = inf_cpu_input_shape(graph, &graph->nodes[chain->conv], 1);
    return inf_shape_elements(filter) * sizeof(float) <= LINK_WEIGHT_BYTES_MAX;
}

// Finds the chain that contains `node`, and returns its last node; INF_NODE_NONE if no chain
// contains it.
static uint32_t find_chain_of(struct inf_cpu_chain *chain, const struct inf_graph *graph,
                              uint32_t node, const struct inf_segment *segment)
{
    uint32_t end = node;
    for (uint32_t next = node; next != INF_NODE_NONE; next = find_chain_end(graph, end, segment))
        end = next;
    return inf_segment_has(segment, end) && inf_cpu_chain_find(chain, graph, end, segment)
               ? end
               : INF_NODE_NONE;
}

// Finds the chain whose first node is `node`, and returns its last node.
static uint32_t find_chain_from(struct inf_cpu_chain *chain, const struct inf_graph *graph,
                                uint32_t node, const struct inf_segment *segment)
{
    uint32_t end = find_chain_of(chain, graph, node, segment);
    if (end == INF_NODE_NONE)
        return INF_NODE_NONE;
    return chain->depthwise == node || (chain->depthwise == INF_NODE_NONE && chain->conv == node)
               ? end
               : INF_NODE_NONE;
}

static bool adds_value(const struct inf_cpu_chain *chain, uint32_t value, uint32_t node)
{
    return chain->residual == value && (chain->add == node || chain->pad == node);
}

// Which chain may follow another one. Chains are named by their last nodes.
struct link {
    uint32_t next; // INF_NODE_NONE: none
    // The result of the first chain is added at the end of this chain, so that `next` follows only
    // if this chain follows `next`. INF_NODE_NONE: no such condition.
    uint32_t later;
};

static const struct link no_link = {INF_NODE_NONE, INF_NODE_NONE};

// Returns the chain at whose end `node` adds `value`; INF_NODE_NONE if there is none.
static uint32_t find_adding_chain(const struct inf_graph *graph, uint32_t value, uint32_t node,
                                  const struct inf_segment *segment)
{
    struct inf_cpu_chain chain;
    uint32_t end = find_chain_of(&chain, graph, node, segment);
    return end != INF_NODE_NONE && adds_value(&chain, value, node) ? end : INF_NODE_NONE;
}

// Returns true if the result of the chain ending at `end` is worth to be passed on in a pipeline.
static bool may_be_followed(const struct inf_graph *graph, uint32_t end,
                            const struct inf_segment *segment)
{
    struct inf_cpu_chain chain;
    const struct inf_value *value = &graph->values[graph->nodes[end].outputs[0]];
    size_t size;
    return inf_shape_bytes(&value->shape, value->dtype, &size) && value->shape.rank == 4 &&
           value->shape.dims[0] >= 1 && size / (size_t)value->shape.dims[0] >= LINK_BYTES_MIN &&
           inf_cpu_chain_find(&chain, graph, end, segment) && is_light(&chain, graph) &&
           find_chain_end(graph, end, segment) == INF_NODE_NONE;
}

// Finds which chain may follow the chain ending at `end`. Looks at the readers of its result only.
static struct link find_link(const struct inf_graph *graph, uint32_t end,
                             const struct inf_segment *segment)
{
    if (!may_be_followed(graph, end, segment))
        return no_link;
    uint32_t value = graph->nodes[end].outputs[0];
    const struct inf_readers readers = find_readers(graph, end, segment);
    for (uint32_t i = 0; readers.count <= INF_READERS_MAX && i < readers.count; i++) {
        struct inf_cpu_chain chain;
        uint32_t next = find_chain_from(&chain, graph, readers.nodes[i], segment);
        if (next == INF_NODE_NONE || !is_light(&chain, graph))
            continue;
        if (readers.count == 1)
            return chain.residual != value ? (struct link){next, INF_NODE_NONE} : no_link;
        uint32_t other = readers.nodes[1 - i];
        if (adds_value(&chain, value, other))
            return (struct link){next, INF_NODE_NONE};
        uint32_t later = find_adding_chain(graph, value, other, segment);
        if (later != INF_NODE_NONE)
            return (struct link){next, later};
    }
    return no_link;
}

// Returns the chain that follows by `link`; INF_NODE_NONE if the condition of the link does not
// hold. `after` is the chain that follows link->next.
static uint32_t resolve_link(const struct link *link, uint32_t after)
{
    return link->later == INF_NODE_NONE || link->later == after ? link->next : INF_NODE_NONE;
}

// Links that are followed in search of a pipeline. Pipelines with more chains are not computed as
// one step, so the conditions of links further away need not be known.
#define LINKS_MAX (INF_CPU_ROW_PIPELINE_MAX + 1)

// Counts the chains that follow the chain ending at `end`, one after another, at most LINKS_MAX.
// *out_next is the first of them; INF_NODE_NONE: there is none. Goes forward along the links first,
// because the condition of a link concerns the chains behind it, and then resolves them backwards.
static uint32_t count_next_chains(const struct inf_graph *graph, uint32_t end,
                                  const struct inf_segment *segment, uint32_t *out_next)
{
    struct link links[LINKS_MAX];
    uint32_t found = 0;
    uint32_t count = 0;
    for (uint32_t at = end; found < LINKS_MAX && at != INF_NODE_NONE; at = links[found++].next)
        links[found] = find_link(graph, at, segment);
    uint32_t after = INF_NODE_NONE;
    for (uint32_t i = found; i-- > 0;) {
        after = resolve_link(&links[i], after);
        count = after != INF_NODE_NONE ? count + 1 : 0;
    }
    *out_next = after;
    return count;
}

// Returns the last node of the chain that precedes the chain ending at `end`; INF_NODE_NONE if
// there is none. `next` is the chain that follows the one ending at `end`.
static uint32_t find_previous_chain(const struct inf_graph *graph, uint32_t end, uint32_t next,
                                    const struct inf_segment *segment)
{
    struct inf_cpu_chain chain;
    if (!inf_cpu_chain_find(&chain, graph, end, segment))
        return INF_NODE_NONE;
    uint32_t before = graph->values[inf_cpu_chain_input(&chain, graph)].producer;
    if (before == INF_NODE_NONE || !inf_segment_has(segment, before))
        return INF_NODE_NONE;
    const struct link link = find_link(graph, before, segment);
    return resolve_link(&link, next) == end ? before : INF_NODE_NONE;
}

// Returns the number of chains in the pipeline that contains the chain ending at `end`; any number
// greater than INF_CPU_ROW_PIPELINE_MAX if there are more. *out_next is the chain that follows;
// INF_NODE_NONE: there is none.
static uint32_t find_pipeline_length(const struct inf_graph *graph, uint32_t end,
                                     const struct inf_segment *segment, uint32_t *out_next)
{
    uint32_t length = 1 + count_next_chains(graph, end, segment, out_next);
    uint32_t next = *out_next;
    for (uint32_t at = end; length <= INF_CPU_ROW_PIPELINE_MAX; length++) {
        uint32_t before = find_previous_chain(graph, at, next, segment);
        if (before == INF_NODE_NONE)
            break;
        next = at;
        at = before;
    }
    return length;
}

bool inf_cpu_row_pipeline_find(struct inf_cpu_row_pipeline *pipeline, const struct inf_graph *graph,
                               uint32_t node, const struct inf_segment *segment)
{
    uint32_t next;
    uint32_t length = find_pipeline_length(graph, node, segment, &next);
    if (length < 2 || length > INF_CPU_ROW_PIPELINE_MAX || next != INF_NODE_NONE)
        return false;
    pipeline->count = length;
    for (uint32_t i = length; i-- > 0;) {
        if (node == INF_NODE_NONE ||
            !inf_cpu_chain_find(&pipeline->chains[i], graph, node, segment))
            return false;
        pipeline->results[i] = graph->nodes[node].outputs[0];
        uint32_t before = i > 0 ? find_previous_chain(graph, node, next, segment) : node;
        next = node;
        node = before;
    }
    return true;
}

uint32_t inf_cpu_fused_into(const struct inf_graph *graph, uint32_t node,
                            const struct inf_segment *segment, enum inf_cpu_fusion_level most)
{
    if (most == INF_CPU_FUSE_NONE)
        return INF_NODE_NONE;
    uint32_t next = find_chain_end(graph, node, segment);
    if (next != INF_NODE_NONE || most == INF_CPU_FUSE_CHAINS)
        return next;
    uint32_t length = find_pipeline_length(graph, node, segment, &next);
    return length <= INF_CPU_ROW_PIPELINE_MAX ? next : INF_NODE_NONE;
}

// --- listing all nodes that one step computes ---

static void add_to_group(struct inf_cpu_group *group, uint32_t node)
{
    uint32_t at = group->count;
    if (node == INF_NODE_NONE)
        return;
    for (; at > 0 && group->nodes[at - 1] > node; at--)
        group->nodes[at] = group->nodes[at - 1];
    group->nodes[at] = node;
    group->count++;
}

static void add_chain_to_group(struct inf_cpu_group *group, const struct inf_cpu_chain *chain)
{
    add_to_group(group, chain->pad);
    add_to_group(group, chain->depthwise);
    add_to_group(group, chain->conv);
    add_to_group(group, chain->add);
    add_to_group(group, chain->prelu);
}

bool inf_cpu_group_find(struct inf_cpu_group *group, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment, enum inf_cpu_fusion_level most)
{
    struct inf_cpu_row_pipeline pipeline;
    struct inf_cpu_chain chain;
    uint32_t end = node;
    for (uint32_t next = node; next != INF_NODE_NONE;
         next = inf_cpu_fused_into(graph, end, segment, most))
        end = next;
    group->count = 0;
    if (most == INF_CPU_FUSE_PIPELINES) {
        if (!inf_cpu_row_pipeline_find(&pipeline, graph, end, segment))
            return false;
        for (uint32_t i = 0; i < pipeline.count; i++)
            add_chain_to_group(group, &pipeline.chains[i]);
    } else if (most == INF_CPU_FUSE_CHAINS && inf_cpu_chain_find(&chain, graph, end, segment) &&
               !inf_cpu_chain_is_node(&chain)) {
        add_chain_to_group(group, &chain);
    }
    return group->count > 1;
}
