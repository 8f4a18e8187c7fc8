// SPDX-License-Identifier: Apache-2.0
// Which variants the pipeline cache on disk has: they come first in its file, so that a start can say how many
// pipelines it made that no earlier one had, whatever the driver tells.
#ifndef INF_BACKENDS_VULKAN_DEVICE_KNOWN_VARIANTS_H
#define INF_BACKENDS_VULKAN_DEVICE_KNOWN_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vk_variant;

// More than any device's models need.
#define VK_KNOWN_VARIANTS_MAX 65536u

// A set of variants' hashes. Embedded; all zero is empty.
struct vk_known_variants {
    uint64_t *hashes;
    uint32_t count, capacity;
};

// Frees it, and leaves it empty.
void vk_known_variants_fini(struct vk_known_variants *known);

// Whether the variant is in the set.
bool vk_known_variants_has(const struct vk_known_variants *known, const struct vk_variant *variant);

// Adds a variant. Without memory, or beyond VK_KNOWN_VARIANTS_MAX, it is forgotten.
void vk_known_variants_add(struct vk_known_variants *known, const struct vk_variant *variant);

// Bytes that the set takes in a file.
size_t vk_known_variants_bytes(const struct vk_known_variants *known);

// Writes them.
void vk_known_variants_write(const struct vk_known_variants *known, void *bytes);

// Reads the set from the start of `size` bytes of a file, and returns how many bytes that were; 0 where they
// make no sense.
size_t vk_known_variants_read(struct vk_known_variants *known, const void *bytes, size_t size);

#endif
