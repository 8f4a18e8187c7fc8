// SPDX-License-Identifier: Apache-2.0
// Programs of the cpu device: the steps of a segment, once for each slot.
#ifndef INF_BACKENDS_CPU_PROGRAM_PROGRAM_H
#define INF_BACKENDS_CPU_PROGRAM_PROGRAM_H

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/thread_pools.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/choices.h"
#include "backends/device/device_impl.h"

struct inf_cpu_device {
    struct inf_device base;
    struct inf_cpu_pools pools;
    const struct inf_isa *isa; // at most what it was told
    bool dots;                 // inf_native_round_pays()
    struct inf_cpu_packs packs;
    struct inf_cpu_choices *choices; // NULL: rows and forms are chosen by rule
};

// The entries of struct inf_backend of the same names. Weights are packed when a program is compiled,
// so INF_COMPILE_ONLY changes nothing. Those that products of ours read are shared (pack.h); of
// XNNPACK's operators each slot has a copy.
enum inf_code inf_cpu_compile(struct inf_program **out_program, struct inf_device *device,
                              const struct inf_segment *segment, uint32_t flags,
                              struct inf_error *err) INF_NODISCARD;

// Compiles in steps as large as `most` allows, whatever won a race. For races.
enum inf_code inf_cpu_compile_form(struct inf_program **out_program, struct inf_cpu_device *device,
                                   const struct inf_segment *segment, enum inf_cpu_fusing most,
                                   struct inf_error *err) INF_NODISCARD;

// The rest of the entries of struct inf_backend.
void inf_cpu_program_destroy(struct inf_program *program);
enum inf_code inf_cpu_run(struct inf_program *program, const struct inf_run *run,
                          struct inf_ticket *ticket, struct inf_error *err) INF_NODISCARD;
struct inf_blob_form *inf_cpu_packed(const struct inf_program *program, uint32_t node,
                                     uint32_t input);
uint32_t inf_cpu_profile(const struct inf_program *program, uint32_t slot,
                         struct inf_step_profile *steps, uint32_t capacity);

// The threads of a slot of the segment's programs; NULL: the calling one. A pool is used as a whole or
// not at all.
pthreadpool_t inf_cpu_pool_of(const struct inf_cpu_device *device,
                              const struct inf_segment *segment, uint32_t slot);

#endif
