// SPDX-License-Identifier: Apache-2.0
// The flags and the settings of models that admins have set with --persist. They are written to a
// file of the daemon, so that they hold after a restart. Used by one thread at a time.
#ifndef INF_DAEMON_CONFIG_PERSISTED_H
#define INF_DAEMON_CONFIG_PERSISTED_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "daemon/config/config.h"

// The file in the state directory.
#define INF_PERSISTED_FILE "settings"
// The most settings that are kept.
#define INF_PERSISTED_MAX 1024u

// One setting.
struct inf_persisted_setting {
    char model[INF_LIMIT_MODEL_NAME + 1]; // "": a flag of the daemon
    char name[64];
    char value[INF_CONFIG_TEXT];
};

struct inf_persisted;

// Reads the file in `directory`; NULL: nothing is kept. Lines that make no sense are logged and
// left out. The log outlives the object. The caller closes *out_persisted.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_persisted_open(struct inf_persisted **out_persisted, const char *directory,
                                 const struct inf_log *log,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the settings; the file stays. NULL is allowed.
void inf_persisted_close(struct inf_persisted **persisted);

// Returns setting `index`, in the order in which they were set; NULL: there are no more. Valid
// until a setting is changed.
const struct inf_persisted_setting *inf_persisted_get(const struct inf_persisted *persisted,
                                                      uint32_t index);

// Sets a setting, and writes the file. If that fails, the settings stay as they were.
//
// INF_INVALID       a text is too long or has a line end.
// INF_EXHAUSTED     there are too many settings.
// INF_PRECONDITION  there is no directory, or the file cannot be written.
enum inf_code inf_persisted_set(struct inf_persisted *persisted,
                                const struct inf_persisted_setting *setting,
                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Removes the setting `name` of a model, or of the daemon if `model` is ""; `name` "": all of them.
// Writes the file if there was one. If that fails, the settings stay as they were.
//
// INF_PRECONDITION  the file cannot be written.
enum inf_code inf_persisted_remove(struct inf_persisted *persisted, const char *model,
                                   const char *name,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Sets the flags of a configuration to their kept values. Values that are no longer allowed are
// logged and left out.
void inf_persisted_apply_flags(const struct inf_persisted *persisted, struct inf_config *config);

#endif
