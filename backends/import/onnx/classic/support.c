// SPDX-License-Identifier: Apache-2.0
// SVMRegressor and SVMClassifier: support vector machines, and the linear models that are written
// as such. ONNX Runtime is followed where the specification is silent.
//
// A classifier of k classes has one machine for each pair (i, j), i < j. Machine p of rows x gives
//
//   score[p] = sum of kernel(x, vector v) * coefficients[v, p] + rho[p]
//
// over the support vectors v of classes i and j, and a vote for class i if the score is positive,
// else for class j. All machines are one matrix product. If prob_a is there, scores become
// probabilities of the pairs, and these become probabilities of the classes.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/classic/classes.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

// The largest number of classes, which bounds the tables of their pairs.
#define CLASSES_MAX INF_LIMIT_COUPLED_CLASSES

// The attributes that regressors and classifiers share.
struct machine {
    // Constants: coefficients [coefficient_count] and vectors [vector_count, features]. `vectors`
    // is not used for a linear model, whose vector_count is 0.
    uint32_t coefficients, vectors;
    int64_t coefficient_count, vector_count, features;
    const char *kernel; // LINEAR, POLY, RBF or SIGMOID
    double gamma, coef0, degree;
    const float *rho;
    int64_t rho_count;
};

// Returns the floats of the attribute `name` and sets *out_count; NULL and 0 if it is absent.
static const float *read_floats(struct inf_onnx_scope *s, const char *name, int64_t *out_count)
{
    uint32_t value = inf_onnx_attr_floats(s, name);
    bool is_there = value != INF_VALUE_NONE && inf_build_ok(&s->b);
    *out_count = is_there ? inf_build_known_dim(&s->b, value, 0) : 0;
    return is_there ? s->b.graph->values[value].data->data : NULL;
}

// Reads the kernel and the parameters of a machine with `vector_count` support vectors.
static void read_machine(struct inf_onnx_scope *s, struct machine *machine, int64_t vector_count)
{
    int64_t count = 0;
    const float *params = read_floats(s, "kernel_params", &count);
    machine->kernel = inf_onnx_attr_text(s, "kernel_type", "LINEAR");
    machine->gamma = count > 0 ? (double)params[0] : 0;
    machine->coef0 = count > 1 ? (double)params[1] : 0;
    machine->degree = count > 2 ? (double)params[2] : 0;
    machine->rho = read_floats(s, "rho", &machine->rho_count);
    machine->vector_count = vector_count;
    machine->features = inf_build_dim(&s->b, s->inputs[0], -1);
    machine->coefficients = inf_onnx_attr_floats(s, "coefficients");
    machine->vectors = inf_onnx_attr_floats(s, "support_vectors");
    if (inf_build_rank(&s->b, s->inputs[0]) != 2 || machine->coefficients == INF_VALUE_NONE ||
        machine->rho_count < 1)
        inf_build_fail(&s->b, INF_INVALID, "lacks coefficients or rho, or x is no matrix");
    if (!inf_build_ok(&s->b))
        return;
    machine->coefficient_count = inf_build_known_dim(&s->b, machine->coefficients, 0);
    if (vector_count == 0)
        return;
    int64_t size =
        machine->vectors != INF_VALUE_NONE ? inf_build_known_dim(&s->b, machine->vectors, 0) : 0;
    if (machine->features == INF_DIM_UNKNOWN && vector_count > 0)
        machine->features = size / vector_count; // a run checks that x has as many
    if (vector_count < 0 || vector_count > INF_LIMIT_DIM || machine->features < 1 ||
        size % machine->features != 0 || size / machine->features != vector_count)
        inf_build_fail(&s->b, INF_INVALID,
                       "support_vectors has %lld numbers, wanted %lld vectors of %lld",
                       (long long)size, (long long)vector_count, (long long)machine->features);
    machine->vectors =
        inf_build_reshape(&s->b, machine->vectors, (int64_t[]){vector_count, machine->features}, 2);
}

