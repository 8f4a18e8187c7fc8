// SPDX-License-Identifier: Apache-2.0
// The entry points of the passes, which only pass.c calls. pass.h describes each pass.
#ifndef INF_BACKENDS_GRAPH_PASS_PASSES_H
#define INF_BACKENDS_GRAPH_PASS_PASSES_H

#include "backends/graph/pass/rewrite.h"

// Runs INF_PASS_INLINE. The pass replaces the whole list of nodes, so it must not run between
// inf_rewrite_begin() and inf_rewrite_end().
enum inf_code inf_pass_inline(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_WIDEN, which lets operators on 16-bit floats compute in fp32.
enum inf_code inf_pass_widen(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_DROP_IDENTITIES. This pass and the passes below must be called between
// inf_rewrite_begin() and inf_rewrite_end().
enum inf_code inf_pass_drop_identities(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FOLD_CONSTANTS, which computes nodes whose inputs are constants.
enum inf_code inf_pass_fold_constants(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_RECOGNIZE, which replaces the long forms of gelu, silu and normalisations.
enum inf_code inf_pass_recognize(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_SHARE_HEADS. The pass changes the order of nodes, so it must not run between
// inf_rewrite_begin() and inf_rewrite_end().
enum inf_code inf_pass_share_heads(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_LAYOUT, which moves transposes towards the outputs.
enum inf_code inf_pass_layout(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_QUANTIZE, which turns floats between dequantize and quantize into bytes.
enum inf_code inf_pass_quantize(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FOLD_BATCH_NORM, which folds scales and offsets into weights.
enum inf_code inf_pass_fold_batch_norm(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FOLD_OPERAND, which folds scales and offsets into the weights behind them.
enum inf_code inf_pass_fold_operand(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FUSE_BIAS, which fuses additions as bias.
enum inf_code inf_pass_fuse_bias(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FUSE_ACTIVATION, which fuses activations.
enum inf_code inf_pass_fuse_activation(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FUSE_DILATION, which makes dilated convolutions of convolutions between
// space_to_batch and batch_to_space.
enum inf_code inf_pass_fuse_dilation(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FUSE_PAD, which fuses zero padding into convolutions.
enum inf_code inf_pass_fuse_pad(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_FUSE_TRANSPOSE, which lets products read transposed constants.
enum inf_code inf_pass_fuse_transpose(struct inf_rewrite *rewrite) INF_NODISCARD;

// Runs INF_PASS_DROP_DEAD, which removes unused nodes and values.
enum inf_code inf_pass_drop_dead(struct inf_rewrite *rewrite) INF_NODISCARD;

#endif
