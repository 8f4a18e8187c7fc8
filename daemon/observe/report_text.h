// SPDX-License-Identifier: Apache-2.0
// Writes JSON into memory of a fixed size. The functions add the commas between values.
#ifndef INF_DAEMON_OBSERVE_REPORT_TEXT_H
#define INF_DAEMON_OBSERVE_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inf_report_text {
    char *text;
    size_t size, capacity;
    bool full;  // something did not fit; nothing more is appended
    bool comma; // the next value needs a comma before it
};

// Begins an empty text in `memory`.
void inf_report_begin(struct inf_report_text *report, char *memory, size_t capacity);

// Opens ('[', '{') or closes (']', '}') a list or an object. `key` is its key in the object that
// contains it; NULL: it is an element of a list, or the whole text.
void inf_report_open(struct inf_report_text *report, const char *key, char bracket);
void inf_report_close(struct inf_report_text *report, char bracket);

// Writes a member of an object, or an element of a list (`key` NULL). Bytes of `key` and `value`
// that are not UTF-8 become '?'.
void inf_report_add_text(struct inf_report_text *report, const char *key, const char *value);
void inf_report_add_number(struct inf_report_text *report, const char *key, uint64_t value);
// `value` must be finite, because JSON has no other numbers.
void inf_report_add_real(struct inf_report_text *report, const char *key, double value);

#endif