// Adds kernel(x, vector) of each row and each vector [vectors, features]: [rows, vectors].
static uint32_t add_kernel(struct inf_onnx_scope *s, const struct machine *machine,
                           uint32_t vectors)
{
    struct inf_builder *b = &s->b;
    const struct inf_ints last = {.count = 1, .values = {2}};
    uint32_t x = inf_build_cast(b, s->inputs[0], INF_DTYPE_F32);
    if (inf_build_dim(b, x, 1) == INF_DIM_UNKNOWN) { // a single feature must not be broadcast
        const uint32_t dims[] = {inf_build_dim_value(b, x, 0),
                                 inf_build_list(b, &machine->features, 1)};
        x = inf_build_reshape_to(b, x, inf_build_concat(b, dims, 2, 0));
    }
    if (strcmp(machine->kernel, "RBF") == 0) {
        // The differences themselves are squared: |x|^2 + |v|^2 - 2xv loses digits.
        uint32_t difference =
            inf_build_sub(b, inf_build_expand_dims(b, x, (int64_t[]){1}, 1), vectors);
        uint32_t sum = inf_build_reduce(b, INF_REDUCE_SUM_SQUARE, difference, &last, false);
        return inf_build_unary(b, INF_UNARY_EXP,
                               inf_build_binary_number(b, INF_BINARY_MUL, sum, -machine->gamma));
    }
    uint32_t y = inf_build_matmul(b, x, inf_build_transpose(b, vectors, (int64_t[]){1, 0}, 2));
    if (strcmp(machine->kernel, "LINEAR") == 0)
        return y;
    y = inf_build_binary_number(b, INF_BINARY_MUL, y, machine->gamma);
    y = inf_build_binary_number(b, INF_BINARY_ADD, y, machine->coef0);
    if (strcmp(machine->kernel, "POLY") == 0)
        return inf_build_binary_number(b, INF_BINARY_POW, y, machine->degree);
    if (strcmp(machine->kernel, "SIGMOID") == 0)
        return inf_build_unary(b, INF_UNARY_TANH, y);
    inf_build_fail(b, INF_INVALID, "kernel_type is '%.20s'", machine->kernel);
    return y;
}

// Adds x times the coefficients as a linear model of `outputs` outputs, plus rho[0].
static uint32_t add_linear(struct inf_onnx_scope *s, struct machine *machine, int64_t outputs)
{
    if (machine->features == INF_DIM_UNKNOWN)
        machine->features = machine->coefficient_count / outputs;
    if (inf_build_ok(&s->b) && machine->coefficient_count != outputs * machine->features)
        inf_build_fail(&s->b, INF_INVALID, "%lld coefficients for %lld features and %lld outputs",
                       (long long)machine->coefficient_count, (long long)machine->features,
                       (long long)outputs);
    uint32_t rows =
        inf_build_reshape(&s->b, machine->coefficients, (int64_t[]){outputs, machine->features}, 2);
    // ONNX Runtime computes linear kernels here, whatever kernel_type is.
    machine->kernel = "LINEAR";
    uint32_t y = add_kernel(s, machine, rows);
    return inf_build_ok(&s->b)
               ? inf_build_binary_number(&s->b, INF_BINARY_ADD, y, (double)machine->rho[0])
               : INF_VALUE_NONE;
}

// --- operator SVMRegressor ---

static void lower_regressor(struct inf_onnx_scope *s)
{
    struct machine machine = {0};
    (void)inf_onnx_find_attr(s, "post_transform"); // ONNX Runtime ignores it
    bool is_one_class = inf_onnx_attr_int(s, "one_class", 0) != 0;
    read_machine(s, &machine, inf_onnx_attr_int(s, "n_supports", 0));
    if (!inf_build_ok(&s->b))
        return;
    uint32_t y;
    if (machine.vector_count == 0) {
        y = add_linear(s, &machine, 1);
    } else {
        if (machine.coefficient_count != machine.vector_count)
            inf_build_fail(&s->b, INF_INVALID, "%lld coefficients for %lld vectors",
                           (long long)machine.coefficient_count, (long long)machine.vector_count);
        uint32_t column =
            inf_build_reshape(&s->b, machine.coefficients, (int64_t[]){machine.vector_count, 1}, 2);
        y = inf_build_matmul(&s->b, add_kernel(s, &machine, machine.vectors), column);
        y = inf_build_binary_number(&s->b, INF_BINARY_ADD, y, (double)machine.rho[0]);
    }
    if (is_one_class) {
        uint32_t above = inf_build_compare(&s->b, INF_COMPARE_GREATER, y,
                                           inf_build_scalar(&s->b, INF_DTYPE_F32, 0));
        y = inf_build_select(&s->b, above, inf_build_scalar(&s->b, INF_DTYPE_F32, 1),
                             inf_build_scalar(&s->b, INF_DTYPE_F32, -1));
    }
    s->outputs[0] = y;
}

