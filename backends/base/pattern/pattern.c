// SPDX-License-Identifier: Apache-2.0
// Runs the program of a regular expression over a string: all ways to match are followed at once
// (Thompson, "Regular Expression Search Algorithm", CACM 11 (6), 1968). A way is a step of the
// program and the place where its match began. For each character, every way that reads it moves
// on, and a step that another way has reached already is not entered again. So a character costs at
// most one visit of every step, and no pattern takes exponential time.
//
// The list of ways is in order of preference: a split enters its preferred side first. If a way
// ends in a match, the ways behind it are dropped, and those before it may still find a better one.
#include "backends/base/pattern/pattern.h"

#include <stdlib.h>

#include "backends/base/cancel.h"
#include "backends/base/pattern/pattern_parse.h"

// How many characters are read between two looks at the cancellation flag.
#define CHARACTERS_PER_LOOK 1024u

struct way {
    uint32_t step;
    size_t begin;
};

struct ways {
    struct way *list;
    uint32_t count;
};

struct inf_pattern {
    struct inf_pattern_program program;
    struct ways now, next;
    uint32_t *stack; // steps to be entered, the preferred one on top
    // seen[s] == round: step s was entered for the current character
    uint64_t *seen;
    uint64_t round;
};

static enum inf_code alloc_ways(struct inf_pattern *pattern, struct inf_error *err)
{
    size_t steps = (size_t)pattern->program.step_count + 1;
    pattern->now.list = calloc(steps, sizeof *pattern->now.list);
    pattern->next.list = calloc(steps, sizeof *pattern->next.list);
    pattern->stack = calloc(2 * steps, sizeof *pattern->stack);
    pattern->seen = calloc(steps, sizeof *pattern->seen);
    if (pattern->now.list == NULL || pattern->next.list == NULL || pattern->stack == NULL ||
        pattern->seen == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a pattern");
    return INF_OK;
}

enum inf_code inf_pattern_compile(struct inf_pattern **out_pattern, struct inf_span text,
                                  struct inf_error *err)
{
    struct inf_pattern *pattern = calloc(1, sizeof *pattern);
    if (pattern == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a pattern");
    enum inf_code code = inf_pattern_parse(&pattern->program, text, err);
    if (code == INF_OK)
        code = alloc_ways(pattern, err);
    if (code == INF_OK)
        *out_pattern = pattern;
    else
        inf_pattern_destroy(&pattern);
    return code;
}

void inf_pattern_destroy(struct inf_pattern **pattern)
{
    struct inf_pattern *gone = *pattern;
    *pattern = NULL;
    if (gone == NULL)
        return;
    free(gone->program.steps);
    free(gone->program.classes);
    free(gone->program.ranges);
    free(gone->now.list);
    free(gone->next.list);
    free(gone->stack);
    free(gone->seen);
    free(gone);
}

static bool is_word(struct inf_span string, size_t at)
{
    uint8_t byte = at < string.size ? string.data[at] : 0;
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (byte >= 'a' && byte <= 'z');
}

// Returns whether a step that reads no character lets a way go on at byte `at`.
static bool is_passable(enum inf_pattern_step_kind kind, struct inf_span string, size_t at)
{
    bool border = (at > 0 && is_word(string, at - 1)) != is_word(string, at);
    switch (kind) {
    case INF_PATTERN_BEGIN:
        return at == 0;
    case INF_PATTERN_END:
        return at == string.size;
    case INF_PATTERN_BORDER:
        return border;
    case INF_PATTERN_NO_BORDER:
        return !border;
    default:
        return true;
    }
}

// Enters a step at byte `at`, and all steps that follow without reading a character. Adds those
// that read one, and the end of the program, to `ways`.
static void enter_step(struct inf_pattern *pattern, struct ways *ways, uint32_t step, size_t begin,
                       struct inf_span string, size_t at)
{
    uint32_t depth = 0;
    pattern->stack[depth++] = step;
    while (depth > 0) {
        uint32_t here = pattern->stack[--depth];
        if (pattern->seen[here] == pattern->round)
            continue;
        pattern->seen[here] = pattern->round;
        if (here == pattern->program.step_count ||
            pattern->program.steps[here].kind == INF_PATTERN_CLASS) {
            ways->list[ways->count++] = (struct way){here, begin};
            continue;
        }
        const struct inf_pattern_step *code = &pattern->program.steps[here];
        if (code->kind == INF_PATTERN_SPLIT) {
            pattern->stack[depth++] = (uint32_t)((int64_t)here + code->b);
            pattern->stack[depth++] = (uint32_t)((int64_t)here + code->a);
        } else if (code->kind == INF_PATTERN_JUMP) {
            pattern->stack[depth++] = (uint32_t)((int64_t)here + code->a);
        } else if (is_passable(code->kind, string, at)) {
            pattern->stack[depth++] = here + 1;
        }
    }
}

static bool is_in_class(const struct inf_pattern_program *program, int32_t index,
                        uint32_t character)
{
    const struct inf_pattern_class *class = &program->classes[index];
    for (uint32_t i = 0; i < class->count; i++) {
        const struct inf_pattern_range *range = &program->ranges[class->first + i];
        if (character >= range->first && character <= range->last)
            return !class->negated;
    }
    return class->negated;
}

// A search: what is wanted, and what was found.
struct search {
    struct inf_span string;
    size_t from;
    bool whole; // the match must be the string from `from` on
    bool found;
    size_t begin, end;
};

// Moves all ways over the character of `size` bytes at byte `at`; a match ends before it.
static void read_character(struct inf_pattern *pattern, struct search *search, size_t at,
                           uint32_t character, size_t size)
{
    pattern->round++;
    pattern->next.count = 0;
    for (uint32_t i = 0; i < pattern->now.count; i++) {
        const struct way *way = &pattern->now.list[i];
        if (way->step == pattern->program.step_count) {
            if (search->whole && at < search->string.size)
                continue;
            search->found = true;
            search->begin = way->begin;
            search->end = at;
            break; // the ways behind it are worse
        }
        if (size > 0 &&
            is_in_class(&pattern->program, pattern->program.steps[way->step].a, character))
            enter_step(pattern, &pattern->next, way->step + 1, way->begin, search->string,
                       at + size);
    }
    struct ways swapped = pattern->now;
    pattern->now = pattern->next;
    pattern->next = swapped;
}

static enum inf_code run_search(struct inf_pattern *pattern, struct search *search,
                                const atomic_bool *cancelled, struct inf_error *err)
{
    size_t at = search->from;
    pattern->now.count = 0;
    pattern->round++;
    for (uint32_t count = 0;; count++) {
        uint32_t character = 0;
        size_t size = 0;
        if (count % CHARACTERS_PER_LOOK == 0 && inf_is_cancelled(cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled while a pattern was matched");
        // A match may begin here, unless a better one was found; steps that a better way has
        // entered for this character are still marked.
        if (!search->found && (at == search->from || !search->whole))
            enter_step(pattern, &pattern->now, 0, at, search->string, at);
        if (at < search->string.size)
            size = inf_pattern_character(search->string, at, &character);
        read_character(pattern, search, at, character, size);
        if (size == 0 || (pattern->now.count == 0 && (search->found || search->whole)))
            return INF_OK;
        at += size;
    }
}

enum inf_code inf_pattern_match(struct inf_pattern *pattern, struct inf_span string,
                                const atomic_bool *cancelled, bool *matches, struct inf_error *err)
{
    struct search search = {.string = string, .whole = true};
    INF_TRY(run_search(pattern, &search, cancelled, err));
    *matches = search.found;
    return INF_OK;
}

enum inf_code inf_pattern_find(struct inf_pattern *pattern, struct inf_span string, size_t from,
                               const atomic_bool *cancelled, bool *found, size_t *begin,
                               size_t *end, struct inf_error *err)
{
    struct search search = {.string = string, .from = from};
    INF_TRY(run_search(pattern, &search, cancelled, err));
    *found = search.found;
    *begin = search.begin;
    *end = search.end;
    return INF_OK;
}
