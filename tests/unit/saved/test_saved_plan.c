// SPDX-License-Identifier: Apache-2.0
// Plans: what is written is read again, and a file that is damaged or foreign is refused.
#include "tests/unit/saved/plan_case.h"

TestSuite(saved_plan, .init = start_test, .fini = end_test);

Test(saved_plan, that_was_written_is_read_again)
{
    struct inf_graph *graph = make_graph(), *copy = NULL;
    struct inf_saved_plan plan;
    struct inf_error err = {0};
    write_plan("p");
    cr_assert_eq(inf_plan_file_read(&plan, directory, "p", &id, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(plan.facts.format, "onnx");
    cr_expect_eq(plan.facts.content_hash, 77);
    cr_expect_eq(memcmp(plan.facts.notes, facts.notes, sizeof facts.notes), 0);
    cr_expect_eq(plan.class_count, 0);
    cr_expect_eq(plan.form_count, 0);
    copy = plan.graph;
    char *wanted = print_to_text(graph), *has = print_to_text(copy);
    cr_expect_str_eq(has, wanted);
    free(wanted);
    free(has);
    cr_assert_eq(copy->value_count, graph->value_count);
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_blob *a = graph->values[i].data, *b = copy->values[i].data;
        cr_expect_str_eq(copy->values[i].name, graph->values[i].name);
        cr_assert_eq(a != NULL, b != NULL);
        if (a == NULL)
            continue;
        cr_assert_eq(a->size_bytes, b->size_bytes);
        cr_expect_eq(memcmp(a->data, b->data, a->size_bytes), 0);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        cr_expect_str_eq(copy->nodes[i].name, graph->nodes[i].name);
        cr_expect_str_eq(copy->nodes[i].source, graph->nodes[i].source);
    }
    // Two values that share a constant share it again.
    cr_expect_eq(copy->values[1].data, copy->values[2].data);
    struct stat status;
    cr_assert_eq(fstatat(directory, "p", &status, 0), 0);
    cr_expect_eq(status.st_mode & 0777, 0600);
    inf_graph_destroy(&graph);
    inf_saved_plan_fini(&plan);
}

static void expect_part(const struct inf_form_record *record, size_t part, size_t size,
                        uint8_t first)
{
    void *wanted = make_part(size, first);
    cr_assert_eq(record->part_bytes[part], size);
    cr_expect_eq((uintptr_t)record->parts[part] % 64, 0u);
    cr_expect_eq(memcmp(record->parts[part], wanted, size), 0);
    free(wanted);
}

Test(saved_plan, has_forms_and_classes)
{
    struct inf_saved_plan plan;
    struct inf_error err = {0};
    write_whole_plan("p");
    cr_assert_eq(inf_plan_file_read(&plan, directory, "p", &id, &err), INF_OK, "%s", err.text);
    cr_assert_eq(plan.class_count, 1);
    cr_expect_str_eq(plan.classes[0].device, "cpu");
    cr_expect_eq(plan.classes[0].precision, 1);
    cr_expect_eq(plan.classes[0].threads, 2);
    struct inf_graph *graph = make_graph();
    char *wanted = print_to_text(graph), *has = print_to_text(plan.classes[0].graph);
    cr_expect_str_eq(has, wanted);
    free(wanted);
    free(has);
    // The graphs share their constants. That of the filter has no bytes.
    struct inf_blob *filter = plan.graph->values[1].data;
    for (uint32_t i = 0; i < graph->value_count; i++)
        cr_expect_eq(plan.classes[0].graph->values[i].data, plan.graph->values[i].data);
    cr_expect_null(filter->data);
    cr_expect_eq(filter->size_bytes, graph->values[1].data->size_bytes);
    cr_assert_eq(plan.form_count, 2);
    cr_expect_eq(plan.forms[0].blob, filter);
    cr_expect_str_eq(plan.forms[0].record.device, "cpu");
    cr_expect_eq(plan.forms[0].record.description[0], 5);
    expect_part(&plan.forms[0].record, 0, PART_BYTES, 1);
    expect_part(&plan.forms[0].record, 1, 100, 2);
    cr_expect_eq(plan.forms[1].blob, filter);
    cr_expect_str_eq(plan.forms[1].record.device, "other");
    expect_part(&plan.forms[1].record, 0, 64, 3);
    cr_expect_eq(plan.forms[1].record.part_bytes[1], 0);
    inf_graph_destroy(&graph);
    inf_saved_plan_fini(&plan);
}

// A changed byte in any piece of the packed weights is noticed.
Test(saved_plan, with_changed_packed_weights_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_whole_plan("p");
    size_t size = load_file("p", &bytes);
    cr_expect_eq(try_plan("p", &id, &err), INF_OK, "%s", err.text);
    // The file ends with the parts of the forms: 700000, 100 and 64 bytes, each filled up to a
    // multiple of 64.
    const size_t begin = size - 64 - 128 - 700032;
    for (size_t i = begin; i < begin + PART_BYTES; i += 9973) {
        bytes[i] ^= 1;
        store_file("p", bytes, size);
        cr_expect_eq(try_plan("p", &id, &err), INF_INVALID, "byte %zu of %zu", i, size);
        bytes[i] ^= 1;
    }
    // Two pieces of the same part that change places.
    uint8_t *first = bytes + begin + 4000, swap = *first;
    cr_assert_neq(*first, first[256 << 10]);
    *first = first[256 << 10];
    first[256 << 10] = swap;
    store_file("p", bytes, size);
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    free(bytes);
}

Test(saved_plan, that_lacks_the_bytes_of_a_constant_is_not_written)
{
    struct inf_error err = {0};
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()};
    struct inf_blob *filter = plan.graph->values[1].data;
    void *data = filter->data;
    filter->data = NULL;
    cr_expect_eq(inf_plan_file_write(directory, "p", 0600, &id, &plan, &err), INF_INVALID);
    cr_expect_eq(try_plan("p", &id, &err), INF_NOT_FOUND);
    filter->data = data;
    inf_saved_plan_fini(&plan);
}

