// SPDX-License-Identifier: Apache-2.0
// Starts the scans of the repository: at the start of the daemon, and for a reload, whose report
// compares what the repository has with what the store knows. The loader thread makes the report,
// because it must read files, from a copy of what the store knows.
#include <stdlib.h>
#include <string.h>

#include "daemon/load/source/read_files.h"
#include "daemon/store/store.h"
#include "daemon/store/submit.h"

enum inf_code inf_model_store_load_all(struct inf_model_store *store, struct inf_error *err)
{
    return inf_store_submit_scan(store, NULL, 0, err);
}

// Lists what the store knows about models, for the report of a scan. NULL: there is no memory.
static struct inf_scan_known_models *list_known(const struct inf_model_store *store) INF_ON_LOOP
{
    const struct inf_model_table *table = &store->table;
    struct inf_scan_known_models *known =
        calloc(1, sizeof *known + table->count * sizeof known->models[0]);
    for (uint32_t i = 0; known != NULL && i < table->count; i++) {
        const struct inf_model_entry *entry = table->entries[i];
        if (entry->pin[0] != '\0')
            continue;
        struct inf_scan_known *model = &known->models[known->count++];
        const struct inf_served *served = entry->served;
        memcpy(model->name, entry->name, sizeof model->name);
        model->is_served = served != NULL;
        model->outside = entry->outside;
        model->rereads_settings = entry->access_unsure;
        if (served != NULL) {
            model->files = inf_read_files_ref(served->files);
            model->config_stamp = atomic_load(&served->config_stamp);
        } else if (entry->idle) {
            model->files = inf_read_files_ref(entry->idle_files);
            model->config_stamp = entry->idle_config_stamp;
        }
    }
    return known;
}

enum inf_code inf_model_store_reload(struct inf_model_store *store, uint64_t token,
                                     struct inf_error *err)
{
    struct inf_scan_known_models *known = list_known(store);
    if (known == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to read the repository");
    return inf_store_submit_scan(store, known, token, err);
}
