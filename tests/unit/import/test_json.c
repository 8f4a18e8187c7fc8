// SPDX-License-Identifier: Apache-2.0
// Typed reading of JSON: limits, types, and paths in error texts.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/common/json.h"
#include "proto/core/limits.h"

// Parses a document. Fails the test if the document is invalid.
static struct json_t *parse_text(const char *text)
{
    struct json_t *root = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_json_parse(&root, text, strlen(text), "model.json", &err), INF_OK, "%s: %s",
                 text, err.text);
    return root;
}

Test(json, refuses_what_is_no_document)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "{",
                                        "{\"a\":1",
                                        "[1,2",
                                        "{\"a\":1}}",
                                        "tru",
                                        "{'a':1}",
                                        "{\"a\":01}",
                                        "{\"a\":1,}",
                                        "\"text\"",
                                        "{\"a\":\"\\u0000\"}",
                                        "{\"\\u0000\":1}",
                                        "{\"a\":1e999}",
                                        "{\"a\":99999999999999999999}",
                                        "{\"a\":NaN}",
                                        "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++) {
        struct json_t *root = NULL;
        struct inf_error err = {0};
        cr_assert_eq(inf_json_parse(&root, texts[i], strlen(texts[i]), "model.json", &err),
                     INF_INVALID, "%s", texts[i]);
        cr_assert_eq(err.reason, INF_REASON_BAD_JSON);
        cr_assert_null(root);
        cr_assert_not_null(strstr(err.text, "'model.json': line "), "%s", err.text);
    }
}

Test(json, refuses_a_key_that_stands_twice)
{
    struct json_t *root = NULL;
    struct inf_error err = {0};
    const char *text = "{\"a\":1,\"b\":2,\"a\":3}";
    cr_assert_eq(inf_json_parse(&root, text, strlen(text), "m", &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "duplicate"), "%s", err.text);
}

Test(json, counts_the_depth_of_nesting_outside_strings)
{
    char text[256];
    for (unsigned depth = INF_LIMIT_JSON_DEPTH; depth <= INF_LIMIT_JSON_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        struct json_t *root = NULL;
        struct inf_error err = {0};
        enum inf_code code = inf_json_parse(&root, text, 2 * depth, "m", &err);
        cr_assert_eq(code, depth > INF_LIMIT_JSON_DEPTH ? INF_EXHAUSTED : INF_OK, "%u", depth);
        inf_json_destroy(&root);
    }
    // Brackets inside a string and escaped quotes do not count as nesting.
    struct json_t *root = parse_text(
        "{\"k\":\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}");
    inf_json_destroy(&root);
    cr_assert_null(root);
    inf_json_destroy(&root);
}

Test(json, refuses_a_million_levels_and_many_millions_of_values)
{
    size_t size = 9u << 20;
    char *text = malloc(size + 1);
    struct json_t *root = NULL;
    struct inf_error err = {0};
    memset(text, '[', size);
    text[size] = '\0';
    cr_assert_eq(inf_json_parse(&root, text, size, "m", &err), INF_EXHAUSTED);
    cr_assert_not_null(strstr(err.text, "deeper than 64"), "%s", err.text);
    for (size_t i = 1; i < size; i++)
        text[i] = i % 2 == 0 ? ',' : '0';
    text[size - 1] = ']';
    cr_assert_eq(inf_json_parse(&root, text, size, "m", &err), INF_EXHAUSTED);
    cr_assert_not_null(strstr(err.text, "values"), "%s", err.text);
    free(text);
}

