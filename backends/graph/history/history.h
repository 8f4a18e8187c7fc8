// SPDX-License-Identifier: Apache-2.0
// Decoding steps whose shapes stay the same while the history grows. A decoder takes the keys and
// values of earlier tokens as inputs and returns them, longer by those of the new tokens. Compiled
// as it is, every step would have shapes of its own. Here the inputs become buffers with room for
// more rows than are used, and the number of used rows becomes an input.
#ifndef INF_BACKENDS_GRAPH_HISTORY_HISTORY_H
#define INF_BACKENDS_GRAPH_HISTORY_HISTORY_H

#include "backends/graph/pass/pass.h"

#define INF_HISTORY_NONE UINT8_MAX

// The fewest rows of a buffer that grows. A larger number wastes time for unused rows of short
// histories; a smaller one needs more compilations and copies.
#define INF_HISTORY_ROOM_LEAST 256u

// The buffers of the decoding steps that one run computes.
struct inf_history_buffers {
    uint32_t room;     // rows of each buffer
    uint32_t sessions; // number of steps, each of another session (join.h); 1: the run has one step
};

// How the inputs of a graph depend on the length of the history, that is, on the number of rows
// that the requests before appended.
//
// A cache is an input that an output returns with rows written over it, so that both have the same
// size. An input may be both: its output is longer than the input if the new rows do not fit.
struct inf_history {
    // axes[i]: the axis of input i whose size contains the length; INF_HISTORY_NONE: no axis does
    uint8_t axes[INF_LIMIT_TENSORS];
    // outputs[i]: the output that is input i with new rows appended along axes[i];
    // INF_HISTORY_NONE: each request gives input i, such as a mask
    uint8_t outputs[INF_LIMIT_TENSORS];
    // caches[i]: the output that is input i with rows written over it along cache_axes[i];
    // INF_HISTORY_NONE: input i is no cache
    uint8_t caches[INF_LIMIT_TENSORS];
    uint8_t cache_axes[INF_LIMIT_TENSORS];
    bool cache_rings[INF_LIMIT_TENSORS]; // positions in the cache count modulo its rows
    // The graph sets all rows of the cache behind the new ones to zero.
    bool cache_zeros[INF_LIMIT_TENSORS];
    bool grows; // an output has more rows than its input
    bool has_caches;
    // Inputs of each run tell where its new rows begin. A run in which that is not behind the rows
    // of the history fails with INF_INVALID. It must be made in the usual way.
    bool checks_positions;
};

// Finds the inputs that an output returns with new rows behind them or over them, and the other
// inputs whose size must contain the length: a mask over all tokens, for example. Sets *out_found
// to false if no output returns an input with new rows, or if no choice of sizes gives the graph
// consistent shapes. Evicted constants count as values that only a run knows.
//
// INF_EXHAUSTED  (HOST_OOM) no memory.
enum inf_code inf_history_find(const struct inf_graph *graph, const struct inf_evaluator *evaluator,
                               struct inf_history *history, bool *out_found,
                               struct inf_error *err) INF_NODISCARD;

// What a graph with a growing history is built for.
struct inf_history_request {
    const struct inf_history *history;
    // One shape for each input. Sizes that contain the length of the history are those for an
    // empty one. If the caches have `room` rows in these shapes, rows are written over them.
    const struct inf_shape *shapes;
    uint32_t room; // rows of each buffer, for the history and the new rows
};

// Returns true if inf_history_build() writes rows over the caches, which have shapes of
// request->room rows, and false if it appends rows.
bool inf_history_overwrites(const struct inf_history_request *request);

// Builds the graph that computes the same as `graph` for every length of the history up to `room`
// minus the new rows. Its inputs are those of `graph` and, behind them, the length (an i32 scalar).
// In an input of which an output returns a longer form, the used rows are followed by rows that
// must be finite, and the run writes the new rows behind the used ones; that output is this memory.
// If the run writes over caches, the graph has one more output, behind the others: the positions of
// the rows as i64 [caches, positions], in the order of the inputs; [1, positions] if all caches
// have the same. Caches are such memory too; zeros that the graph writes behind the new rows of a
// cache are left out, so the caller uses the results only if these rows are zeros. Other inputs
// that contain the length are as large as for the greatest length, with zeros behind what a request
// gives. Sets *out_rows to the number of new rows. The caller destroys *out_graph. The bytes of the
// graph's constants must be in memory.
//
// INF_UNSUPPORTED  the graph computes with the history in a way that is not known here, or the
//                  shapes do not fit.
// INF_RANGE        `room` is not larger than the number of new rows by 3 or more.
// INF_EXHAUSTED    no memory.
enum inf_code inf_history_build(const struct inf_graph *graph,
                                const struct inf_evaluator *evaluator,
                                const struct inf_history_request *request,
                                struct inf_graph **out_graph, uint32_t *out_rows,
                                struct inf_error *err) INF_NODISCARD;

#endif
