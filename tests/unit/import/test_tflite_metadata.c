// SPDX-License-Identifier: Apache-2.0
// What TFLite files say about themselves: texts, normalisation, labels in the archive behind the
// model, and what becomes of damaged metadata. Python's zipfile wrote the archives.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/common/description.h"
#include "backends/import/tflite/archive.h"
#include "backends/import/tflite/tflite.h"
#include "backends/ref/ref.h"
#include "proto/core/limits.h"
#include "tests/support/models/tflite_writer.h"

enum {
    FLOAT32 = 0,
    OPERATOR_RELU = 19,
    AXIS_LABELS = 2,
    VALUE_LABELS = 3,
    NORMALIZATION = 1,
    // Byte positions in the archive `stored`: of the packed bytes, and of the directory entry.
    STORED_DATA = 40,
    STORED_DIRECTORY = 63,
};

// labels.txt with "red\r\ngreen\ngreen\nblue\n\n", stored and deflated.
static const uint8_t stored[] = {
    0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x00, 0x71, 0x3c,
    0xe4, 0x78, 0x17, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x6c, 0x61,
    0x62, 0x65, 0x6c, 0x73, 0x2e, 0x74, 0x78, 0x74, 0x72, 0x65, 0x64, 0x0d, 0x0a, 0x67, 0x72, 0x65,
    0x65, 0x6e, 0x0a, 0x67, 0x72, 0x65, 0x65, 0x6e, 0x0a, 0x62, 0x6c, 0x75, 0x65, 0x0a, 0x0a, 0x50,
    0x4b, 0x01, 0x02, 0x14, 0x03, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x00, 0x71,
    0x3c, 0xe4, 0x78, 0x17, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x6c, 0x61, 0x62,
    0x65, 0x6c, 0x73, 0x2e, 0x74, 0x78, 0x74, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x01,
    0x00, 0x01, 0x00, 0x38, 0x00, 0x00, 0x00, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00};
static const uint8_t deflated[] = {
    0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0x71, 0x3c,
    0xe4, 0x78, 0x13, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x6c, 0x61,
    0x62, 0x65, 0x6c, 0x73, 0x2e, 0x74, 0x78, 0x74, 0x2b, 0x4a, 0x4d, 0xe1, 0xe5, 0x4a, 0x2f, 0x4a,
    0x4d, 0xcd, 0x83, 0x92, 0x49, 0x39, 0xa5, 0xa9, 0x5c, 0x5c, 0x00, 0x50, 0x4b, 0x01, 0x02, 0x14,
    0x03, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0x71, 0x3c, 0xe4, 0x78, 0x13,
    0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x6c, 0x61, 0x62, 0x65, 0x6c, 0x73, 0x2e,
    0x74, 0x78, 0x74, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x38,
    0x00, 0x00, 0x00, 0x3b, 0x00, 0x00, 0x00, 0x00, 0x00};

static struct tflite_file metadata, file;
static struct inf_graph *graph;
static struct inf_model_description *description;
static struct inf_error err;

static void tear_down(void)
{
    inf_graph_destroy(&graph);
    inf_model_description_unref(&description);
}

TestSuite(tflite_metadata, .fini = tear_down);

// Positions in the metadata, for tests that change them.
static struct {
    size_t files[2];  // tables AssociatedFile of the output
    size_t normalise; // table NormalizationOptions
    size_t mean, deviation;
} places;

static void write_text(size_t table, uint32_t id, const char *text)
{
    tflite_vector(&metadata, table, id, text, (uint32_t)strlen(text), 1);
}

static size_t write_child(size_t at, const uint8_t *sizes, uint32_t count)
{
    size_t table = tflite_table(&metadata, sizes, count);
    tflite_point(&metadata, at, table);
    return table;
}

static size_t write_input(size_t at)
{
    static const uint8_t sizes[] = {4, 4, 0, 0, 4}, unit_sizes[] = {1, 4}, norm_sizes[] = {4, 4};
    size_t tensor = write_child(at, sizes, 5);
    write_text(tensor, 0, "image");
    write_text(tensor, 1, "A picture.");
    size_t units = tflite_vector(&metadata, tensor, 4, NULL, 1, 4);
    size_t unit = write_child(units, unit_sizes, 2);
    tflite_set(&metadata, unit, 0, NORMALIZATION, 1);
    places.normalise = write_child(tflite_field(&metadata, unit, 1), norm_sizes, 2);
    places.mean =
        tflite_vector(&metadata, places.normalise, 0, (const float[]){127.5f, 1, 2}, 3, 4);
    places.deviation = tflite_vector(&metadata, places.normalise, 1, (const float[]){64}, 1, 4);
    return tensor;
}

