// SPDX-License-Identifier: Apache-2.0
// pair_coupling: the probabilities of classes from those of their pairs, by the second method of
// Wu, Lin and Weng ("Probability estimates for multi-class classification by pairwise coupling",
// 2004), as LIBSVM and ONNX Runtime compute it. It minimises p'Qp, where p sums to 1 and
//
//   Q[i][i] = sum over j of x[j][i]^2     Q[i][j] = -x[j][i] * x[i][j]
//
// by changing one element of p after the other. The steps and the test at which they end are part
// of the definition, because scores of models were computed with them.
#include <math.h>

#include "backends/ref/kernels.h"

#define SWEEPS_MAX 100

// One matrix of probabilities of pairs.
struct pairs {
    const struct inf_ref_tensor *x;
    size_t at; // index of its first element
    size_t classes;
};

static double read_pair(const struct pairs *pairs, size_t i, size_t j)
{
    return inf_ref_get(pairs->x, pairs->at + i * pairs->classes + j);
}

// Returns Q[i][j].
static double weigh_pair(const struct pairs *pairs, size_t i, size_t j)
{
    double sum = 0;
    if (i != j)
        return -read_pair(pairs, j, i) * read_pair(pairs, i, j);
    for (size_t other = 0; other < pairs->classes; other++)
        if (other != i)
            sum += read_pair(pairs, other, i) * read_pair(pairs, other, i);
    return sum;
}

// Sets products[i] to (Qp)[i]. Returns p'Qp.
static double multiply_pairs(const struct pairs *pairs, const double *p, double *products)
{
    double total = 0;
    for (size_t i = 0; i < pairs->classes; i++) {
        products[i] = 0;
        for (size_t j = 0; j < pairs->classes; j++)
            products[i] += weigh_pair(pairs, i, j) * p[j];
        total += p[i] * products[i];
    }
    return total;
}

// Changes each element of p in turn.
static void sweep_pairs(const struct pairs *pairs, double *p, double *products, double total)
{
    for (size_t i = 0; i < pairs->classes; i++) {
        double own = weigh_pair(pairs, i, i);
        double step = (total - products[i]) / own;
        p[i] += step;
        total = (total + step * (step * own + 2 * products[i])) / (1 + step) / (1 + step);
        for (size_t j = 0; j < pairs->classes; j++) {
            products[j] = (products[j] + step * weigh_pair(pairs, i, j)) / (1 + step);
            p[j] /= 1 + step;
        }
    }
}

enum inf_code inf_ref_pair_coupling(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    double p[INF_LIMIT_COUPLED_CLASSES], products[INF_LIMIT_COUPLED_CLASSES];
    struct pairs pairs = {.x = x, .classes = (size_t)y->shape->dims[y->shape->rank - 1]};
    double enough = 0.005 / (double)pairs.classes;
    for (size_t row = 0; pairs.classes > 0 && row < y->count / pairs.classes; row++) {
        pairs.at = row * pairs.classes * pairs.classes;
        for (size_t i = 0; i < pairs.classes; i++)
            p[i] = 1 / (double)pairs.classes;
        for (int count = 0; count < SWEEPS_MAX; count++) {
            INF_TRY(inf_ref_check_cancelled(call, err));
            double total = multiply_pairs(&pairs, p, products), error = 0;
            for (size_t i = 0; i < pairs.classes; i++)
                error = fmax(error, fabs(products[i] - total));
            if (error < enough)
                break;
            sweep_pairs(&pairs, p, products, total);
        }
        for (size_t i = 0; i < pairs.classes; i++)
            inf_ref_put(y, row * pairs.classes + i, p[i]);
    }
    return INF_OK;
}
