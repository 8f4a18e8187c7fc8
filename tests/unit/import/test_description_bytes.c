// SPDX-License-Identifier: Apache-2.0
// Descriptions of models as bytes: what is written is read again, and nothing in the bytes is
// trusted.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/common/description_bytes.h"
#include "proto/core/span.h"

static const float means[] = {127.5f, 127, 128}, deviations[] = {1, 2, 3.5f};
static const char labels[] = "cat\0\0dog\xc3\xa9"; // three labels, of which one is empty

// Makes a description with every member set. It borrows constants.
static struct inf_model_description *make_description(void)
{
    static struct inf_described_tensor inputs[] = {
        {"image", "a picture", "", NULL, 0, INF_LABELS_NONE, means, deviations, 3}};
    static struct inf_described_tensor outputs[] = {
        {"class", "", "labels.txt", labels, 3, INF_LABELS_CLASSES, NULL, NULL, 0},
        {"", "", "", NULL, 0, INF_LABELS_NONE, NULL, NULL, 0}};
    static const char *signatures[] = {"classify", "train"};
    static struct inf_described_file files[] = {{"labels.txt", 1234567890123}};
    struct inf_model_description *description;
    cr_assert_eq(inf_model_description_create(&description, NULL), INF_OK);
    description->title = "MobileNet";
    description->text = "two\nlines";
    description->version = "2";
    description->author = "";
    description->license = "Apache-2.0";
    description->signatures = signatures;
    description->signature_count = 2;
    description->default_signature = "classify";
    description->inputs = inputs;
    description->input_count = 1;
    description->outputs = outputs;
    description->output_count = 2;
    description->files = files;
    description->file_count = 1;
    snprintf(description->problem, sizeof description->problem, "a part is missing");
    return description;
}

static uint8_t *write_bytes(const struct inf_model_description *description, size_t *size)
{
    uint8_t *bytes = inf_description_encode(description, size);
    cr_assert_not_null(bytes);
    return bytes;
}

Test(description_bytes, that_were_written_are_read_again)
{
    struct inf_model_description *description = make_description(), *copy;
    struct inf_error err = {0};
    size_t size;
    uint8_t *bytes = write_bytes(description, &size);
    cr_assert_eq(inf_description_decode(&copy, bytes, size, &err), INF_OK, "%s", err.text);
    memset(bytes, 0xee, size); // nothing of the copy is in the bytes
    free(bytes);
    cr_expect_str_eq(copy->title, "MobileNet");
    cr_expect_str_eq(copy->text, "two\nlines");
    cr_expect_str_eq(copy->version, "2");
    cr_expect_str_eq(copy->author, "");
    cr_expect_str_eq(copy->license, "Apache-2.0");
    cr_expect_eq(copy->signature_count, 2);
    cr_expect_str_eq(copy->signatures[1], "train");
    cr_expect_str_eq(copy->default_signature, "classify");
    cr_expect_eq(copy->input_count, 1);
    cr_expect_str_eq(copy->inputs[0].title, "image");
    cr_expect_str_eq(copy->inputs[0].text, "a picture");
    cr_expect_null(copy->inputs[0].labels);
    cr_expect_eq(copy->inputs[0].channel_count, 3);
    cr_expect_eq(memcmp(copy->inputs[0].mean, means, sizeof means), 0);
    cr_expect_eq(memcmp(copy->inputs[0].deviation, deviations, sizeof deviations), 0);
    cr_expect_eq(copy->output_count, 2);
    cr_expect_str_eq(copy->outputs[0].labels_file, "labels.txt");
    cr_expect_eq(copy->outputs[0].label_count, 3);
    cr_expect_eq(copy->outputs[0].label_kind, INF_LABELS_CLASSES);
    cr_expect_eq(memcmp(copy->outputs[0].labels, labels, sizeof labels), 0);
    cr_expect_eq(copy->outputs[1].channel_count, 0);
    cr_expect_eq(copy->file_count, 1);
    cr_expect_str_eq(copy->files[0].name, "labels.txt");
    cr_expect_eq(copy->files[0].size_bytes, 1234567890123);
    cr_expect_str_eq(copy->problem, "a part is missing");
    inf_model_description_unref(&copy);
    inf_model_description_unref(&description);
}

