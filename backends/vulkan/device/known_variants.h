// SPDX-License-Identifier: Apache-2.0
// The variants that the pipeline cache file has. They precede the driver's data in the file, so
// that a start can count the pipelines that no earlier start has created, even if the driver does
// not report it.
#ifndef INF_BACKENDS_VULKAN_DEVICE_KNOWN_VARIANTS_H
#define INF_BACKENDS_VULKAN_DEVICE_KNOWN_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vk_variant;

// More variants than the models of any device need.
#define VK_KNOWN_VARIANTS_MAX 65536u

// A set of hashes of variants. Embedded; all zero is empty.
struct vk_known_variants {
    uint64_t *hashes;
    uint32_t count, capacity;
};

// Frees the hashes and empties the set.
void vk_known_variants_fini(struct vk_known_variants *known);

// Returns true if the variant is in the set.
bool vk_known_variants_has(const struct vk_known_variants *known, const struct vk_variant *variant);

// Adds a variant. It is dropped if memory is exhausted or the set has VK_KNOWN_VARIANTS_MAX
// members.
void vk_known_variants_add(struct vk_known_variants *known, const struct vk_variant *variant);

// Returns how many bytes the set takes in a file.
size_t vk_known_variants_bytes(const struct vk_known_variants *known);

// Writes these bytes.
void vk_known_variants_write(const struct vk_known_variants *known, void *bytes);

// Reads the set from the start of `size` bytes of a file. Returns how many bytes it took; 0 if they
// are not valid.
size_t vk_known_variants_read(struct vk_known_variants *known, const void *bytes, size_t size);

#endif
