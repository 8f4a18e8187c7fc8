// SPDX-License-Identifier: Apache-2.0
// Appends JSON to a buffer of a fixed size. Strings can come from clients, so quotes, backslashes
// and control characters are escaped, and bytes that are not UTF-8 are replaced.
#include "daemon/observe/report_text.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/utf8.h"

void inf_report_begin(struct inf_report_text *report, char *memory, size_t capacity)
{
    *report = (struct inf_report_text){.text = memory, .capacity = capacity};
}

static void append_bytes(struct inf_report_text *report, const char *bytes, size_t size)
{
    if (report->full || size > report->capacity - report->size) {
        report->full = true;
        return;
    }
    memcpy(report->text + report->size, bytes, size);
    report->size += size;
}

static void append_quoted(struct inf_report_text *report, const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *end = at + strlen(text);
    char escape[8];
    append_bytes(report, "\"", 1);
    while (at < end) {
        size_t size = inf_utf8_character_size(at, (size_t)(end - at));
        if (size == 0) {
            append_bytes(report, "?", 1);
            size = 1;
        } else if (*at == '"' || *at == '\\' || *at < ' ') {
            int length = snprintf(escape, sizeof escape, *at < ' ' ? "\\u%04x" : "\\%c", *at);
            append_bytes(report, escape, (size_t)length);
        } else {
            append_bytes(report, (const char *)at, size);
        }
        at += size;
    }
    append_bytes(report, "\"", 1);
}

// Writes what precedes a value: the comma after the previous value, and the key (NULL: none).
static void begin_value(struct inf_report_text *report, const char *key)
{
    if (report->comma)
        append_bytes(report, ",", 1);
    if (key != NULL) {
        append_quoted(report, key);
        append_bytes(report, ":", 1);
    }
    report->comma = true;
}

void inf_report_open(struct inf_report_text *report, const char *key, char bracket)
{
    begin_value(report, key);
    append_bytes(report, &bracket, 1);
    report->comma = false;
}

void inf_report_close(struct inf_report_text *report, char bracket)
{
    append_bytes(report, &bracket, 1);
    report->comma = true;
}

void inf_report_add_text(struct inf_report_text *report, const char *key, const char *value)
{
    begin_value(report, key);
    append_quoted(report, value);
}

void inf_report_add_number(struct inf_report_text *report, const char *key, uint64_t value)
{
    // A timeline has many numbers, and the loop prints them. printf() would take longer.
    char digits[20];
    size_t first = sizeof digits;
    begin_value(report, key);
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    append_bytes(report, digits + first, sizeof digits - first);
}

void inf_report_add_real(struct inf_report_text *report, const char *key, double value)
{
    char digits[32];
    assert(isfinite(value));
    begin_value(report, key);
    int length = snprintf(digits, sizeof digits, "%.9g", value);
    append_bytes(report, digits, (size_t)length);
}
