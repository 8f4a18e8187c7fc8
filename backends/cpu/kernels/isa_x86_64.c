// SPDX-License-Identifier: Apache-2.0
// The ISA levels of x86-64: SSE2, AVX2, AVX-VNNI, AVX-512 with and without VNNI, BF16 and AMX.
#include "backends/cpu/kernels/isa.h"

#include <cpuid.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

// From Linux' asm/prctl.h and arch/x86/include/asm/fpu/types.h (since Linux 5.16).
#define REQUEST_STATE_PERMISSION 0x1023
#define STATE_TILE_DATA          18

// Bit of EAX of CPUID leaf 7, subleaf 1.
#define CPUID_AVX_VNNI (1u << 4)
// Bits of EDX of CPUID leaf 7.
#define CPUID_AMX_BF16 (1u << 22)
#define CPUID_AMX_TILE (1u << 24)
#define CPUID_AMX_INT8 (1u << 25)

// The functions below check one ISA level each with __builtin_cpu_supports(), which also checks
// that the operating system saves the vector registers of a thread.
static bool is_always_present(void)
{
    return true;
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_avx512_vnni(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vnni");
}

static bool has_avx512_bf16(void)
{
    return has_avx512_vnni() && __builtin_cpu_supports("avx512bf16");
}

// Linux saves tile registers only for a process that has asked for it. All threads of the process
// may use them then. The request is refused if the kernel is too old, if a sandbox forbids it, or
// if a thread has a signal stack that is too small for the registers.
static bool ask_for_tiles(void)
{
    const unsigned wanted = CPUID_AMX_TILE | CPUID_AMX_INT8 | CPUID_AMX_BF16;
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    return has_avx512_bf16() && __builtin_cpu_supports("avx512vbmi") &&
           __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & wanted) == wanted &&
           syscall(SYS_arch_prctl, REQUEST_STATE_PERMISSION, STATE_TILE_DATA) == 0;
}

// Returns true if the processor has AVX-VNNI: the dot products of VNNI in the encoding of AVX.
// Processors that have them in the encoding of AVX-512 may lack it.
static bool ask_for_avx_vnni(void)
{
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx;
    return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
           (eax & CPUID_AVX_VNNI) != 0;
}

enum answer {
    UNKNOWN,
    ABSENT,
    PRESENT
};

// Returns what `ask` returns. The answer never changes, and *known keeps it, because a CPUID takes
// 20 us and more on a virtual machine, and graphs are compiled with one question for each node.
static bool ask_once(atomic_int *known, bool (*ask)(void))
{
    int answer = atomic_load_explicit(known, memory_order_relaxed);
    if (answer == UNKNOWN) {
        answer = ask() ? PRESENT : ABSENT;
        atomic_store_explicit(known, answer, memory_order_relaxed);
    }
    return answer == PRESENT;
}

static bool has_avx_vnni(void)
{
    static atomic_int known = UNKNOWN;
    return ask_once(&known, ask_for_avx_vnni);
}

static bool has_amx(void)
{
    static atomic_int known = UNKNOWN;
    return ask_once(&known, ask_for_tiles);
}

static const struct inf_nn nn_baseline = {
    .gemm = &inf_nn_gemm_baseline,
    .gemm_half = &inf_nn_gemm_baseline,
    .depthwise = &inf_nn_depthwise_baseline,
    .depthwise_half = &inf_nn_depthwise_baseline,
    .blocks = &inf_nn_blocks_baseline,
    .blocks_half = &inf_nn_blocks_baseline,
    .winograd = &inf_winograd_baseline,
    .expand = &inf_nn_expand_baseline,
};
static const struct inf_nn nn_avx2 = {
    .gemm = &inf_nn_gemm_avx2,
    .gemm_half = &inf_nn_gemm_avx2,
    .depthwise = &inf_nn_depthwise_avx2,
    .depthwise_half = &inf_nn_depthwise_avx2,
    .blocks = &inf_nn_blocks_avx2,
    .blocks_half = &inf_nn_blocks_avx2,
    .winograd = &inf_winograd_avx2,
    .expand = &inf_nn_expand_avx2,
    .fast = true,
};
// The float loops that AVX-512 and all higher levels share.
#define NN_AVX512                                                                                  \
    .gemm = &inf_nn_gemm_avx512, .gemm_half = &inf_nn_gemm_avx512_half,                            \
    .depthwise = &inf_nn_depthwise_avx512, .depthwise_half = &inf_nn_depthwise_avx512_half,        \
    .gemm_bf16 = &inf_nn_gemm_avx512_bf16, .gemm_bf16_half = &inf_nn_gemm_avx512_bf16_half,        \
    .blocks = &inf_nn_blocks_avx512, .blocks_half = &inf_nn_blocks_avx512_half,                    \
    .winograd = &inf_winograd_avx512, .expand = &inf_nn_expand_avx512, .fast = true

