// SPDX-License-Identifier: Apache-2.0
// Which shader variants of a GPU were checked. In a check, a variant computes from random numbers,
// and its results are compared with those of the reference device (program/shader_check.h).
#ifndef INF_BACKENDS_VULKAN_DEVICE_SHADER_CHECKS_H
#define INF_BACKENDS_VULKAN_DEVICE_SHADER_CHECKS_H

#include <stdbool.h>

#include "backends/base/clock.h"
#include "backends/base/role.h"
#include "backends/base/thread.h"
#include "backends/vulkan/device/known_variants.h"

struct inf_evaluator;
struct vk_gpu;

// The largest error of a checked result, relative to that result plus the mean of all results of
// the node. Shaders that compute correctly stay far below it.
#define VK_CHECK_ERROR_MAX 1e-3
// If weights and tensors are rounded to 16 bits, the error may be this many times as large.
#define VK_CHECK_HALF_FACTOR 40
// When the checks for one program have taken this time, no further check begins. The remaining
// variants are used, and are checked when the next program with them is compiled.
#define VK_CHECK_NS_MAX (1000 * INF_NS_PER_MS)

// Embedded in the GPU.
struct vk_shader_checks {
    const struct inf_evaluator *oracle; // the reference device; NULL: nothing is checked
    double error_max;                   // usually VK_CHECK_ERROR_MAX
    uint64_t time_max_ns;               // usually VK_CHECK_NS_MAX

    struct inf_mutex mutex; // guards the following members
    // Variants that computed correctly, in this process or in an earlier one.
    struct vk_known_variants right;
    // Variants that cannot be checked, because no sample (program/check_sample.h) is small enough
    // and has the variant. They are used, and not tried again before the next start.
    struct vk_known_variants unchecked;
    bool changed; // true: variants were added to `right` since the cache file was written
};

// Reads which variants earlier starts checked with this driver. If `oracle` is NULL, nothing is
// read, and no variant needs a check.
void vk_shader_checks_init(struct vk_gpu *gpu, const struct inf_evaluator *oracle) INF_MAY_BLOCK;

void vk_shader_checks_fini(struct vk_shader_checks *checks);

// Returns true if the variant must be checked before it is used. Any thread.
bool vk_shader_checks_needs(struct vk_shader_checks *checks, const struct vk_variant *variant);

// Records that the variant computed correctly. Any thread.
void vk_shader_checks_note_right(struct vk_shader_checks *checks, const struct vk_variant *variant);

// Records that the variant cannot be checked. Any thread.
void vk_shader_checks_note_unchecked(struct vk_shader_checks *checks,
                                     const struct vk_variant *variant);

// Writes the cache file if variants were added since it was last read or written. Any thread.
void vk_shader_checks_store(struct vk_gpu *gpu) INF_MAY_BLOCK;

#endif
