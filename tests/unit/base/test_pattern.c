// SPDX-License-Identifier: Apache-2.0
// Regular expressions: what they match, by RE2's documentation of its syntax; what is refused; and
// that no pattern takes more than linear time.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/pattern/pattern.h"

static struct inf_span span_of(const char *text)
{
    return (struct inf_span){(const uint8_t *)text, strlen(text)};
}

static struct inf_pattern *compile_text(const char *text)
{
    struct inf_pattern *pattern = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_pattern_compile(&pattern, span_of(text), &err), INF_OK, "%s: %s", text,
                 err.text);
    return pattern;
}

static bool is_match(const char *text, const char *string)
{
    struct inf_pattern *pattern = compile_text(text);
    bool matched;
    cr_assert_eq(inf_pattern_match(pattern, span_of(string), NULL, &matched, NULL), INF_OK);
    inf_pattern_destroy(&pattern);
    return matched;
}

Test(pattern, matches_whole_strings)
{
    static const struct {
        const char *pattern, *yes, *no;
    } cases[] = {
        {"", "", "a"},
        {"abc", "abc", "abcd"},
        {"a.c", "axc", "a\nc"},
        {"a.c",
         "a\xc3\xbc"
         "c",
         "a\xc3\xbc\xc3\xbc"
         "c"},
        {"a*", "aaaa", "aab"},
        {"a+", "a", ""},
        {"ab?c", "ac", "abbc"},
        {"a{3}", "aaa", "aa"},
        {"a{2,}", "aaaa", "a"},
        {"a{1,3}", "aaa", "aaaa"},
        {"a{0,2}", "", "aaa"},
        {"a{0}b", "b", "ab"},
        {"(ab){2,3}c", "ababc", "abc"},
        {"a{,2}", "a{,2}", "aa"},
        {"cat|dog|gnu", "dog", "do"},
        {"(a|b)*c", "ababc", "abab"},
        {"|a", "", "b"},
        {"(?:x|y)z", "yz", "xyz"},
        {"(?P<year>\\d+)", "2026", "20x6"},
        {"[abc]+", "cab", "cad"},
        {"[^abc]+", "xyz", "xya"},
        {"[a-c-]+", "a-c", "d"},
        {"[]a]+", "]a", "b"},
        {"[\\d_]+", "1_2", "a"},
        {"[[:alpha:]]+", "abZ", "ab1"},
        {"[[:^digit:]]+", "ab", "a1"},
        {"[\\x{4e00}-\\x{9fff}]+", "\xe4\xb8\xad\xe6\x96\x87", "ab"},
        {"\\w+@\\w+\\.com", "a_1@b.com", "a@bxcom"},
        {"\\s\\S", " x", "xx"},
        {"\\D\\W", "a-", "1-"},
        {"\\x41\\t\\.", "A\t.", "A\tx"},
        {"^ab$", "ab", "abc"},
        {"\\Aab\\z", "ab", "b"},
        {"\\bab\\b", "ab", "abb"},
        {"a\\Bb", "ab", "a b"},
        {"a*?b", "aab", "aa"},
        {"(a*)*", "aaa", "b"},
        {"(a|ab)(c|bcd)", "abcd", "abc d"},
        // The patterns of ONNX's own tests of RegexFullMatch.
        {"www\\.[\\w.-]+\\.\\bcom\\b", "www.google.com", "www.bbc.co.uk"},
        {"(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)", "account@gmail.com",
         "account@hotmail.com"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(is_match(cases[i].pattern, cases[i].yes), "%s on '%s'", cases[i].pattern,
                  cases[i].yes);
        cr_assert_not(is_match(cases[i].pattern, cases[i].no), "%s on '%s'", cases[i].pattern,
                      cases[i].no);
    }
}

Test(pattern, a_byte_that_is_no_utf8_is_one_character)
{
    cr_assert(is_match("a.b",
                       "a\xff"
                       "b"));
    cr_assert(is_match("a\\x{fffd}b",
                       "a\xff"
                       "b"));
    cr_assert_not(is_match("a.b",
                           "a\xff\xff"
                           "b"));
}

static void expect_found(const char *text, const char *string, size_t from, const char *wanted)
{
    struct inf_pattern *pattern = compile_text(text);
    bool found;
    size_t begin, end;
    cr_assert_eq(inf_pattern_find(pattern, span_of(string), from, NULL, &found, &begin, &end, NULL),
                 INF_OK);
    cr_assert_eq(found, wanted != NULL, "%s in '%s'", text, string);
    if (wanted != NULL)
        cr_assert(end - begin == strlen(wanted) &&
                      strncmp(string + begin, wanted, end - begin) == 0,
                  "%s in '%s': %zu to %zu", text, string, begin, end);
    inf_pattern_destroy(&pattern);
}

// As Perl: the first place, and there the preferred alternative.
Test(pattern, finds_the_first_match_that_perl_would)
{
    expect_found("b+", "abbbc", 0, "bbb");
    expect_found("b+?", "abbbc", 0, "b");
    expect_found("b", "abab", 2, "b");
    expect_found("a|ab", "ab", 0, "a");
    expect_found("ab|a", "ab", 0, "ab");
    expect_found("(a|ab)(c|bcd)", "xabcd", 0, "abcd");
    expect_found("x*", "yyy", 0, "");
    expect_found("x", "yyy", 0, NULL);
    expect_found("\\bfoo\\b", "afoo foo", 0, "foo");
    expect_found("a.*?c|b", "axxcc", 0, "axxc");
    expect_found("a{1,2}?", "aaa", 0, "a");
    expect_found("^a", "ba", 1, NULL);
}

static void expect_refused(const char *text, size_t size, enum inf_code code)
{
    struct inf_pattern *pattern = NULL;
    struct inf_error err = {0};
    cr_assert_eq(
        inf_pattern_compile(&pattern, (struct inf_span){(const uint8_t *)text, size}, &err), code,
        "%s", text);
    cr_assert_null(pattern);
    cr_assert_neq(err.text[0], '\0');
}

Test(pattern, refuses_what_is_wrong_or_not_built)
{
    static const char *const wrong[] = {"(",    "a)",          "[a",    "[b-a]", "*a",
                                        "a**",  "a{2,1}",      "\\",    "+",     "a{1001}",
                                        "\\xg", "\\x{110000}", "(?P<n", "a|*"};
    static const char *const unbuilt[] = {"\\pL", "(?i)a", "(?=a)", "\\1", "\\Qa\\E"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_refused(wrong[i], strlen(wrong[i]), INF_INVALID);
    for (size_t i = 0; i < sizeof unbuilt / sizeof *unbuilt; i++)
        expect_refused(unbuilt[i], strlen(unbuilt[i]), INF_UNSUPPORTED);
    expect_refused("a\0b", 3, INF_INVALID);
    expect_refused("((a{100}){100}){100}", 20, INF_EXHAUSTED);
    char deep[300];
    memset(deep, '(', sizeof deep);
    expect_refused(deep, sizeof deep, INF_EXHAUSTED);
}

Test(pattern, takes_linear_time)
{
    // Backtracking would take 2^25 steps and more for each of these.
    static const char *const patterns[] = {"(a*)*b", "(a|a)*b", "(a?){200}a{200}", "(.*)(.*)(.*)x"};
    char string[20001];
    memset(string, 'a', sizeof string - 1);
    string[sizeof string - 1] = '\0';
    uint64_t begin_ns = inf_clock_ns();
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        cr_assert_not(is_match(patterns[i], string));
    cr_assert_lt(inf_clock_ns() - begin_ns, 20 * INF_NS_PER_S);
}

Test(pattern, stops_when_it_is_cancelled)
{
    struct inf_pattern *pattern = compile_text("a*");
    atomic_bool cancelled = true;
    bool matched;
    cr_assert_eq(inf_pattern_match(pattern, span_of("aaa"), &cancelled, &matched, NULL),
                 INF_CANCELLED);
    inf_pattern_destroy(&pattern);
    inf_pattern_destroy(&pattern);
}

// Random patterns must compile or be refused, and what compiles must run.
Test(pattern, survives_random_patterns)
{
    static const char letters[] = "ab.*+?|()[]{}\\^$1,2-dwsxbP<>:=\xc3\xbc";
    uint64_t state = 3;
    unsigned compiled = 0;
    for (int round = 0; round < 20000; round++) {
        char text[12];
        for (size_t i = 0; i < sizeof text; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = letters[(state >> 33) % (sizeof letters - 1)];
        }
        size_t size = (state >> 50) % sizeof text;
        uint8_t *copy = malloc(size + 1);
        memcpy(copy, text, size);
        struct inf_pattern *pattern = NULL;
        bool matched, found;
        size_t begin, end;
        if (inf_pattern_compile(&pattern, (struct inf_span){copy, size}, NULL) == INF_OK) {
            compiled++;
            struct inf_span string = span_of(
                "abba \xc3\xbc"
                "12a");
            cr_assert_eq(inf_pattern_match(pattern, string, NULL, &matched, NULL), INF_OK);
            cr_assert_eq(inf_pattern_find(pattern, string, 0, NULL, &found, &begin, &end, NULL),
                         INF_OK);
            cr_assert(!found || (begin <= end && end <= string.size));
            cr_assert(!matched || found);
        }
        inf_pattern_destroy(&pattern);
        free(copy);
    }
    cr_assert_gt(compiled, 1000);
}