static const struct inf_nn nn_avx512 = {NN_AVX512};
static const struct inf_nn nn_bf16 = {
    NN_AVX512,
    .gemm_dot = &inf_nn_gemm_avx512_dot,
    .gemm_dot_half = &inf_nn_gemm_avx512_dot_half,
};
static const struct inf_nn nn_amx = {
    NN_AVX512,
    .gemm_dot = &inf_nn_gemm_avx512_dot,
    .gemm_dot_half = &inf_nn_gemm_avx512_dot_half,
    .gemm_tile = &inf_nn_gemm_amx,
    .gemm_tile_half = &inf_nn_gemm_amx_half,
};

static const struct inf_q8 q8_baseline = {&inf_gemm_q8_baseline, &inf_eltwise_q8_baseline,
                                          &inf_depthwise_q8_baseline, &inf_depthwise_q8_baseline,
                                          &inf_lookup_q8_baseline};
static const struct inf_q8 q8_avx2 = {&inf_gemm_q8_avx2, &inf_eltwise_q8_avx2,
                                      &inf_depthwise_q8_avx2, &inf_depthwise_q8_avx2,
                                      &inf_lookup_q8_baseline};
static const struct inf_q8 q8_avx_vnni = {&inf_gemm_q8_avx_vnni,
                                          &inf_eltwise_q8_avx_vnni,
                                          &inf_depthwise_q8_avx_vnni,
                                          &inf_depthwise_q8_avx_vnni,
                                          &inf_lookup_q8_baseline,
                                          .digits = &inf_digits_q8_avx_vnni,
                                          .digits_half = &inf_digits_q8_avx_vnni};
static const struct inf_q8 q8_vnni = {&inf_gemm_q8_vnni,
                                      &inf_eltwise_q8_vnni,
                                      &inf_depthwise_q8_vnni,
                                      &inf_depthwise_q8_vnni_half,
                                      &inf_lookup_q8_baseline,
                                      .digits = &inf_digits_q8_vnni,
                                      .digits_half = &inf_digits_q8_vnni_half};
static const struct inf_q8 q8_amx = {&inf_gemm_q8_vnni,
                                     &inf_eltwise_q8_vnni,
                                     &inf_depthwise_q8_vnni,
                                     &inf_depthwise_q8_vnni_half,
                                     &inf_lookup_q8_vbmi,
                                     &inf_gemm_q8_amx,
                                     .digits = &inf_digits_q8_vnni,
                                     .digits_half = &inf_digits_q8_vnni_half};

// VNNI has instructions for integers only, so the VNNI levels use the float loops of AVX2 and
// AVX-512.
const struct inf_isa_row inf_isa_rows[] = {
    {{"baseline", "SSE2", &inf_simd_baseline, &inf_element_baseline, &inf_rnn_baseline,
      &inf_pick_baseline, &inf_norm_baseline, &nn_baseline, &q8_baseline},
     is_always_present},
    {{"avx2", "AVX2", &inf_simd_avx2, &inf_element_avx2, &inf_rnn_avx2, &inf_pick_avx2,
      &inf_norm_avx2, &nn_avx2, &q8_avx2},
     has_avx2},
    {{"avx_vnni", "AVX-VNNI", &inf_simd_avx2, &inf_element_avx2, &inf_rnn_avx2, &inf_pick_avx2,
      &inf_norm_avx2, &nn_avx2, &q8_avx_vnni},
     has_avx_vnni},
    {{"avx512", "AVX-512", &inf_simd_avx512, &inf_element_avx512, &inf_rnn_avx512, &inf_pick_avx512,
      &inf_norm_avx512, &nn_avx512, &q8_avx2},
     has_avx512},
    {{"avx512_vnni", "AVX-512 VNNI", &inf_simd_avx512, &inf_element_avx512, &inf_rnn_avx512,
      &inf_pick_avx512, &inf_norm_avx512, &nn_avx512, &q8_vnni},
     has_avx512_vnni},
    {{"avx512_bf16", "AVX-512 BF16", &inf_simd_avx512, &inf_element_avx512, &inf_rnn_avx512,
      &inf_pick_avx512, &inf_norm_avx512, &nn_bf16, &q8_vnni},
     has_avx512_bf16},
    {{"amx", "AVX-512 AMX", &inf_simd_avx512, &inf_element_avx512, &inf_rnn_avx512,
      &inf_pick_avx512, &inf_norm_avx512, &nn_amx, &q8_amx},
     has_amx},
    {.present = NULL},
};
