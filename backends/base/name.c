// SPDX-License-Identifier: Apache-2.0
// Finds a string in a table of names.
#include "backends/base/name.h"

#include <string.h>

size_t inf_name_find(const char *const *names, size_t count, const char *text)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], text) != 0)
        i++;
    return i;
}
