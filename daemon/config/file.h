// SPDX-License-Identifier: Apache-2.0
// Lines of "key = value" and # comments, as settings of any list of flags; what is wrong is refused
// with file, line and the nearest name.
#ifndef INF_DAEMON_CONFIG_FILE_H
#define INF_DAEMON_CONFIG_FILE_H

#include "daemon/config/flag.h"

// Characters of one line, its end included.
#define INF_SETTING_LINE_CHARS 1024

// Where a name and its value stand, for error texts and as the value's origin.
struct inf_setting_place {
    enum inf_origin origin;
    const char *file; // of a file or the environment; NULL: the command line
    uint32_t line;    // of a file
};

// Cuts white space off both ends of a text, and returns its beginning.
char *inf_setting_trim(char *text);

// Finds the flag called `key`.
//
// INF_INVALID  there is none; the text gives the place and the nearest name.
enum inf_code inf_setting_find(const struct inf_flag_list *list, const struct inf_flag **out_flag,
                               const char *key, const struct inf_setting_place *place,
                               struct inf_error *err) INF_NODISCARD;

// Sets a flag of `settings`, the struct that the list is about.
//
// INF_INVALID  it may not be this; the text gives the place, and what was wanted.
enum inf_code inf_setting_set(const struct inf_flag_list *list, void *settings,
                              const struct inf_flag *flag, const char *value,
                              const struct inf_setting_place *place,
                              struct inf_error *err) INF_NODISCARD;

// Reads a stream to its end; place.line counts on from what it is.
//
// INF_INVALID  a line is no setting; the text says which, and what was wanted.
enum inf_code inf_settings_read(const struct inf_flag_list *list, void *settings, FILE *stream,
                                struct inf_setting_place place,
                                struct inf_error *err) INF_NODISCARD;

#endif
