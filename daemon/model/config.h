// SPDX-License-Identifier: Apache-2.0
// The settings of one model. They come from a file next to the model, in the syntax of the daemon's
// configuration, and from admins. flags.def lists the settings; inferd-model.conf(5) describes
// them.
#ifndef INF_DAEMON_MODEL_CONFIG_H
#define INF_DAEMON_MODEL_CONFIG_H

#include "backends/base/role.h"
#include "daemon/config/flag.h"
#include "daemon/config/persisted.h"

enum inf_model_flag_id {
#define INF_MODEL_FLAG(name, type, initial, min, max, check, help, words) INF_MODEL_FLAG_ID_##name,
#include "daemon/model/flags.def"
    INF_MODEL_FLAG_COUNT
};

// How much the daemon checks and logs in addition to answering.
enum inf_run_mode {
    INF_RUN_NORMAL, // answers are checked as often as the settings of the model say
    INF_RUN_DEBUG,  // each request is run a second time for checking, and each node is logged
    INF_RUN_PROD,   // no answer is checked
};

// Parses "normal", "debug" or "prod"; returns false for anything else.
bool inf_run_mode_parse(const char *text, enum inf_run_mode *mode);

struct inf_model_config {
    char device[INF_CONFIG_TEXT];
    char devices[INF_CONFIG_TEXT];
    char devices_denied[INF_CONFIG_TEXT];
    char replica_devices[INF_CONFIG_TEXT];
    char power[INF_CONFIG_TEXT];
    char policy[INF_CONFIG_TEXT];
    char precision[INF_CONFIG_TEXT];
    char mode[INF_CONFIG_TEXT];
    bool warmup;
    char warmup_shapes[INF_CONFIG_TEXT];
    bool remember_shapes;
    uint32_t batch_rows_max;
    uint32_t runs_max;
    uint32_t reserve_slots;
    char session_pairs[INF_CONFIG_TEXT];
    char signature[INF_CONFIG_TEXT];
    char sequence_lengths[INF_CONFIG_TEXT];
    uint32_t shadow_interval;
    uint32_t slow_ms;
    uint32_t max_length;
    uint32_t idle_unload_ms;
    bool pinned;
    char versions[INF_CONFIG_TEXT];
    char labels[INF_CONFIG_TEXT];
    char description[INF_CONFIG_TEXT];
    char license[INF_CONFIG_TEXT];
    char labels_file[INF_CONFIG_TEXT];
    char input_mean[INF_CONFIG_TEXT];
    char input_deviation[INF_CONFIG_TEXT];
    char allow_users[INF_CONFIG_TEXT];
    char allow_groups[INF_CONFIG_TEXT];
    uint32_t requests_max;
    uint32_t requests_per_second_max;
    uint64_t session_bytes_max;
    char priority[INF_CONFIG_TEXT];
    char priority_max[INF_CONFIG_TEXT];
    uint8_t origins[INF_MODEL_FLAG_COUNT]; // enum inf_origin of each flag
};

// The flags of struct inf_model_config, indexed by enum inf_model_flag_id. Static.
extern const struct inf_flag_list inf_model_flags;

// Sets all flags of `config` to their defaults.
void inf_model_config_init(struct inf_model_config *config);

// Reads the settings file of a model. Takes ownership of `fd`. `name` is for error texts.
//
// INF_INVALID  a line is not a setting; the text gives the line and what is allowed.
enum inf_code inf_model_config_read(struct inf_model_config *config, int fd, const char *name,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Sets a flag that an admin requests.
//
// INF_INVALID  (BAD_PARAMETER) the value is not allowed; the text says what is allowed.
enum inf_code inf_model_config_ask(struct inf_model_config *config, enum inf_model_flag_id id,
                                   const char *value, struct inf_error *err) INF_NODISCARD;

// Sets the flags that admins made persistent for the model `name`. Values that are no longer
// allowed are left out.
void inf_model_config_take_persisted(struct inf_model_config *config,
                                     const struct inf_persisted *persisted, const char *name);

// Makes the flags persistent that admins set in `config`.
//
// INF_PRECONDITION, INF_EXHAUSTED  as inf_persisted_set(); some flags may be persistent.
enum inf_code inf_model_config_persist(struct inf_model_config *config,
                                       struct inf_persisted *persisted, const char *name,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Copies the values of those flags that an admin set in `from`.
void inf_model_config_take_asked(struct inf_model_config *config,
                                 const struct inf_model_config *from);

// Returns true if `a` and `b` are equal except for the settings that take effect without loading
// the model again: versions, labels, access lists, quotas and priorities.
bool inf_model_config_loads_same(const struct inf_model_config *a,
                                 const struct inf_model_config *b);

// Copies the settings from `from` that take effect without loading the model again.
void inf_model_config_take_live(struct inf_model_config *config,
                                const struct inf_model_config *from);

// The ranks of priorities, from low to high.
enum inf_model_priority {
    INF_MODEL_PRIORITY_LOW,
    INF_MODEL_PRIORITY_NORMAL,
    INF_MODEL_PRIORITY_HIGH,
};

// Returns the rank of "low", "normal" or "high".
enum inf_model_priority inf_model_priority_parse(const char *text);

// Returns where the value of a flag came from.
enum inf_origin inf_model_config_origin(const struct inf_model_config *config,
                                        enum inf_model_flag_id id);

#endif
