// SPDX-License-Identifier: Apache-2.0
// Converts an einsum equation to nodes. Terms are contracted one after the other from the left.
// Contracting two terms sorts their labels into four groups, transposes and merges the axes of each
// group, and multiplies two stacks of matrices:
//     batch  labels in both terms that are still needed later: the stack of matrices
//     left   labels in the first term only: rows
//     right  labels in the second term only: columns
//     sum    labels in both terms that are not needed later: the inner dimension
// Example: "bij,bjk->bik" has batch b, left i, right k and sum j: one MATMUL. "bhqd,bhkd->bhqk" has
// batch bh, merged to one axis and split again afterwards. Labels are integers: letters have their
// character code, axes of "..." their distance from its end, so that terms of different rank align.
// The caller has checked that ranks are known. Nodes compute unknown sizes when the model runs.
#include "backends/import/common/einsum.h"

#include <ctype.h>
#include <string.h>

#include "backends/graph/shape/infer.h"

#define LABELS      256
#define ELLIPSIS_AT 200 // label of the last axis that "..." stands for

// A tensor and the label of each of its axes.
struct term {
    uint32_t value;
    int32_t rank;
    int labels[INF_LIMIT_RANK];
};

struct einsum {
    struct inf_graph *graph;
    const char *name, *equation;
    struct inf_error *err;
    // Indexed by label: how many of the remaining terms, and the result, have the label.
    int wanted[LABELS];
    struct term result; // labels of the result
    int32_t ellipsis;   // the largest number of axes that "..." stands for
};

static enum inf_code fail_invalid(const struct einsum *einsum, const char *why)
{
    return inf_fail(einsum->err, INF_INVALID, "equation '%s': %s", einsum->equation, why);
}

static enum inf_code fail_unsupported(const struct einsum *einsum, const char *why)
{
    return inf_fail_reason(einsum->err, INF_UNSUPPORTED, INF_REASON_OPERATOR, "equation '%s': %s",
                           einsum->equation, why);
}

// --- adding nodes that transpose, reshape, reduce or multiply ---

static enum inf_code add_node(struct einsum *einsum, enum inf_op op, const union inf_attrs *attrs,
                              const uint32_t *inputs, uint32_t count, uint32_t *value)
{
    uint32_t node;
    INF_TRY(inf_graph_add_node(einsum->graph, op, einsum->name, "Einsum", inputs, count, 1, &node,
                               einsum->err));
    if (attrs != NULL)
        einsum->graph->nodes[node].attrs = *attrs;
    *value = einsum->graph->nodes[node].outputs[0];
    return inf_shape_infer_node(einsum->graph, node, einsum->err);
}

static int32_t find_axis(const struct term *term, int label)
{
    for (int32_t i = 0; i < term->rank; i++)
        if (term->labels[i] == label)
            return i;
    return -1;
}

// Sums a term over one axis.
static enum inf_code sum_axis(struct einsum *einsum, struct term *term, int32_t axis)
{
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_REDUCE);
    attrs.reduce.axes = (struct inf_ints){.count = 1, .values = {axis}};
    INF_TRY(add_node(einsum, INF_OP_REDUCE, &attrs, &term->value, 1, &term->value));
    term->rank--;
    for (int32_t i = axis; i < term->rank; i++)
        term->labels[i] = term->labels[i + 1];
    return INF_OK;
}

// Transposes a term to the order of `labels`. Labels that the term lacks become axes of size 1.
static enum inf_code arrange_axes(struct einsum *einsum, struct term *term, const int *labels,
                                  int32_t rank)
{
    union inf_attrs transpose, expand;
    inf_attrs_init(&transpose, INF_OP_TRANSPOSE);
    inf_attrs_init(&expand, INF_OP_EXPAND_DIMS);
    struct inf_ints *perm = &transpose.transpose.perm, *axes = &expand.expand_dims.axes;
    bool ordered = true;
    for (int32_t i = 0; i < rank; i++) {
        int32_t from = find_axis(term, labels[i]);
        if (from < 0) {
            axes->values[axes->count++] = i;
            continue;
        }
        ordered = ordered && from == perm->count;
        perm->values[perm->count++] = from;
    }
    if (!ordered)
        INF_TRY(add_node(einsum, INF_OP_TRANSPOSE, &transpose, &term->value, 1, &term->value));
    if (axes->count > 0)
        INF_TRY(add_node(einsum, INF_OP_EXPAND_DIMS, &expand, &term->value, 1, &term->value));
    term->rank = rank;
    memcpy(term->labels, labels, sizeof(*labels) * (size_t)rank);
    return INF_OK;
}

