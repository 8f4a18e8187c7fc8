// SPDX-License-Identifier: Apache-2.0
// Compiler attributes under names of our own. One of the two headers that may hold #if.
#ifndef INF_PROTO_CORE_ATTRIBUTES_H
#define INF_PROTO_CORE_ATTRIBUTES_H

#define INF_NODISCARD __attribute__((warn_unused_result))
#define INF_PRINTF(format_index, first_index)                                                      \
    __attribute__((format(printf, format_index, first_index)))

// Runs `destructor(&variable)` when the variable leaves its scope. Destructors take T **, accept
// NULL and set NULL, so any of them fits.
#define INF_CLEANUP(destructor) __attribute__((cleanup(destructor)))

#define INF_ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define INF_MIN(a, b)           ((a) < (b) ? (a) : (b))
#define INF_MAX(a, b)           ((a) > (b) ? (a) : (b))

// Thread-safety annotations: checked by clang -Wthread-safety, nothing to other compilers.
#if defined(__clang__)
#define INF_ATTR(x) __attribute__((x))
#else
#define INF_ATTR(x)
#endif

#endif
