// SPDX-License-Identifier: Apache-2.0
// Makes sparse constants dense. The format is a tree with one level for each axis, in an order that
// the file chooses; an axis may be cut into blocks, which adds a level for the place in a block:
//
//     shape [4, 4], blocks of 2 x 2, levels: block row, block column, row in block, column in block
//
// A level is dense, and has all its indices, or sparse: the children of node p are then the entries
// segments[p] to segments[p + 1] of the list of indices. Nodes of a level are numbered from left to
// right, and the nodes of the last level are the stored elements.
#include "backends/import/tflite/sparse.h"

#include <assert.h>
#include <string.h>

#define LEVELS_MAX (2 * INF_LIMIT_RANK)
// Numbers of the enum DimensionType.
#define FORMAT_DENSE      0
#define FORMAT_SPARSE_CSR 1
// A sparse tensor may have this many places for each byte of its data, and EXTRA_PLACES more. The
// limit prevents a small file from making large tensors.
#define PLACES_EACH_BYTE 256u
#define EXTRA_PLACES     (1u << 20)

// One level of the tree.
struct level {
    bool is_dense;
    int64_t size;                           // of a dense level
    struct inf_fb_vector segments, indices; // of a sparse level
    enum inf_fb_type segment_type, index_type;
    int32_t axis;   // axis of the tensor
    int64_t factor; // distance of neighbours along that axis
};

struct tree {
    struct inf_fb_file *file;
    const struct inf_tflite_tensor *tensor;
    struct level levels[LEVELS_MAX];
    uint32_t level_count;
    uint8_t *elements;
    uint32_t element_bytes;
    uint64_t visits_left; // nodes that may still be visited; segments that overlap repeat nodes
};

// Opens a union SparseIndexVector, whose type is in field `id` and whose table is in the next one.
static struct inf_fb_vector open_indices(const struct inf_fb_table *table, uint32_t id,
                                         const char *field, enum inf_fb_type *out_type)
{
    static const enum inf_fb_type types[] = {INF_FB_I32, INF_FB_I32, INF_FB_U16, INF_FB_U8};
    static const uint32_t sizes[] = {4, 4, 2, 1};
    int64_t type = inf_fb_int(table, INF_FB_U8, id, field, 0);
    if (type < 1 || type > 3) {
        inf_fb_fail(table, field, INF_INVALID, "is of type %lld, wanted 1, 2 or 3",
                    (long long)type);
        type = 1;
    }
    struct inf_fb_table holder = inf_fb_child(table, id + 1, field, "SparseIndexVector");
    *out_type = types[type];
    return inf_fb_vector(&holder, 0, "values", sizes[type]);
}

static void open_level(const struct inf_fb_table *table, struct level *level)
{
    int64_t format = inf_fb_int(table, INF_FB_I8, 0, "format", FORMAT_DENSE);
    level->is_dense = format == FORMAT_DENSE;
    level->size = inf_fb_int(table, INF_FB_I32, 1, "dense_size", 0);
    if (format != FORMAT_DENSE && format != FORMAT_SPARSE_CSR)
        inf_fb_fail(table, "format", INF_INVALID, "is %lld, wanted 0 or 1", (long long)format);
    if (level->is_dense)
        return;
    level->segments = open_indices(table, 2, "array_segments", &level->segment_type);
    level->indices = open_indices(table, 4, "array_indices", &level->index_type);
}

// Determines for each level the axis of the tensor that it divides, and how many elements of that
// axis lie between two neighbouring indices of the level.
static void place_levels(struct tree *tree, const struct inf_fb_vector *order,
                         const struct inf_fb_vector *blocks)
{
    const struct inf_fb_table *table = &tree->tensor->sparsity;
    int32_t rank = tree->tensor->shape.rank;
    int64_t block_sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < rank; i++)
        block_sizes[i] = 1;
    // A level whose number in `order` is `rank` or more is an axis of the blocks. It is dense, and
    // its size is the size of a block along this axis.
    for (uint32_t i = 0; inf_fb_ok(tree->file) && i < tree->level_count; i++) {
        struct level *level = &tree->levels[i];
        int64_t number = inf_fb_int_at(order, INF_FB_I32, i);
        if (number < 0 || number >= tree->level_count) {
            inf_fb_fail(table, "traversal_order", INF_INVALID, "element %u is %lld", i,
                        (long long)number);
            return;
        }
        level->axis = (int32_t)number;
        level->factor = 0;
        if (number < rank)
            continue;
        int64_t axis = inf_fb_int_at(blocks, INF_FB_I32, (uint32_t)(number - rank));
        if (axis < 0 || axis >= rank || !level->is_dense || level->size < 1 ||
            block_sizes[axis] != 1) {
            inf_fb_fail(table, "block_map", INF_INVALID, "element %lld does not fit the tensor",
                        (long long)(number - rank));
            return;
        }
        level->axis = (int32_t)axis;
        level->factor = 1;
        block_sizes[axis] = level->size;
    }
    for (uint32_t i = 0; i < tree->level_count; i++)
        if (tree->levels[i].factor == 0)
            tree->levels[i].factor = block_sizes[tree->levels[i].axis];
}