static enum inf_code add_reshape(struct einsum *einsum, uint32_t *value,
                                 const struct inf_shape *shape)
{
    int32_t dims[INF_LIMIT_RANK];
    uint32_t inputs[2] = {*value};
    for (int32_t i = 0; i < shape->rank; i++)
        dims[i] = (int32_t)shape->dims[i];
    INF_TRY(inf_graph_add_const_i32(einsum->graph, "", dims, (uint32_t)shape->rank, &inputs[1],
                                    einsum->err));
    return add_node(einsum, INF_OP_RESHAPE, NULL, inputs, 2, value);
}

// --- reading the equation ---

// Reads the labels of one term, from `text` to `end`. `rank` is the rank of its tensor, -1 if it is
// unknown.
static enum inf_code read_term(struct einsum *einsum, const char *text, const char *end,
                               int32_t rank, struct term *term)
{
    int32_t letters = 0, dots = 0;
    for (const char *at = text; at < end; at++) {
        letters += isalpha((unsigned char)*at) != 0;
        dots += *at == '.';
        if (!isalpha((unsigned char)*at) && *at != '.' && *at != ' ')
            return fail_invalid(einsum, "there is more than letters, commas, dots and one arrow");
    }
    if (dots != 0 && dots != 3)
        return fail_invalid(einsum, "wanted no or three dots in a term");
    if (dots == 3 && rank < 0)
        return fail_unsupported(einsum, "the rank of an input with '...' is not known");
    int32_t ellipsis = dots == 3 ? rank - letters : 0;
    if (ellipsis < 0 || (rank >= 0 && letters + ellipsis != rank))
        return fail_invalid(einsum, "a term has not as many axes as its input");
    if (letters + ellipsis > INF_LIMIT_RANK)
        return fail_unsupported(einsum, "a term has too many axes");
    term->rank = 0;
    for (const char *at = text; at < end; at++) {
        if (isalpha((unsigned char)*at))
            term->labels[term->rank++] = (unsigned char)*at;
        if (*at != '.')
            continue;
        for (int32_t i = 0; i < ellipsis; i++)
            term->labels[term->rank++] = ELLIPSIS_AT - (ellipsis - 1 - i);
        at += 2;
        if (at >= end || at[-1] != '.' || *at != '.')
            return fail_invalid(einsum, "the dots of a term stand apart");
    }
    einsum->ellipsis = INF_MAX(einsum->ellipsis, ellipsis);
    return INF_OK;
}

// Constructs the result of an equation without an arrow: the axes of "...", then every letter that
// occurs once, in alphabetical order.
static enum inf_code make_implied_result(struct einsum *einsum, const char *terms)
{
    int count[LABELS] = {0};
    struct term *result = &einsum->result;
    for (const char *at = terms; *at != '\0'; at++)
        count[(unsigned char)*at]++;
    for (int32_t i = 0; i < einsum->ellipsis; i++)
        result->labels[result->rank++] = ELLIPSIS_AT - (einsum->ellipsis - 1 - i);
    for (int label = 0; label < LABELS; label++) {
        if (!isalpha(label) || count[label] != 1)
            continue;
        if (result->rank == INF_LIMIT_RANK)
            return fail_unsupported(einsum, "the result has too many axes");
        result->labels[result->rank++] = label;
    }
    return INF_OK;
}

