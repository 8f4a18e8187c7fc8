// SPDX-License-Identifier: Apache-2.0
// The program of a pattern, and the parser that makes it. Private to pattern.c and pattern_parse.c.
#ifndef INF_BACKENDS_BASE_PATTERN_PATTERN_PARSE_H
#define INF_BACKENDS_BASE_PATTERN_PATTERN_PARSE_H

#include "backends/base/pattern/pattern.h"

enum inf_pattern_step_kind {
    INF_PATTERN_CLASS,    // read a character of class `a`, go on
    INF_PATTERN_SPLIT,    // go to step + a, or else to step + b; the first is preferred
    INF_PATTERN_JUMP,     // go to step + a
    INF_PATTERN_BEGIN,    // go on at the begin of the string
    INF_PATTERN_END,      // go on at its end
    INF_PATTERN_BORDER,   // go on between a word character (ASCII) and another, or an end
    INF_PATTERN_NO_BORDER // go on elsewhere
};

// A step of a program. Steps refer to each other by distances, so that a sequence of steps can be
// moved and copied.
struct inf_pattern_step {
    enum inf_pattern_step_kind kind;
    int32_t a, b;
};

// Characters first..last.
struct inf_pattern_range {
    uint32_t first, last;
};

// The ranges [first, first + count) of the program; `negated`: the characters in none of them.
struct inf_pattern_class {
    uint32_t first, count;
    bool negated;
};

// The pattern matches if the step behind the last one is reached.
struct inf_pattern_program {
    struct inf_pattern_step *steps;
    struct inf_pattern_class *classes;
    struct inf_pattern_range *ranges;
    uint32_t step_count, step_capacity;
    uint32_t class_count, class_capacity;
    uint32_t range_count, range_capacity;
};

// Fills a zeroed program. The caller frees its arrays, also after a failure. The errors are those
// of inf_pattern_compile().
enum inf_code inf_pattern_parse(struct inf_pattern_program *program, struct inf_span text,
                                struct inf_error *err) INF_NODISCARD;

// Reads the character at byte `at` of the string, which is not its end. Returns its size in bytes.
size_t inf_pattern_character(struct inf_span string, size_t at, uint32_t *character);

#endif