Test(json, tells_the_way_to_a_value_of_the_wrong_type)
{
    struct json_t *root =
        parse_text("{\"weightsManifest\":[{},{\"weights\":[{\"shape\":[1,\"x\"]}]}]}");
    struct inf_json document = inf_json_root(root), manifest, weights, shape;
    struct inf_error err = {0};
    int64_t number = 7;
    const char *text = NULL;
    bool truth = false;
    size_t count = 0;
    cr_assert_eq(inf_json_get(&document, "weightsManifest", &manifest, &err), INF_OK);
    struct inf_json group = inf_json_at(&manifest, 1);
    cr_assert_eq(inf_json_get(&group, "weights", &weights, &err), INF_OK);
    struct inf_json weight = inf_json_at(&weights, 0);
    cr_assert_eq(inf_json_get(&weight, "shape", &shape, &err), INF_OK);
    struct inf_json dim = inf_json_at(&shape, 1);
    cr_assert_eq(inf_json_int(&dim, 0, 9, &number, &err), INF_INVALID);
    cr_assert_str_eq(err.text,
                     "weightsManifest[1].weights[0].shape[1]: has the string \"x\", "
                     "wanted an integer from 0 to 9");
    cr_assert_eq(number, 7);
    cr_assert_eq(inf_json_string(&shape, &text, &err), INF_INVALID);
    cr_assert_str_eq(err.text,
                     "weightsManifest[1].weights[0].shape: has an array of 2, wanted a "
                     "string");
    cr_assert_eq(inf_json_array(&weight, &count, &err), INF_INVALID);
    cr_assert_eq(inf_json_bool(&dim, &truth, &err), INF_INVALID);
    struct inf_json missing;
    cr_assert_eq(inf_json_get(&weight, "name", &missing, &err), INF_INVALID);
    cr_assert_str_eq(err.text, "weightsManifest[1].weights[0].name: is missing");
    cr_assert_eq(inf_json_get(&shape, "name", &missing, &err), INF_INVALID);
    inf_json_destroy(&root);
}

Test(json, names_elements_that_have_a_name)
{
    struct json_t *root = parse_text("{\"node\":[{\"name\":\"conv\",\"op\":3},{\"name\":5}]}");
    struct inf_json document = inf_json_root(root), nodes, member;
    struct inf_error err = {0};
    const char *text;
    cr_assert_eq(inf_json_get(&document, "node", &nodes, &err), INF_OK);
    struct inf_json node = inf_json_at(&nodes, 0);
    cr_assert_eq(inf_json_get(&node, "op", &member, &err), INF_OK);
    cr_assert_eq(inf_json_string(&member, &text, &err), INF_INVALID);
    cr_assert_str_eq(err.text, "node[0 'conv'].op: has 3, wanted a string");
    node = inf_json_at(&nodes, 1);
    cr_assert_eq(inf_json_get(&node, "op", &member, &err), INF_INVALID);
    cr_assert_str_eq(err.text, "node[1].op: is missing");
    inf_json_destroy(&root);
}

Test(json, shortens_ways_and_values_that_are_long)
{
    char text[4096];
    size_t size = 0;
    memset(text, '\0', sizeof text);
    for (int i = 0; i < 5; i++) {
        size += (size_t)sprintf(text + size, "{\"");
        memset(text + size, 'a' + i, 300);
        size += 300;
        size += (size_t)sprintf(text + size, "\":");
    }
    size += (size_t)sprintf(text + size, "\"\\n\\u0007%0500d\"}}}}}", 1);
    struct json_t *root = parse_text(text);
    struct inf_json steps[6] = {inf_json_root(root)};
    struct inf_error err = {0};
    for (int i = 0; i < 5; i++) {
        void *iterator = NULL;
        cr_assert(inf_json_next(&steps[i], &iterator, &steps[i + 1]));
    }
    int64_t number;
    cr_assert_eq(inf_json_int(&steps[5], 0, 1, &number, &err), INF_INVALID);
    cr_assert_lt(strlen(err.text), 500u);
    cr_assert_null(strpbrk(err.text, "\n\a"));
    cr_assert_not_null(strstr(err.text, "eeee: has the string \"??000"), "%s", err.text);
    inf_json_destroy(&root);
}

