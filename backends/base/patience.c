// SPDX-License-Identifier: Apache-2.0
#include "backends/base/patience.h"

#include <sched.h>

void inf_patience_init(struct inf_patience *patience, uint32_t cores)
{
    *patience = (struct inf_patience){.possible = cores > 1};
}

bool inf_patience_pays(const struct inf_patience *patience)
{
    return patience->possible && patience->lately;
}

void inf_patience_note(struct inf_patience *patience, uint64_t waited_ns)
{
    patience->lately = waited_ns <= INF_PATIENCE_NS;
}

void inf_patience_breathe(void)
{
    sched_yield();
}
