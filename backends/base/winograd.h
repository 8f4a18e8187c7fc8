// SPDX-License-Identifier: Apache-2.0
// Matrices and points of Winograd's algorithm for 3x3 convolutions at stride 1 (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015).
//
// F(m) computes a tile of m x m results from side x side inputs, where side = m + 2. It takes
// side * side multiplications for each pair of an input and an output channel instead of 9 * m * m:
//
//     Y = A' [(G g G') * (B' d B)] A
//
// g holds the 3x3 weights, d the inputs. * multiplies element by element, and ' is the transpose.
//
// The algorithm is a product of polynomials: both factors are evaluated at side - 1 points and at
// infinity, the values are multiplied, and the product is interpolated. The points are 0, and p and
// -p for `pairs` different numbers p. The points determine the rounding error: if powers of the
// points are large or small, the transforms add large numbers of opposite signs.
#ifndef INF_BACKENDS_BASE_WINOGRAD_H
#define INF_BACKENDS_BASE_WINOGRAD_H

#define INF_WINOGRAD_PAIRS_MAX 3
#define INF_WINOGRAD_SIDE_MAX  (2 * INF_WINOGRAD_PAIRS_MAX + 2)

// A form F(m) of the algorithm, m = 2 * pairs.
struct inf_winograd_form {
    unsigned pairs;
    double points[INF_WINOGRAD_PAIRS_MAX]; // the p of each pair p and -p: positive and different
};

// Returns m: a tile has m x m results.
static inline unsigned inf_winograd_tile(const struct inf_winograd_form *form)
{
    return 2 * form->pairs;
}

// Returns `side`: a tile is computed from side x side inputs.
static inline unsigned inf_winograd_side(const struct inf_winograd_form *form)
{
    return 2 * form->pairs + 2;
}

// Sets the first `side` rows of g to the matrix G. Each row belongs to a point, in the order 0, p0,
// -p0, p1, ..., infinity, where p0 is form->points[0].
void inf_winograd_weight_matrix(const struct inf_winograd_form *form,
                                double g[INF_WINOGRAD_SIDE_MAX][3]);

// Expands the product of (x^2 - p^2) over all p in form->points except points[left_out]; if
// `left_out` is form->pairs, over all of them. Sets coefficients[k] to the coefficient of x^(2k).
// The coefficient of the highest power of x is 1 and is not stored.
void inf_winograd_multiply_pairs(const struct inf_winograd_form *form, unsigned left_out,
                                 double coefficients[INF_WINOGRAD_PAIRS_MAX]);

#endif
