// SPDX-License-Identifier: Apache-2.0
// From nodes to dispatches: one function an operator, which either makes the dispatches of a node or
// says why it cannot. Asking whether a node is supported is the same call without a program.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_KERNEL_H
#define INF_BACKENDS_VULKAN_PROGRAM_KERNEL_H

#include "backends/graph/graph.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/device/pipeline.h"
#include "shaders/constants.h"

struct vk_join;
struct vk_program;

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
    // Set by vk_emit().
    uint32_t node;
    VkPipeline pipeline;
};

// One node on its way to dispatches.
struct vk_lowering {
    struct vk_gpu *gpu;
    const struct inf_graph *graph;
    const struct inf_node *node;
    uint32_t node_index;
    struct vk_program *program; // NULL: nothing is made, only checked
    struct vk_device *ahead;    // NULL, or without a program: pipelines are made here
    const bool *lowered;        // by value, as in struct inf_segment
    const struct vk_join *join; // what a convolution does beside its own; NULL: nothing
    bool half_weights;          // weights may be kept in 16 bits
    bool lowers;                // set by vk_emit(): something of the node is in 16 bits
};

// Makes the dispatches of a node whose types and shapes are known and of which no tensor is empty.
//
// INF_UNSUPPORTED  it cannot; the text says why.
typedef enum inf_code vk_lower_fn(struct vk_lowering *lowering, struct inf_error *err);

vk_lower_fn vk_lower_unary, vk_lower_clip, vk_lower_binary, vk_lower_prelu, vk_lower_compare,
    vk_lower_select, vk_lower_cast;
vk_lower_fn vk_lower_conv2d, vk_lower_depthwise, vk_lower_conv2d_transpose, vk_lower_matmul;
vk_lower_fn vk_lower_pool, vk_lower_resize;
vk_lower_fn vk_lower_reduce, vk_lower_arg, vk_lower_softmax, vk_lower_batch_norm,
    vk_lower_normalize;
vk_lower_fn vk_lower_copy, vk_lower_transpose, vk_lower_slice, vk_lower_concat, vk_lower_split,
    vk_lower_tile, vk_lower_broadcast, vk_lower_fill, vk_lower_space_to_depth,
    vk_lower_depth_to_space, vk_lower_pad, vk_lower_gather, vk_lower_gather_nd;

// Lowers a node by its operator's function, after the checks that all have in common.
enum inf_code vk_lower(struct vk_lowering *lowering, struct inf_error *err) INF_NODISCARD;

// --- what those functions use ---

// Adds a dispatch to the program.
enum inf_code vk_emit(struct vk_lowering *lowering, const struct vk_dispatch *dispatch,
                      struct inf_error *err) INF_NODISCARD;

// The lowering of one of a segment's nodes.
struct vk_lowering vk_lowering_of(struct vk_gpu *gpu, const struct inf_segment *segment,
                                  uint32_t node);

// Whether the driver builds the dispatch's variant, whose operands are all there: as far as is known
// without a program, by building it with one. For those who have another; vk_emit() asks as well.
bool vk_can_build(struct vk_lowering *lowering, struct vk_dispatch *dispatch);

// Appends value `value` to the dispatch's operands: constants are uploaded as they are.
enum inf_code vk_use(struct vk_lowering *lowering, struct vk_dispatch *dispatch, uint32_t value,
                     struct inf_error *err) INF_NODISCARD;

// Appends `size_bytes` from `offset` on of memory that the dispatches of a node have between them. Each slot has its own,
// which all nodes share.
enum inf_code vk_use_scratch(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                             size_t offset, size_t size_bytes, struct inf_error *err) INF_NODISCARD;

// Fills `size_bytes` zeroed bytes; `context` is the caller's.
typedef void vk_fill_fn(void *bytes, const void *context);

// Appends constant memory that `fill` writes.
enum inf_code vk_pack(struct vk_lowering *lowering, struct vk_dispatch *dispatch, size_t size_bytes,
                      vk_fill_fn *fill, const void *context, struct inf_error *err) INF_NODISCARD;

// As vk_pack(), of floats that are kept in 16 bits where the node may and all of them can be.
enum inf_code vk_pack_weights(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t size_bytes, vk_fill_fn *fill, const void *context,
                              struct inf_error *err) INF_NODISCARD;

// Where the device is better off so, and the operand is of floats, makes the dispatch read operand `index` through a
// view, of vectors or of numbers. Before vk_emit(), and vk_can_build(). Its shader then reads all that it names by READS()
// through such: they are all of floats, or none is.
void vk_view(const struct vk_lowering *lowering, struct vk_dispatch *dispatch, uint32_t index,
             bool vectors);

// Bytes that are bound for a tensor of `size_bytes`: shaders read and write whole vectors, and every tensor has room for
// that behind it.
static inline VkDeviceSize vk_bound_bytes(size_t size_bytes)
{
    return (size_bytes + 15) & ~(VkDeviceSize)15;
}

// Sets the dispatch's push constants.
void vk_push(struct vk_dispatch *dispatch, const void *block, size_t size_bytes);

// Shape and type of the node's operand `index`, which must be there, and of output `index`.
const struct inf_shape *vk_input_shape(const struct vk_lowering *lowering, uint32_t index);
const struct inf_shape *vk_output_shape(const struct vk_lowering *lowering, uint32_t index);
enum inf_dtype vk_input_dtype(const struct vk_lowering *lowering, uint32_t index);
enum inf_dtype vk_output_dtype(const struct vk_lowering *lowering, uint32_t index);

// Whether operand `index` is given.
bool vk_has_input(const struct vk_lowering *lowering, uint32_t index);

// An axis attribute, negative ones counted from the end.
int32_t vk_axis(int64_t axis, int32_t rank);

// The product of dims[first] .. dims[last - 1].
uint32_t vk_extent(const struct inf_shape *shape, int32_t first, int32_t last);

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

// An element-wise operator of floats as shaders have it.
struct vk_call {
    uint32_t operands; // 1 or 2
    uint32_t kind;     // BINARY_*, of two
    uint32_t function; // FN_*: of the one, or behind that
    float low, high;   // of the function
};

// The node's; false where it is no such operator, or one that shaders do not have.
bool vk_node_call(const struct vk_lowering *lowering, struct vk_call *call) INF_NODISCARD;

// How operand `input` of an element-wise node is stretched (MODE_*); *row: vectors in a row, for MODE_ROW.
uint32_t vk_operand_mode(const struct vk_lowering *lowering, uint32_t input, uint32_t *row);

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
