// SPDX-License-Identifier: Apache-2.0
// A directory of plans of a bounded size. If it is full, the plans that were not used for the
// longest time are deleted. No function fails for the caller: a plan that is missing is made again.
#ifndef INF_BACKENDS_SAVED_PLAN_CACHE_H
#define INF_BACKENDS_SAVED_PLAN_CACHE_H

#include "backends/base/log.h"
#include "backends/saved/plan_file.h"

struct inf_plan_cache;

// Creates a cache in `directory`; NULL, or `bytes_max` 0: nothing is kept. `build` is the version
// and build of inferd. The cache copies both texts; the log outlives it. The caller destroys
// *out_cache.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_plan_cache_create(struct inf_plan_cache **out_cache, const char *directory,
                                    uint64_t bytes_max, const char *build,
                                    const struct inf_log *log, struct inf_error *err) INF_NODISCARD;

// Frees the cache; the files stay. NULL is allowed.
void inf_plan_cache_destroy(struct inf_plan_cache **cache);

// Returns true if plans are kept.
bool inf_plan_cache_is_open(const struct inf_plan_cache *cache);

// Finds the plan with this key. Returns false if there is none that can be used; a damaged one is
// logged. The caller frees the contents of *plan with inf_saved_plan_fini(). Any thread.
bool inf_plan_cache_find(struct inf_plan_cache *cache, uint64_t key,
                         struct inf_saved_plan *plan) INF_NODISCARD INF_MAY_BLOCK;

// Keeps a plan, as inf_plan_file_write() writes it. A failure is logged. Only one thread at a time.
void inf_plan_cache_keep(struct inf_plan_cache *cache, uint64_t key,
                         const struct inf_saved_plan *plan) INF_MAY_BLOCK;

#endif