// --- operator SVMClassifier ---

// The number of classes and of their pairs, and which support vectors belong to each class: those
// of class i are the `counts[i]` vectors from index `starts[i]` on.
struct support {
    int64_t classes, pairs;
    int64_t counts[CLASSES_MAX], starts[CLASSES_MAX];
};

// Reads vectors_per_class. Returns the number of all vectors; 0 for a linear model.
static int64_t read_support(struct inf_onnx_scope *s, struct support *support, int64_t classes)
{
    uint32_t value = inf_onnx_attr_long_ints(s, "vectors_per_class");
    int64_t count = value != INF_VALUE_NONE ? inf_build_known_dim(&s->b, value, 0) : 0, total = 0;
    support->classes = classes;
    support->pairs = classes * (classes - 1) / 2;
    if (inf_build_ok(&s->b) &&
        (classes < 2 || classes > CLASSES_MAX || (count != 0 && count != classes)))
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "vectors_per_class is for %lld of %lld classes, wanted 2 to %d",
                       (long long)count, (long long)classes, CLASSES_MAX);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        int64_t own = ((const int64_t *)s->b.graph->values[value].data->data)[i];
        support->counts[i] = own;
        support->starts[i] = total;
        if (own < 0 || own > INF_LIMIT_DIM)
            inf_build_fail(&s->b, INF_INVALID, "class %lld has %lld vectors", (long long)i,
                           (long long)own);
        total += own;
    }
    return inf_build_ok(&s->b) ? total : 0;
}

// Adds a constant [vectors, pairs]: the coefficient of each support vector in the machine of each
// pair of classes, or 0 if the vector is of neither class. The attribute is a matrix
// [classes - 1, vectors]. For the pair of classes i < j, a vector of class i has its coefficient in
// row j - 1 of the matrix, and a vector of class j has its coefficient in row i.
static uint32_t add_coefficients(struct inf_onnx_scope *s, const struct machine *machine,
                                 const struct support *support)
{
    int64_t vectors = machine->vector_count, pair = 0;
    float *table;
    if (inf_build_ok(&s->b) && machine->coefficient_count != vectors * (support->classes - 1))
        inf_build_fail(&s->b, INF_INVALID, "%lld coefficients for %lld vectors of %lld classes",
                       (long long)machine->coefficient_count, (long long)vectors,
                       (long long)support->classes);
    uint32_t value =
        inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(vectors, support->pairs), &table);
    if (table == NULL)
        return value;
    const float *from = s->b.graph->values[machine->coefficients].data->data;
    for (int64_t i = 0; i < support->classes; i++)
        for (int64_t j = i + 1; j < support->classes; j++, pair++) {
            for (int64_t m = 0; m < support->counts[i]; m++) {
                int64_t v = support->starts[i] + m;
                table[v * support->pairs + pair] = from[(j - 1) * vectors + v];
            }
            for (int64_t m = 0; m < support->counts[j]; m++) {
                int64_t v = support->starts[j] + m;
                table[v * support->pairs + pair] = from[i * vectors + v];
            }
        }
    return value;
}

// Adds the votes [rows, classes]: each machine votes for the first class of its pair if its score
// is positive, else for the second.
static uint32_t add_votes(struct inf_onnx_scope *s, const struct support *support, uint32_t scores)
{
    float *table, *base;
    int64_t pair = 0, classes = support->classes;
    uint32_t gains =
        inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(support->pairs, classes), &table);
    uint32_t bases = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(classes), &base);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            table[pair * classes + i] = 1;
            table[pair * classes + j] = -1;
            base[j]++;
        }
    uint32_t wins = inf_build_compare(&s->b, INF_COMPARE_GREATER, scores,
                                      inf_build_scalar(&s->b, INF_DTYPE_F32, 0));
    wins = inf_build_cast(&s->b, wins, INF_DTYPE_F32);
    return inf_build_add(&s->b, inf_build_matmul(&s->b, wins, gains), bases);
}

