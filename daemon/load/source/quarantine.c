// SPDX-License-Identifier: Apache-2.0
// Reads the journal of loads (daemon/model/load_journal.h), which loads and runs of models write.
#include "daemon/load/source/quarantine.h"

#include "backends/storage/record.h"

struct inf_quarantine_keys inf_quarantine_make_keys(uint64_t stamp, const char *name,
                                                    const char *build)
{
    uint64_t key = inf_record_hash(INF_RECORD_HASH_INIT, &stamp, sizeof stamp);
    key = inf_record_hash_text(inf_record_hash_text(key, name), build);
    return (struct inf_quarantine_keys){.load = key, .run = inf_record_hash_text(key, "run")};
}

enum inf_code inf_quarantine_check(const struct inf_load_journal *journal,
                                   const struct inf_quarantine_keys *keys, const char *name,
                                   struct inf_error *err)
{
    uint32_t loads = inf_load_journal_crashes(journal, keys->load);
    uint32_t runs = inf_load_journal_crashes(journal, keys->run);
    if (INF_MAX(loads, runs) < INF_LOAD_CRASHES_MAX)
        return INF_OK;
    return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                           "model '%s' is quarantined: the daemon ended %u times while it was "
                           "%s; inferctl load tries it again",
                           name, INF_MAX(loads, runs), loads >= runs ? "loaded" : "run");
}
