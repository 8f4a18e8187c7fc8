// SPDX-License-Identifier: Apache-2.0
// The setting sequence_lengths of a model: how many tensors each input has that is a sequence.
#ifndef INF_DAEMON_MODEL_SEQUENCE_LENGTHS_H
#define INF_DAEMON_MODEL_SEQUENCE_LENGTHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "proto/core/limits.h"

// The lengths that a setting names.
struct inf_sequence_lengths {
    char text[INF_CONFIG_TEXT];           // the names, each NUL-terminated
    const char *names[INF_LIMIT_TENSORS]; // point into `text`
    uint32_t counts[INF_LIMIT_TENSORS];
    uint32_t count;
};

// Parses "NAME=COUNT, NAME=COUNT" (separated by "," or ";"), each count at most INF_LIMIT_TENSORS.
// Returns false if `text` is something else or too long. *out must not be moved, because its names
// point into it.
bool inf_sequence_lengths_parse(const char *text, struct inf_sequence_lengths *out);

// Returns true if `text` is a valid setting. Otherwise `wanted` says what is allowed.
bool inf_sequence_lengths_check(const char *text, char *wanted, size_t size);

#endif
