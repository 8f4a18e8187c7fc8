// SPDX-License-Identifier: Apache-2.0
// Parses "key = value" lines and # comments of a settings file into the flags of an inf_flag_list.
// Error texts name the file, the line and the most similar flag name.
#ifndef INF_DAEMON_CONFIG_FILE_H
#define INF_DAEMON_CONFIG_FILE_H

#include "daemon/config/flag.h"

// Size of the buffer for one line, including the final NUL byte.
#define INF_SETTING_LINE_CHARS 1024

// Where a setting was found. Error texts name the place; the flag that is set records the origin.
struct inf_setting_place {
    enum inf_origin origin;
    const char *file; // name of the file or the variable; NULL: the command line
    uint32_t line;    // line number in a file
};

// Removes white space at both ends of a text, and returns its beginning.
char *inf_setting_trim(char *text);

// Finds the flag called `key`.
//
// INF_INVALID  there is no such flag; the text gives `place` and the most similar name.
enum inf_code inf_setting_find(const struct inf_flag_list *list, const struct inf_flag **out_flag,
                               const char *key, const struct inf_setting_place *place,
                               struct inf_error *err) INF_NODISCARD;

// Sets a flag of the struct `settings`, whose members `list` describes.
//
// INF_INVALID  the value is not allowed; the text gives the place and the allowed values.
enum inf_code inf_setting_set(const struct inf_flag_list *list, void *settings,
                              const struct inf_flag *flag, const char *value,
                              const struct inf_setting_place *place,
                              struct inf_error *err) INF_NODISCARD;

// Reads settings from a stream to its end. place.line is the number of lines already read.
//
// INF_INVALID  a line is not a setting; the text gives the line and the allowed values.
enum inf_code inf_settings_read(const struct inf_flag_list *list, void *settings, FILE *stream,
                                struct inf_setting_place place,
                                struct inf_error *err) INF_NODISCARD;

#endif
