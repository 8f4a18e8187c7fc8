// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: each number depends only on the seed and on its index, so that no
// state is kept. The generator is Steele, Lea and Flood's SplitMix64.
#include <math.h>
#include <unistd.h>

#include "backends/ref/kernels.h"

#define TURN 6.283185307179586

// Maximum draws for one truncated normal element. The probability that so many draws are all out of
// range is 10^-42.
#define DRAWS_MAX 32

static uint64_t draw_bits(uint64_t seed, uint64_t place)
{
    uint64_t bits = seed + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

// Makes a normal number from two draws (Box and Muller).
static double draw_normal(uint64_t seed, uint64_t place)
{
    double radius = ((double)(draw_bits(seed, place) >> 11) + 1) / 9007199254740992.0;
    double angle = (double)(draw_bits(seed, place + 1) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(radius)) * cos(TURN * angle);
}

static double draw_element(enum inf_random_kind kind, uint64_t seed, uint64_t index)
{
    uint64_t place = index * 2 * DRAWS_MAX;
    // Uses only as many bits as the mantissa of a float has, so that rounding never gives 1.
    if (kind == INF_RANDOM_UNIFORM)
        return (double)(draw_bits(seed, place) >> 40) / 16777216.0;
    double value = draw_normal(seed, place);
    if (kind == INF_RANDOM_NORMAL)
        return value;
    for (uint64_t i = 1; fabs(value) > 2 && i < DRAWS_MAX; i++)
        value = draw_normal(seed, place + 2 * i);
    return fabs(value) > 2 ? 0 : value;
}

enum inf_code inf_ref_random(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_random *attrs = &call->node->attrs.random;
    uint64_t seed = (uint64_t)(int64_t)attrs->seed;
    if (attrs->seed == 0 && getentropy(&seed, sizeof seed) != 0)
        return inf_fail(err, INF_UNAVAILABLE, "the system gives no random numbers");
    for (size_t i = 0; i < call->outputs[0].count; i++)
        inf_ref_put(&call->outputs[0], i, draw_element(attrs->kind, seed, i));
    return INF_OK;
}
