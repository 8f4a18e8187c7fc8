// SPDX-License-Identifier: Apache-2.0
// The names in a graph, which copies of it share: they never change, and are longer than all else
// that a node is.
#ifndef INF_BACKENDS_GRAPH_TEXTS_H
#define INF_BACKENDS_GRAPH_TEXTS_H

#include "proto/core/attributes.h"

struct inf_texts;

// Makes a set for what one graph adds; it keeps all texts of `parent` (NULL allowed), of which it
// takes a reference. NULL without memory. The set is the caller's to give back with
// inf_texts_unref().
struct inf_texts *inf_texts_create(struct inf_texts *parent) INF_NODISCARD;

// Gives a reference back: with the last one the texts go. *texts becomes NULL. Any thread.
void inf_texts_unref(struct inf_texts **texts);

// The text, as long as the set lives; NULL without memory. One thread at a time.
const char *inf_texts_add(struct inf_texts *texts, const char *text) INF_NODISCARD;

#endif