static void open_levels(struct tree *tree)
{
    const struct inf_fb_table *table = &tree->tensor->sparsity;
    struct inf_fb_vector order = inf_fb_vector(table, 0, "traversal_order", 4);
    struct inf_fb_vector blocks = inf_fb_vector(table, 1, "block_map", 4);
    struct inf_fb_vector levels = inf_fb_vector(table, 2, "dim_metadata", 4);
    uint32_t rank = (uint32_t)tree->tensor->shape.rank;
    if (blocks.count > rank || levels.count != rank + blocks.count || order.count != levels.count) {
        inf_fb_fail(table, "dim_metadata", INF_INVALID,
                    "has %u elements, traversal_order %u, block_map %u, and the tensor %u axes",
                    levels.count, order.count, blocks.count, rank);
        return;
    }
    tree->level_count = levels.count;
    for (uint32_t i = 0; inf_fb_ok(tree->file) && i < levels.count; i++) {
        struct inf_fb_table level = inf_fb_table_at(&levels, i, "DimensionMetadata");
        open_level(&level, &tree->levels[i]);
    }
    if (inf_fb_ok(tree->file))
        place_levels(tree, &order, &blocks);
}

static void fail_element(struct tree *tree, const char *what)
{
    inf_fb_fail(&tree->tensor->sparsity, "dim_metadata", INF_INVALID, "%s of '%.80s'", what,
                tree->tensor->name);
}

// Copies stored element `number` to the place that `index` says.
static void store_element(struct tree *tree, const int64_t *index, int64_t number)
{
    const struct inf_shape *shape = &tree->tensor->shape;
    size_t size = tree->element_bytes;
    uint64_t place = 0;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (index[i] < 0 || index[i] >= shape->dims[i]) {
            fail_element(tree, "an index is outside of the shape");
            return;
        }
        place = place * (uint64_t)shape->dims[i] + (uint64_t)index[i];
    }
    if (!inf_range_ok((uint64_t)number * size, size, tree->tensor->data.size)) {
        fail_element(tree, "there are more indices than elements");
        return;
    }
    memcpy(tree->elements + place * size, tree->tensor->data.data + (uint64_t)number * size, size);
}

// Visits the children of node `node` of the level before `depth`. The recursion is at most
// LEVELS_MAX deep.
static void walk_level(struct tree *tree, uint32_t depth, int64_t node,
                       const int64_t index[INF_LIMIT_RANK])
{
    const struct level *level = &tree->levels[depth];
    int64_t inner[INF_LIMIT_RANK];
    if (depth == tree->level_count) {
        store_element(tree, index, node);
        return;
    }
    int64_t begin = node * level->size, end = begin + level->size;
    if (!level->is_dense) {
        if (node + 1 >= (int64_t)level->segments.count) {
            fail_element(tree, "array_segments is too short");
            return;
        }
        begin = inf_fb_int_at(&level->segments, level->segment_type, (uint32_t)node);
        end = inf_fb_int_at(&level->segments, level->segment_type, (uint32_t)node + 1);
        if (begin < 0 || end < begin || end > (int64_t)level->indices.count) {
            fail_element(tree, "array_segments exceeds array_indices");
            return;
        }
    }
    for (int64_t i = begin; inf_fb_ok(tree->file) && i < end; i++) {
        int64_t at = level->is_dense
                         ? i - begin
                         : inf_fb_int_at(&level->indices, level->index_type, (uint32_t)i);
        memcpy(inner, index, sizeof inner);
        inner[level->axis] += at * level->factor;
        if (tree->visits_left-- == 0)
            fail_element(tree, "there are more indices than places");
        else
            walk_level(tree, depth + 1, i, inner);
    }
}

enum inf_code inf_tflite_sparse_check(const struct inf_tflite_tensor *tensor, uint32_t element_bits,
                                      struct inf_error *err)
{
    uint64_t places = inf_shape_elements(&tensor->shape);
    if (element_bits < 8)
        return inf_fail(err, INF_UNSUPPORTED, "tensor '%.200s' is sparse and has less than 8 bits",
                        tensor->name);
    if (places > EXTRA_PLACES && (places - EXTRA_PLACES) / PLACES_EACH_BYTE > tensor->data.size)
        return inf_fail(err, INF_EXHAUSTED, "tensor '%.200s' has %zu bytes of sparse data, too few",
                        tensor->name, tensor->data.size);
    return INF_OK;
}

enum inf_code inf_tflite_sparse_read(uint8_t *elements, const struct inf_tflite_tensor *tensor,
                                     uint32_t element_bytes)
{
    assert(element_bytes > 0);
    struct inf_fb_file *file = tensor->sparsity.file;
    struct tree tree = {.file = file,
                        .tensor = tensor,
                        .elements = elements,
                        .element_bytes = element_bytes,
                        .visits_left = LEVELS_MAX * inf_shape_elements(&tensor->shape)};
    open_levels(&tree);
    if (inf_fb_ok(file))
        walk_level(&tree, 0, 0, (const int64_t[INF_LIMIT_RANK]){0});
    return file->code;
}
