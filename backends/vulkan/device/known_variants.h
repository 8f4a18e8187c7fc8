// SPDX-License-Identifier: Apache-2.0
// A set of shader variants, which a cache file keeps for later starts. One set names the variants
// whose pipelines are in the pipeline cache file, where it precedes the driver's data. From it
// inferd knows which pipelines no earlier start has created, even if the driver does not say so.
// Another set names the variants that were checked (shader_checks.h), and has a file of its own.
#ifndef INF_BACKENDS_VULKAN_DEVICE_KNOWN_VARIANTS_H
#define INF_BACKENDS_VULKAN_DEVICE_KNOWN_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vk_variant;

// The largest number of variants in a set; more than the models of any device need.
#define VK_KNOWN_VARIANTS_MAX 65536u

// A set of variants, stored as hashes. Embedded in other structs. A zeroed struct is the empty set.
struct vk_known_variants {
    uint64_t *hashes;
    uint32_t count, capacity;
};

// Frees the hashes and empties the set.
void vk_known_variants_fini(struct vk_known_variants *known);

// Returns true if the variant is in the set.
bool vk_known_variants_has(const struct vk_known_variants *known, const struct vk_variant *variant);

// Adds a variant. Does nothing if memory is exhausted or the set has VK_KNOWN_VARIANTS_MAX members.
void vk_known_variants_add(struct vk_known_variants *known, const struct vk_variant *variant);

// Encodes the set in new memory: *out_size bytes, and `room` unused bytes after them. Returns NULL
// if memory is exhausted. The caller frees the memory.
char *vk_known_variants_encode(const struct vk_known_variants *known, size_t room,
                               size_t *out_size);

// Reads the set from the start of `size` bytes of a file. Returns the number of bytes read; 0 if
// they are not valid.
size_t vk_known_variants_read(struct vk_known_variants *known, const void *bytes, size_t size);

#endif
