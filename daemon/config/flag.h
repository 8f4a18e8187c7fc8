// SPDX-License-Identifier: Apache-2.0
// Flags: typed values with a name, a default, a range and an origin. flags.def lists the flags of
// the daemon. All functions work on a settings struct; the owner of the struct must serialise
// access to it.
#ifndef INF_DAEMON_CONFIG_FLAG_H
#define INF_DAEMON_CONFIG_FLAG_H

#include "daemon/config/config.h"

enum inf_flag_type {
    INF_FLAG_TEXT,
    INF_FLAG_PATH, // a path: "" or absolute
    INF_FLAG_U32,
    INF_FLAG_U64,
    INF_FLAG_REAL,
    INF_FLAG_BOOL,
    INF_FLAG_WORD,
    INF_FLAG_ASK,    // a bool set by its name without a value (--help), on the command line only
    INF_FLAG_LEVELS, // a text of pairs PART:LEVEL, see inf_log_levels_parse()
    INF_FLAG_LIST,   // a text; a second value from the same file is appended after "; "
};

// The most characters of the name of a flag.
#define INF_FLAG_NAME_CHARS 48

struct inf_flag {
    const char *name;
    enum inf_flag_type type;
    size_t offset;        // offset of the flag's member in the settings struct
    const char *fallback; // the default, written as in a configuration file; NULL: none
    double min, max;      // allowed range of a flag that is a number
    bool live;            // an admin can change the flag while the daemon runs
    bool internal;        // not a stable interface: the flag may change with any version
    const char *argument; // placeholder for the value in --help, such as "PATH"
    const char *help;
    const char *const *words; // only for flags of type WORD: the allowed words, ended by NULL
    // Validates a text; on failure writes the allowed values to `wanted`. If the function pointer
    // is NULL, every text is valid.
    bool (*check)(const char *text, char *wanted, size_t size);
};

// The flags whose values are the members of one settings struct.
struct inf_flag_list {
    const struct inf_flag *flags;
    uint32_t count;
    size_t origins_offset; // offset of an array with one enum inf_origin byte per flag
};

// Finds the flag called `name`, where '-' equals '_'. If there is none, returns NULL and sets
// *nearest to the most similar name.
const struct inf_flag *inf_flag_list_find(const struct inf_flag_list *list, const char *name,
                                          const char **nearest);

// Size of the buffer `wanted`, in which parsers say what is allowed: "a number from 1 to 32".
#define INF_FLAG_WANTED_SIZE 128
bool inf_flag_list_set(const struct inf_flag_list *list, void *settings,
                       const struct inf_flag *flag, const char *text, enum inf_origin origin,
                       char wanted[INF_FLAG_WANTED_SIZE]) INF_NODISCARD;

// Sets every flag in `settings` to its default.
void inf_flag_list_reset(const struct inf_flag_list *list, void *settings);

// Returns where the value of a flag came from.
enum inf_origin inf_flag_list_origin(const struct inf_flag_list *list, const void *settings,
                                     const struct inf_flag *flag);

// Writes the value of a flag to `text` as a configuration file would contain it. Returns `text`.
const char *inf_flag_print(const void *settings, const struct inf_flag *flag,
                           char text[INF_CONFIG_TEXT]);

// --- the daemon's own flags ---

// The flags of struct inf_config. Static.
extern const struct inf_flag_list inf_daemon_flags;

// The flags of the daemon, indexed by enum inf_flag_id. Static.
extern const struct inf_flag inf_flags[INF_FLAG_COUNT];

// Finds a daemon flag by name, like inf_flag_list_find(). If there is none, returns NULL and sets
// *nearest to the most similar name.
const struct inf_flag *inf_flag_find(const char *name, const char **nearest);

// Parses a text and sets a daemon flag, like inf_flag_list_set(). On failure `wanted` says what is
// allowed.
bool inf_flag_parse(struct inf_config *config, const struct inf_flag *flag, const char *text,
                    enum inf_origin origin, char wanted[INF_FLAG_WANTED_SIZE]) INF_NODISCARD;

// Returns where the value of a daemon flag came from: default, file, environment and so on.
enum inf_origin inf_flag_origin(const struct inf_config *config, const struct inf_flag *flag);

// Returns the name of an origin: "default", "file" and so on; static.
const char *inf_origin_name(enum inf_origin origin);

// Returns the name of a type: "string", "int" and so on; static.
const char *inf_flag_type_name(enum inf_flag_type type);

// Writes the allowed values of a flag to `wanted`: "yes or no", "a number from 1 to 32".
void inf_flag_wanted(const struct inf_flag *flag, char wanted[INF_FLAG_WANTED_SIZE]);

#endif
