// SPDX-License-Identifier: Apache-2.0
// What a kernel of the cpu device is, and the step that it creates. A kernel is a row of a table:
// one way to compute one operator; kernel_table.c lists all rows. A step belongs to one slot and
// never runs twice at once, because XNNPACK's operators keep the state of a run.
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
    xnn_operator_t op; // NULL: none
    enum xnn_status (*setup)(xnn_operator_t op, size_t batch, const float *input, float *output,
                             pthreadpool_t pool);
    size_t batch; // rows of as many channels as the operator was created for
};

// What is applied to a result in place, after an XNNPACK operator that cannot apply the activation
// itself.
struct inf_cpu_post_op {
    struct inf_xnn_unary unary;
    inf_simd_map_fn *map; // a native function; NULL: none
    size_t count;
};

struct inf_cpu_step {
    // Set before create().
    const struct inf_graph *graph;
    const struct inf_node *node;
    uint32_t index;            // of the node in the graph
    pthreadpool_t pool;        // for XNNPACK; native kernels share their work through `team`
    struct inf_cpu_team *team; // of the slot
    struct inf_arena *arena;   // of the program; holds `state`
    struct inf_device *device;
    struct inf_cpu_packs *packs; // of the device; used by inf_cpu_step_pack()
    bool bf16;                   // products may be computed in bf16, except of pinned nodes
    bool bf16_dot;      // bf16 products also round their operands: inf_round_bf16_is_faster()
    const bool *pinned; // by node: stays fp32; NULL: none does
    const struct inf_isa *isa; // ISA level of the device, whose loops the step runs

    // The graph values that `inputs` point to: those of the node, unless create() sets others.
    const uint32_t *operands;
    uint32_t operand_count;

    // Set by create().
    const char *kernel;            // static
    struct inf_cpu_memory *memory; // freed with the step
    size_t scratch_count;          // floats that a run needs; their contents do not survive the run
    uint32_t lowered_nodes;        // nodes of the step that are computed in bf16
    size_t macs;                   // multiply-adds, counted by inf_native_choose_workers()
    void *state;                   // data of the kernel
    xnn_operator_t op;             // NULL if the kernel is native
    struct inf_cpu_post_op post_op;
    // Gives the operator its pointers. Allocates in its first call only. NULL for native kernels.
    enum xnn_status (*setup)(struct inf_cpu_step *step);
    // Computes a native kernel. NULL: xnn_run_operator(op) is called instead.
    void (*run)(const struct inf_cpu_step *step);

    // Set by the program: constants before create(), all others before each run.
    const void **inputs; // by operand, at least as many as the node has; NULL for absent ones
    void *output;        // outputs[0]
    float *scratch; // scratch_count floats, aligned to a cache line; NULL if scratch_count is 0
    void **outputs; // by output of the node

    struct inf_cpu_pack_use *pack_uses; // packs that the step holds: inf_cpu_step_pack()

    uint64_t time_ns; // of the last profiled run
};

struct inf_cpu_kernel {
    enum inf_op op;
    // Returns INF_OK if this row computes the node, or INF_UNSUPPORTED with the reason in `err`.
    // All shapes are known and no tensor is empty.
    enum inf_code (*supports)(const struct inf_graph *graph, const struct inf_node *node,
                              struct inf_error *err);
    // Creates the step of a node that supports() accepted. On failure the caller destroys the step.
    enum inf_code (*create)(struct inf_cpu_step *step, struct inf_error *err);
};

// The rows, by family. Each list ends with a row whose create is NULL.
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

// Sets *out_kernel to the first row that computes `node`. Rows are static.
//
// INF_UNSUPPORTED  no row does; the text says why.
enum inf_code inf_cpu_kernel_find(const struct inf_cpu_kernel **out_kernel,
                                  const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err) INF_NODISCARD;

// A row that computes a node, with the name of its family.
struct inf_cpu_candidate {
    const struct inf_cpu_kernel *kernel;
    const char *family; // static
    uint64_t least_ns;  // shortest time in a race (kernel_race.h); 0: it did not run
};

#define INF_CPU_CANDIDATES 4u

// Fills candidates[] with the first INF_CPU_CANDIDATES rows that compute `node`, in the order of
// the table, and returns how many there are.
uint32_t inf_cpu_kernel_list(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                             const struct inf_graph *graph, const struct inf_node *node);

// --- what rows ask of a graph ---

// Returns the shape of operand `input` of the node, which must be present.
const struct inf_shape *inf_cpu_input_shape(const struct inf_graph *graph,
                                            const struct inf_node *node, uint32_t input);

// Returns the shape of output 0 of the node.
const struct inf_shape *inf_cpu_output_shape(const struct inf_graph *graph,
                                             const struct inf_node *node);

// Returns true if the node has operand `input`.
bool inf_cpu_has_input(const struct inf_node *node, uint32_t input);

// Returns the elements of operand `input`, which must be an f32 constant; NULL if it is absent.
const float *inf_cpu_const_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input);

// Returns INF_UNSUPPORTED unless operand `input` is f32.
enum inf_code inf_cpu_need_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input, struct inf_error *err) INF_NODISCARD;

// Returns INF_UNSUPPORTED unless operand `input` is absent or an f32 constant of `count` elements.
enum inf_code inf_cpu_need_const(const struct inf_graph *graph, const struct inf_node *node,
                                 uint32_t input, size_t count, struct inf_error *err) INF_NODISCARD;

// Sets step->state to `size` zeroed bytes of the program's arena.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_step_alloc_state(struct inf_cpu_step *step, size_t size,
                                       struct inf_error *err) INF_NODISCARD;

#endif
