// SPDX-License-Identifier: Apache-2.0
// Defines a kernel of the cpu device (one way to compute one operator) and the step that a kernel
// creates. kernel_table.c lists all kernels. A step belongs to one slot (one concurrent run) and
// never runs twice at the same time, because XNNPACK's operators keep the state of a run.
#ifndef INF_BACKENDS_CPU_CORE_KERNEL_H
#define INF_BACKENDS_CPU_CORE_KERNEL_H

#include <pthreadpool.h>
#include <xnnpack.h>

#include "backends/base/arena.h"
#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/team.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/graph/graph.h"
#include "proto/core/status.h"

// An element-wise operator of XNNPACK with one input.
struct inf_xnn_unary {
    xnn_operator_t op; // NULL: there is no operator
    enum xnn_status (*setup)(xnn_operator_t op, size_t batch, const float *input, float *output,
                             pthreadpool_t pool);
    size_t batch; // number of rows in a run; `op` was created for the channels of a row
};

// An element-wise operator of XNNPACK that is run in place on the result of another XNNPACK
// operator, if that operator cannot apply the node's activation itself.
struct inf_cpu_post_op {
    struct inf_xnn_unary unary;
    inf_simd_map_fn *map; // native function to apply; NULL: there is none
    size_t count;
};

struct inf_cpu_step {
    // Input of create(): the caller sets the members from here to `operand_count` before the call.
    const struct inf_graph *graph;
    const struct inf_node *node;
    uint32_t index;            // index of the node in the graph
    pthreadpool_t pool;        // for XNNPACK; native kernels share their work through `team`
    struct inf_cpu_team *team; // thread team of the slot
    struct inf_arena *arena;   // arena of the program; `state` is allocated from it
    struct inf_device *device;
    struct inf_cpu_packs *packs; // packed constants of the device; used by inf_cpu_step_pack()
    bool bf16;                   // true: products may be computed in bf16, except for pinned nodes
    // True if bf16 products also round their operands to bf16; see inf_round_bf16_is_faster().
    bool bf16_dot;
    const bool *pinned; // indexed by node: true if the node stays fp32; NULL: no node is pinned
    const struct inf_isa *isa; // ISA level of the device; the step runs the loops of this level

    // Indices of the graph values that the entries of `inputs` point to. These are the operands of
    // the node, unless create() sets other values.
    const uint32_t *operands;
    uint32_t operand_count;

    // Output of create(): it sets the members from here to `run`.
    const char *kernel;            // static string
    struct inf_cpu_memory *memory; // blocks that create() allocated; freed with the step
    size_t scratch_count;          // floats that a run needs; their contents do not survive the run
    uint32_t lowered_nodes;        // nodes of the step that are computed in bf16
    size_t macs;                   // multiply-adds of a run; inf_native_choose_workers() uses them
    void *state;                   // private data of the kernel
    xnn_operator_t op;             // NULL if the kernel is native
    struct inf_cpu_post_op post_op;
    // Passes the input and output pointers to the XNNPACK operator before a run. Only the first
    // call allocates memory. NULL for native kernels.
    enum xnn_status (*setup)(struct inf_cpu_step *step);
    // Checks operands whose values can be wrong, such as indices, before run(). NULL: nothing can
    // be wrong. run() finds `scratch` as prepare() left it.
    //
    // INF_INVALID  a value is wrong; run() is not called.
    enum inf_code (*prepare)(const struct inf_cpu_step *step, struct inf_error *err);
    // Computes the result of a native kernel. If NULL, the step is computed by
    // xnn_run_operator(op).
    void (*run)(const struct inf_cpu_step *step);

    // Addresses of operands and results. The program sets those of constants before create(), and
    // all other addresses before each run.
    const void **inputs; // indexed by operand of the node; NULL for an absent operand
    void *output;        // same as outputs[0]
    float *scratch; // scratch_count floats, aligned to a cache line; NULL if scratch_count is 0
    void **outputs; // indexed by output of the node

    // The packed constants that the step holds references to; see inf_cpu_step_pack().
    struct inf_cpu_pack_use *pack_uses;