Test(json, reads_integers_as_numbers_and_as_text)
{
    struct json_t *root = parse_text(
        "[5,\"5\",\"-1\",\"9223372036854775807\",-9223372036854775808,"
        "\" 5\",\"+5\",\"5 \",\"\",\"0x5\",5.0,\"9223372036854775808\",true,"
        "null,\"--5\",\"-\"]");
    const int64_t wanted[] = {5, 5, -1, INT64_MAX, INT64_MIN};
    struct inf_json list = inf_json_root(root);
    size_t count;
    cr_assert_eq(inf_json_array(&list, &count, NULL), INF_OK);
    cr_assert_eq(count, 16u);
    for (size_t i = 0; i < count; i++) {
        struct inf_json item = inf_json_at(&list, i);
        int64_t number = 0;
        enum inf_code code = inf_json_int(&item, INT64_MIN, INT64_MAX, &number, NULL);
        cr_assert_eq(code, i < INF_ARRAY_LENGTH(wanted) ? INF_OK : INF_INVALID, "%zu", i);
        if (i < INF_ARRAY_LENGTH(wanted))
            cr_assert_eq(number, wanted[i]);
    }
    inf_json_destroy(&root);
}

Test(json, reads_numbers_that_are_finite_only)
{
    struct json_t *root = parse_text(
        "[1,-2.5,\"0.25\",\"1e3\",\"nan\",\"inf\",\"1e999\",\"\",\"1x\","
        "\" 1\",[],false]");
    const double wanted[] = {1, -2.5, 0.25, 1000};
    struct inf_json list = inf_json_root(root);
    for (size_t i = 0; i < 12; i++) {
        struct inf_json item = inf_json_at(&list, i);
        double number = 0;
        enum inf_code code = inf_json_number(&item, &number, NULL);
        cr_assert_eq(code, i < INF_ARRAY_LENGTH(wanted) ? INF_OK : INF_INVALID, "%zu", i);
        if (i < INF_ARRAY_LENGTH(wanted))
            cr_assert_eq(number, wanted[i]);
    }
    inf_json_destroy(&root);
}

Test(json, takes_null_for_absent_and_keeps_the_order_of_members)
{
    struct json_t *root = parse_text("{\"zebra\":1,\"ape\":null,\"mouse\":true}");
    struct inf_json document = inf_json_root(root), member;
    struct inf_error err = {0};
    static const char *const keys[] = {"zebra", "ape", "mouse"};
    void *iterator = NULL;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(inf_json_next(&document, &iterator, &member));
        cr_assert_str_eq(member.key, keys[i]);
    }
    cr_assert_not(inf_json_next(&document, &iterator, &member));
    cr_assert_eq(inf_json_find(&document, "ape", &member, &err), INF_OK);
    cr_assert_null(member.value);
    cr_assert_not(inf_json_has(&document, "ape"));
    cr_assert(inf_json_has(&document, "mouse"));
    cr_assert_eq(inf_json_get(&document, "ape", &member, &err), INF_INVALID);
    bool truth = false;
    cr_assert_eq(inf_json_get(&document, "mouse", &member, &err), INF_OK);
    cr_assert_eq(inf_json_bool(&member, &truth, &err), INF_OK);
    cr_assert(truth);
    cr_assert_not(inf_json_has(&member, "x"));
    iterator = NULL;
    struct inf_json inner;
    cr_assert_not(inf_json_next(&member, &iterator, &inner));
    inf_json_destroy(&root);
}

Test(json, names_are_short_printable_and_not_empty)
{
    char text[2048];
    for (int length = 511; length <= 513; length++) {
        sprintf(text, "[\"%0*d\",\"\",\"a\\nb\",\"a\\u007fb\",\"caf\xc3\xa9:0\",3]", length, 1);
        struct json_t *root = parse_text(text);
        struct inf_json list = inf_json_root(root);
        const enum inf_code wanted[] = {length <= 512 ? INF_OK : INF_INVALID,
                                        INF_INVALID,
                                        INF_INVALID,
                                        INF_INVALID,
                                        INF_OK,
                                        INF_INVALID};
        for (size_t i = 0; i < INF_ARRAY_LENGTH(wanted); i++) {
            struct inf_json item = inf_json_at(&list, i);
            const char *name = NULL;
            cr_assert_eq(inf_json_name(&item, &name, NULL), wanted[i], "%zu", i);
        }
        inf_json_destroy(&root);
    }
}
