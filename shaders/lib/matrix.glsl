// Sums of products of matrices, each computed by a subgroup together: M pixels by K values of k, by
// K values by N channels.
//
// SUMS declares `sums`, of 32-bit floats. The factors are of 16-bit floats: LOAD_PIXELS loads one
// from number `at` of `from` on, and LOAD_WEIGHTS one from number `at` of `weights` on. ADD_PRODUCT
// adds a product to sum `i`. STORE_SUM writes sum `i` to `results`, from number `at` on. All `at`,
// and the distances of rows, are multiples of eight.
//
// A module built with MATRIX_NV uses the instructions of VK_NV_cooperative_matrix, and
// khr_matrix.py makes a module with those of VK_KHR_cooperative_matrix from it. Otherwise loops
// compute the same on any device, slowly: for tests. Each invocation then has OWN numbers of a sum:
// those whose place in the matrix, divided by the size of the subgroup, leaves its own number.
#ifdef MATRIX_NV
#define SUM                  fcoopmatNV<32, gl_ScopeSubgroup, M, N>
#define SUMS(count)          SUM sums[count]
#define CLEAR_SUM(i)         sums[i] = SUM(0.0)
#define PIXEL_FACTOR         fcoopmatNV<16, gl_ScopeSubgroup, M, K>
#define CHANNEL_FACTOR       fcoopmatNV<16, gl_ScopeSubgroup, K, N>
#define LOAD_PIXELS(to, at)  coopMatLoadNV(to, from, at, STRIDE, true)
#define LOAD_WEIGHTS(to, at) coopMatLoadNV(to, weights, at, CHANNELS_STRIDE, false)
#define ADD_PRODUCT(i, pixels, channels) sums[i] = coopMatMulAddNV(pixels, channels, sums[i])
#define STORE_SUM(i, at)     coopMatStoreNV(sums[i], results, at, RESULTS_STRIDE, false)
#else
#define OWN                  (M * N / SUBGROUP)
#define SUMS(count)          float sums[(count) * OWN]
#define PIXEL_FACTOR         uint
#define CHANNEL_FACTOR       uint
#define LOAD_PIXELS(to, at)  to = at
#define LOAD_WEIGHTS(to, at) to = at
// The place in the matrix of number n of this invocation.
#define PLACE(n)             ((n) * SUBGROUP + gl_SubgroupInvocationID)
#define CLEAR_SUM(i)                                                                              \
    [[dont_unroll]] for (uint n = 0; n < OWN; n++)                                                \
        sums[(i) * OWN + n] = 0.0;
#define ADD_PRODUCT(i, pixels, channels)                                                          \
    [[dont_unroll]] for (uint n = 0; n < OWN; n++)                                                \
        sums[(i) * OWN + n] += multiply_row(pixels + PLACE(n) / N, channels + PLACE(n) % N);
#define STORE_SUM(i, at)                                                                          \
    [[dont_unroll]] for (uint n = 0; n < OWN; n++)                                                \
        results[at + PLACE(n) / N * RESULTS_STRIDE + PLACE(n) % N] = sums[(i) * OWN + n];

// Returns one number of the product of two factors: that of the pixel and the channel whose first
// values are at these places.
float multiply_row(uint pixel, uint channel)
{
    float sum = 0.0;
    [[dont_unroll]] for (uint k = 0; k < K; k++)
        sum += float(from[pixel + k * STRIDE]) * float(weights[channel + k * CHANNELS_STRIDE]);
    return sum;
}
#endif
