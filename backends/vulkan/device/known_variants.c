// SPDX-License-Identifier: Apache-2.0
// A set of shader variants: a growing array of hashes, and its encoding in a cache file.
#include "backends/vulkan/device/known_variants.h"

#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/device/cache_file.h"

void vk_known_variants_fini(struct vk_known_variants *known)
{
    free(known->hashes);
    *known = (struct vk_known_variants){0};
}

static bool has_hash(const struct vk_known_variants *known, uint64_t hash)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (known->hashes[i] == hash)
            return true;
    return false;
}

bool vk_known_variants_has(const struct vk_known_variants *known, const struct vk_variant *variant)
{
    return has_hash(known, vk_cache_file_checksum(variant, sizeof(*variant)));
}

static bool reserve_hashes(struct vk_known_variants *known, uint32_t capacity)
{
    if (capacity <= known->capacity)
        return true;
    uint64_t *larger = reallocarray(known->hashes, capacity, sizeof(*larger));
    if (larger == NULL)
        return false;
    known->hashes = larger;
    known->capacity = capacity;
    return true;
}

void vk_known_variants_add(struct vk_known_variants *known, const struct vk_variant *variant)
{
    uint64_t hash = vk_cache_file_checksum(variant, sizeof(*variant));
    if (known->count == VK_KNOWN_VARIANTS_MAX || has_hash(known, hash) ||
        (known->count == known->capacity && !reserve_hashes(known, known->capacity * 2 + 64)))
        return;
    known->hashes[known->count++] = hash;
}

// --- the encoded set: the number of hashes, then the hashes ---

char *vk_known_variants_encode(const struct vk_known_variants *known, size_t room, size_t *out_size)
{
    uint64_t count = known->count;
    size_t size = (1 + count) * sizeof(count);
    char *bytes = malloc(size + room);
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, &count, sizeof(count));
    if (count > 0)
        memcpy(bytes + sizeof(count), known->hashes, count * sizeof(count));
    *out_size = size;
    return bytes;
}

size_t vk_known_variants_read(struct vk_known_variants *known, const void *bytes, size_t size)
{
    uint64_t count;
    if (size < sizeof(count))
        return 0;
    memcpy(&count, bytes, sizeof(count));
    if (count > VK_KNOWN_VARIANTS_MAX || size / sizeof(count) - 1 < count ||
        !reserve_hashes(known, (uint32_t)count))
        return 0;
    if (count > 0)
        memcpy(known->hashes, (const char *)bytes + sizeof(count), count * sizeof(count));
    known->count = (uint32_t)count;
    return (1 + count) * sizeof(count);
}
