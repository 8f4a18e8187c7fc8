// SPDX-License-Identifier: Apache-2.0
// Compares two tensors: the largest absolute and relative difference, the cosine, and whether the
// largest element is at the same position.
#include "client/inferctl/tensor/compare.h"

#include <math.h>

#include "client/inferctl/tensor/text.h"

// If the expected value is below this limit, it is treated as noise and the relative difference is
// not computed.
#define RELATIVE_LEAST 1e-6

static double measure_distance(double got, double wanted)
{
    if (got == wanted || (isnan(got) && isnan(wanted)))
        return 0;
    double difference = fabs(got - wanted);
    return isnan(difference) ? (double)INFINITY : difference;
}

// Sums over all pairs of finite elements, from which the cosine is computed: of the products got *
// wanted, of got squared, and of wanted squared.
struct products {
    double both, got, wanted;
};

static void add_products(struct products *products, double got, double wanted)
{
    if (!isfinite(got) || !isfinite(wanted))
        return;
    products->both += got * wanted;
    products->got += got * got;
    products->wanted += wanted * wanted;
}

static double cosine_of(const struct products *products)
{
    if (products->got == 0 || products->wanted == 0)
        return products->got == products->wanted ? 1 : 0;
    return products->both / (sqrt(products->got) * sqrt(products->wanted));
}

struct tensor_difference tensor_compare(const inferd_tensor *got, const inferd_tensor *wanted,
                                        double tolerance)
{
    struct tensor_difference difference = {.within = true};
    struct products products = {0};
    size_t count = tensor_count(wanted);
    for (size_t i = 0; i < count; i++) {
        double a = tensor_element(got, i), b = tensor_element(wanted, i);
        double apart = measure_distance(a, b);
        add_products(&products, a, b);
        difference.max_abs = fmax(difference.max_abs, apart);
        if (fabs(b) >= RELATIVE_LEAST && isfinite(b))
            difference.max_rel = fmax(difference.max_rel, apart / fabs(b));
        difference.within &= apart <= tolerance * (isfinite(b) ? fmax(1, fabs(b)) : 1);
    }
    size_t got_top, wanted_top;
    difference.same_top = tensor_top(got, 1, &got_top) == 0 ||
                          tensor_top(wanted, 1, &wanted_top) == 0 || got_top == wanted_top;
    difference.cosine = cosine_of(&products);
    return difference;
}
