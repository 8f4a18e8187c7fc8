// SPDX-License-Identifier: Apache-2.0
// Finds the name with the smallest edit distance (Damerau-Levenshtein), for "did you mean"
// messages.
#include "client/inferctl/cli/nearest.h"

#include <string.h>

#define NAME_MAX_BYTES 64

static size_t find_minimum(size_t a, size_t b)
{
    return a < b ? a : b;
}

// Returns the edit distance: the number of insertions, deletions, replacements and exchanges of
// neighbouring letters that turn `a` into `b`. Only three rows of the matrix are kept.
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = rows[i % 3];
        const size_t *before = rows[(i + 2) % 3];
        const size_t *long_before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = before[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = find_minimum(change, find_minimum(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = find_minimum(now[j], long_before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

struct nearest nearest_start(const char *name)
{
    size_t allowed = strlen(name) / 3;
    return (struct nearest){.name = name, .distance = (allowed > 2 ? allowed : 2) + 1};
}

void nearest_consider(struct nearest *nearest, const char *known)
{
    size_t length = strlen(nearest->name);
    size_t known_length = strlen(known);
    // A name of one letter is never similar, because one edit replaces the whole name.
    if (length < 2 || length > NAME_MAX_BYTES || known_length > NAME_MAX_BYTES)
        return;
    size_t distance = edit_distance(nearest->name, length, known, known_length);
    if (distance < nearest->distance && distance < length) {
        nearest->distance = distance;
        nearest->found = known;
    }
}
