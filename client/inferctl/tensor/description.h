// SPDX-License-Identifier: Apache-2.0
// The description that a served model has in its file: how inputs are normalised, the labels of
// outputs, and texts such as the author and the licence. The daemon sends the description as JSON.
#ifndef INF_CLIENT_INFERCTL_TENSOR_DESCRIPTION_H
#define INF_CLIENT_INFERCTL_TENSOR_DESCRIPTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/inferd.h"

// The most channels of a picture whose normalisation is used.
#define DESCRIPTION_CHANNELS 3

// A zeroed struct describes nothing.
struct description {
    json_t *root; // NULL: the model says nothing about itself, or the daemon does not tell
};

// Asks the daemon for the description of a model. `version` may be NULL.
void description_load(struct description *description, inferd_client *client, const char *model,
                      const char *version);

// Frees the description.
void description_fini(struct description *description);

// An element of an input is (x - mean) / deviation for a picture's value x from 0 to 255.
struct normalisation {
    double mean[DESCRIPTION_CHANNELS], deviation[DESCRIPTION_CHANNELS];
};

// Finds the normalisation of an input with `channels` channels. Returns false if the
// description has none, or has one for another number of channels.
bool description_normalisation(const struct description *description, const char *input,
                               size_t channels, struct normalisation *out);

// What the labels of an output name.
enum label_kind {
    LABELS_NONE,
    LABELS_CLASSES, // the elements, in order
    LABELS_VALUES,  // the values of the elements
};

// Returns what the labels of an output with this shape name. Labels of classes must be as many as
// the output has elements.
enum label_kind description_labels(const struct description *description,
                                   const inferd_tensor *output);

// Returns label `index` of an output, or "" if there is none.
const char *description_label(const struct description *description, const char *output,
                              size_t index);

// Prints the description for people, with an empty line before it. Prints nothing if the model says
// nothing about itself.
void description_print(const struct description *description);

// Adds the members of a tensor's description to `row`, a JSON object about the tensor.
// `direction` is "inputs" or "outputs".
void description_extend(const struct description *description, const char *direction,
                        const char *name, json_t *row);

#endif
