// SPDX-License-Identifier: Apache-2.0
// From nodes to dispatches: one function an operator, which either makes the dispatches of a node or
// says why it cannot. Asking whether a node is supported is the same call without a program.
#ifndef INF_BACKENDS_VULKAN_LOWERING_LOWERING_H
#define INF_BACKENDS_VULKAN_LOWERING_LOWERING_H

#include "backends/graph/graph.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/device/pipeline.h"
#include "backends/vulkan/device/weights.h"
#include "shaders/constants.h"

struct vk_residual;

// What a shader that reads through views finds in a texel of an operand.
enum vk_texel {
    VK_TEXEL_NONE, // it has no view
    VK_TEXEL_NUMBER,
    VK_TEXEL_TRIPLE, // three numbers, where the device has such texels
    VK_TEXEL_VECTOR, // of four
};

// What a binding of a dispatch is: a value that moves with the run's bindings, or constant memory.
struct vk_operand {
    uint32_t value;    // INF_VALUE_NONE: constant
    uint32_t constant; // of the program's weights
    size_t size_bytes; // that are bound
    bool words;        // no floats
    bool half;         // floats in 16 bits
    bool scratch;      // neither: memory between the dispatches of a node,
    size_t offset;     // from here
    enum vk_texel texel;
};

// One dispatch. The last operand is written, the others are read.
struct vk_dispatch {
    struct vk_variant variant;
    uint32_t operand_count;
    struct vk_operand operands[VK_BINDINGS_MAX];
    uint32_t invocations;
    uint64_t cost; // multiply-adds or elements moved; 0: the elements of its operands
    bool checks;   // it may note what fails the run: an index out of range, a division by 0
    uint32_t push_bytes;
    uint8_t push[VK_PUSH_BYTES_MAX];
    // Set by vk_emit_dispatch().
    uint32_t node;
    VkPipeline pipeline;
};

// The dispatches of a program while it is compiled, and the constants that they read.
struct vk_dispatch_list {
    struct vk_device *device; // a reference: the GPU may have another one by now
    struct vk_dispatch *dispatches;
    uint32_t count, capacity;
    struct vk_weights weights;
    size_t scratch_bytes; // of each slot: vk_bind_scratch()
    bool writes_status;   // a dispatch may note something in its status
};

// One node on its way to dispatches.
struct vk_lowering {
    struct vk_gpu *gpu;
    const struct inf_graph *graph;
    const struct inf_node *node;
    uint32_t node_index;
    struct vk_dispatch_list *list;      // NULL: nothing is made, only checked
    struct vk_device *ahead;            // NULL, or without a program: pipelines are made here
    const bool *lowered;                // by value, as in struct inf_segment
    const struct vk_residual *residual; // what a convolution does beside its own; NULL: nothing
    bool half_weights;                  // weights may be kept in 16 bits
    bool lowers; // set by vk_emit_dispatch(): something of the node is in 16 bits
};

// --- what those functions use ---

// Adds a dispatch to the program.
enum inf_code vk_emit_dispatch(struct vk_lowering *lowering, const struct vk_dispatch *dispatch,
                               struct inf_error *err) INF_NODISCARD;

// The lowering of one of a segment's nodes.
struct vk_lowering vk_lowering_of(struct vk_gpu *gpu, const struct inf_segment *segment,
                                  uint32_t node);

// Whether the driver builds the dispatch's variant, whose operands are all there: as far as is known
// without a program, by building it with one. For those who have another; vk_emit_dispatch() asks as well.
bool vk_can_build(struct vk_lowering *lowering, struct vk_dispatch *dispatch);

// Appends value `value` to the dispatch's operands: constants are uploaded as they are.
enum inf_code vk_bind_value(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                            uint32_t value, struct inf_error *err) INF_NODISCARD;

// Appends `size_bytes` from `offset` on of memory that the dispatches of a node have between them. Each slot has its own,
// which all nodes share.
enum inf_code vk_bind_scratch(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t offset, size_t size_bytes,
                              struct inf_error *err) INF_NODISCARD;

// Fills `size_bytes` zeroed bytes; `context` is the caller's.
typedef void vk_fill_fn(void *bytes, const void *context);

