// SPDX-License-Identifier: Apache-2.0
// A reference-counted set of strings, used for the names in graphs.
#include "backends/graph/texts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/arena.h"
#include "backends/base/reference.h"

#define BLOCK_BYTES ((size_t)512)

struct inf_texts {
    _Atomic size_t references;
    // set with further names that the same graph uses; a counted reference, or NULL
    struct inf_texts *parent;
    struct inf_arena arena; // its blocks hold the texts one after another
    char *free;             // first free byte in the newest block of `arena`
    size_t free_bytes;
    const char *newest; // the text that was added last
};

struct inf_texts *inf_texts_create(struct inf_texts *parent)
{
    struct inf_texts *texts = calloc(1, sizeof(*texts));
    if (texts == NULL)
        return NULL;
    atomic_init(&texts->references, 1);
    if (parent != NULL)
        inf_reference_take(&parent->references);
    texts->parent = parent;
    return texts;
}

void inf_texts_unref(struct inf_texts **texts)
{
    struct inf_texts *gone = *texts;
    *texts = NULL;
    while (gone != NULL && inf_reference_drop(&gone->references)) {
        struct inf_texts *parent = gone->parent;
        inf_arena_fini(&gone->arena);
        free(gone);
        gone = parent;
    }
}

const char *inf_texts_add(struct inf_texts *texts, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size == 1)
        return "";
    // Reuse the last text if it is equal, because a value often has the name of its node.
    if (texts->newest != NULL && strcmp(texts->newest, text) == 0)
        return texts->newest;
    if (size > texts->free_bytes) {
        size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        char *block = inf_arena_alloc(&texts->arena, bytes);
        if (block == NULL)
            return NULL;
        texts->free = block;
        texts->free_bytes = bytes;
    }
    texts->newest = memcpy(texts->free, text, size);
    texts->free += size;
    texts->free_bytes -= size;
    return texts->newest;
}
