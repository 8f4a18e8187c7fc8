// SPDX-License-Identifier: Apache-2.0
// Finds the ISA levels that this processor has.
#include "backends/cpu/kernels/isa.h"

#include <string.h>

const struct inf_isa *inf_isa_level(unsigned level)
{
    for (unsigned i = 0; i <= level; i++) {
        if (inf_isa_rows[i].present == NULL || !inf_isa_rows[i].present())
            return NULL;
    }
    return &inf_isa_rows[level].isa;
}

const struct inf_isa *inf_isa_best(void)
{
    unsigned level = 0;
    while (inf_isa_level(level + 1) != NULL)
        level++;
    return inf_isa_level(level);
}

const struct inf_isa *inf_isa_at_most(const char *name)
{
    if (name == NULL || *name == '\0' || strcmp(name, "auto") == 0)
        return inf_isa_best();
    for (unsigned i = 0; inf_isa_rows[i].present != NULL; i++) {
        if (strcmp(inf_isa_rows[i].isa.name, name) == 0) {
            const struct inf_isa *isa = inf_isa_level(i);
            return isa != NULL ? isa : inf_isa_best();
        }
    }
    return NULL;
}
