// SPDX-License-Identifier: Apache-2.0
// The names in a graph. Copies of the graph share them, because names never change and take more
// memory than the rest of a node.
#ifndef INF_BACKENDS_GRAPH_TEXTS_H
#define INF_BACKENDS_GRAPH_TEXTS_H

#include "proto/core/attributes.h"

struct inf_texts;

// Creates a set for the names that one graph adds. The set takes a reference to `parent` (NULL
// allowed), so the texts of `parent` stay alive. Returns NULL if there is no memory. The caller
// releases the set with inf_texts_unref().
struct inf_texts *inf_texts_create(struct inf_texts *parent) INF_NODISCARD;

// Drops a reference, and frees the texts with the last one. *texts becomes NULL. Any thread.
void inf_texts_unref(struct inf_texts **texts);

// Copies `text` into the set. The result is valid as long as the set; NULL if there is no memory.
// Only one thread at a time may call this.
const char *inf_texts_add(struct inf_texts *texts, const char *text) INF_NODISCARD;

#endif