Test(saved_plan, of_another_model_or_build_is_refused)
{
    struct inf_error err;
    write_plan("p");
    cr_expect_eq(try_plan("p", &id, &err), INF_OK, "%s", err.text);
    cr_expect_eq(try_plan("p", &(struct inf_plan_id){0x1235, id.build}, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "another model"), "%s", err.text);
    cr_expect_eq(try_plan("p", &(struct inf_plan_id){id.key, "1.2.3 abd"}, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "another version"), "%s", err.text);
    cr_expect_eq(try_plan("q", &id, &err), INF_NOT_FOUND);
}

Test(saved_plan, that_others_may_have_written_is_refused)
{
    struct inf_error err;
    write_plan("p");
    cr_assert_eq(fchmodat(directory, "p", 0620, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_DENIED);
    cr_assert_eq(fchmodat(directory, "p", 0602, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_DENIED);
    cr_assert_eq(fchmodat(directory, "p", 0644, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_OK, "%s", err.text);
    cr_assert_eq(symlinkat("p", directory, "link"), 0);
    cr_expect_eq(try_plan("link", &id, &err), INF_DENIED);
    cr_assert_eq(linkat(directory, "p", directory, "second", 0), 0);
    cr_expect_eq(try_plan("second", &id, &err), INF_DENIED);
    if (geteuid() != 0)
        return;
    cr_assert_eq(unlinkat(directory, "second", 0), 0);
    cr_assert_eq(fchownat(directory, "p", 12345, 12345, 0), 0);
    cr_expect_eq(try_plan("p", &id, &err), INF_DENIED);
}

Test(saved_plan, that_is_cut_off_or_longer_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_plan("p");
    size_t size = load_file("p", &bytes);
    for (size_t cut = 0; cut < size; cut += cut < 300 ? 1 : 61) {
        store_file("p", bytes, cut);
        cr_assert_eq(try_plan("p", &id, &err), INF_INVALID, "%zu bytes", cut);
    }
    bytes = realloc(bytes, size + 64);
    memset(bytes + size, 0, 64);
    store_file("p", bytes, size + 64);
    cr_expect_eq(try_plan("p", &id, &err), INF_INVALID);
    free(bytes);
}

Test(saved_plan, with_a_changed_byte_is_refused)
{
    struct inf_error err;
    uint8_t *bytes;
    write_plan("p");
    size_t size = load_file("p", &bytes);
    // The bytes between two parts have no meaning, and are zeros.
    size_t passed = 0;
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (uint8_t)(1u << (i % 8));
        store_file("p", bytes, size);
        passed += try_plan("p", &id, &err) == INF_OK;
        bytes[i] ^= (uint8_t)(1u << (i % 8));
    }
    cr_expect_leq(passed, 63u * 8, "%zu of %zu bytes count for nothing", passed, size);
    free(bytes);
}

// Makes a graph whose output is a constant of the strings "alpha", "" and "beta". *handles are its
// elements.
static struct inf_graph *make_strings(uint64_t **handles)
{
    static const char *const texts[] = {"alpha", "", "beta"};
    struct inf_graph *graph = new_graph();
    struct inf_blob *blob = inf_blob_create(3 * sizeof **handles);
    uint32_t value;
    *handles = blob->data;
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(
            inf_string_pool_add(inf_shared_strings_pool(graph->strings),
                                (struct inf_span){(const uint8_t *)texts[i], strlen(texts[i])},
                                &(*handles)[i], NULL),
            INF_OK);
    cr_assert_eq(
        inf_graph_add_const(graph, "words", INF_DTYPE_BYTES, &INF_SHAPE(3), blob, &value, NULL),
        INF_OK);
    add_output(graph, "y", value);
    return graph;
}

Test(saved_plan, constants_of_strings_are_saved_with_their_strings)
{
    struct inf_error err = {0};
    uint64_t *handles;
    struct inf_graph *graph = make_strings(&handles);
    struct inf_saved_plan plan = {.facts = facts, .graph = graph}, read;
    cr_assert_eq(inf_plan_file_write(directory, "s", 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(inf_plan_file_read(&read, directory, "s", &id, &err), INF_OK, "%s", err.text);
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(read.graph->strings)};
    const uint64_t *copies = read.graph->values[0].data->data;
    struct inf_span string;
    cr_assert_eq(inf_strings_get(&strings, copies[0], &string, &err), INF_OK, "%s", err.text);
    cr_expect(string.size == 5 && memcmp(string.data, "alpha", 5) == 0);
    cr_assert_eq(inf_strings_get(&strings, copies[1], &string, &err), INF_OK);
    cr_expect_eq(string.size, 0);
    cr_assert_eq(inf_strings_get(&strings, copies[2], &string, &err), INF_OK);
    cr_expect(string.size == 4 && memcmp(string.data, "beta", 4) == 0);
    inf_saved_plan_fini(&read);
    // A forger writes handles of strings that a request sends, or that do not exist.
    const uint64_t good = handles[2];
    const uint64_t forged[] = {good & ~(UINT64_C(1) << 63), good + 1, good + (UINT64_C(1) << 32)};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(forged); i++) {
        handles[2] = forged[i];
        cr_assert_eq(inf_plan_file_write(directory, "s", 0600, &id, &plan, &err), INF_OK);
        cr_expect_eq(try_plan("s", &id, &err), INF_INVALID, "handle %zu", i);
    }
    handles[2] = good;
    inf_graph_destroy(&graph);
}

Test(saved_plan, has_what_the_load_adds)
{
    struct inf_error err = {0};
    char text[] = "labels and licences";
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()}, read;
    plan.extra = text;
    plan.extra_bytes = sizeof text;
    cr_assert_eq(inf_plan_file_write(directory, "e", 0600, &id, &plan, &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(inf_plan_file_read(&read, directory, "e", &id, &err), INF_OK, "%s", err.text);
    cr_expect_eq(read.extra_bytes, sizeof text);
    cr_expect_str_eq(read.extra, text);
    inf_saved_plan_fini(&read);
    plan.extra_bytes = INF_PLAN_EXTRA_BYTES_MAX + 1;
    cr_expect_eq(inf_plan_file_write(directory, "e", 0600, &id, &plan, &err), INF_EXHAUSTED);
    plan.extra = NULL;
    plan.extra_bytes = 0;
    inf_saved_plan_fini(&plan);
}
