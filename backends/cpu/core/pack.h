// SPDX-License-Identifier: Apache-2.0
// Packs: constant matrices in the order in which products read them. A matrix is packed once and
// shared by all steps that multiply with the same constant, in any program, slot or batch size.
// Most packs can restore the bytes of the constant, so the constant itself can be dropped from
// memory. Weights that are transformed for Winograd's algorithm cannot be restored.
//
// The problem: a product of pixels and weights reads, for each row of the matrix, the weights of a
// few vectors of columns. In the model file rows are long. Therefore these weights are far apart,
// and the last columns do not fill a vector.
//
// The layout: columns are cut into panels of one or two vectors. A panel holds its part of every
// row, row after row, so that a kernel reads the panel sequentially. Missing columns are zeros. For
// vectors of 4 floats, a matrix of 3 rows and 10 columns becomes a panel of two vectors and one of
// one vector:
//
//     matrix                          panel 0 (columns 0-7)      panel 1 (columns 8-9)
//     a0 a1 a2 a3 a4 a5 ... a8 a9     a0 a1 a2 a3 a4 a5 a6 a7    a8 a9  0  0
//     b0 b1 b2 b3 b4 b5 ... b8 b9     b0 b1 b2 b3 b4 b5 b6 b7    b8 b9  0  0
//     c0 c1 c2 c3 c4 c5 ... c8 c9     c0 c1 c2 c3 c4 c5 c6 c7    c8 c9  0  0
//
// In bf16 two neighbouring rows share 32 bits: (a0 b0) (a1 b1) ..., so that one load has the
// weights of two rows. The lower halves, which rounding to bf16 drops, are stored separately and
// are used only to restore the constant. pack_bytes.h describes the layout of 8-bit weights.
#ifndef INF_BACKENDS_CPU_CORE_PACK_H
#define INF_BACKENDS_CPU_CORE_PACK_H

#include "backends/base/thread.h"
#include "backends/base/winograd.h"
#include "backends/cpu/core/pack_bytes.h"
#include "backends/cpu/core/pack_panels.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/device/backend.h"

struct inf_cpu_step;

// What the panels of a matrix of f32 hold.
enum inf_cpu_element {
    INF_CPU_ELEMENT_F32,
    INF_CPU_ELEMENT_F16,  // binary16 numbers (pack_narrow.h)
    INF_CPU_ELEMENT_UNITS // 8-bit integers, to be multiplied by the unit of their column
};

// How the bytes of a constant are read as a matrix of f32, or of 8-bit numbers.
struct inf_cpu_matrix {
    struct inf_blob *blob;
    size_t rows, columns;
    bool transposed; // true: the constant is stored as [columns][rows]
    // If 0, the matrix is packed in fp32. Otherwise the matrix is packed in bf16: its rows form
    // groups of `paired` rows, and within a group two neighbouring rows share 32 bits. `rows` is a
    // multiple of `paired`.
    size_t paired;
    // If 0, columns are not grouped. Otherwise columns form groups of `group` columns (the channels
    // of one convolution group), and no panel has columns of two groups.
    size_t group;
    bool bytes;   // true: elements are 8-bit numbers, and `paired` is 0
    uint8_t zero; // packing subtracts it from each 8-bit number, modulo 256
    // True: the matrix is packed in fewer than 32 bits if its weights fit exactly. `paired` is 0,
    // `bytes` is false and `winograd` is NULL.
    bool narrow;
    // If not NULL, the constant holds weights of 3x3 windows, [9][input channels][columns], and
    // packing transforms them for this form of Winograd's algorithm. The matrix is then
    // [side * side][input channels][columns], and `rows` is side * side * input channels. Points to
    // a static object.
    const struct inf_winograd_form *winograd;
};

