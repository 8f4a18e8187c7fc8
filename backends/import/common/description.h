// SPDX-License-Identifier: Apache-2.0
// What a model file says about itself for people and for programs that prepare its inputs: names,
// texts, labels of classes and how inputs are normalised. No answer of the model depends on it.
#ifndef INF_BACKENDS_IMPORT_COMMON_DESCRIPTION_H
#define INF_BACKENDS_IMPORT_COMMON_DESCRIPTION_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "proto/core/status.h"

// The most labels that all tensors of one model may have, in bytes of text.
#define INF_DESCRIPTION_LABEL_BYTES (512u << 10)
// The most associated files of one model.
#define INF_DESCRIPTION_FILES 64u

// What labels name.
enum inf_label_kind {
    INF_LABELS_NONE,
    // The elements of the last axis, in order. If there are more elements, the classes that a
    // detector finds.
    INF_LABELS_CLASSES,
    INF_LABELS_VALUES, // the values of elements: an element of value 2 has label 2
};

// The description of one input or output. A text that the file does not have is "".
struct inf_described_tensor {
    const char *title, *text;
    const char *labels_file; // name of the associated file that the labels are from
    const char *labels;      // the labels, each followed by NUL; NULL: none
    uint32_t label_count;
    enum inf_label_kind label_kind;
    // The model wants inputs of the value (x - mean) / deviation, where x is from 0 to 255 in a
    // picture. Both arrays have one number for all channels, or one number for each channel. All
    // numbers are finite, and no deviation is 0.
    const float *mean, *deviation;
    uint32_t channel_count; // number of means and of deviations; 0: no normalisation
};

// A file that is packed with the model.
struct inf_described_file {
    const char *name;
    uint64_t size_bytes;
};

// The description of a model. Shared by reference and not changed after it was made. All texts are
// UTF-8 without control characters other than line ends, and are in `arena`.
struct inf_model_description {
    _Atomic uint32_t references;
    struct inf_arena arena;
    const char *title, *text, *version, *author, *license;
    const char **signatures; // names of the entry points of the file
    uint32_t signature_count;
    // The entry point that the graph was made from if the import named none; NULL: it has no name.
    const char *default_signature;
    struct inf_described_tensor *inputs, *outputs; // of the graph, in the order of its ports
    uint32_t input_count, output_count;            // may be less than the graph has
    struct inf_described_file *files;
    uint32_t file_count;
    char problem[256]; // why a part of the description could not be read; "": everything was
};

// Creates a description without texts, with one reference.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_description_create(struct inf_model_description **out_description,
                                           struct inf_error *err) INF_NODISCARD;

// Takes another reference; any thread. NULL gives NULL.
struct inf_model_description *
inf_model_description_ref(struct inf_model_description *description) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL; the last one frees the description. Any thread.
// NULL is allowed.
void inf_model_description_unref(struct inf_model_description **description);

// Keeps the text of `err` as the problem of a description that is being made, unless it has one.
void inf_description_note_problem(struct inf_model_description *description,
                                  const struct inf_error *err);

// Returns zeroed memory that lives as long as a description that is being made; NULL after noting
// that memory is exhausted.
void *inf_description_alloc(struct inf_model_description *description, size_t size_bytes);

// Makes labels of a text with one label in each line: replaces line ends by NUL, leaves out empty
// lines at the end, and returns the number of lines. `text` has one more byte than `size`.
uint32_t inf_description_split_labels(char *text, size_t size);

#endif
