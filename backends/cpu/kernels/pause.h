// SPDX-License-Identifier: Apache-2.0
// What a thread does between two looks at something that another one will soon change.
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