// Reads the result, which follows the arrow.
static enum inf_code read_result(struct einsum *einsum, const char *text)
{
    int32_t letters = 0;
    bool dots = strchr(text, '.') != NULL;
    for (const char *at = text; *at != '\0'; at++)
        letters += isalpha((unsigned char)*at) != 0;
    INF_TRY(read_term(einsum, text, text + strlen(text), letters + (dots ? einsum->ellipsis : 0),
                      &einsum->result));
    for (int32_t i = 0; i < einsum->result.rank; i++)
        if (find_axis(&einsum->result, einsum->result.labels[i]) != i)
            return fail_invalid(einsum, "a letter stands twice in the result");
    return INF_OK;
}

// --- contracting terms ---

// Takes the diagonal over two axes with the same label: sets off-diagonal elements to 0, then sums
// over the second axis.
static enum inf_code take_diagonal(struct einsum *einsum, struct term *term, int32_t first,
                                   int32_t second)
{
    const struct inf_shape shape = einsum->graph->values[term->value].shape;
    if (!inf_shape_known(&shape))
        return fail_unsupported(einsum, "the size of a diagonal is not known");
    int32_t last = term->rank - 1;
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    struct term moved = {.value = term->value, .rank = term->rank};
    for (int32_t i = 0, to = 0; i < term->rank; i++) {
        if (i != first && i != second) {
            attrs.transpose.perm.values[to] = i;
            moved.labels[to++] = term->labels[i];
        }
    }
    attrs.transpose.perm.count = term->rank;
    attrs.transpose.perm.values[last - 1] = first;
    attrs.transpose.perm.values[last] = second;
    moved.labels[last - 1] = moved.labels[last] = term->labels[first];
    INF_TRY(add_node(einsum, INF_OP_TRANSPOSE, &attrs, &moved.value, 1, &moved.value));
    inf_attrs_init(&attrs, INF_OP_BAND);
    attrs.band.low = attrs.band.high = 0;
    INF_TRY(add_node(einsum, INF_OP_BAND, &attrs, &moved.value, 1, &moved.value));
    *term = moved;
    return sum_axis(einsum, term, last);
}

// Takes the diagonal over axes with the same label, and sums over labels that occur in no other
// term and not in the result.
static enum inf_code simplify_term(struct einsum *einsum, struct term *term)
{
    for (int32_t i = term->rank - 1; i >= 0; i--)
        if (find_axis(term, term->labels[i]) != i)
            INF_TRY(take_diagonal(einsum, term, find_axis(term, term->labels[i]), i));
    for (int32_t i = term->rank - 1; i >= 0; i--)
        if (einsum->wanted[term->labels[i]] == 0)
            INF_TRY(sum_axis(einsum, term, i));
    return INF_OK;
}

// The labels of two terms in four groups: batch (in both terms and still needed), left (in the
// first term only), right (in the second term only), and sum (in both and not needed later).
struct sorted {
    int shared[INF_LIMIT_RANK], summed[INF_LIMIT_RANK], left[INF_LIMIT_RANK], right[INF_LIMIT_RANK];
    int32_t shared_count, summed_count, left_count, right_count;
};

static struct sorted sort_labels(const struct einsum *einsum, const struct term *a,
                                 const struct term *b)
{
    struct sorted sorted = {0};
    for (int32_t i = 0; i < a->rank; i++) {
        int label = a->labels[i];
        if (find_axis(b, label) < 0)
            sorted.left[sorted.left_count++] = label;
        else if (einsum->wanted[label] != 0)
            sorted.shared[sorted.shared_count++] = label;
        else
            sorted.summed[sorted.summed_count++] = label;
    }
    for (int32_t i = 0; i < b->rank; i++)
        if (find_axis(a, b->labels[i]) < 0)
            sorted.right[sorted.right_count++] = b->labels[i];
    return sorted;
}

// Appends a list of labels.
static void append_labels(int *labels, int32_t *count, const int *list, int32_t length)
{
    memcpy(labels + *count, list, sizeof(*list) * (size_t)length);
    *count += length;
}

