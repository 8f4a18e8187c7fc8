// Products of matrices, added to sums. All invocations of a subgroup compute a product together: a
// matrix of M pixels by K values, times a matrix of K values by N channels. The factors are 16-bit
// floats, the sums 32-bit floats.
//
//   SUMS(count)               declares `sums`, an array of sums
//   CLEAR_SUM(i)              sets sum i to zeros
//   PIXEL_FACTOR              type of a first factor
//   CHANNEL_FACTOR            type of a second factor
//   LOAD_PIXELS(to, at)       loads a first factor from `from`; its first element is number `at`
//   LOAD_WEIGHTS(to, at)      the same for a second factor, from `weights`
//   ADD_PRODUCT(i, a, b)      adds the product of two factors to sum i
//   STORE_SUM(i, at)          writes sum i to `results`; its first element becomes number `at`
//
// All numbers `at` are multiples of eight. The shader defines before this file:
//   M, N, K           sizes of the matrices
//   SUBGROUP          invocations of a subgroup; divides M * N
//   from              array in shared memory: x, [value][pixel], with STRIDE numbers for a value
//   weights           array in shared memory, [value][channel], with CHANNELS_STRIDE numbers for a
//                     value
//   results           array in shared memory, [pixel][channel], with RESULTS_STRIDE numbers for a
//                     pixel
// The three strides are multiples of eight.
//
// A module built with MATRIX_NV uses the instructions of VK_NV_cooperative_matrix. khr_matrix.py
// converts it to a module with those of VK_KHR_cooperative_matrix. Without MATRIX_NV, loops compute
// the same on any device, slowly; only tests use this form. Each invocation then keeps OWN elements
// of each sum: if elements are counted row by row, invocation s has the elements s, s + SUBGROUP,
// s + 2 * SUBGROUP and so on.
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
// Returns which element of a sum, counted row by row, is element n of this invocation.
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

// Returns one element of a product. `pixel` and `channel` are the places of the first value of its
// row in `from` and of its column in `weights`.
float multiply_row(uint pixel, uint channel)
{
    float sum = 0.0;
    [[dont_unroll]] for (uint k = 0; k < K; k++)
        sum += float(from[pixel + k * STRIDE]) * float(weights[channel + k * CHANNELS_STRIDE]);
    return sum;
}
#endif
