// SPDX-License-Identifier: Apache-2.0
// Tells the processor that the thread is in a spin loop.
#ifndef INF_BACKENDS_CPU_KERNELS_PAUSE_H
#define INF_BACKENDS_CPU_KERNELS_PAUSE_H

static inline void inf_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