// Multiplies two terms that share no label to sum over.
static enum inf_code multiply_terms(struct einsum *einsum, struct term *a, struct term *b,
                                    const struct sorted *sorted)
{
    int labels[2 * INF_LIMIT_RANK];
    int32_t count = 0;
    append_labels(labels, &count, sorted->shared, sorted->shared_count);
    append_labels(labels, &count, sorted->left, sorted->left_count);
    append_labels(labels, &count, sorted->right, sorted->right_count);
    INF_TRY(arrange_axes(einsum, a, labels, count));
    INF_TRY(arrange_axes(einsum, b, labels, count));
    uint32_t inputs[] = {a->value, b->value};
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_BINARY);
    attrs.binary.kind = INF_BINARY_MUL;
    return add_node(einsum, INF_OP_BINARY, &attrs, inputs, 2, &a->value);
}

// The product of `count` sizes of a value, beginning with axis `first`.
struct size {
    uint32_t value;
    int32_t first, count;
};

// Returns the product of the sizes; INF_DIM_UNKNOWN if one of the sizes is unknown.
static int64_t multiply_sizes(const struct einsum *einsum, const struct size *size)
{
    const struct inf_shape *shape = &einsum->graph->values[size->value].shape;
    int64_t product = 1;
    for (int32_t i = 0; i < size->count && product >= 0; i++) {
        int64_t dim = shape->dims[size->first + i];
        product = dim < 0 || product * dim >= INF_LIMIT_DIM ? INF_DIM_UNKNOWN : product * dim;
    }
    return product;
}

// Sets *out to the product of the sizes as an i32 value of shape [1]: a constant, or nodes that
// compute it from the shape at run time.
static enum inf_code add_size(struct einsum *einsum, const struct size *size, uint32_t *out)
{
    int32_t axes[INF_LIMIT_RANK];
    int32_t number = (int32_t)multiply_sizes(einsum, size);
    if (number >= 0)
        return inf_graph_add_const_i32(einsum->graph, einsum->name, &number, 1, out, einsum->err);
    uint32_t inputs[2];
    union inf_attrs attrs;
    for (int32_t i = 0; i < size->count; i++)
        axes[i] = size->first + i;
    INF_TRY(add_node(einsum, INF_OP_SHAPE, NULL, &size->value, 1, &inputs[0]));
    INF_TRY(inf_graph_add_const_i32(einsum->graph, einsum->name, axes, (uint32_t)size->count,
                                    &inputs[1], einsum->err));
    INF_TRY(add_node(einsum, INF_OP_GATHER, NULL, inputs, 2, out));
    inf_attrs_init(&attrs, INF_OP_REDUCE);
    attrs.reduce.kind = INF_REDUCE_PROD;
    attrs.reduce.keep_dims = true;
    return size->count == 1 ? INF_OK : add_node(einsum, INF_OP_REDUCE, &attrs, out, 1, out);
}

// Reshapes *value to a list of sizes. If one size is unknown, the reshape computes it. If several
// sizes are unknown, nodes compute them from the shapes of the factors.
static enum inf_code reshape_to(struct einsum *einsum, uint32_t *value, const struct size *sizes,
                                int32_t count)
{
    uint32_t dims[INF_LIMIT_RANK], inputs[2] = {*value};
    struct inf_shape shape = {.rank = count};
    int32_t unknown = 0;
    if (count > INF_LIMIT_RANK)
        return fail_unsupported(einsum, "there are too many axes");
    for (int32_t i = 0; i < count; i++) {
        if (einsum->graph->values[sizes[i].value].shape.rank < 0)
            return fail_unsupported(einsum, "the rank of a term is not known");
        shape.dims[i] = multiply_sizes(einsum, &sizes[i]);
        unknown += shape.dims[i] < 0;
    }
    if (unknown <= 1)
        return add_reshape(einsum, value, &shape);
    for (int32_t i = 0; i < count; i++)
        INF_TRY(add_size(einsum, &sizes[i], &dims[i]));
    INF_TRY(add_node(einsum, INF_OP_CONCAT, NULL, dims, (uint32_t)count, &inputs[1]));
    return add_node(einsum, INF_OP_RESHAPE, NULL, inputs, 2, value);
}