// The output has two files with labels: one for a language, and `labels.txt` for all.
static void write_output(size_t at)
{
    static const uint8_t sizes[] = {4, 0, 0, 0, 0, 0, 4}, file_sizes[] = {4, 0, 1, 4};
    static const uint8_t plain_sizes[] = {4, 0, 1};
    size_t tensor = write_child(at, sizes, 7);
    write_text(tensor, 0, "scores");
    size_t files = tflite_vector(&metadata, tensor, 6, NULL, 2, 4);
    places.files[0] = write_child(files, file_sizes, 4);
    tflite_set(&metadata, places.files[0], 2, AXIS_LABELS, 1);
    write_text(places.files[0], 0, "labels_de.txt");
    write_text(places.files[0], 3, "de");
    places.files[1] = write_child(files + 4, plain_sizes, 3);
    tflite_set(&metadata, places.files[1], 2, AXIS_LABELS, 1);
    write_text(places.files[1], 0, "labels.txt");
}

static void write_metadata(void)
{
    static const uint8_t sizes[] = {4, 4, 4, 4, 4, 4}, subgraph_sizes[] = {0, 0, 4, 4};
    tflite_begin(&metadata);
    memcpy(metadata.data + 4, "M001", 4);
    size_t root = tflite_table(&metadata, sizes, 6);
    write_text(root, 0, "Colours");
    write_text(root, 1, "Tells colours.");
    write_text(root, 2, "v7");
    write_text(root, 4, "an author");
    write_text(root, 5, "a license");
    size_t list = tflite_vector(&metadata, root, 3, NULL, 1, 4);
    size_t subgraph = write_child(list, subgraph_sizes, 4);
    (void)write_input(tflite_vector(&metadata, subgraph, 2, NULL, 1, 4));
    write_output(tflite_vector(&metadata, subgraph, 3, NULL, 1, 4));
}

// Writes y = RELU(x) with the metadata, and appends an archive (NULL: none).
static struct tflite_places write_model(const uint8_t *archive, size_t archive_bytes)
{
    static const struct tflite_tensor tensors[] = {
        {.name = "x", .type = FLOAT32, .rank = 1, .shape = {4}},
        {.name = "y", .type = FLOAT32, .rank = 1, .shape = {4}}};
    struct tflite_places at =
        tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_RELU,
                                                   .tensors = tensors,
                                                   .tensor_count = 2,
                                                   .metadata = tflite_bytes(&metadata),
                                                   .signature = "serving_default"});
    if (archive_bytes > 0)
        memcpy(file.data + file.size, archive, archive_bytes);
    file.size += archive_bytes;
    return at;
}

static enum inf_code import_bytes(struct inf_span bytes)
{
    char producer[64];
    const struct inf_import_options options = {.evaluator = inf_ref_evaluator(),
                                               .description = &description};
    tear_down();
    err = (struct inf_error){0};
    return inf_tflite_import(&graph, producer, bytes, NULL, &options, &err);
}

static void import_model(const uint8_t *archive, size_t archive_bytes)
{
    write_model(archive, archive_bytes);
    cr_assert_eq(import_bytes(tflite_bytes(&file)), INF_OK, "%s", err.text);
    cr_assert_not_null(description);
}

static void expect_problem(const char *part)
{
    cr_expect_not_null(strstr(description->problem, part), "'%s' lacks '%s'", description->problem,
                       part);
}

static void expect_labels(void)
{
    static const char labels[] = "red\0green\0green\0blue";
    cr_assert_str_eq(description->problem, "");
    cr_assert_eq(description->output_count, 1);
    const struct inf_described_tensor *output = &description->outputs[0];
    cr_expect_eq(output->label_kind, INF_LABELS_CLASSES);
    cr_expect_str_eq(output->labels_file, "labels.txt");
    cr_assert_eq(output->label_count, 4);
    cr_expect_arr_eq(output->labels, labels, sizeof labels);
}