struct inf_cpu_pack {
    struct inf_blob_form form; // size 0 if the panels were those of another pack
    // The matrix that was packed; its blob outlives all users of the pack.
    struct inf_cpu_matrix matrix;
    const struct inf_isa *isa;    // the kernels that the panels are packed for
    const void *panels;           // panels of floats, of pairs of bf16, or of 8-bit numbers
    enum inf_cpu_element element; // not INF_CPU_ELEMENT_F32 only if matrix.narrow is true
    // The lower 16 bits of each element, in the order of the panels; bf16 only. NULL if the
    // constant has elements, such as infinity, that the two halves cannot restore.
    const uint16_t *lower;
    struct inf_cpu_panels *memory; // has the panels, perhaps for several packs; one reference
    // The form that matrix.winograd points to, if the pack was read from a file.
    struct inf_winograd_form own_winograd;
    struct inf_device *device; // a counted reference
    struct inf_cpu_packs *packs;
    struct inf_cpu_pack *next; // next pack in the same bucket of the device's hash table
};

#define INF_CPU_PACK_BUCKETS 256

// All packs of a device, in a hash table by constant.
struct inf_cpu_packs {
    const struct inf_isa *isa; // the kernels of the device; panels are packed for them
    struct inf_mutex mutex;    // guards the members below, `next` of every pack, and the panels
    struct inf_cpu_pack *buckets[INF_CPU_PACK_BUCKETS];
    struct inf_cpu_panels_table panels;
};

// Initialises an empty set of packs, which is embedded in the device, for the kernels of `isa`.
void inf_cpu_packs_init(struct inf_cpu_packs *packs, const struct inf_isa *isa);

// Releases the set, which must be empty. Each pack holds a reference to the device, so no pack
// outlives the device.
void inf_cpu_packs_fini(struct inf_cpu_packs *packs);

// Finds the pack of the matrix, or creates it. The caller owns a reference in *out_pack and must
// drop it with inf_blob_form_unref() before the last reference to the blob. Any thread.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_pack_get(struct inf_cpu_pack **out_pack, struct inf_cpu_packs *packs,
                               struct inf_device *device, const struct inf_cpu_matrix *matrix,
                               struct inf_error *err) INF_NODISCARD;

// Makes a pack of `blob` from the record that a pack of the same ISA level described, as
// inf_device_adopt_form() says. Any thread.
//
// INF_UNSUPPORTED, INF_INVALID, INF_EXHAUSTED  as inf_device_adopt_form().
enum inf_code inf_cpu_pack_adopt(struct inf_blob_form **out_form, struct inf_cpu_packs *packs,
                                 struct inf_device *device, struct inf_blob *blob,
                                 struct inf_form_record *record,
                                 struct inf_error *err) INF_NODISCARD;

// Returns the narrowest form that holds the weights of a constant, read as a matrix of `columns`
// columns, without loss (pack_narrow.h), whether or not its bytes are evicted. Returns
// INF_CPU_ELEMENT_F32 if there is no memory for the search.
enum inf_cpu_element inf_cpu_constant_element(const struct inf_blob *blob, size_t columns);

// --- the packs that a step reads in place of its operands ---

// A pack that a step reads in place of an operand of a node.
struct inf_cpu_pack_use {
    struct inf_cpu_pack_use *next;
    struct inf_cpu_pack *pack; // a counted reference
    uint32_t node, input;
};

// Sets *out_panels to the packed form of operand `input` of `node`, which must be a constant. The
// panels stay valid as long as the step. `matrix` says how the constant is read; this function sets
// its blob. Runs of the step must not read the operand itself.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_step_pack(struct inf_cpu_step *step, const struct inf_node *node,
                                uint32_t input, struct inf_cpu_matrix matrix,
                                const void **out_panels, struct inf_error *err) INF_NODISCARD;

// Returns what the panels hold that the last inf_cpu_step_pack() for this step returned.
enum inf_cpu_element inf_cpu_step_pack_element(const struct inf_cpu_step *step);

// Drops the reference that the last inf_cpu_step_pack() for this step took. Its panels are then
// gone unless another step has them.
void inf_cpu_step_drop_pack(struct inf_cpu_step *step);

// Drops the references that the step took with inf_cpu_step_pack().
void inf_cpu_step_unpack(struct inf_cpu_step *step);

#endif
