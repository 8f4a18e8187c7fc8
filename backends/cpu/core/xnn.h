// SPDX-License-Identifier: Apache-2.0
// What the rows on XNNPACK share: starting the library, counting its memory, its errors, and
// activations.
#ifndef INF_BACKENDS_CPU_CORE_XNN_H
#define INF_BACKENDS_CPU_CORE_XNN_H

#include "backends/cpu/core/kernel.h"
#include "backends/graph/shape/infer.h"

// Flags of every operator. Without YIELD_WORKERS the pool's threads spin a million rounds after each: as
// soon as another process wants the cores, the slowest hundredth takes ten times longer.
#define INF_XNN_FLAGS XNN_FLAG_YIELD_WORKERS

// Starts XNNPACK with an allocator that counts. May be called again; any thread.
//
// INF_UNAVAILABLE  (NO_DEVICE) it does not work on this processor.
// INF_EXHAUSTED    memory.
enum inf_code inf_xnn_init(struct inf_error *err) INF_NODISCARD;

// Memory of kernels of our own, counted as XNNPACK's. A list of blocks.
struct inf_xnn_memory;

// `size` bytes, not cleared, aligned to a cache line, that are put into the list; NULL where there are
// none.
void *inf_xnn_alloc(struct inf_xnn_memory **list, size_t size);

// Frees the list.
void inf_xnn_free(struct inf_xnn_memory **list);

// Bytes that XNNPACK and inf_xnn_alloc() hold in this process. Any thread.
uint64_t inf_xnn_live_bytes(void);

// Bytes that they allocated less those it freed on the calling thread: the difference of two
// calls is what happened between them, whatever other threads do.
int64_t inf_xnn_thread_bytes(void);

// What XNNPACK's `status` means for the node; `what` is the name of its operator.
enum inf_code inf_xnn_check(enum xnn_status status, const struct inf_node *node, const char *what,
                            struct inf_error *err) INF_NODISCARD;

// The activation attributes that several operators have.
struct inf_xnn_activation {
    enum inf_activation kind;
    float alpha, min, max;
};

// INF_UNSUPPORTED where `activation` cannot be applied to a result of `channels` channels. `prelu`
// is the operand that holds the slopes, UINT32_MAX where the operator has none.
enum inf_code inf_xnn_activation_check(const struct inf_graph *graph, const struct inf_node *node,
                                       const struct inf_xnn_activation *activation, uint32_t prelu,
                                       size_t channels, struct inf_error *err) INF_NODISCARD;

// Bounds to clamp a result to on the way: those of the activation, or none.
void inf_xnn_activation_bounds(const struct inf_xnn_activation *activation, float *min, float *max);

// Sets up step->after for activations that no clamping does. `prelu` holds `channels` slopes.
enum inf_code inf_xnn_activation_after(struct inf_cpu_step *step,
                                       const struct inf_xnn_activation *activation,
                                       const float *prelu, size_t channels,
                                       struct inf_error *err) INF_NODISCARD;

// Makes the operator of a unary kind over `count` elements; `alpha` as in the op. Not for kinds that
// inf_xnn_unary_name() has no name for.
enum xnn_status inf_xnn_unary_create(struct inf_xnn_unary *unary, enum inf_unary_kind kind,
                                     float alpha, size_t count) INF_NODISCARD;

// What is shown in profiles for a unary kind; NULL where XNNPACK has no operator for it.
const char *inf_xnn_unary_name(enum inf_unary_kind kind);

// Whether XNNPACK takes `alpha` for a kind that has one.
bool inf_xnn_unary_alpha_ok(enum inf_unary_kind kind, float alpha);

#endif
