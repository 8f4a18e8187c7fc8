// SPDX-License-Identifier: Apache-2.0
// What the settings of a model say about it, beside or instead of its file: texts, labels and how
// inputs are normalised.
#ifndef INF_BACKENDS_IMPORT_COMMON_DESCRIBED_SETTINGS_H
#define INF_BACKENDS_IMPORT_COMMON_DESCRIBED_SETTINGS_H

#include "backends/base/role.h"
#include "backends/import/common/description.h"

struct inf_graph;

// The settings of a model that describe it, as texts; "": not set. They are borrowed.
struct inf_described_settings {
    const char *description, *license;
    const char *labels_file;                  // name of a file with one label in each line
    const char *input_mean, *input_deviation; // numbers with commas between
};

// Makes a description of the settings. The labels are those of the first output, the numbers those
// of the first input. `directory_fd` has the file with the labels. *out_description is NULL if none
// of the settings is set; otherwise the caller unrefs it.
//
// INF_INVALID    the numbers of means and deviations differ, or the output has another number of
//                elements than there are labels.
// INF_NOT_FOUND, INF_EXHAUSTED, INF_DENIED  the file with the labels cannot be read.
enum inf_code inf_described_settings_create(struct inf_model_description **out_description,
                                            const struct inf_described_settings *settings,
                                            const struct inf_graph *graph, int directory_fd,
                                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Merges what the file and the settings say about a tensor. The settings override the file. Both
// may be NULL.
struct inf_described_tensor inf_described_tensor_merge(const struct inf_described_tensor *file,
                                                       const struct inf_described_tensor *settings);

#endif
