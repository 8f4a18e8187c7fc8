// SPDX-License-Identifier: Apache-2.0
// Tables of names, indexed by enum value, as they appear in settings and messages.
#ifndef INF_BACKENDS_BASE_NAME_H
#define INF_BACKENDS_BASE_NAME_H

#include <stddef.h>

// Returns the index of `text` among `count` names; `count` if it is not one of them.
size_t inf_name_find(const char *const *names, size_t count, const char *text);

#endif
