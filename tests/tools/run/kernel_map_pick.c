// SPDX-License-Identifier: Apache-2.0
// Maps TensorFlow.js kernels that pick and place elements by index, choose boxes and find unique
// elements. Also lists kernels that have no meaning for a daemon.
#include <string.h>

#include "tests/tools/run/kernel_case.h"

static void map_gather(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_GATHER);
    attrs.gather.axis = (int32_t)kernel_attr(call, "axis");
    attrs.gather.batch_dims = (int32_t)kernel_attr(call, "batchDims");
    uint32_t x = kernel_input(call, "x"), indices = kernel_input(call, "indices");
    // Resolve a negative batch_dims here, because no importer has done so for this graph.
    if (attrs.gather.batch_dims < 0 && indices != INF_VALUE_NONE)
        attrs.gather.batch_dims += call->graph->values[indices].shape.rank;
    kernel_result(call, kernel_add(call, INF_OP_GATHER, &attrs, x, indices));
}

static void map_gather_nd(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t x = kernel_input(call, "params"), indices = kernel_input(call, "indices");
    kernel_result(call, kernel_add(call, INF_OP_GATHER_ND, NULL, x, indices));
}

static void map_scatter_nd(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SCATTER_ND);
    attrs.scatter_nd.kind = INF_SCATTER_ADD;
    int64_t shape[INF_LIMIT_RANK];
    int rank = kernel_list(call, "shape", shape, INF_LIMIT_RANK);
    uint32_t indices = kernel_input(call, "indices"), updates = kernel_input(call, "updates");
    if (kernel_shape(call, indices)->rank == 1) // each index selects a row
        indices = kernel_reshape(call, indices, (const int64_t[]){-1, 1}, 2);
    uint32_t zeros = kernel_fill(call, shape, rank, kernel_dtype(call, updates), 0);
    kernel_result(call, kernel_add(call, INF_OP_SCATTER_ND, &attrs, zeros, indices, updates));
}

static void map_tensor_scatter(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t x = kernel_input(call, "tensor"), indices = kernel_input(call, "indices");
    uint32_t updates = kernel_input(call, "updates");
    kernel_result(call, kernel_add(call, INF_OP_SCATTER_ND, NULL, x, indices, updates));
}

// Maps SparseToDense. Scalar or flat indices are treated as a list of rows; a single value is used
// for all indices.
static void map_sparse_to_dense(struct kernel_case *call, int unused)
{
    (void)unused;
    int64_t shape[INF_LIMIT_RANK], rows = 1;
    int rank = kernel_list(call, "outputShape", shape, INF_LIMIT_RANK);
    uint32_t indices = kernel_input(call, "sparseIndices");
    uint32_t values = kernel_input(call, "sparseValues");
    uint32_t otherwise = kernel_input(call, "defaultValue");
    const struct inf_shape has = *kernel_shape(call, indices);
    if (has.rank > 0)
        rows = has.dims[0];
    if (has.rank < 2)
        indices = kernel_reshape(call, indices, (const int64_t[]){rows, 1}, 2);
    uint32_t row_count = kernel_ints(call, &rows, 1);
    values = kernel_add(call, INF_OP_BROADCAST, NULL, values, row_count);
    uint32_t dense =
        kernel_add(call, INF_OP_BROADCAST, NULL, otherwise, kernel_ints(call, shape, rank));
    kernel_result(call, kernel_add(call, INF_OP_SCATTER_ND, NULL, dense, indices, values));
}

static void map_segment_sum(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SCATTER_ND);
    attrs.scatter_nd.kind = INF_SCATTER_ADD;
    attrs.scatter_nd.drop = true;
    uint32_t x = kernel_input(call, "x"), ids = kernel_input(call, "segmentIds");
    struct inf_shape shape = *kernel_shape(call, x);
    int64_t rows = kernel_shape(call, ids)->dims[0];
    shape.dims[0] = (int64_t)kernel_attr(call, "numSegments");
    uint32_t zeros = kernel_fill(call, shape.dims, shape.rank, kernel_dtype(call, x), 0);
    uint32_t places = kernel_reshape(call, ids, (const int64_t[]){rows, 1}, 2);
    kernel_result(call, kernel_add(call, INF_OP_SCATTER_ND, &attrs, zeros, places, x));
}