// Adds the probabilities of the classes [rows, classes].
static uint32_t add_probabilities(struct inf_onnx_scope *s, const struct support *support,
                                  uint32_t scores)
{
    int64_t a_count, b_count, pair = 0, classes = support->classes;
    const float *a = read_floats(s, "prob_a", &a_count), *b = read_floats(s, "prob_b", &b_count);
    float *table, *base;
    if (inf_build_ok(&s->b) && (a_count != support->pairs || b_count != support->pairs))
        inf_build_fail(&s->b, INF_INVALID, "prob_a has %lld numbers and prob_b %lld, wanted %lld",
                       (long long)a_count, (long long)b_count, (long long)support->pairs);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t slopes = inf_build_floats(&s->b, a, (uint32_t)a_count);
    uint32_t shifts = inf_build_floats(&s->b, b, (uint32_t)b_count);
    uint32_t y = inf_build_add(&s->b, inf_build_mul(&s->b, scores, slopes), shifts);
    y = inf_build_unary(&s->b, INF_UNARY_SIGMOID, inf_build_unary(&s->b, INF_UNARY_NEG, y));
    y = inf_build_clip(&s->b, y, 1e-7, 1 - 1e-7);
    // Element (i, j) of the matrix of a row is the probability of i against j.
    uint32_t spread = inf_build_const(&s->b, INF_DTYPE_F32,
                                      &INF_SHAPE(support->pairs, classes * classes), &table);
    uint32_t rest = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(classes * classes), &base);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < classes; i++)
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            table[pair * classes * classes + i * classes + j] = 1;
            table[pair * classes * classes + j * classes + i] = -1;
            base[j * classes + i] = 1;
        }
    y = inf_build_add(&s->b, inf_build_matmul(&s->b, y, spread), rest);
    y = inf_build_reshape(&s->b, y, (int64_t[]){-1, classes, classes}, 3);
    struct inf_build_node node = inf_build_describe_list(INF_OP_PAIR_COUPLING, &y, 1);
    return inf_build_value(&s->b, &node);
}

static bool has_transform(struct inf_onnx_scope *s)
{
    return strcmp(inf_onnx_attr_text(s, "post_transform", "NONE"), "NONE") != 0;
}

// Sets the outputs of a classifier with support vectors.
static void choose_by_votes(struct inf_onnx_scope *s, const struct machine *machine,
                            const struct support *support, const struct inf_onnx_classes *classes)
{
    bool has_probabilities = inf_onnx_find_attr(s, "prob_a") != NULL;
    if (machine->rho_count != support->pairs)
        inf_build_fail(&s->b, INF_INVALID, "rho has %lld numbers, wanted %lld",
                       (long long)machine->rho_count, (long long)support->pairs);
    uint32_t coefficients = add_coefficients(s, machine, support);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t scores =
        inf_build_matmul(&s->b, add_kernel(s, machine, machine->vectors), coefficients);
    scores = inf_build_add(&s->b, scores,
                           inf_build_floats(&s->b, machine->rho, (uint32_t)machine->rho_count));
    inf_onnx_choose_label(s, classes, add_votes(s, support, scores));
    if (has_probabilities)
        scores = add_probabilities(s, support, scores);
    if (support->classes == 2 && !has_probabilities)
        scores = inf_onnx_pair_scores(s, scores, has_transform(s));
    else
        scores = inf_onnx_post_transform(s, scores);
    inf_onnx_set_scores(s, scores);
}

static void lower_classifier(struct inf_onnx_scope *s)
{
    struct machine machine = {0};
    struct support support;
    int64_t total = 0;
    struct inf_onnx_classes classes = {
        .labels = inf_onnx_attr_labels(s, "classlabels_ints", "classlabels_strings")};
    classes.count = inf_build_ok(&s->b) ? inf_build_known_dim(&s->b, classes.labels, 0) : 0;
    if (inf_build_ok(&s->b))
        total = read_support(s, &support, classes.count);
    if (inf_build_ok(&s->b))
        read_machine(s, &machine, total);
    if (!inf_build_ok(&s->b))
        return;
    if (total > 0)
        choose_by_votes(s, &machine, &support, &classes);
    else
        inf_onnx_choose_class(s, &classes, add_linear(s, &machine, classes.count));
}

static const struct inf_onnx_op ops[] = {
    {"ai.onnx.ml::SVMRegressor", lower_regressor, 1, 1, 1, 0},
    {"ai.onnx.ml::SVMClassifier", lower_classifier, 1, 1, 2, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_support = {ops, INF_ARRAY_LENGTH(ops)};
