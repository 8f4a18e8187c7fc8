// SPDX-License-Identifier: Apache-2.0
// The entry points of the passes, which only pass.c calls. pass.h describes each pass.
#ifndef INF_BACKENDS_GRAPH_PASS_PASSES_H
#define INF_BACKENDS_GRAPH_PASS_PASSES_H

#include "backends/graph/pass/rewrite.h"

// INF_PASS_INLINE. Replaces the whole list of nodes, so it must not run between inf_rewrite_begin()
// and inf_rewrite_end().
enum inf_code inf_pass_inline(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_DROP_IDENTITIES. This pass and those below are called between inf_rewrite_begin() and
// inf_rewrite_end().
enum inf_code inf_pass_drop_identities(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_FOLD_CONSTANTS.
enum inf_code inf_pass_fold_constants(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_LAYOUT.
enum inf_code inf_pass_layout(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_QUANTIZE.
enum inf_code inf_pass_quantize(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_FOLD_BATCH_NORM.
enum inf_code inf_pass_fold_batch_norm(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_FUSE_BIAS.
enum inf_code inf_pass_fuse_bias(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_FUSE_ACTIVATION.
enum inf_code inf_pass_fuse_activation(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_FUSE_PAD.
enum inf_code inf_pass_fuse_pad(struct inf_rewrite *rewrite) INF_NODISCARD;

// INF_PASS_DROP_DEAD.
enum inf_code inf_pass_drop_dead(struct inf_rewrite *rewrite) INF_NODISCARD;

#endif
