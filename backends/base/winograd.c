// SPDX-License-Identifier: Apache-2.0
// Computes the numbers of Winograd's algorithm from its points: the matrix G, and the coefficients
// of polynomials that the transforms of inputs need. B' and A' are not computed, because a
// transform takes sums and differences for the points p and -p (backends/cpu/kernels/winograd.c).
#include "backends/base/winograd.h"

void inf_winograd_multiply_pairs(const struct inf_winograd_form *form, unsigned left_out,
                                 double coefficients[INF_WINOGRAD_PAIRS_MAX])
{
    double product[INF_WINOGRAD_PAIRS_MAX + 1] = {1};
    unsigned degree = 0;
    for (unsigned i = 0; i < form->pairs; i++) {
        if (i == left_out)
            continue;
        product[++degree] = 0;
        for (unsigned k = degree; k > 0; k--)
            product[k] = product[k - 1] - product[k] * form->points[i] * form->points[i];
        product[0] *= -form->points[i] * form->points[i];
    }
    for (unsigned k = 0; k < degree; k++)
        coefficients[k] = product[k];
}

// Returns the point that row `index` of G belongs to. `index` is not the last row, whose point is
// infinity.
static double point_at(const struct inf_winograd_form *form, unsigned index)
{
    if (index == 0)
        return 0;
    double point = form->points[(index - 1) / 2];
    return index % 2 == 1 ? point : -point;
}

void inf_winograd_weight_matrix(const struct inf_winograd_form *form,
                                double g[INF_WINOGRAD_SIDE_MAX][3])
{
    unsigned finite = inf_winograd_side(form) - 1;
    for (unsigned row = 0; row < finite; row++) {
        double point = point_at(form, row);
        double divisor = 1;
        for (unsigned other = 0; other < finite; other++)
            if (other != row)
                divisor *= point - point_at(form, other);
        g[row][0] = 1 / divisor;
        g[row][1] = point / divisor;
        g[row][2] = point * point / divisor;
    }
    g[finite][0] = 0;
    g[finite][1] = 0;
    g[finite][2] = 1;
}
