// Sums of products of matrices of MATRIX_SIDE * MATRIX_SIDE numbers, each computed by a subgroup
// together.
//
// SUMS declares `sums`, of 32-bit floats. A FACTOR is of 16-bit floats: LOAD_PIXELS loads pixels by
// values of k, from number `at` of `from` on; LOAD_WEIGHTS loads values of k by channels, from
// number `at` of `weights` on. ADD_PRODUCT adds a product to sum `i`. STORE_SUM writes sum `i` to
// `results`, from number `at` on. All `at`, and the distances of rows, are multiples of eight.
//
// A module built with MATRIX_NV uses the instructions of VK_NV_cooperative_matrix. Otherwise loops
// compute the same on any device, slowly: for tests. Each invocation then has OWN numbers of a sum:
// those whose place in the matrix, divided by the size of the subgroup, leaves its own number.
#ifdef MATRIX_NV
#define SUM                  fcoopmatNV<32, gl_ScopeSubgroup, MATRIX_SIDE, MATRIX_SIDE>
#define SUMS(count)          SUM sums[count]
#define CLEAR_SUM(i)         sums[i] = SUM(0.0)
#define FACTOR               fcoopmatNV<16, gl_ScopeSubgroup, MATRIX_SIDE, MATRIX_SIDE>
#define LOAD_PIXELS(to, at)  coopMatLoadNV(to, from, at, STRIDE, true)
#define LOAD_WEIGHTS(to, at) coopMatLoadNV(to, weights, at, CHANNELS_STRIDE, false)
#define ADD_PRODUCT(i, pixels, channels) sums[i] = coopMatMulAddNV(pixels, channels, sums[i])
#define STORE_SUM(i, at)     coopMatStoreNV(sums[i], results, at, RESULTS_STRIDE, false)
#else
#define OWN                  (MATRIX_SIDE * MATRIX_SIDE / SUBGROUP)
#define SUMS(count)          float sums[(count) * OWN]
#define FACTOR               uint
#define LOAD_PIXELS(to, at)  to = at
#define LOAD_WEIGHTS(to, at) to = at
// The place in the matrix of number n of this invocation.
#define PLACE(n)             ((n) * SUBGROUP + gl_SubgroupInvocationID)
#define CLEAR_SUM(i)                                                                              \
    [[dont_unroll]] for (uint n = 0; n < OWN; n++)                                                \
        sums[(i) * OWN + n] = 0.0;
#define ADD_PRODUCT(i, pixels, channels)                                                          \
    [[dont_unroll]] for (uint n = 0; n < OWN; n++)                                                \
        sums[(i) * OWN + n] += multiply_row(pixels + PLACE(n) / MATRIX_SIDE,                      \
                                            channels + PLACE(n) % MATRIX_SIDE);
#define STORE_SUM(i, at)                                                                          \
    [[dont_unroll]] for (uint n = 0; n < OWN; n++)                                                \
        results[at + PLACE(n) / MATRIX_SIDE * RESULTS_STRIDE + PLACE(n) % MATRIX_SIDE] =          \
            sums[(i) * OWN + n];

// Returns one number of the product of two factors: that of the pixel and the channel whose first
// values are at these places.
float multiply_row(uint pixel, uint channel)
{
    float sum = 0.0;
    [[dont_unroll]] for (uint k = 0; k < MATRIX_SIDE; k++)
        sum += float(from[pixel + k * STRIDE]) * float(weights[channel + k * CHANNELS_STRIDE]);
    return sum;
}
#endif