// Appends constant memory that `fill` writes.
enum inf_code vk_bind_packed(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                             size_t size_bytes, vk_fill_fn *fill, const void *context,
                             struct inf_error *err) INF_NODISCARD;

// As vk_bind_packed(), of floats that are kept in 16 bits where the node may and all of them can be.
enum inf_code vk_bind_weights(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t size_bytes, vk_fill_fn *fill, const void *context,
                              struct inf_error *err) INF_NODISCARD;

// Where the device is better off so, and the operand is of floats, makes the dispatch read operand `index` through a
// view, of vectors or of numbers. Before vk_emit_dispatch(), and vk_can_build(). Its shader then reads all that it names by READS()
// through such: they are all of floats, or none is.
void vk_read_through_view(const struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                          uint32_t index, bool vectors);

// Bytes that are bound for a tensor of `size_bytes`: shaders read and write whole vectors, and every tensor has room for
// that behind it.
static inline VkDeviceSize vk_bound_bytes(size_t size_bytes)
{
    return (size_bytes + 15) & ~(VkDeviceSize)15;
}

// Sets the dispatch's push constants.
void vk_set_push_constants(struct vk_dispatch *dispatch, const void *block, size_t size_bytes);

// Shape and type of the node's operand `index`, which must be there, and of output `index`.
const struct inf_shape *vk_input_shape(const struct vk_lowering *lowering, uint32_t index);
const struct inf_shape *vk_output_shape(const struct vk_lowering *lowering, uint32_t index);
enum inf_dtype vk_input_dtype(const struct vk_lowering *lowering, uint32_t index);
enum inf_dtype vk_output_dtype(const struct vk_lowering *lowering, uint32_t index);

// Whether operand `index` is given.
bool vk_has_input(const struct vk_lowering *lowering, uint32_t index);

// An axis attribute, negative ones counted from the end.
int32_t vk_resolve_axis(int64_t axis, int32_t rank);

// The product of dims[first] .. dims[last - 1].
uint32_t vk_dims_product(const struct inf_shape *shape, int32_t first, int32_t last);

// INF_UNSUPPORTED with the node's operator in front of the text.
#define vk_decline(lowering, err, ...)                                                             \
    (inf_fail_reason((err), INF_UNSUPPORTED, INF_REASON_OPERATOR, __VA_ARGS__),                    \
     inf_error_prefix((err), INF_UNSUPPORTED, "vulkan: %s",                                        \
                      inf_op_info((lowering)->node->op)->name))

// INF_UNSUPPORTED unless operand `index` is f32.
enum inf_code vk_need_f32(const struct vk_lowering *lowering, uint32_t index,
                          struct inf_error *err) INF_NODISCARD;

// INF_UNSUPPORTED unless operand `index`, if given, is an f32 constant of `count` elements.
enum inf_code vk_need_const(const struct vk_lowering *lowering, uint32_t index, size_t count,
                            struct inf_error *err) INF_NODISCARD;

// The elements of a constant operand; NULL where it is not given.
const float *vk_const_f32(const struct vk_lowering *lowering, uint32_t index);

// An activation as shaders have it.
struct vk_activation {
    uint32_t function; // FN_*
    float low, high;
    bool prelu; // the slope comes with the channel
};

// The activation of a node of any operator that has one.
struct vk_activation vk_node_activation(const struct inf_node *node);

// lib/window.glsl's push constants.
struct vk_window {
    uint32_t count;
    uint32_t in_h, in_w, in_c;
    uint32_t out_h, out_w, out_c;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;
    uint32_t dilation_h, dilation_w;
    int32_t pad_top, pad_left;
    uint32_t strips;
    uint32_t blocks;
    uint32_t group_blocks, group_in, group_out;
    float low, high;
    uint32_t added;
};
_Static_assert(sizeof(struct vk_window) == 92, "as lib/window.glsl");

// The window of a node between the pictures `in` and `out`.
void vk_window_init(struct vk_window *window, const struct vk_lowering *lowering,
                    const struct inf_shape *in, const struct inf_shape *out);

#endif
