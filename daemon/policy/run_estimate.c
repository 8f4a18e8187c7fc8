// SPDX-License-Identifier: Apache-2.0
// A set-associative cache of running means, keyed by model and shapes. In a full set, the entry
// that was least recently used is replaced. If two models have the same key, they share an
// estimate, which is then less exact.
#include "daemon/policy/run_estimate.h"

// Weight of a run in its running mean, as a shift: 1/8. A few runs change the mean, and a single
// outlier hardly does.
#define MEAN_SHIFT 3

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

uint64_t inf_estimate_key(const void *model, const struct inf_shape *shapes, uint32_t count)
{
    uint64_t hash = mix_hash(0, (uintptr_t)model);
    for (uint32_t i = 0; i < count; i++) {
        hash = mix_hash(hash, (uint64_t)shapes[i].rank);
        for (int32_t d = 0; d < shapes[i].rank; d++)
            hash = mix_hash(hash, (uint64_t)shapes[i].dims[d]);
    }
    return hash | 1;
}

static uint32_t find_set(uint64_t key)
{
    return (uint32_t)(key >> 32) % INF_ESTIMATE_SETS;
}

struct inf_estimate inf_estimates_find(struct inf_estimates *estimates, uint64_t key)
{
    for (int i = 0; i < INF_ESTIMATE_WAYS; i++) {
        if (estimates->entries[find_set(key)][i].key != key)
            continue;
        estimates->entries[find_set(key)][i].used_at = ++estimates->clock;
        return estimates->entries[find_set(key)][i].mean;
    }
    return (struct inf_estimate){0};
}

static uint64_t move_mean(uint64_t mean, uint64_t value)
{
    return value >= mean ? mean + ((value - mean) >> MEAN_SHIFT)
                         : mean - ((mean - value) >> MEAN_SHIFT);
}

void inf_estimates_note(struct inf_estimates *estimates, uint64_t key,
                        const struct inf_estimate *took)
{
    uint32_t set = find_set(key);
    uint32_t way = 0;
    for (uint32_t i = 0; i < INF_ESTIMATE_WAYS; i++) {
        if (estimates->entries[set][i].key == key) {
            struct inf_estimate *mean = &estimates->entries[set][i].mean;
            mean->run_ns = move_mean(mean->run_ns, took->run_ns);
            mean->share_ns = move_mean(mean->share_ns, took->share_ns);
            return;
        }
        if (estimates->entries[set][i].used_at < estimates->entries[set][way].used_at)
            way = i;
    }
    estimates->entries[set][way].key = key;
    estimates->entries[set][way].used_at = ++estimates->clock;
    estimates->entries[set][way].mean = *took;
}