    // Of the last profiled run: its duration, and the most threads that computed it.
    uint64_t time_ns;
    uint32_t threads;
};

struct inf_cpu_chain;

struct inf_cpu_kernel {
    enum inf_op op;
    // Returns INF_OK if this kernel can compute the node. Otherwise returns INF_UNSUPPORTED and
    // writes the reason to `err`. All shapes are known and no tensor is empty.
    enum inf_code (*supports)(const struct inf_graph *graph, const struct inf_node *node,
                              struct inf_error *err);
    // Creates the step for a node that supports() accepted. On failure the caller destroys the
    // step.
    enum inf_code (*create)(struct inf_cpu_step *step, struct inf_error *err);
    // Creates the step of a fused chain (native/fusion.h) without a depthwise convolution. Called
    // if this kernel is selected for the chain's conv2d node. May return INF_UNSUPPORTED; then
    // inf_fused_chain_create() creates the step. NULL: the kernel cannot compute chains.
    enum inf_code (*create_chain)(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                  struct inf_error *err);
    // True: the kernel is used only if it wins a timing comparison. Its create() may return
    // INF_UNSUPPORTED; then the kernel that inf_cpu_kernel_find() returns computes the node.
    bool needs_race;
    // Bit i: create() reads constant operand i only by inf_cpu_step_pack(), so that its bytes may
    // be evicted meanwhile. The bytes of all other operands are present.
    uint32_t packs;
};

// Returns the bit of an operand in inf_cpu_kernel.packs.
#define INF_CPU_PACKS(input) (1u << (input))

// The kernel tables, one for each family of kernels. Each table ends with a row whose `create` is
// NULL.
extern const struct inf_cpu_kernel inf_cpu_gemm_kernels[];
extern const struct inf_cpu_kernel inf_cpu_depthwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_conv_kernels[];
extern const struct inf_cpu_kernel inf_cpu_conv_nd_kernels[];
extern const struct inf_cpu_kernel inf_cpu_conv_transpose_kernels[];
extern const struct inf_cpu_kernel inf_cpu_winograd_2_kernels[];
extern const struct inf_cpu_kernel inf_cpu_winograd_4_kernels[];
extern const struct inf_cpu_kernel inf_cpu_winograd_6_kernels[];
extern const struct inf_cpu_kernel inf_cpu_dense_kernels[];
extern const struct inf_cpu_kernel inf_cpu_matmul_kernels[];
extern const struct inf_cpu_kernel inf_cpu_product_kernels[];
extern const struct inf_cpu_kernel inf_cpu_q8_depthwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_q8_product_kernels[];
extern const struct inf_cpu_kernel inf_cpu_q8_eltwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_blocks_kernels[];
extern const struct inf_cpu_kernel inf_cpu_max_pool_kernels[];
extern const struct inf_cpu_kernel inf_cpu_average_pool_kernels[];
extern const struct inf_cpu_kernel inf_cpu_unary_kernels[];
extern const struct inf_cpu_kernel inf_cpu_resample_kernels[];
extern const struct inf_cpu_kernel inf_cpu_eltwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_element_kernels[];
extern const struct inf_cpu_kernel inf_cpu_reduce_kernels[];
extern const struct inf_cpu_kernel inf_cpu_rnn_kernels[];
extern const struct inf_cpu_kernel inf_cpu_normalize_kernels[];
extern const struct inf_cpu_kernel inf_cpu_softmax_kernels[];
extern const struct inf_cpu_kernel inf_cpu_pick_kernels[];
extern const struct inf_cpu_kernel inf_cpu_move_kernels[];
extern const struct inf_cpu_kernel inf_cpu_append_kernels[];
extern const struct inf_cpu_kernel inf_cpu_gather_kernels[];
extern const struct inf_cpu_kernel inf_cpu_gather_nd_kernels[];
extern const struct inf_cpu_kernel inf_cpu_strided_kernels[];
extern const struct inf_cpu_kernel inf_cpu_nearest_kernels[];
extern const struct inf_cpu_kernel inf_cpu_bilinear_kernels[];
extern const struct inf_cpu_kernel inf_cpu_plain_binary_kernels[];
extern const struct inf_cpu_kernel inf_cpu_plain_reduce_kernels[];
extern const struct inf_cpu_kernel inf_cpu_channel_kernels[];
extern const struct inf_cpu_kernel inf_cpu_mirror_kernels[];
extern const struct inf_cpu_kernel inf_cpu_cumulate_kernels[];
extern const struct inf_cpu_kernel inf_cpu_nms_kernels[];