Test(tflite_metadata, are_read_with_the_labels_in_the_archive)
{
    write_metadata();
    import_model(stored, sizeof stored);
    cr_expect_str_eq(description->title, "Colours");
    cr_expect_str_eq(description->text, "Tells colours.");
    cr_expect_str_eq(description->version, "v7");
    cr_expect_str_eq(description->author, "an author");
    cr_expect_str_eq(description->license, "a license");
    cr_assert_eq(description->signature_count, 1);
    cr_expect_str_eq(description->signatures[0], "serving_default");
    cr_assert_eq(description->file_count, 1);
    cr_expect_str_eq(description->files[0].name, "labels.txt");
    cr_expect_eq(description->files[0].size_bytes, 23);
    cr_assert_eq(description->input_count, 1);
    const struct inf_described_tensor *input = &description->inputs[0];
    cr_expect_str_eq(input->title, "image");
    cr_expect_str_eq(input->text, "A picture.");
    cr_expect_eq(input->label_kind, INF_LABELS_NONE);
    cr_assert_eq(input->channel_count, 3);
    cr_expect(input->mean[0] == 127.5f && input->mean[1] == 1 && input->mean[2] == 2);
    // One deviation is for all channels.
    cr_expect(input->deviation[0] == 64 && input->deviation[2] == 64);
    expect_labels();
}

Test(tflite_metadata, labels_may_be_deflated_or_count_positions_from_the_model)
{
    uint8_t absolute[sizeof stored];
    write_metadata();
    import_model(deflated, sizeof deflated);
    expect_labels();
    // Some programs write the archive into the model file instead of appending a finished archive.
    // The positions in such an archive count from the first byte of the model.
    write_model(stored, 0);
    uint32_t directory = (uint32_t)file.size + STORED_DIRECTORY, local = (uint32_t)file.size;
    memcpy(absolute, stored, sizeof stored);
    memcpy(absolute + sizeof stored - 6, &directory, 4);
    memcpy(absolute + STORED_DIRECTORY + 42, &local, 4);
    import_model(absolute, sizeof absolute);
    expect_labels();
}

Test(tflite_metadata, labels_of_values_are_told_apart)
{
    write_metadata();
    tflite_set(&metadata, places.files[1], 2, VALUE_LABELS, 1);
    import_model(stored, sizeof stored);
    cr_expect_eq(description->outputs[0].label_kind, INF_LABELS_VALUES);
    // Other files of a tensor are no labels.
    tflite_set(&metadata, places.files[1], 2, 5, 1);
    import_model(stored, sizeof stored);
    expect_problem("labels 'labels_de.txt': no associated file has this name");
    cr_expect_eq(description->outputs[0].label_kind, INF_LABELS_NONE);
}

Test(tflite_metadata, are_absent_from_files_without_them)
{
    tflite_begin(&metadata);
    metadata.size = 0;
    import_model(NULL, 0);
    cr_expect_str_eq(description->title, "");
    cr_expect_str_eq(description->problem, "");
    cr_expect_eq(description->file_count, 0);
    cr_expect_eq(description->input_count + description->output_count, 0);
}

Test(tflite_metadata, that_are_damaged_leave_a_model_that_tells_why)
{
    static const float zero = 0, infinite = INFINITY;
    write_metadata();
    memcpy(metadata.data + 4, "M002", 4);
    import_model(stored, sizeof stored);
    expect_problem("lack the identifier M001");
    write_metadata();
    memcpy(metadata.data + places.deviation, &zero, 4);
    import_model(stored, sizeof stored);
    expect_problem(
        "table NormalizationOptions, field std: element 0 is 0, wanted a finite number "
        "other than 0");
    cr_expect_eq(description->inputs[0].channel_count, 0);
    cr_expect_str_eq(description->title, "Colours");
    write_metadata();
    memcpy(metadata.data + places.mean, &infinite, 4);
    import_model(stored, sizeof stored);
    expect_problem("field mean: element 0 is inf");
    write_metadata();
    tflite_put(&metadata, places.mean - 4, 2, 4);
    tflite_vector(&metadata, places.normalise, 1, (const float[]){1, 1, 1}, 3, 4);
    import_model(stored, sizeof stored);
    expect_problem("has 3 numbers for 2 means");
    write_metadata();
    tflite_vector(&metadata, places.normalise, 0, NULL, 65, 4);
    import_model(stored, sizeof stored);
    expect_problem("at most 64");
    write_metadata();
    import_model(NULL, 0);
    expect_problem("labels 'labels.txt': no associated file has this name");
    cr_expect_eq(description->outputs[0].label_kind, INF_LABELS_NONE);
}

// Imports a model whose archive has one changed byte. Expects that the model has no labels, and
// that the reported problem contains the text `part`.
static void expect_refused(const uint8_t *archive, size_t size, size_t at, uint8_t byte,
                           const char *part)
{
    uint8_t changed[sizeof stored];
    memcpy(changed, archive, size);
    changed[at] = byte;
    import_model(changed, size);
    expect_problem(part);
    cr_expect_eq(description->outputs[0].label_count, 0);
}

