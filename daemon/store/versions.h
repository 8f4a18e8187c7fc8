// SPDX-License-Identifier: Apache-2.0
// Further versions of a model and its labels. Only for the files of this folder.
#ifndef INF_DAEMON_STORE_VERSIONS_H
#define INF_DAEMON_STORE_VERSIONS_H

#include "backends/base/role.h"
#include "daemon/store/state.h"

// In all functions, `model` is the entry of the default version.

// Moves labels if that is possible. Then removes the entries of further versions that are neither
// wanted nor labelled, or that the entry of the default version serves.
void inf_store_settle_versions(struct inf_model_store *store,
                               struct inf_model_entry *model) INF_ON_LOOP;

// Called before another version becomes the default: moves the served version to an entry of its
// own if it is wanted or has a label, so that it stays served.
void inf_store_keep_version(struct inf_model_store *store, struct inf_model_entry *model,
                            const struct inf_model_versions *versions) INF_ON_LOOP;

// Called when a load of the default version has ended: starts loading the further versions that are
// to be served, and removes those that are not.
void inf_store_sync_versions(struct inf_model_store *store, struct inf_model_entry *model,
                             const struct inf_model_versions *versions) INF_ON_LOOP;

#endif