// Merges axes first..first+count-1 of a term into one. If `count` is 0, inserts an axis of size 1.
static enum inf_code merge_axes(struct einsum *einsum, struct term *term, int32_t first,
                                int32_t count)
{
    int32_t rank = einsum->graph->values[term->value].shape.rank;
    union inf_attrs attrs;
    if (rank < 0)
        return fail_unsupported(einsum, "the rank of a term is not known");
    inf_attrs_init(&attrs, INF_OP_EXPAND_DIMS);
    attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {first}};
    if (count == 1)
        return INF_OK;
    if (count == 0)
        return add_node(einsum, INF_OP_EXPAND_DIMS, &attrs, &term->value, 1, &term->value);
    struct size sizes[2 * INF_LIMIT_RANK];
    int32_t merged = rank - count + 1;
    for (int32_t i = 0; i < merged; i++)
        sizes[i] =
            (struct size){term->value, i <= first ? i : i + count - 1, i == first ? count : 1};
    return reshape_to(einsum, &term->value, sizes, merged);
}

// Splits the merged axes of a matrix product again. `a` and `b` are the factors before their axes
// were merged.
static enum inf_code split_axes(struct einsum *einsum, struct term *product,
                                const struct sorted *sorted, uint32_t a, uint32_t b)
{
    int32_t shared = sorted->shared_count, count = 0;
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_SQUEEZE);
    struct inf_ints *axes = &attrs.squeeze.axes;
    if (sorted->left_count == 0)
        axes->values[axes->count++] = shared;
    if (sorted->right_count == 0)
        axes->values[axes->count++] = shared + 1;
    if (sorted->left_count <= 1 && sorted->right_count <= 1)
        return axes->count == 0
                   ? INF_OK
                   : add_node(einsum, INF_OP_SQUEEZE, &attrs, &product->value, 1, &product->value);
    struct size sizes[2 * INF_LIMIT_RANK];
    for (int32_t i = 0; i < shared; i++)
        sizes[count++] = (struct size){product->value, i, 1};
    for (int32_t i = 0; i < sorted->left_count; i++)
        sizes[count++] = (struct size){a, shared + i, 1};
    for (int32_t i = 0; i < sorted->right_count; i++)
        sizes[count++] = (struct size){b, shared + sorted->summed_count + i, 1};
    return reshape_to(einsum, &product->value, sizes, count);
}

// Contracts two terms by one matrix product.
static enum inf_code contract_terms(struct einsum *einsum, struct term *a, struct term *b,
                                    const struct sorted *sorted)
{
    int labels_a[2 * INF_LIMIT_RANK], labels_b[2 * INF_LIMIT_RANK], labels[2 * INF_LIMIT_RANK];
    int32_t count_a = 0, count_b = 0, count = 0, shared = sorted->shared_count;
    append_labels(labels_a, &count_a, sorted->shared, shared);
    append_labels(labels_a, &count_a, sorted->left, sorted->left_count);
    append_labels(labels_a, &count_a, sorted->summed, sorted->summed_count);
    append_labels(labels_b, &count_b, sorted->shared, shared);
    append_labels(labels_b, &count_b, sorted->summed, sorted->summed_count);
    append_labels(labels_b, &count_b, sorted->right, sorted->right_count);
    append_labels(labels, &count, sorted->shared, shared);
    append_labels(labels, &count, sorted->left, sorted->left_count);
    append_labels(labels, &count, sorted->right, sorted->right_count);
    INF_TRY(arrange_axes(einsum, a, labels_a, count_a));
    INF_TRY(arrange_axes(einsum, b, labels_b, count_b));
    const uint32_t before[] = {a->value, b->value};
    INF_TRY(merge_axes(einsum, a, shared + sorted->left_count, sorted->summed_count));
    INF_TRY(merge_axes(einsum, a, shared, sorted->left_count));
    INF_TRY(merge_axes(einsum, b, shared + sorted->summed_count, sorted->right_count));
    INF_TRY(merge_axes(einsum, b, shared, sorted->summed_count));
    uint32_t inputs[] = {a->value, b->value};
    INF_TRY(add_node(einsum, INF_OP_MATMUL, NULL, inputs, 2, &a->value));
    a->rank = count;
    memcpy(a->labels, labels, sizeof(*labels) * (size_t)count);
    return split_axes(einsum, a, sorted, before[0], before[1]);
}

