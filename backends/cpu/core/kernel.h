// SPDX-License-Identifier: Apache-2.0
// What a kernel row of the cpu device is, and the step it makes. One row stands for one way to compute
// an operator; table.c lists them. A step belongs to one slot and is never run twice at once, because
// XNNPACK's operators keep the state of a run.
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

// An element-wise XNNPACK operator of one input.
struct inf_xnn_unary {
    xnn_operator_t op; // NULL: none
    enum xnn_status (*setup)(xnn_operator_t op, size_t batch, const float *input, float *output,
                             pthreadpool_t pool);
    size_t batch; // rows of the channels that the operator was made for
};

// What is done to a result in place, where XNNPACK's operator cannot clamp it on the way.
struct inf_cpu_post_op {
    struct inf_xnn_unary unary;
    inf_simd_map_fn *map; // of our own; NULL: none
    size_t count;
};

struct inf_cpu_step {
    // Set before create().
    const struct inf_graph *graph;
    const struct inf_node *node;
    uint32_t index;            // of the node
    pthreadpool_t pool;        // XNNPACK's; kernels of ours share their work by the team
    struct inf_cpu_team *team; // of the slot
    struct inf_arena *arena;   // the program's; for `state`
    struct inf_device *device;
    struct inf_cpu_packs *packs; // the device's: inf_cpu_step_pack()
    bool bf16;                   // products may be in it, but for nodes that are pinned
    bool bf16_dot;             // and then by pairs of rounded operands: inf_round_bf16_is_faster()
    const bool *pinned;        // by node; NULL: none is
    const struct inf_isa *isa; // the level of the device: whose loops the step runs

    // The values that `inputs` are: those of the node, unless create() gives others.
    const uint32_t *operands;
    uint32_t operand_count;

    // Set by create().
    const char *kernel;            // static
    struct inf_cpu_memory *memory; // what lives as long as the step
    size_t scratch_count;          // floats that a run needs, of no meaning before and after it
    uint32_t lowered_nodes;        // that are computed in bf16
    size_t macs;                   // that inf_native_choose_workers() was told
    void *state;                   // the row's own
    xnn_operator_t op;             // NULL where the kernel is ours
    struct inf_cpu_post_op post_op;
    // Tells the operator its pointers. May allocate in its first call only. NULL for ours.
    enum xnn_status (*setup)(struct inf_cpu_step *step);
    // Computes, where the kernel is ours; NULL: xnn_run_operator(op).
    void (*run)(const struct inf_cpu_step *step);

    // Set by the program: constants before create(), the rest before each run.
    const void **inputs; // by operand, as many as the node has at least; NULL for absent ones
    void *output;        // the first of outputs
    float *scratch;      // scratch_count floats, aligned to a cache line; NULL where that is 0
    void **outputs;      // by output of the node

    struct inf_cpu_pack_use *pack_uses; // of inf_cpu_step_pack()

    uint64_t time_ns; // of the last profiled run
};

struct inf_cpu_kernel {
    enum inf_op op;
    // Whether this row computes the node: INF_UNSUPPORTED with the reason in `err`. Shapes are known,
    // no tensor is empty.
    enum inf_code (*supports)(const struct inf_graph *graph, const struct inf_node *node,
                              struct inf_error *err);
    // Makes the step of a node that supports() accepted. On failure the caller destroys the step.
    enum inf_code (*create)(struct inf_cpu_step *step, struct inf_error *err);
};

// Rows, by family. Each list ends with a row whose create is NULL.
extern const struct inf_cpu_kernel inf_cpu_gemm_kernels[];
extern const struct inf_cpu_kernel inf_cpu_depthwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_conv_kernels[];
extern const struct inf_cpu_kernel inf_cpu_dense_kernels[];
extern const struct inf_cpu_kernel inf_cpu_matmul_kernels[];
extern const struct inf_cpu_kernel inf_cpu_product_kernels[];
extern const struct inf_cpu_kernel inf_cpu_q8_depthwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_q8_product_kernels[];
extern const struct inf_cpu_kernel inf_cpu_q8_eltwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_max_pool_kernels[];
extern const struct inf_cpu_kernel inf_cpu_average_pool_kernels[];
extern const struct inf_cpu_kernel inf_cpu_unary_kernels[];
extern const struct inf_cpu_kernel inf_cpu_resample_kernels[];
extern const struct inf_cpu_kernel inf_cpu_eltwise_kernels[];
extern const struct inf_cpu_kernel inf_cpu_element_kernels[];
extern const struct inf_cpu_kernel inf_cpu_reduce_kernels[];
extern const struct inf_cpu_kernel inf_cpu_rnn_kernels[];
extern const struct inf_cpu_kernel inf_cpu_normalize_kernels[];
extern const struct inf_cpu_kernel inf_cpu_pick_kernels[];
extern const struct inf_cpu_kernel inf_cpu_move_kernels[];
extern const struct inf_cpu_kernel inf_cpu_strided_kernels[];
extern const struct inf_cpu_kernel inf_cpu_nearest_kernels[];
extern const struct inf_cpu_kernel inf_cpu_bilinear_kernels[];

// The first row that computes `node`. *out_kernel is static.
//
// INF_UNSUPPORTED  none does; the text says why.
enum inf_code inf_cpu_kernel_find(const struct inf_cpu_kernel **out_kernel,
                                  const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err) INF_NODISCARD;

// A row, and what its family is called.
struct inf_cpu_candidate {
    const struct inf_cpu_kernel *kernel;
    const char *family; // static
    uint64_t least_ns;  // of a race (kernel_race.h); 0: it did not run
};

#define INF_CPU_CANDIDATES 4u

// Fills candidates[] with the rows that compute `node`, inf_cpu_kernel_find()'s first, as many as there
// is room for, and returns how many.
uint32_t inf_cpu_kernel_list(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                             const struct inf_graph *graph, const struct inf_node *node);

// --- what rows ask of a graph ---

// The shape of operand `input` of the node.
const struct inf_shape *inf_cpu_input_shape(const struct inf_graph *graph,
                                            const struct inf_node *node, uint32_t input);

// The shape of the node's output 0.
const struct inf_shape *inf_cpu_output_shape(const struct inf_graph *graph,
                                             const struct inf_node *node);

// Whether operand `input` is given at all.
bool inf_cpu_has_input(const struct inf_node *node, uint32_t input);

// The elements of the f32 constant that operand `input` is; NULL where it is absent.
const float *inf_cpu_const_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input);

// INF_UNSUPPORTED unless operand `input` is f32.
enum inf_code inf_cpu_need_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input, struct inf_error *err) INF_NODISCARD;

// INF_UNSUPPORTED unless operand `input`, if given, is an f32 constant of `count` elements.
enum inf_code inf_cpu_need_const(const struct inf_graph *graph, const struct inf_node *node,
                                 uint32_t input, size_t count, struct inf_error *err) INF_NODISCARD;

// Zeroed memory of the program's arena.
//
// INF_EXHAUSTED  there is none.
enum inf_code inf_cpu_step_alloc_state(struct inf_cpu_step *step, size_t size,
                                       struct inf_error *err) INF_NODISCARD;

#endif