Test(tflite_metadata, archives_that_are_damaged_are_refused_by_what_is_wrong)
{
    write_metadata();
    expect_refused(stored, sizeof stored, STORED_DATA, 'R', "does not have its checksum");
    expect_refused(stored, sizeof stored, 0, 'Q', "the archive has no file at byte");
    expect_refused(stored, sizeof stored, 27, 0x7f, "a file of the archive has 23 bytes at byte");
    expect_refused(stored, sizeof stored, STORED_DIRECTORY, 'Q', "has no entry at byte");
    expect_refused(stored, sizeof stored, STORED_DIRECTORY + 8, 1, "is encrypted");
    expect_refused(stored, sizeof stored, STORED_DIRECTORY + 10, 1, "packed by method 1");
    expect_refused(stored, sizeof stored, STORED_DIRECTORY + 24, 0x18, "has 23 bytes, not 24");
    expect_refused(stored, sizeof stored, STORED_DIRECTORY + 28, 0x0b, "ends beyond its directory");
    expect_refused(deflated, sizeof deflated, STORED_DATA, 0xff, "cannot be unpacked");
    expect_refused(deflated, sizeof deflated, 59 + 24, 0x18, "cannot be unpacked");
    expect_refused(deflated, sizeof deflated, 59 + 24, 0x16, "cannot be unpacked");
    uint8_t wide[sizeof stored];
    memcpy(wide, stored, sizeof stored);
    memset(wide + STORED_DIRECTORY + 24, 0xff, 4);
    import_model(wide, sizeof wide);
    expect_problem("64-bit size");
    expect_refused(stored, sizeof stored, sizeof stored - 10, 0xff, "has no entry at byte");
    expect_refused(stored, sizeof stored, STORED_DIRECTORY + 20, 0xff,
                   "a file of the archive has 255 bytes at byte");
    // A directory that begins behind its own end is none.
    expect_refused(stored, sizeof stored, sizeof stored - 5, 0xff, "no associated file");
    // A record that does not end where the file ends is no end record.
    expect_refused(stored, sizeof stored, sizeof stored - 2, 1, "no associated file");
    // What was read before the failure stays.
    memcpy(wide, stored, sizeof stored);
    wide[sizeof stored - 12] = 2;
    import_model(wide, sizeof wide);
    expect_problem("has no entry at byte");
    cr_expect_eq(description->outputs[0].label_count, 4);
}

// Writes an archive of empty files, the last of which has its local header `behind` bytes before
// the end of the archive. Returns the size.
static size_t write_archive(uint8_t *archive, uint32_t count, size_t behind)
{
    static const uint8_t local[30] = "PK\003\004", entry[46] = "PK\001\002", end[22] = "PK\005\006";
    uint32_t directory = sizeof local, size = count * (sizeof entry + 1);
    memcpy(archive, local, sizeof local);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = archive + directory + i * (sizeof entry + 1);
        memcpy(at, entry, sizeof entry);
        at[28] = 1;
        at[sizeof entry] = 'x';
    }
    uint8_t *at = archive + directory + size;
    size_t total = directory + size + sizeof end + 4;
    memcpy(at, end, sizeof end);
    memcpy(at + 10, &count, 2);
    memcpy(at + 12, &size, 4);
    memcpy(at + 16, &directory, 4);
    at[20] = 4; // the comment is the mark of a local header
    memcpy(at + sizeof end, local, 4);
    if (behind > 0)
        memcpy(at - sizeof entry - 1 + 42, &(uint32_t){(uint32_t)(total - behind)}, 4);
    return total;
}

Test(tflite_metadata, archives_have_a_limit_of_files_and_whole_headers)
{
    static uint8_t archive[4096];
    write_metadata();
    import_model(archive, write_archive(archive, INF_DESCRIPTION_FILES, 0));
    cr_expect_eq(description->file_count, INF_DESCRIPTION_FILES);
    cr_expect_str_eq(description->files[63].name, "x");
    expect_problem("no associated file has this name");
    import_model(archive, write_archive(archive, INF_DESCRIPTION_FILES + 1, 0));
    cr_expect_eq(description->file_count, INF_DESCRIPTION_FILES);
    expect_problem("more than 64 associated files");
    import_model(archive, write_archive(archive, 2, 4));
    cr_expect_eq(description->file_count, 1);
    expect_problem("the archive has no file at byte");
    size_t size = write_archive(archive, 1, 0);
    archive[size - 26 - 1] = 0xff;
    import_model(archive, size);
    cr_expect_eq(description->file_count, 0);
    expect_problem("the name of an associated file is no UTF-8");
}

