// SPDX-License-Identifier: Apache-2.0
// Binary search in ascending lists of numbers. The plan, the cpu device and the Vulkan device ask
// for each node of a graph whether it is in a list of nodes, so a linear search would take
// quadratic time.
#include "backends/base/sorted.h"

uint32_t inf_sorted_find(const uint32_t *list, uint32_t count, uint32_t value)
{
    uint32_t begin = 0, end = count;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        if (list[middle] < value)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

bool inf_sorted_has(const uint32_t *list, uint32_t count, uint32_t value)
{
    uint32_t index = inf_sorted_find(list, count, value);
    return index < count && list[index] == value;
}
