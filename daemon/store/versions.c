// SPDX-License-Identifier: Apache-2.0
// The entry of a model without a pin is for its default version. Each further version has an entry
// of its own, whose pin is the number of the version. A further version stays while the settings of
// the model want it, or while it has a label.
#include "daemon/store/versions.h"

#include <stdio.h>
#include <string.h>

#include "daemon/store/submit.h"

static bool is_wanted(const struct inf_model_versions *versions, const char *version)
{
    for (uint32_t i = 0; i < versions->count; i++)
        if (strcmp(versions->versions[i], version) == 0)
            return true;
    return false;
}

static bool has_label(const char *labels, const char *version)
{
    char names[INF_CONFIG_TEXT];
    inf_version_labels_of(labels, version, names);
    return names[0] != '\0';
}

static bool is_served(const struct inf_model_store *store, const struct inf_model_entry *model,
                      const char *version)
{
    const struct inf_model_entry *pinned =
        inf_model_table_find(&store->table, model->name, version);
    return (model->served != NULL && strcmp(model->served->version, version) == 0) ||
           (pinned != NULL && (pinned->served != NULL || pinned->idle));
}

// Replaces the labels of a model by those that its settings want, all together, if each version
// with a wanted label is served or idle. If the model had no labels, replaces them in any case.
static void move_labels(struct inf_model_store *store, struct inf_model_entry *model) INF_ON_LOOP
{
    const char *wanted = model->wanted.labels, *rest = wanted;
    char version[INF_VERSION_TEXT];
    if (strcmp(model->labels, wanted) == 0)
        return;
    while (model->labels[0] != '\0' && inf_version_labels_next(&rest, version))
        if (!is_served(store, model, version)) {
            if (model->reason[0] == '\0')
                snprintf(model->reason, sizeof model->reason,
                         "labels not moved: version %s is not served", version);
            return;
        }
    inf_log(store->log, INF_LOG_NOTICE, "labels moved name=%s from=\"%s\" to=\"%s\"", model->name,
            model->labels, wanted);
    snprintf(model->labels, sizeof model->labels, "%s", wanted);
    if (strncmp(model->reason, "labels not moved", strlen("labels not moved")) == 0)
        model->reason[0] = '\0';
}

void inf_store_settle_versions(struct inf_model_store *store, struct inf_model_entry *model)
{
    const char *present = model->served != NULL ? model->served->version : "";
    char pin[INF_VERSION_TEXT] = "";
    const struct inf_model_entry *entry;
    move_labels(store, model);
    while ((entry = inf_model_table_next_pin(&store->table, model->name, pin)) != NULL) {
        snprintf(pin, sizeof pin, "%s", entry->pin);
        if ((is_wanted(&model->wanted, pin) || has_label(model->labels, pin)) &&
            strcmp(pin, present) != 0)
            continue;
        inf_log(store->log, INF_LOG_INFO, "version dropped name=%s version=%s", model->name, pin);
        inf_model_table_remove(&store->table, model->name, pin);
    }
}

void inf_store_keep_version(struct inf_model_store *store, struct inf_model_entry *model,
                            const struct inf_model_versions *versions)
{
    const char *version = model->served->version;
    if (!is_wanted(versions, version) && !has_label(model->labels, version))
        return;
    struct inf_model_entry *entry = inf_model_table_obtain(&store->table, model->name, version);
    if (entry == NULL || entry->served != NULL)
        return;
    entry->served = model->served;
    model->served = NULL;
}

void inf_store_sync_versions(struct inf_model_store *store, struct inf_model_entry *model,
                             const struct inf_model_versions *versions)
{
    if (!versions->known)
        return;
    model->wanted = *versions;
    // versions[0] is the default one. If its load failed, `model` can still serve an older version.
    for (uint32_t i = 1; i < versions->count; i++) {
        struct inf_model_entry *entry;
        if (model->served != NULL && strcmp(versions->versions[i], model->served->version) == 0)
            continue;
        entry = inf_model_table_obtain(&store->table, model->name, versions->versions[i]);
        if (entry != NULL && !entry->idle)
            inf_store_submit_refresh(store, entry);
    }
    inf_store_settle_versions(store, model);
}