Test(tflite_metadata, describe_at_most_as_many_tensors_as_requests_have)
{
    static const uint8_t sizes[] = {0, 0, 0, 4}, subgraph_sizes[] = {0, 0, 4}, tensor_sizes[] = {0};
    tflite_begin(&metadata);
    memcpy(metadata.data + 4, "M001", 4);
    size_t root = tflite_table(&metadata, sizes, 4);
    size_t subgraph = write_child(tflite_vector(&metadata, root, 3, NULL, 1, 4), subgraph_sizes, 3);
    size_t list = tflite_vector(&metadata, subgraph, 2, NULL, INF_LIMIT_TENSORS + 1, 4);
    size_t tensor = tflite_table(&metadata, tensor_sizes, 1);
    for (uint32_t i = 0; i <= INF_LIMIT_TENSORS; i++)
        tflite_point(&metadata, list + 4 * (size_t)i, tensor);
    import_model(NULL, 0);
    cr_expect_str_eq(description->problem, "");
    cr_expect_eq(description->input_count, INF_LIMIT_TENSORS);
}

Test(tflite_metadata, that_are_too_large_are_not_read)
{
    static const uint32_t large = (1u << 20) + 1;
    write_metadata();
    write_model(NULL, 0);
    const uint8_t *mark = memmem(file.data, file.size, "M001", 4);
    cr_assert_not_null(mark);
    size_t at = (size_t)(mark - file.data) - 8;
    uint8_t *bytes = calloc(1, at + 4 + large);
    cr_assert_not_null(bytes);
    memcpy(bytes, file.data, file.size);
    memcpy(bytes + at, &large, 4);
    cr_assert_eq(import_bytes((struct inf_span){bytes, at + 4 + large}), INF_OK, "%s", err.text);
    expect_problem("the metadata have 1048577 bytes, at most 1048576 are read");
    cr_expect_str_eq(description->title, "");
    free(bytes);
}

Test(tflite_metadata, labels_have_a_limit_and_are_utf8)
{
    uint8_t changed[sizeof stored];
    static const uint32_t large = INF_DESCRIPTION_LABEL_BYTES + 1;
    write_metadata();
    memcpy(changed, stored, sizeof stored);
    memcpy(changed + STORED_DIRECTORY + 24, &large, 4);
    import_model(changed, sizeof changed);
    expect_problem("labels 'labels.txt': the model has more than 524288 bytes");
    // 0xe8e60670 is the CRC-32 of the changed bytes, computed by Python.
    memcpy(changed, stored, sizeof stored);
    changed[STORED_DATA] = 0xff;
    memcpy(changed + STORED_DIRECTORY + 16, &(uint32_t){0xe8e60670}, 4);
    import_model(changed, sizeof changed);
    expect_problem("labels 'labels.txt': no UTF-8");
}

Test(tflite_metadata, of_a_buffer_that_does_not_exist_are_refused)
{
    write_metadata();
    struct tflite_places at = write_model(stored, sizeof stored);
    uint32_t distance, list = (uint32_t)tflite_field(&file, at.root, 6);
    memcpy(&distance, file.data + list, 4);
    size_t item = list + distance + 4;
    memcpy(&distance, file.data + item, 4);
    tflite_set(&file, item + distance, 1, 99, 4);
    cr_expect_eq(import_bytes(tflite_bytes(&file)), INF_INVALID);
    cr_expect_str_eq(err.text, "table Metadata, field buffer: is 99, there are 4");
    cr_expect_null(description);
}

Test(tflite_metadata, changed_at_every_byte_or_cut_off_do_no_harm)
{
    write_metadata();
    write_model(deflated, sizeof deflated);
    static const uint8_t changes[] = {0x01, 0x80, 0xff};
    for (size_t i = 0; i < file.size; i++)
        for (size_t k = 0; k < sizeof changes; k++) {
            file.data[i] ^= changes[k];
            (void)!import_bytes(tflite_bytes(&file));
            file.data[i] ^= changes[k];
        }
    for (size_t size = 0; size < file.size; size++) {
        // Bytes of their own, so that a sanitizer detects a read beyond the end.
        uint8_t *copy = malloc(size + 1);
        cr_assert_not_null(copy);
        memcpy(copy, file.data, size);
        (void)!import_bytes((struct inf_span){copy, size});
        free(copy);
    }
}
