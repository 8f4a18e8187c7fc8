// SPDX-License-Identifier: Apache-2.0
// Reads the labels of classes out of the texts in which exporters of models keep them.
#ifndef INF_BACKENDS_IMPORT_COMMON_LABEL_TEXT_H
#define INF_BACKENDS_IMPORT_COMMON_LABEL_TEXT_H

#include "backends/base/arena.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Labels in the form of struct inf_described_tensor, in the arena.
struct inf_label_list {
    const char *labels; // each followed by NUL
    uint32_t count;
};

// Reads the labels in `text`: a list ["a", 'b'] or a map {0: 'a', "1": "b"} in the syntax of JSON
// or Python, whose keys are 0 to one less than the number of labels in any order, or else one label
// in each line. Control characters in labels become spaces.
//
// INF_INVALID    no UTF-8, a list or map that does not end, an unknown escape, or keys that are not
//                as above; the text says which.
// INF_EXHAUSTED  more than INF_DESCRIPTION_LABEL_BYTES, or memory.
enum inf_code inf_label_list_read(struct inf_label_list *list, struct inf_arena *arena,
                                  struct inf_span text, struct inf_error *err) INF_NODISCARD;

#endif
