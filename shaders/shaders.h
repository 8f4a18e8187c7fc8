// SPDX-License-Identifier: Apache-2.0
// The compiled shaders. Each .comp file has three SPIR-V modules, embedded at build time. The
// module at index + INF_SHADER_COUNT supports 16-bit floats. The module at index + 2 *
// INF_SHADER_COUNT also reads through texel views (lib/storage.glsl). The shaders *_BYTES are built
// from the source of another shader, for operands of bytes, *_PAIR for products of two tensors,
// *_F16 with arithmetic in 16 bits, and *_NV and *_KHR with products of matrices by the
// cooperative_matrix extension of that name.
#ifndef INF_SHADERS_SHADERS_H
#define INF_SHADERS_SHADERS_H

#include <stddef.h>
#include <stdint.h>

// Indices into inf_shaders, in the order of the table in meson.build.
enum inf_shader_index {
    INF_SHADER_ARG,
    INF_SHADER_ATTENTION,
    INF_SHADER_BINARY,
    INF_SHADER_CAST,
    INF_SHADER_COMPARE,
    INF_SHADER_CONV,
    INF_SHADER_CONV_BLOCK,
    INF_SHADER_CONV_BLOCK_F16,
    INF_SHADER_CONV_BLOCK_PAIR,
    INF_SHADER_CONV_BLOCK_PAIR_F16,
    INF_SHADER_CONV_MATRIX,
    INF_SHADER_CONV_MATRIX_NV,
    INF_SHADER_CONV_MATRIX_KHR,
    INF_SHADER_CONV_MATRIX_PAIR,
    INF_SHADER_CONV_MATRIX_PAIR_NV,
    INF_SHADER_CONV_MATRIX_PAIR_KHR,
    INF_SHADER_CONV_SPLIT,
    INF_SHADER_CONV_TILE,
    INF_SHADER_DEPTHWISE,
    INF_SHADER_EXPAND_BLOCKS,
    INF_SHADER_GATHER,
    INF_SHADER_GATHER_ND,
    INF_SHADER_LOOKUP,
    INF_SHADER_MATMUL,
    INF_SHADER_MATMUL_BLOCKS,
    INF_SHADER_MOVE,
    INF_SHADER_MOVE_BYTES,
    INF_SHADER_NORM,
    INF_SHADER_NORMALIZE,
    INF_SHADER_PAD,
    INF_SHADER_PAD_BYTES,
    INF_SHADER_POOL,
    INF_SHADER_POOL_BYTES,
    INF_SHADER_QBINARY,
    INF_SHADER_QCONV,
    INF_SHADER_QCONV_DOT,
    INF_SHADER_QDEPTHWISE,
    INF_SHADER_QUANTIZE,
    INF_SHADER_REDUCE,
    INF_SHADER_REDUCE_ROWS,
    INF_SHADER_RESIZE,
    INF_SHADER_SELECT,
    INF_SHADER_SOFTMAX,
    INF_SHADER_SOFTMAX_ROWS,
    INF_SHADER_SUM_PARTS,
    INF_SHADER_UNARY,
    INF_SHADER_WINOGRAD_IN,
    INF_SHADER_WINOGRAD_OUT,
    INF_SHADER_COUNT
};

struct inf_shader {
    const char *name; // name of the .comp file
    const uint32_t *words;
    size_t size_bytes;
};

extern const struct inf_shader inf_shaders[];

// GLSL text that is inserted after the #version line of shaders generated at run time. It defines
// constants and functions, and contains no #include.
extern const char inf_shaders_prelude[];

// A hash of all shaders. Cache files of another shader version are recognised by it.
extern const uint64_t inf_shaders_hash;

#endif
