// SPDX-License-Identifier: Apache-2.0
// Enumerators as people write them: a table of names, by value.
#ifndef INF_BACKENDS_BASE_NAME_H
#define INF_BACKENDS_BASE_NAME_H

#include <stddef.h>

// The index of `text` among `count` names; `count` where it is none of them.
size_t inf_name_find(const char *const *names, size_t count, const char *text);

#endif