static void map_search_sorted(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SEARCH_SORTED);
    attrs.search_sorted.right = strcmp(kernel_text(call, "side"), "right") == 0;
    uint32_t sorted = kernel_input(call, "sortedSequence"), values = kernel_input(call, "values");
    kernel_result(call, kernel_add(call, INF_OP_SEARCH_SORTED, &attrs, sorted, values));
}

// Puts ones in front of a list of dimensions until it has `length` elements.
static uint32_t lengthen_list(struct kernel_case *call, uint32_t list, int64_t length)
{
    int64_t missing = length - kernel_shape(call, list)->dims[0];
    uint32_t inputs[] = {kernel_fill(call, &missing, 1, INF_DTYPE_I32, 1), list};
    return missing == 0 ? list : kernel_node(call, INF_OP_CONCAT, NULL, inputs, 2, 1);
}

// Maps BroadcastArgs: of two dimensions, the one that is not 1 is the result.
static void map_broadcast_args(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t a = kernel_input(call, "s0"), b = kernel_input(call, "s1");
    int64_t length = INF_MAX(kernel_shape(call, a)->dims[0], kernel_shape(call, b)->dims[0]);
    a = lengthen_list(call, a, length);
    b = lengthen_list(call, b, length);
    uint32_t one = kernel_scalar(call, INF_DTYPE_I32, 1);
    uint32_t stretches = kernel_add(call, INF_OP_COMPARE, NULL, a, one);
    kernel_result(call, kernel_add(call, INF_OP_SELECT, NULL, stretches, b, a));
}

// Maps NonMaxSuppression of version 3, which returns indices; 4, which also returns their number;
// or 5, which suppresses softly and also returns scores.
static void map_nms(struct kernel_case *call, int version)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_NMS);
    attrs.nms.pad = kernel_flag(call, "padToMaxOutputSize");
    uint32_t inputs[] = {
        kernel_input(call, "boxes"),
        kernel_input(call, "scores"),
        kernel_scalar(call, INF_DTYPE_I32, kernel_attr(call, "maxOutputSize")),
        kernel_scalar(call, INF_DTYPE_F32, kernel_attr(call, "iouThreshold")),
        kernel_scalar(call, INF_DTYPE_F32, kernel_attr(call, "scoreThreshold")),
        kernel_scalar(call, INF_DTYPE_F32, kernel_attr(call, "softNmsSigma")),
    };
    uint32_t first = kernel_node(call, INF_OP_NMS, &attrs, inputs, 6, 3);
    kernel_result(call, first);
    if (version > 3)
        kernel_result(call, version == 4 ? first + 2 : first + 1);
}

static void map_unique(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_UNIQUE);
    attrs.unique.axis = (int32_t)kernel_attr(call, "axis");
    uint32_t x = kernel_input(call, "x");
    uint32_t first = kernel_node(call, INF_OP_UNIQUE, &attrs, &x, 1, 4);
    kernel_result(call, first);
    kernel_result(call, first + 1);
}

// Ragged and sparse tensors are several nodes, which the importer makes.
static void map_refused(struct kernel_case *call, int unused)
{
    (void)unused;
    kernel_refuse(call, "no node computes it; tests/conformance/graphs.jsonl has such models");
}

const struct kernel_row kernel_rows_pick[] = {
    {"BroadcastArgs", map_broadcast_args, 0},
    {"GatherNd", map_gather_nd, 0},
    {"GatherV2", map_gather, 0},
    {"NonMaxSuppressionV3", map_nms, 3},
    {"NonMaxSuppressionV4", map_nms, 4},
    {"NonMaxSuppressionV5", map_nms, 5},
    {"RaggedGather", map_refused, 0},
    {"RaggedRange", map_refused, 0},
    {"RaggedTensorToTensor", map_refused, 0},
    {"ScatterNd", map_scatter_nd, 0},
    {"SearchSorted", map_search_sorted, 0},
    {"SparseFillEmptyRows", map_refused, 0},
    {"SparseReshape", map_refused, 0},
    {"SparseSegmentMean", map_refused, 0},
    {"SparseSegmentSum", map_refused, 0},
    {"SparseToDense", map_sparse_to_dense, 0},
    {"TensorScatterUpdate", map_tensor_scatter, 0},
    {"Unique", map_unique, 0},
    {"UnsortedSegmentSum", map_segment_sum, 0},
    {0},
};