// Sets *out_kernel to the first kernel of the table that can compute `node`. Kernels are static.
//
// INF_UNSUPPORTED  no kernel can compute the node; `err` gives the reason.
enum inf_code inf_cpu_kernel_find(const struct inf_cpu_kernel **out_kernel,
                                  const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err) INF_NODISCARD;

// A kernel that can compute a node, with the name of its family.
struct inf_cpu_candidate {
    const struct inf_cpu_kernel *kernel;
    const char *family; // static string
    // Shortest time of the kernel in a timing comparison (kernel_race.h); 0 if the kernel was not
    // timed.
    uint64_t least_ns;
};

#define INF_CPU_CANDIDATES 6u

// Fills candidates[] with the first INF_CPU_CANDIDATES kernels that can compute `node`, in the
// order of the table, and returns the number of candidates.
uint32_t inf_cpu_kernel_list(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                             const struct inf_graph *graph, const struct inf_node *node);

// Restores the evicted constants of a node, except those of the operands in `packs`.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_restore_constants(const struct inf_graph *graph, uint32_t node,
                                        uint32_t packs, struct inf_error *err) INF_NODISCARD;

// --- functions with which kernels query the graph ---

// Returns the shape of operand `input` of the node, which must be present.
const struct inf_shape *inf_cpu_input_shape(const struct inf_graph *graph,
                                            const struct inf_node *node, uint32_t input);

// Returns the product of dims[first] to dims[end - 1].
static inline size_t inf_cpu_extent(const struct inf_shape *shape, int32_t first, int32_t end)
{
    size_t product = 1;
    for (int32_t axis = first; axis < end; axis++)
        product *= (size_t)shape->dims[axis];
    return product;
}

// Returns the shape of output 0 of the node.
const struct inf_shape *inf_cpu_output_shape(const struct inf_graph *graph,
                                             const struct inf_node *node);

// Returns true if operand `input` of the node is present; optional operands may be absent.
bool inf_cpu_has_input(const struct inf_node *node, uint32_t input);

// Returns the elements of operand `input`, which must be an f32 constant; NULL if the operand is
// absent.
const float *inf_cpu_const_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input);

// Returns INF_UNSUPPORTED unless operand `input` is f32.
enum inf_code inf_cpu_need_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input, struct inf_error *err) INF_NODISCARD;

// Returns INF_UNSUPPORTED unless operand `input` is absent or an f32 constant of `count` elements.
enum inf_code inf_cpu_need_const(const struct inf_graph *graph, const struct inf_node *node,
                                 uint32_t input, size_t count, struct inf_error *err) INF_NODISCARD;

// Returns element `at` of the indices in operand `input`, which are i64 if `wide`, otherwise i32. A
// client may be able to write to them during a run, so a kernel must read each only once.
static inline int64_t inf_cpu_read_index(const struct inf_cpu_step *step, uint32_t input, bool wide,
                                         size_t at)
{
    const volatile void *indices = step->inputs[input];
    return wide ? ((const volatile int64_t *)indices)[at] : ((const volatile int32_t *)indices)[at];
}

// Makes the step read the values `x` and, unless it is INF_VALUE_NONE, `other`, in place of all
// inputs of its node.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_step_set_operands(struct inf_cpu_step *step, uint32_t x, uint32_t other,
                                        struct inf_error *err) INF_NODISCARD;

// Sets step->state to `size` zeroed bytes from the program's arena.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_step_alloc_state(struct inf_cpu_step *step, size_t size,
                                       struct inf_error *err) INF_NODISCARD;

#endif