// Replaces term `a` by the product of `a` and `b`.
static enum inf_code multiply_or_contract(struct einsum *einsum, struct term *a, struct term *b)
{
    struct sorted sorted = sort_labels(einsum, a, b);
    if (sorted.shared_count + sorted.left_count + sorted.right_count > INF_LIMIT_RANK ||
        sorted.shared_count + 2 > INF_LIMIT_RANK)
        return fail_unsupported(einsum, "two terms together have too many axes");
    return sorted.summed_count == 0 ? multiply_terms(einsum, a, b, &sorted)
                                    : contract_terms(einsum, a, b, &sorted);
}

static void count_labels(struct einsum *einsum, const struct term *term, int by)
{
    for (int32_t i = 0; i < term->rank; i++)
        einsum->wanted[term->labels[i]] += by;
}

static enum inf_code compute_result(struct einsum *einsum, struct term *terms, uint32_t count,
                                    uint32_t *out_value)
{
    count_labels(einsum, &einsum->result, 1);
    for (uint32_t i = 0; i < count; i++)
        count_labels(einsum, &terms[i], 1);
    struct term *sum = &terms[0];
    count_labels(einsum, sum, -1);
    INF_TRY(simplify_term(einsum, sum));
    for (uint32_t i = 1; i < count; i++) {
        count_labels(einsum, &terms[i], -1);
        // Count the labels of the partial result as needed, so that they are not summed out of the
        // next term before the two are multiplied.
        count_labels(einsum, sum, 1);
        INF_TRY(simplify_term(einsum, &terms[i]));
        count_labels(einsum, sum, -1);
        INF_TRY(multiply_or_contract(einsum, sum, &terms[i]));
        INF_TRY(simplify_term(einsum, sum));
    }
    for (int32_t i = 0; i < einsum->result.rank; i++)
        if (find_axis(sum, einsum->result.labels[i]) < 0)
            return fail_invalid(einsum, "the result has a letter that no term has");
    INF_TRY(arrange_axes(einsum, sum, einsum->result.labels, einsum->result.rank));
    *out_value = sum->value;
    return INF_OK;
}

enum inf_code inf_graph_add_einsum(struct inf_graph *graph, const char *name, const char *equation,
                                   const uint32_t *inputs, uint32_t input_count,
                                   uint32_t *out_value, struct inf_error *err)
{
    struct einsum einsum = {.graph = graph, .name = name, .equation = equation, .err = err};
    struct term terms[INF_LIMIT_RANK];
    const char *arrow = strstr(equation, "->"), *at = equation;
    const char *end = arrow != NULL ? arrow : equation + strlen(equation);
    if (input_count == 0 || input_count > INF_ARRAY_LENGTH(terms))
        return fail_invalid(&einsum, "it has no or too many inputs");
    for (uint32_t i = 0; i < input_count; i++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if ((comma == NULL) != (i + 1 == input_count))
            return fail_invalid(&einsum, "it has not as many terms as inputs");
        if (inputs[i] == INF_VALUE_NONE)
            return fail_invalid(&einsum, "one of its inputs is left out");
        terms[i].value = inputs[i];
        INF_TRY(read_term(&einsum, at, comma != NULL ? comma : end,
                          graph->values[inputs[i]].shape.rank, &terms[i]));
        at = comma != NULL ? comma + 1 : end;
    }
    INF_TRY(arrow != NULL ? read_result(&einsum, arrow + 2)
                          : make_implied_result(&einsum, equation));
    return compute_result(&einsum, terms, input_count, out_value);
}
