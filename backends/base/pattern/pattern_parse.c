// SPDX-License-Identifier: Apache-2.0
// Parses regular expressions by recursive descent, and writes the steps of a machine that
// pattern.c runs. A repetition with bounds, such as x{2,5}, becomes copies of its steps.
#include "backends/base/pattern/pattern_parse.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/limits.h"
#include "proto/core/utf8.h"

// The deepest nesting of groups.
#define DEPTH_MAX 100u
// The largest number of a bounded repetition, as in RE2.
#define REPEAT_MAX 1000u

#define CHARACTER_MAX UINT32_C(0x10ffff)

struct parser {
    struct inf_pattern_program *program;
    struct inf_span text;
    size_t at;
    uint32_t depth;
    enum inf_code code; // the first failure
    struct inf_error *err;
};

static bool is_ok(const struct parser *parser)
{
    return parser->code == INF_OK;
}

static void fail_at(struct parser *parser, enum inf_code code, const char *what)
{
    if (is_ok(parser))
        parser->code =
            inf_fail(parser->err, code, "the pattern has %s at byte %zu", what, parser->at);
}

size_t inf_pattern_character(struct inf_span string, size_t at, uint32_t *character)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const uint8_t *bytes = string.data + at;
    size_t size = inf_utf8_character_size(bytes, string.size - at);
    if (size == 0) {
        *character = bytes[0] < 0x80 ? bytes[0] : 0xfffd;
        return 1;
    }
    *character = bytes[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        *character = *character << 6 | (bytes[i] & 0x3f);
    return size;
}

// Returns the byte at the parser's place, or 0 at the end. A NUL in a pattern is refused at first.
static char peek_byte(const struct parser *parser)
{
    return parser->at < parser->text.size ? (char)parser->text.data[parser->at] : '\0';
}

static bool take_text(struct parser *parser, const char *text)
{
    size_t size = strlen(text);
    if (parser->text.size - parser->at < size ||
        memcmp(parser->text.data + parser->at, text, size) != 0)
        return false;
    parser->at += size;
    return true;
}

// --- writing steps and classes ---

static bool grow_array(struct parser *parser, void **array, uint32_t *capacity, uint32_t count,
                       uint32_t more, size_t element_bytes)
{
    if (is_ok(parser) &&
        (count > INF_LIMIT_PATTERN_STEPS || more > INF_LIMIT_PATTERN_STEPS - count))
        parser->code = inf_fail(parser->err, INF_EXHAUSTED, "the pattern is larger than %u steps",
                                INF_LIMIT_PATTERN_STEPS);
    if (!is_ok(parser) || count + more <= *capacity)
        return is_ok(parser);
    uint32_t wanted = INF_MAX(2 * (count + more), 16u);
    void *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL) {
        parser->code = inf_fail(parser->err, INF_EXHAUSTED, "no memory for a pattern");
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

// Makes room for `count` steps at index `at`, and returns the first of them; NULL after a failure.
static struct inf_pattern_step *insert_steps(struct parser *parser, uint32_t at, uint32_t count)
{
    struct inf_pattern_program *program = parser->program;
    if (!grow_array(parser, (void **)&program->steps, &program->step_capacity, program->step_count,
                    count, sizeof *program->steps))
        return NULL;
    struct inf_pattern_step *steps = program->steps + at;
    memmove(steps + count, steps, (program->step_count - at) * sizeof *steps);
    program->step_count += count;
    return steps;
}

static void put_step(struct parser *parser, uint32_t at, enum inf_pattern_step_kind kind, int32_t a,
                     int32_t b)
{
    struct inf_pattern_step *step = insert_steps(parser, at, 1);
    if (step != NULL)
        *step = (struct inf_pattern_step){kind, a, b};
}

static void add_range(struct parser *parser, uint32_t first, uint32_t last)
{
    struct inf_pattern_program *program = parser->program;
    if (grow_array(parser, (void **)&program->ranges, &program->range_capacity,
                   program->range_count, 1, sizeof *program->ranges))
        program->ranges[program->range_count++] = (struct inf_pattern_range){first, last};
}

// Adds a step that reads a character of the ranges that were added since there were `first`.
static void add_class_step(struct parser *parser, uint32_t first, bool negated)
{
    struct inf_pattern_program *program = parser->program;
    if (!grow_array(parser, (void **)&program->classes, &program->class_capacity,
                    program->class_count, 1, sizeof *program->classes))
        return;
    program->classes[program->class_count] =
        (struct inf_pattern_class){first, program->range_count - first, negated};
    put_step(parser, program->step_count, INF_PATTERN_CLASS, (int32_t)program->class_count, 0);
    program->class_count++;
}

// --- classes of characters ---

// Adds the ranges of characters outside of the sorted `ranges`.
static void add_others(struct parser *parser, const struct inf_pattern_range *ranges, size_t count)
{
    uint32_t next = 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].first > next)
            add_range(parser, next, ranges[i].first - 1);
        next = ranges[i].last + 1;
    }
    add_range(parser, next, CHARACTER_MAX);
}

