// SPDX-License-Identifier: Apache-2.0
// Lowering: converts nodes to dispatches. Each operator has one function (ops/ops.h), which either
// adds the dispatches of a node to a list or reports why it cannot. Calling it without a list
// checks whether a node is supported.
#ifndef INF_BACKENDS_VULKAN_LOWERING_LOWERING_H
#define INF_BACKENDS_VULKAN_LOWERING_LOWERING_H

#include "backends/graph/graph.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/device/pipeline.h"
#include "backends/vulkan/device/weights.h"
#include "backends/vulkan/lowering/loops.h"
#include "shaders/constants.h"

struct vk_shader_candidates;
struct vk_shader_choice;
struct vk_residual;

// How many numbers one texel of a texel view holds, for shaders that read an operand through a
// view.
enum vk_texel {
    VK_TEXEL_NONE, // the operand is read as a buffer, without a view
    VK_TEXEL_NUMBER,
    VK_TEXEL_TRIPLE, // three numbers, if the device has such formats
    VK_TEXEL_VECTOR, // four numbers
};

// What one binding of a dispatch refers to: a value of the graph, whose address each run sets, or a
// constant, or scratch memory.
struct vk_operand {
    uint32_t value;    // INF_VALUE_NONE for a constant or scratch memory
    uint32_t constant; // index of the constant in the program's weights
    size_t size_bytes; // number of bytes that are bound
    bool words;        // true: the elements are words that are not floats, such as indices
    bool half;         // true: elements are 16-bit floats
    // True: scratch memory, through which the dispatches of one node pass intermediate results.
    bool scratch;
    size_t offset; // for scratch memory: offset of the operand in it
    enum vk_texel texel;
};

// One dispatch of a compute shader. Its last operand is written, all other operands are read.
struct vk_dispatch {
    struct vk_variant variant;
    uint32_t operand_count;
    struct vk_operand operands[VK_BINDINGS_MAX];
    uint32_t invocations;
    // The cost of the dispatch: multiply-adds, or number of elements moved. 0: the number of
    // elements of the operands is used instead.
    uint64_t cost;
    bool checks; // true: the shader may report an index out of range or a division by 0
    uint32_t push_bytes;
    uint8_t push[VK_PUSH_BYTES_MAX];
    // vk_emit_dispatch() sets the following members.
    uint32_t node;
    VkPipeline pipeline;
};

// The dispatches of a program, and the constants that they read.
struct vk_dispatch_list {
    struct vk_device *device; // a counted reference to the logical device, which a loss may replace
    struct vk_dispatch *dispatches;
    uint32_t count, capacity;
    struct vk_weights weights;
    size_t scratch_bytes; // scratch memory of each slot (concurrent run); see vk_bind_scratch()
    bool writes_status;   // true: a dispatch may write to its status words
};

// A node that is being lowered.
struct vk_lowering {
    struct vk_gpu *gpu;
    const struct inf_graph *graph;
    const struct inf_node *node;
    uint32_t node_index;
    struct vk_dispatch_list *list; // NULL: dispatches are only checked, not added
    // If not NULL, pipelines are created on this device ahead of time, and `list` is NULL.
    struct vk_device *ahead;
    // Indexed by value: true if the value is kept in 16 bits, as in struct inf_segment.
    const bool *lowered;
    // Residual that a convolution adds to its result; NULL: none.
    const struct vk_residual *residual;
    // How the node is computed, for a race; NULL: by its recorded winner or by the rule.
    const struct vk_shader_choice *forced;
    // Receives the candidates if there is a choice and the GPU has races; NULL: not wanted.
    struct vk_shader_candidates *candidates;
    // Only winners that were recorded by this time are used (struct inf_kernel_races); 0: all are.
    uint64_t known_until_ns;
    bool half_weights; // true: weights may be kept in 16 bits
    bool lowers;       // set by vk_emit_dispatch(): true if an operand of the node is 16-bit
};

// --- helpers for lowering functions ---

// Adds a dispatch to the list. `iterations` is the largest number of iterations of loops that an
// invocation may make (lowering/loops.h).
//
// INF_UNSUPPORTED  the driver ends loops before so many iterations, or cannot build the shader.
enum inf_code vk_emit_dispatch(struct vk_lowering *lowering, const struct vk_dispatch *dispatch,
                               uint64_t iterations, struct inf_error *err) INF_NODISCARD;

// Returns the lowering context for node `node` of the segment. Its list is NULL, so it only checks
// nodes.
struct vk_lowering vk_lowering_of(struct vk_gpu *gpu, const struct inf_segment *segment,
                                  uint32_t node);

// Returns true if the driver can build the variant of the dispatch, whose operands must all be
// bound. If the lowering has a list, the variant is built now. Otherwise, returns false only if the
// variant is known to be broken. For callers that have an alternative.
bool vk_can_build(struct vk_lowering *lowering, struct vk_dispatch *dispatch);

// Binds value `value` as the next operand of the dispatch. A constant is uploaded unchanged.
enum inf_code vk_bind_value(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                            uint32_t value, struct inf_error *err) INF_NODISCARD;

