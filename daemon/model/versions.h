// SPDX-License-Identifier: Apache-2.0
// Which versions of a model are served, and which labels they have: the settings `versions` and
// `labels` of a model, and the directories of its versions in the repository.
#ifndef INF_DAEMON_MODEL_VERSIONS_H
#define INF_DAEMON_MODEL_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/model/repository.h"

// The most versions of one model that are served at a time. Further ones are not served.
#define INF_VERSIONS_MAX 8u

// The versions of a model that are to be served.
struct inf_model_versions {
    bool known;     // false: reading the versions failed, so those served are kept
    uint32_t count; // 0: the repository has no directory of a wanted version
    // First the versions that the setting `versions` includes, then those that only have a label,
    // both in descending order. The first one is the default.
    char versions[INF_VERSIONS_MAX][INF_VERSION_TEXT];
    char labels[INF_CONFIG_TEXT]; // the setting `labels`, such as "stable=2, canary=3"
};

// Returns true if `text` is "latest", "latest N", "all" or a list of versions such as "3,5".
// Otherwise writes to `wanted`, which has `size` bytes, what is allowed.
bool inf_version_policy_check(const char *text, char *wanted, size_t size);

// Returns true if `text` is empty or a list such as "stable=2, canary=3" (separated by "," or ";").
// A label begins with a letter. Otherwise writes to `wanted` (`size` bytes) what is allowed.
bool inf_version_labels_check(const char *text, char *wanted, size_t size);

// Returns true if `version` is a label, not a number.
bool inf_version_is_label(const char *version);

// Finds the version that `label` stands for. Returns false if there is no such label.
bool inf_version_labels_find(const char *labels, const char *label, char version[INF_VERSION_TEXT]);

// Returns the version of the first label of a list in `version`, and advances *labels to the next
// label. Returns false at the end.
bool inf_version_labels_next(const char **labels, char version[INF_VERSION_TEXT]);

// Writes the labels of a version to `names`, separated by commas. `names` has INF_CONFIG_TEXT
// bytes.
void inf_version_labels_of(const char *labels, const char *version, char *names);

// Chooses the versions to serve from `present`: those that the setting `versions` with the value
// `policy` includes, and those that have a label in the setting `labels`.
void inf_versions_choose(struct inf_model_versions *chosen, const char *policy, const char *labels,
                         const struct inf_version_list *present);

#endif