static void add_ranges(struct parser *parser, const struct inf_pattern_range *ranges, size_t count,
                       bool negated)
{
    if (negated)
        add_others(parser, ranges, count);
    for (size_t i = 0; !negated && i < count; i++)
        add_range(parser, ranges[i].first, ranges[i].last);
}

// Adds the ranges of the classes \d, \w and \s (ASCII, as in RE2), and of their opposites. Returns
// false if `letter` names none.
static bool add_named_class(struct parser *parser, char letter)
{
    static const struct inf_pattern_range digits[] = {{'0', '9'}};
    static const struct inf_pattern_range words[] = {
        {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const struct inf_pattern_range spaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    bool negated = letter >= 'A' && letter <= 'Z';
    switch (letter | 0x20) {
    case 'd':
        add_ranges(parser, digits, INF_ARRAY_LENGTH(digits), negated);
        return true;
    case 'w':
        add_ranges(parser, words, INF_ARRAY_LENGTH(words), negated);
        return true;
    case 's':
        add_ranges(parser, spaces, INF_ARRAY_LENGTH(spaces), negated);
        return true;
    default:
        return false;
    }
}

// Adds the ranges of a class such as [:alpha:], whose '[' is next. Returns false if none is there.
static bool add_posix_class(struct parser *parser)
{
    static const struct {
        const char *name;
        struct inf_pattern_range ranges[4];
        size_t count;
    } classes[] = {
        {"alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
        {"alpha:]", {{'A', 'Z'}, {'a', 'z'}}, 2},
        {"ascii:]", {{0, 0x7f}}, 1},
        {"blank:]", {{'\t', '\t'}, {' ', ' '}}, 2},
        {"cntrl:]", {{0, 0x1f}, {0x7f, 0x7f}}, 2},
        {"digit:]", {{'0', '9'}}, 1},
        {"graph:]", {{'!', '~'}}, 1},
        {"lower:]", {{'a', 'z'}}, 1},
        {"print:]", {{' ', '~'}}, 1},
        {"punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
        {"space:]", {{'\t', '\r'}, {' ', ' '}}, 2},
        {"upper:]", {{'A', 'Z'}}, 1},
        {"word:]", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
        {"xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
    };
    size_t begin = parser->at;
    bool negated = false;
    if (!take_text(parser, "[:"))
        return false;
    negated = take_text(parser, "^");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(classes); i++)
        if (take_text(parser, classes[i].name)) {
            add_ranges(parser, classes[i].ranges, classes[i].count, negated);
            return true;
        }
    parser->at = begin;
    return false;
}

static int read_hex_digit(struct parser *parser)
{
    char digit = peek_byte(parser);
    if (parser->at < parser->text.size)
        parser->at++;
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f')
        return (digit | 0x20) - 'a' + 10;
    return -1;
}

// Reads the digits of \xHH or \x{H...}, of which \x is read.
static uint32_t read_hex(struct parser *parser)
{
    uint32_t character = 0;
    bool braces = take_text(parser, "{");
    for (int i = 0; is_ok(parser) && (braces ? peek_byte(parser) != '}' : i < 2); i++) {
        int digit = read_hex_digit(parser);
        character = character * 16 + (uint32_t)digit;
        if (digit < 0 || character > CHARACTER_MAX)
            fail_at(parser, INF_INVALID, "no hexadecimal number of a character");
    }
    if (braces && !take_text(parser, "}"))
        fail_at(parser, INF_INVALID, "no hexadecimal number of a character");
    return character;
}

// Reads an escape that stands for one character, of which the backslash is read.
static uint32_t read_escape(struct parser *parser)
{
    static const char names[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    uint32_t character = 0;
    char letter = peek_byte(parser);
    const char *name = letter != '\0' ? strchr(names, letter) : NULL;
    if (parser->at == parser->text.size) {
        fail_at(parser, INF_INVALID, "a backslash");
        return 0;
    }
    if (name != NULL) {
        parser->at++;
        return (uint32_t)values[name - names];
    }
    if (take_text(parser, "x"))
        return read_hex(parser);
    bool is_letter =
        (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
    if (is_letter)
        fail_at(parser, INF_UNSUPPORTED,
                letter == 'p' || letter == 'P' ? "a Unicode class (\\p)" : "an unknown escape");
    parser->at += inf_pattern_character(parser->text, parser->at, &character);
    return character;
}

// Reads one character of a class, or the begin or end of a range.
static uint32_t read_class_character(struct parser *parser)
{
    uint32_t character = 0;
    if (take_text(parser, "\\"))
        return read_escape(parser);
    if (parser->at < parser->text.size)
        parser->at += inf_pattern_character(parser->text, parser->at, &character);
    return character;
}

static void parse_class_item(struct parser *parser)
{
    if (peek_byte(parser) == '[' && add_posix_class(parser))
        return;
    if (peek_byte(parser) == '\\' && parser->at + 1 < parser->text.size &&
        add_named_class(parser, (char)parser->text.data[parser->at + 1])) {
        parser->at += 2;
        return;
    }
    uint32_t first = read_class_character(parser), last = first;
    bool is_range = peek_byte(parser) == '-' && parser->at + 1 < parser->text.size &&
                    parser->text.data[parser->at + 1] != ']';
    if (is_range) {
        parser->at++;
        last = read_class_character(parser);
    }
    if (last < first)
        fail_at(parser, INF_INVALID, "a range that ends before it begins");
    add_range(parser, first, last);
}

// Parses a class, of which '[' is read.
static void parse_class(struct parser *parser)
{
    uint32_t first = parser->program->range_count;
    bool negated = take_text(parser, "^");
    bool is_first = true; // a ']' at the begin is a character of the class
    while (is_ok(parser) && (is_first || peek_byte(parser) != ']')) {
        if (parser->at == parser->text.size) {
            fail_at(parser, INF_INVALID, "a class without an end");
            return;
        }
        parse_class_item(parser);
        is_first = false;
    }
    if (is_ok(parser))
        parser->at++; // behind ']'
    add_class_step(parser, first, negated);
}

// --- sequences, repetition, alternatives ---

static void parse_alternatives(struct parser *parser);

// Parses a group, of which '(' is read.
static void parse_group(struct parser *parser)
{
    if (take_text(parser, "?P<")) {
        while (peek_byte(parser) != '>' && parser->at < parser->text.size)
            parser->at++;
        if (!take_text(parser, ">"))
            fail_at(parser, INF_INVALID, "a group whose name does not end");
    } else if (!take_text(parser, "?:") && peek_byte(parser) == '?') {
        fail_at(parser, INF_UNSUPPORTED, "a flag or another special group '(?'");
    }
    if (++parser->depth > DEPTH_MAX)
        fail_at(parser, INF_EXHAUSTED, "too many groups in groups");
    if (is_ok(parser))
        parse_alternatives(parser);
    parser->depth--;
    if (!take_text(parser, ")"))
        fail_at(parser, INF_INVALID, "a group without an end");
}

static void parse_escape(struct parser *parser)
{
    struct inf_pattern_program *program = parser->program;
    static const struct {
        const char *text;
        enum inf_pattern_step_kind kind;
    } places[] = {{"b", INF_PATTERN_BORDER},
                  {"B", INF_PATTERN_NO_BORDER},
                  {"A", INF_PATTERN_BEGIN},
                  {"z", INF_PATTERN_END}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(places); i++)
        if (take_text(parser, places[i].text)) {
            put_step(parser, program->step_count, places[i].kind, 0, 0);
            return;
        }
    uint32_t first = program->range_count;
    if (add_named_class(parser, peek_byte(parser))) {
        parser->at++;
    } else {
        uint32_t character = read_escape(parser);
        add_range(parser, character, character);
    }
    add_class_step(parser, first, false);
}

static void parse_atom(struct parser *parser)
{
    struct inf_pattern_program *program = parser->program;
    uint32_t first = program->range_count, character;
    if (take_text(parser, "(")) {
        parse_group(parser);
    } else if (take_text(parser, "[")) {
        parse_class(parser);
    } else if (take_text(parser, "\\")) {
        parse_escape(parser);
    } else if (take_text(parser, "^")) {
        put_step(parser, program->step_count, INF_PATTERN_BEGIN, 0, 0);
    } else if (take_text(parser, "$")) {
        put_step(parser, program->step_count, INF_PATTERN_END, 0, 0);
    } else if (take_text(parser, ".")) {
        add_range(parser, '\n', '\n');
        add_class_step(parser, first, true);
    } else if (strchr("*+?", peek_byte(parser)) != NULL) {
        fail_at(parser, INF_INVALID, "nothing to repeat");
    } else {
        parser->at += inf_pattern_character(parser->text, parser->at, &character);
        add_range(parser, character, character);
        add_class_step(parser, first, false);
    }
}

// Reads "{m}", "{m,}" or "{m,n}". Returns false, and reads nothing, if none is there: RE2 takes '{'
// for a character then. *most is UINT32_MAX if there is no limit.
static bool take_bounds(struct parser *parser, uint32_t *least, uint32_t *most)
{
    size_t begin = parser->at;
    uint32_t numbers[2] = {0, UINT32_MAX};
    bool done = take_text(parser, "{");
    for (int i = 0; done && i < 2; i++) {
        size_t digits = parser->at;
        uint32_t number = 0;
        for (; peek_byte(parser) >= '0' && peek_byte(parser) <= '9'; parser->at++)
            number = INF_MIN(number * 10 + (uint32_t)(peek_byte(parser) - '0'), REPEAT_MAX + 1);
        bool given = parser->at > digits;
        done = given || i == 1;
        numbers[i] = given ? number : UINT32_MAX;
        if (i == 0 && !take_text(parser, ",")) {
            numbers[1] = number;
            break;
        }
    }
    done = done && take_text(parser, "}");
    if (!done)
        parser->at = begin;
    *least = numbers[0];
    *most = numbers[1];
    return done;
}

static void put_split(struct parser *parser, uint32_t at, int32_t into, int32_t past, bool lazy)
{
    put_step(parser, at, INF_PATTERN_SPLIT, lazy ? past : into, lazy ? into : past);
}

// Appends a copy of the `count` steps at index `from`.
static void copy_steps(struct parser *parser, uint32_t from, uint32_t count)
{
    struct inf_pattern_step *copy = insert_steps(parser, parser->program->step_count, count);
    if (copy != NULL)
        memcpy(copy, parser->program->steps + from, count * sizeof *copy);
}

// Repeats the steps from index `begin` to the end `least` to `most` times.
static void repeat_steps(struct parser *parser, uint32_t begin, uint32_t least, uint32_t most,
                         bool lazy)
{
    struct inf_pattern_program *program = parser->program;
    uint32_t size = program->step_count - begin;
    for (uint32_t i = 1; is_ok(parser) && i < least; i++)
        copy_steps(parser, begin, size);
    if (most == UINT32_MAX && least > 0) { // x+: after the last x, go back to it
        put_split(parser, program->step_count, -(int32_t)size, 1, lazy);
    } else if (most == UINT32_MAX) {
        put_split(parser, begin, 1, (int32_t)size + 2, lazy);
        put_step(parser, program->step_count, INF_PATTERN_JUMP, -(int32_t)size - 1, 0);
    } else if (most == 0) {
        program->step_count = begin;
    } else {
        // Each optional x is behind a split that goes past itself; if the first is not taken, the
        // next split is reached, which may take one. The number of them is what matters.
        uint32_t optional = most - INF_MIN(least, most);
        if (least == 0) {
            put_split(parser, begin, 1, (int32_t)size + 1, lazy);
            begin++;
            optional--;
        }
        for (uint32_t i = 0; is_ok(parser) && i < optional; i++) {
            put_split(parser, program->step_count, 1, (int32_t)size + 1, lazy);
            copy_steps(parser, begin, size);
        }
    }
}

static void parse_repeated(struct parser *parser)
{
    uint32_t begin = parser->program->step_count;
    uint32_t least = 0, most = UINT32_MAX;
    parse_atom(parser);
    if (!is_ok(parser))
        return;
    if (take_text(parser, "+"))
        least = 1;
    else if (take_text(parser, "?"))
        most = 1;
    else if (!take_text(parser, "*") && !take_bounds(parser, &least, &most))
        return;
    if (least > REPEAT_MAX || (most != UINT32_MAX && most > REPEAT_MAX) || most < least)
        fail_at(parser, INF_INVALID, "a repetition that is not 0 to 1000 times, least first");
    bool lazy = take_text(parser, "?");
    if (peek_byte(parser) != '\0' && strchr("*+?", peek_byte(parser)) != NULL)
        fail_at(parser, INF_INVALID, "a repetition of a repetition");
    if (is_ok(parser))
        repeat_steps(parser, begin, least, most, lazy);
}

static void parse_alternatives(struct parser *parser)
{
    struct inf_pattern_program *program = parser->program;
    uint32_t begin = program->step_count;
    int64_t last_jump = -1; // a chain of the jumps to the end: `b` is the index of the one before
    while (is_ok(parser)) {
        while (is_ok(parser) && parser->at < parser->text.size && peek_byte(parser) != '|' &&
               peek_byte(parser) != ')')
            parse_repeated(parser);
        if (!is_ok(parser) || !take_text(parser, "|"))
            break;
        put_step(parser, begin, INF_PATTERN_SPLIT, 1, (int32_t)(program->step_count - begin) + 2);
        put_step(parser, program->step_count, INF_PATTERN_JUMP, 0, (int32_t)last_jump);
        last_jump = (int64_t)program->step_count - 1;
        begin = program->step_count;
    }
    while (is_ok(parser) && last_jump >= 0) {
        struct inf_pattern_step *jump = &program->steps[last_jump];
        jump->a = (int32_t)((int64_t)program->step_count - last_jump);
        last_jump = jump->b;
    }
}

enum inf_code inf_pattern_parse(struct inf_pattern_program *program, struct inf_span text,
                                struct inf_error *err)
{
    struct parser parser = {.program = program, .text = text, .err = err};
    if (text.size > INF_LIMIT_PATTERN_STEPS)
        return inf_fail(err, INF_EXHAUSTED, "the pattern has %zu bytes, at most %u are allowed",
                        text.size, INF_LIMIT_PATTERN_STEPS);
    if (text.size > 0 && memchr(text.data, 0, text.size) != NULL)
        return inf_fail(err, INF_INVALID, "the pattern has a NUL");
    parse_alternatives(&parser);
    if (parser.at < text.size)
        fail_at(&parser, INF_INVALID, "a ')' without a group");
    return parser.code;
}