// Binds `size_bytes` of scratch memory, starting at `offset`, as the next operand. The offset must
// be a multiple of VK_SPAN_ALIGNMENT. Each slot has its own scratch memory, which all nodes share.
enum inf_code vk_bind_scratch(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t offset, size_t size_bytes,
                              struct inf_error *err) INF_NODISCARD;

// A function of the caller that writes the elements of a constant to `bytes`, which are zeroed
// before the call. `context` belongs to the caller.
typedef void vk_fill_fn(void *bytes, const void *context);

// Binds constant memory, which `fill` writes, as the next operand.
enum inf_code vk_bind_packed(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                             size_t size_bytes, vk_fill_fn *fill, const void *context,
                             struct inf_error *err) INF_NODISCARD;

// Binds constant memory of floats, which `fill` writes, as the next operand. The floats are stored
// in 16 bits if the node allows this and all of them are in range.
enum inf_code vk_bind_weights(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              size_t size_bytes, vk_fill_fn *fill, const void *context,
                              struct inf_error *err) INF_NODISCARD;

// Makes the shader read operand `index` through a texel view (of vectors or of single numbers), if
// the operand has floats and views are faster on this device. The shader reads either all or none
// of its READS() operands through views, so all of them must have floats. Call this function before
// vk_emit_dispatch() and vk_can_build().
void vk_read_through_view(const struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                          uint32_t index, bool vectors);

// Returns how many bytes to bind for a tensor of `size_bytes`. The number is rounded up because
// shaders access whole vectors. This is safe because every tensor is followed by enough unused
// memory.
static inline VkDeviceSize vk_bound_bytes(size_t size_bytes)
{
    return (size_bytes + 15) & ~(VkDeviceSize)15;
}

// Sets the push constants of the dispatch.
void vk_set_push_constants(struct vk_dispatch *dispatch, const void *block, size_t size_bytes);

// Return the shape and type of operand `index` of the node, which must be present, and of output
// `index`.
const struct inf_shape *vk_input_shape(const struct vk_lowering *lowering, uint32_t index);
const struct inf_shape *vk_output_shape(const struct vk_lowering *lowering, uint32_t index);
enum inf_dtype vk_input_dtype(const struct vk_lowering *lowering, uint32_t index);
enum inf_dtype vk_output_dtype(const struct vk_lowering *lowering, uint32_t index);

// Returns true if operand `index` is present.
bool vk_has_input(const struct vk_lowering *lowering, uint32_t index);

// Returns the index of the axis from 0; a negative `axis` counts from the last axis of `rank` axes.
int32_t vk_resolve_axis(int64_t axis, int32_t rank);

// Returns the product of dims[first] to dims[last - 1].
uint32_t vk_dims_product(const struct inf_shape *shape, int32_t first, int32_t last);

// Returns INF_UNSUPPORTED with an error text that begins with the name of the node's operator.
#define vk_decline(lowering, err, ...)                                                             \
    (inf_fail_reason((err), INF_UNSUPPORTED, INF_REASON_OPERATOR, __VA_ARGS__),                    \
     inf_error_prefix((err), INF_UNSUPPORTED, "vulkan: %s",                                        \
                      inf_op_info((lowering)->node->op)->name))

// Returns INF_UNSUPPORTED unless operand `index` is f32.
enum inf_code vk_need_f32(const struct vk_lowering *lowering, uint32_t index,
                          struct inf_error *err) INF_NODISCARD;

// Returns INF_UNSUPPORTED unless shaders can read and write single bytes on this GPU.
enum inf_code vk_need_byte_storage(const struct vk_lowering *lowering,
                                   struct inf_error *err) INF_NODISCARD;

// Returns INF_UNSUPPORTED unless operand `index` is absent or an f32 constant of `count` elements.
enum inf_code vk_need_const(const struct vk_lowering *lowering, uint32_t index, size_t count,
                            struct inf_error *err) INF_NODISCARD;

// Returns the elements of a constant operand; NULL if the operand is absent.
const void *vk_const_data(const struct vk_lowering *lowering, uint32_t index);

// An activation in the form that shaders expect.
struct vk_activation {
    uint32_t function; // id of the shader's function, one of FN_* in shaders/constants.h
    float low, high;
    bool prelu; // true: an operand holds one slope for each channel
};

// Returns the activation of a node, for all operators that have an activation attribute.
struct vk_activation vk_node_activation(const struct inf_node *node);

// The push constants of lib/window.glsl.
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

// Returns the iterations of loops over the rows and columns of a window, of which each tap runs
// `tap`.
static inline struct vk_loops vk_window_loops(const struct vk_window *window, struct vk_loops tap)
{
    return vk_loop(window->kernel_h, vk_loop(window->kernel_w, tap));
}

// Describes the window of a node between the images `in` and `out`.
void vk_window_init(struct vk_window *window, const struct vk_lowering *lowering,
                    const struct inf_shape *in, const struct inf_shape *out);

#endif
