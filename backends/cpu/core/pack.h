// SPDX-License-Identifier: Apache-2.0
// Matrices of weights in the order in which products read them: packed once, and shared by all steps
// that multiply with the same constant, whatever their program, slot or batch size. A pack can make
// the constant's bytes again, so that they need not stay beside it.
//
// Columns are cut into panels of one or two vectors; a panel has its part of every row, one after the
// other, and behind the last column zeros.
#ifndef INF_BACKENDS_CPU_CORE_PACK_H
#define INF_BACKENDS_CPU_CORE_PACK_H

#include "backends/base/thread.h"
#include "backends/cpu/kernels/nn.h"
#include "backends/device/device_impl.h"

struct inf_cpu_step;

// A matrix of f32 that a constant is.
struct inf_cpu_matrix {
    struct inf_blob *blob;
    size_t rows, columns;
    bool transposed; // the constant is [columns][rows]
    // 0, or it is packed in bf16: neighbours among so many rows, of which `rows` is a multiple, are pairs
    // that lie in 32 bits. What rounding took away lies beside them, where no run looks.
    size_t paired;
    // 0, or columns are groups of so many, and no panel has columns of two.
    size_t group;
};

struct inf_cpu_pack {
    struct inf_blob_form form;
    struct inf_cpu_matrix matrix; // the blob lives as long as whoever uses the pack
    const struct inf_nn *nn;      // that the panels are for
    const float *panels;
    // In bf16: the lower half of each element, in the order of the panels. NULL: the constant has
    // elements, infinity and the like, that could not be made again from both.
    const uint16_t *lower;
    struct inf_device *device; // a reference
    struct inf_cpu_packs *packs;
    struct inf_cpu_pack *next; // in its bucket
};

#define INF_CPU_PACK_BUCKETS 256

// All packs of a device.
struct inf_cpu_packs {
    const struct inf_nn *nn; // that panels are for: the device's
    struct inf_mutex mutex;  // guards all below, and `next` of every pack
    struct inf_cpu_pack *buckets[INF_CPU_PACK_BUCKETS];
};

// Makes an embedded set without packs, for the loops of `nn`.
void inf_cpu_packs_init(struct inf_cpu_packs *packs, const struct inf_nn *nn);

// Releases a set whose packs are gone: each has a reference to the device.
void inf_cpu_packs_fini(struct inf_cpu_packs *packs);

// A pack of the matrix, packed now if nobody has one. *out_pack is the caller's to give back with
// inf_blob_form_unref(), before the blob's last reference. Any thread.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_cpu_pack_get(struct inf_cpu_pack **out_pack, struct inf_cpu_packs *packs,
                               struct inf_device *device, const struct inf_cpu_matrix *matrix,
                               struct inf_error *err) INF_NODISCARD;

// A panel of a matrix.
struct inf_cpu_panel {
    const struct inf_nn_gemm *gemm;
    size_t vectors;        // of gemm->width columns
    size_t first, columns; // of the matrix
    size_t width;          // vectors * gemm->width
};

// The panel that begins with column `first`, below `columns`.
struct inf_cpu_panel inf_cpu_panel_at(const struct inf_nn *nn, size_t first, size_t columns);

// The panel of a matrix that begins with column `first`.
struct inf_cpu_panel inf_cpu_matrix_panel(const struct inf_nn *nn,
                                          const struct inf_cpu_matrix *matrix, size_t first);

// How many panels `columns` columns are; *out_width (NULL allowed) is the sum of their widths.
size_t inf_cpu_panel_count(const struct inf_nn *nn, size_t columns, size_t *out_width);

// --- for steps ---

// A pack that a step uses in place of an operand of a node.
struct inf_cpu_pack_use {
    struct inf_cpu_pack_use *next;
    struct inf_cpu_pack *pack; // a reference
    uint32_t node, input;
};

// *out_panels = the panels of constant operand `input` of `node`, a matrix as `matrix` says (its blob
// is found here), as long as the step. The step's runs may not read the operand itself.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_cpu_step_pack(struct inf_cpu_step *step, const struct inf_node *node,
                                uint32_t input, struct inf_cpu_matrix matrix,
                                const float **out_panels, struct inf_error *err) INF_NODISCARD;

// Whether the pack can make its constant's bytes again.
bool inf_cpu_pack_restores(const struct inf_cpu_pack *pack);

// Gives back what the step's inf_cpu_step_pack() calls got.
void inf_cpu_step_unpack(struct inf_cpu_step *step);

#endif
