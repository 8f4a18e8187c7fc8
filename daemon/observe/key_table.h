// SPDX-License-Identifier: Apache-2.0
// A table of a fixed number of keys, which gives each key a small number. Bounds how many models or
// users have metrics of their own. Not thread-safe.
#ifndef INF_DAEMON_OBSERVE_KEY_TABLE_H
#define INF_DAEMON_OBSERVE_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// The most bytes of a key.
#define INF_KEY_BYTES_MAX 128

// A key that was not used for this long may lose its number to another key: 10 minutes.
#define INF_KEY_IDLE_NS ((uint64_t)600 * 1000000000)

struct inf_key_table;

// Creates an empty table for at most `capacity` keys (1 to 65535). The caller destroys *out_table.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_key_table_create(struct inf_key_table **out_table, uint32_t capacity,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the table. NULL is allowed.
void inf_key_table_destroy(struct inf_key_table **table);

// Returns the number of a key, less than the capacity, and notes that the key was used at `now_ns`.
// A new key gets a free number. If all numbers are taken, it gets that of the key that was unused
// for longest, if that was at least INF_KEY_IDLE_NS, and *out_replaced becomes true. Otherwise the
// function returns the capacity.
uint32_t inf_key_table_obtain(struct inf_key_table *table, const void *key, size_t size,
                              uint64_t now_ns, bool *out_replaced);

// Notes that the key with the number `index` was used at `now_ns`.
void inf_key_table_touch(struct inf_key_table *table, uint32_t index, uint64_t now_ns);

// Returns the key that has the number `index`, and its size in *out_size; NULL if no key has it.
// Valid until the next call of inf_key_table_obtain().
const void *inf_key_table_key(const struct inf_key_table *table, uint32_t index, size_t *out_size);

#endif
