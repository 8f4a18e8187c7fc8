// SPDX-License-Identifier: Apache-2.0
// Flags: what the daemon can be told, as typed values with a name, a default, a range, and where
// their value came from. The list is flags.def. All functions but the list itself work on a struct
// inf_config, whose owner decides about threads.
#ifndef INF_DAEMON_CONFIG_FLAG_H
#define INF_DAEMON_CONFIG_FLAG_H

#include "daemon/config/config.h"

enum inf_flag_type {
    INF_FLAG_TEXT,
    INF_FLAG_PATH, // "" or absolute
    INF_FLAG_U32,
    INF_FLAG_U64,
    INF_FLAG_REAL,
    INF_FLAG_BOOL,
    INF_FLAG_WORD,
    INF_FLAG_ASK,  // a bool that is set by its bare name, on the command line only
    INF_FLAG_LIST, // a text; one that comes again from where it came from adds to it, behind a "; "
};

// Characters of a flag's name.
#define INF_FLAG_NAME_CHARS 48

struct inf_flag {
    const char *name;
    enum inf_flag_type type;
    size_t offset;        // in struct inf_config
    const char *fallback; // the default, as it would stand in the file; NULL: none
    double min, max;      // numbers
    bool live;            // can be changed while the daemon runs
    bool internal;        // may change with any version
    const char *argument; // what its value is called in --help
    const char *help;
    const char *const *words; // what a word may be, ended by NULL
    // What a text has to be beside short; it says what was wanted. NULL: anything.
    bool (*check)(const char *text, char *wanted, size_t size);
};

// Flags that are fields of one struct.
struct inf_flag_list {
    const struct inf_flag *flags;
    uint32_t count;
    size_t origins_offset; // in the struct: a byte for each flag, its enum inf_origin
};

// The flag of a list called `name`, where '-' counts as '_'; NULL where there is none, and *nearest
// is the name that is nearest then.
const struct inf_flag *inf_flag_list_find(const struct inf_flag_list *list, const char *name,
                                          const char **nearest);

// Sets a flag of the list's struct from text. What was wrong is in `wanted` otherwise: "a number
// from 1 to 32".
#define INF_FLAG_WANTED_SIZE 128
bool inf_flag_list_set(const struct inf_flag_list *list, void *settings,
                       const struct inf_flag *flag, const char *text, enum inf_origin origin,
                       char wanted[INF_FLAG_WANTED_SIZE]) INF_NODISCARD;

// Gives every flag of the list's struct its default.
void inf_flag_list_reset(const struct inf_flag_list *list, void *settings);

// Where the value of a flag of the list's struct came from.
enum inf_origin inf_flag_list_origin(const struct inf_flag_list *list, const void *settings,
                                     const struct inf_flag *flag);

// Writes the flag's value as it would stand in the file, and returns it.
const char *inf_flag_print(const void *settings, const struct inf_flag *flag,
                           char text[INF_CONFIG_TEXT]);

// --- the daemon's ---

// The flags of struct inf_config. Static.
extern const struct inf_flag_list inf_daemon_flags;

// The daemon's flags, by enum inf_flag_id. Static.
extern const struct inf_flag inf_flags[INF_FLAG_COUNT];

// As inf_flag_list_find(), of the daemon's flags.
const struct inf_flag *inf_flag_find(const char *name, const char **nearest);

// As inf_flag_list_set(), of the daemon's flags.
bool inf_flag_parse(struct inf_config *config, const struct inf_flag *flag, const char *text,
                    enum inf_origin origin, char wanted[INF_FLAG_WANTED_SIZE]) INF_NODISCARD;

// Where the value came from.
enum inf_origin inf_flag_origin(const struct inf_config *config, const struct inf_flag *flag);

// "default", "file" and so on; static.
const char *inf_origin_name(enum inf_origin origin);

// "text", "integer" and so on; static.
const char *inf_flag_type_name(enum inf_flag_type type);

// What a value may be: "yes or no", "a number from 1 to 32".
void inf_flag_wanted(const struct inf_flag *flag, char wanted[INF_FLAG_WANTED_SIZE]);

#endif
