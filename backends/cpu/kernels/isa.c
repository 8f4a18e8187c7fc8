// SPDX-License-Identifier: Apache-2.0
// Finds the ISA levels that this processor has.
#include "backends/cpu/kernels/isa.h"

#include <string.h>

const struct inf_isa *inf_isa_level_of(const struct inf_isa_row *rows, unsigned level)
{
    for (const struct inf_isa_row *row = rows; row->present != NULL; row++) {
        if (row->present() && level-- == 0)
            return &row->isa;
    }
    return NULL;
}

// Returns the best level that is present in the rows up to and including `last`; in all rows if
// `last` is NULL.
static const struct inf_isa *find_best(const struct inf_isa_row *rows,
                                       const struct inf_isa_row *last)
{
    const struct inf_isa *best = NULL;
    for (const struct inf_isa_row *row = rows; row->present != NULL; row++) {
        if (row->present())
            best = &row->isa;
        if (row == last)
            break;
    }
    return best;
}

const struct inf_isa *inf_isa_at_most_of(const struct inf_isa_row *rows, const char *name)
{
    if (name == NULL || *name == '\0' || strcmp(name, "auto") == 0)
        return find_best(rows, NULL);
    for (const struct inf_isa_row *row = rows; row->present != NULL; row++) {
        if (strcmp(row->isa.name, name) == 0)
            return find_best(rows, row);
    }
    return NULL;
}

const struct inf_isa *inf_isa_level(unsigned level)
{
    return inf_isa_level_of(inf_isa_rows, level);
}

const struct inf_isa *inf_isa_best(void)
{
    return find_best(inf_isa_rows, NULL);
}

const struct inf_isa *inf_isa_at_most(const char *name)
{
    return inf_isa_at_most_of(inf_isa_rows, name);
}
