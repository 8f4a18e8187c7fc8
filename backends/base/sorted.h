// SPDX-License-Identifier: Apache-2.0
// Looks up numbers in ascending lists by binary search.
#ifndef INF_BACKENDS_BASE_SORTED_H
#define INF_BACKENDS_BASE_SORTED_H

#include <stdbool.h>
#include <stdint.h>

// Returns the index of the first element of `list` that is not less than `value`, and `count` if
// all elements are less. The list must be in ascending order.
uint32_t inf_sorted_find(const uint32_t *list, uint32_t count, uint32_t value);

// Returns true if the ascending list has an element that equals `value`.
bool inf_sorted_has(const uint32_t *list, uint32_t count, uint32_t value);

#endif