Test(description_bytes, of_an_empty_description_are_read_again)
{
    struct inf_model_description *description, *copy;
    size_t size;
    cr_assert_eq(inf_model_description_create(&description, NULL), INF_OK);
    uint8_t *bytes = write_bytes(description, &size);
    cr_assert_eq(inf_description_decode(&copy, bytes, size, NULL), INF_OK);
    cr_expect_str_eq(copy->license, "");
    cr_expect_null(copy->default_signature);
    cr_expect_eq(copy->signature_count + copy->input_count + copy->output_count, 0);
    free(bytes);
    inf_model_description_unref(&copy);
    inf_model_description_unref(&description);
}

static enum inf_code try_bytes(const uint8_t *bytes, size_t size)
{
    struct inf_model_description *copy = NULL;
    struct inf_error err = {0};
    // A block of its own, so that a sanitizer sees a read behind the end.
    uint8_t *block = malloc(size + (size == 0));
    memcpy(block, bytes, size);
    enum inf_code code = inf_description_decode(&copy, block, size, &err);
    cr_expect_eq(copy != NULL, code == INF_OK);
    inf_model_description_unref(&copy);
    free(block);
    return code;
}

Test(description_bytes, of_another_length_are_refused)
{
    struct inf_model_description *description = make_description();
    size_t size;
    uint8_t *bytes = write_bytes(description, &size);
    for (size_t cut = 0; cut < size; cut++)
        cr_expect_eq(try_bytes(bytes, cut), INF_INVALID, "%zu of %zu bytes", cut, size);
    bytes = realloc(bytes, size + 1);
    bytes[size] = 0;
    cr_expect_eq(try_bytes(bytes, size + 1), INF_INVALID);
    free(bytes);
    inf_model_description_unref(&description);
}

// Replaces the only occurrence of `from` by `to`, which has the same size.
static void replace_bytes(uint8_t *bytes, size_t size, const void *from, const void *to,
                          size_t length)
{
    uint8_t *at = memmem(bytes, size, from, length);
    cr_assert_not_null(at);
    memcpy(at, to, length);
}

Test(description_bytes, that_break_a_promise_are_refused)
{
    static const float infinite[] = {127.5f, 127, INFINITY}, zero[] = {1, 2, 0};
    const struct {
        const void *from, *to;
        size_t length;
    } breaks[] = {
        {"two\nlines", "two\0lines", 9},                // a text that ends early
        {means, infinite, sizeof means},                // a mean that is not finite
        {deviations, zero, sizeof deviations},          // a division by zero
        {labels, "cat\0\0dog\xc3\xa9!", sizeof labels}, // no end
        {labels, "ca\0\0\0dog\xc3\xa9", sizeof labels}, // one label more
    };
    struct inf_model_description *description = make_description();
    size_t size;
    uint8_t *bytes = write_bytes(description, &size);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(breaks); i++) {
        uint8_t *changed = malloc(size);
        memcpy(changed, bytes, size);
        replace_bytes(changed, size, breaks[i].from, breaks[i].to, breaks[i].length);
        cr_expect_eq(try_bytes(changed, size), INF_INVALID, "break %zu", i);
        free(changed);
    }
    free(bytes);
    inf_model_description_unref(&description);
}

Test(description_bytes, of_any_contents_are_refused_or_sound)
{
    struct inf_model_description *description = make_description();
    size_t size;
    uint64_t state = 7;
    uint8_t *bytes = write_bytes(description, &size), *changed = malloc(size);
    for (int i = 0; i < 20000; i++) {
        memcpy(changed, bytes, size);
        for (int k = 0; k < 3; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            changed[(state >> 33) % size] = (uint8_t)(state >> 56);
        }
        (void)try_bytes(changed, size);
    }
    free(bytes);
    free(changed);
    inf_model_description_unref(&description);
}
