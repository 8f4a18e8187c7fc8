// SPDX-License-Identifier: Apache-2.0
// Compiler attributes under the project's own names. Only this header and one other may contain
// #if.
#ifndef INF_PROTO_CORE_ATTRIBUTES_H
#define INF_PROTO_CORE_ATTRIBUTES_H

#define INF_NODISCARD __attribute__((warn_unused_result))
#define INF_PRINTF(format_index, first_index)                                                      \
    __attribute__((format(printf, format_index, first_index)))

// Runs `destructor(&variable)` when the variable leaves its scope. Every inf_*_destroy() function
// fits, because it takes T **, accepts NULL and sets the variable to NULL.
#define INF_CLEANUP(destructor) __attribute__((cleanup(destructor)))

#define INF_ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define INF_MIN(a, b)           ((a) < (b) ? (a) : (b))
#define INF_MAX(a, b)           ((a) > (b) ? (a) : (b))

// Annotations for the thread-safety check of clang (-Wthread-safety). Other compilers ignore them.
#if defined(__clang__)
#define INF_ATTR(x) __attribute__((x))
#else
#define INF_ATTR(x)
#endif

#endif
