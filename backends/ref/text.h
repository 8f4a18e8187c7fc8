// SPDX-License-Identifier: Apache-2.0
// Helpers of the kernels that read and make strings.
#ifndef INF_BACKENDS_REF_TEXT_H
#define INF_BACKENDS_REF_TEXT_H

#include "backends/ref/kernels.h"

// Sets *string to element `index` of a tensor of BYTES. It is valid until a string is made.
//
// INF_INVALID  the element is no string of the run.
enum inf_code inf_ref_load_string(const struct inf_ref_call *call,
                                  const struct inf_ref_tensor *tensor, size_t index,
                                  struct inf_span *string, struct inf_error *err) INF_NODISCARD;

// Sets element `index` of a tensor of BYTES to a copy of `string`. The bytes of `string` must not
// be in the pool of the run, because the pool may move when the copy is added.
//
// INF_EXHAUSTED    more than INF_LIMIT_STRING_BYTES in one run, or no memory.
// INF_UNSUPPORTED  the caller gives no pool, as constant folding does.
enum inf_code inf_ref_store_string(const struct inf_ref_call *call,
                                   const struct inf_ref_tensor *tensor, size_t index,
                                   struct inf_span string, struct inf_error *err) INF_NODISCARD;

// Sets *room to `size_bytes` for a new string, as inf_string_pool_reserve() does. The errors are
// those of inf_ref_store_string().
enum inf_code inf_ref_reserve_string(const struct inf_ref_call *call, size_t size_bytes,
                                     uint8_t **room, struct inf_error *err) INF_NODISCARD;

// Makes the first `size_bytes` of the reserved room element `index` of a tensor of BYTES.
void inf_ref_commit_string(const struct inf_ref_call *call, const struct inf_ref_tensor *tensor,
                           size_t index, size_t size_bytes);

// Compares the strings of two handles byte by byte, as memcmp() does. Returns a negative number if
// the string of `a` comes first, a positive number if that of `b` does, and 0 if they are equal. An
// invalid handle counts as the empty string.
int inf_ref_order_strings(const struct inf_strings *strings, uint64_t a, uint64_t b);

// Computes compare for operands of BYTES.
enum inf_code inf_ref_compare_strings(const struct inf_ref_call *call,
                                      struct inf_error *err) INF_NODISCARD;

// Computes cast if x or y is BYTES. Numbers are written with the fewest digits that read back as
// the same number; NaN and infinities become "NaN", "INF" and "-INF".
//
// INF_INVALID  a string cannot be read as a number of the type of y.
enum inf_code inf_ref_cast_strings(const struct inf_ref_call *call,
                                   struct inf_error *err) INF_NODISCARD;

#endif
