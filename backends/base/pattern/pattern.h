// SPDX-License-Identifier: Apache-2.0
// Regular expressions in the syntax of RE2, which ONNX prescribes, as far as most patterns use it:
// characters, '.', classes, escapes, groups, alternatives, repetition, anchors. A match takes time
// in proportion to the lengths of pattern and string, whatever the pattern.
//
// Strings are UTF-8. A byte that is not part of a UTF-8 character counts as the character U+FFFD.
#ifndef INF_BACKENDS_BASE_PATTERN_PATTERN_H
#define INF_BACKENDS_BASE_PATTERN_PATTERN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// A compiled pattern, with the memory that matching needs. Used by one thread at a time.
struct inf_pattern;

// Compiles a pattern. The caller destroys *out_pattern.
//
// INF_INVALID      the pattern has a wrong syntax; the text says where.
// INF_UNSUPPORTED  the pattern uses a part of RE2's syntax that is not built; the text names it.
// INF_EXHAUSTED    INF_LIMIT_PATTERN_STEPS, or no memory.
enum inf_code inf_pattern_compile(struct inf_pattern **out_pattern, struct inf_span text,
                                  struct inf_error *err) INF_NODISCARD;

// Frees a pattern. NULL is allowed.
void inf_pattern_destroy(struct inf_pattern **pattern);

// Sets *matches to whether the whole string matches.
//
// INF_CANCELLED  *cancelled became true. NULL: not cancellable.
enum inf_code inf_pattern_match(struct inf_pattern *pattern, struct inf_span string,
                                const atomic_bool *cancelled, bool *matches,
                                struct inf_error *err) INF_NODISCARD;

// Sets *begin and *end to the first match in the string from byte `from` on, of several that begin
// there the one that Perl would find. Sets *found to false if there is none.
//
// INF_CANCELLED  *cancelled became true. NULL: not cancellable.
enum inf_code inf_pattern_find(struct inf_pattern *pattern, struct inf_span string, size_t from,
                               const atomic_bool *cancelled, bool *found, size_t *begin,
                               size_t *end, struct inf_error *err) INF_NODISCARD;

#endif
