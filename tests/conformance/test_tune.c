// SPDX-License-Identifier: Apache-2.0
// Results of races and measured speeds of devices are kept in files over a restart, and damaged
// files are not believed.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/place/speed.h"
#include "backends/place/tune.h"
#include "tests/support/device/ref_kit.h"

static char directory[64];
static unsigned warnings;

static void count_warnings(void *context, enum inf_log_level level, const char *text)
{
    (void)context;
    (void)text;
    warnings += level == INF_LOG_WARNING;
}

static const struct inf_log sink = {.write = count_warnings, .level = INF_LOG_DEBUG};

static struct inf_tune *open_tune(void)
{
    struct inf_tune *tune;
    warnings = 0;
    cr_assert_eq(inf_tune_open(&tune, directory, &sink, NULL), INF_OK);
    return tune;
}

static void create_directory(void)
{
    strcpy(directory, "/tmp/inf-tune-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
}

static void remove_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(tune, .init = create_directory, .fini = remove_directory);

static struct inf_device *tune_device;

static struct inf_race finished_race(void)
{
    tune_device = open_ref();
    struct inf_race race = {.count = 2, .chosen = 1};
    for (int i = 0; i < 2; i++)
        race.entries[i] =
            (struct inf_race_entry){.device = tune_device,
                                    .verdict = i == 1 ? INF_RACE_CHOSEN : INF_RACE_SLOWER,
                                    .runs = 5,
                                    .first_ns = 1000,
                                    .median_ns = 100u + (unsigned)i};
    return race;
}

static void expect_found(const struct inf_tune *tune, uint64_t key)
{
    const struct inf_tune_record *record = inf_tune_find(tune, key);
    cr_assert_not_null(record);
    cr_assert_eq(record->chosen, 1u);
    cr_assert_eq(record->count, 2u);
    cr_assert_str_eq(record->entries[0].device, "ref");
    cr_assert_eq(record->entries[0].median_ns, 100u);
    cr_assert_eq(record->entries[1].verdict, INF_RACE_CHOSEN);
}

Test(tune, remembers_over_a_restart)
{
    struct inf_race race = finished_race();
    struct inf_tune *tune = open_tune();
    cr_assert_null(inf_tune_find(tune, 7));
    for (uint64_t key = 7; key < 10; key++)
        inf_tune_add(tune, key, &race);
    expect_found(tune, 8);
    inf_tune_close(&tune);
    tune = open_tune();
    for (uint64_t key = 7; key < 10; key++)
        expect_found(tune, key);
    cr_assert_null(inf_tune_find(tune, 10));
    cr_assert_eq(warnings, 0u);
    inf_tune_close(&tune);
    inf_device_unref(&tune_device);
}

Test(tune, remembers_why_a_candidate_was_refused)
{
    // Blanks, percent signs, control characters and a reason that is too long.
    char too_long[INF_TUNE_REASON + 8] = "", cut[INF_TUNE_REASON] = "";
    memset(too_long, 'r', sizeof too_long - 1);
    memset(cut, 'r', sizeof cut - 1);
    const char *const reasons[] = {"",      "-",    "output 'y' differs 100% at element 2",
                                   "%41 %", "a\tb", too_long};
    const char *const wanted[] = {"",      "",    "output 'y' differs 100% at element 2",
                                  "%41 %", "a?b", cut};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        struct inf_race race = finished_race();
        snprintf(race.entries[0].why, sizeof race.entries[0].why, "%s", reasons[i]);
        struct inf_tune *tune = open_tune();
        inf_tune_add(tune, 7 + i, &race);
        inf_tune_close(&tune);
        tune = open_tune();
        expect_found(tune, 7 + i);
        cr_expect_str_eq(inf_tune_find(tune, 7 + i)->entries[0].why, wanted[i]);
        inf_tune_close(&tune);
        inf_device_unref(&tune_device);
    }
    cr_assert_eq(warnings, 0u);
}

// Writes these bytes as the tune file, in place of the file that is there.
static void with_file(const char *contents, size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "%s/tune.db", directory);
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(contents, 1, size, file), size);
    fclose(file);
}

static size_t read_back(char *contents, size_t capacity)
{
    char path[96];
    snprintf(path, sizeof path, "%s/tune.db", directory);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    size_t size = fread(contents, 1, capacity, file);
    fclose(file);
    return size;
}

Test(tune, takes_no_damaged_line_for_a_decision)
{
    char whole[4096], damaged[4096];
    struct inf_race race = finished_race();
    struct inf_tune *tune = open_tune();
    inf_tune_add(tune, 1, &race);
    inf_tune_close(&tune);
    size_t size = read_back(whole, sizeof whole);
    // Given a file in which one bit after the header line is wrong, or which is truncated at any
    // length, expect the right result or none.
    size_t header = (size_t)(strchr(whole, '\n') - whole) + 1;
    for (size_t i = header; i < size; i++) {
        memcpy(damaged, whole, size);
        damaged[i] ^= (char)(1 << i % 8);
        with_file(damaged, size);
        tune = open_tune();
        // A hexadecimal digit of the checksum in capitals has the same value, so the entry remains
        // valid.
        if (inf_tune_find(tune, 1) != NULL)
            expect_found(tune, 1);
        else
            cr_assert_eq(warnings, 1u, "byte %zu", i);
        inf_tune_close(&tune);
    }
    for (size_t i = 0; i < size; i++) {
        with_file(whole, i);
        tune = open_tune();
        cr_assert_null(inf_tune_find(tune, 1), "%zu bytes", i);
        inf_tune_add(tune, 2, &race); // adding a result repairs the file
        inf_tune_close(&tune);
        tune = open_tune();
        expect_found(tune, 2);
        cr_assert_eq(warnings, 0u);
        inf_tune_close(&tune);
    }
    inf_device_unref(&tune_device);
}

Test(tune, does_without_a_file_that_it_can_use)
{
    struct inf_race race = finished_race();
    char path[96];
    // If a folder has the name of the file, the folder is neither read nor replaced.
    snprintf(path, sizeof path, "%s/tune.db", directory);
    cr_assert_eq(mkdir(path, 0700), 0);
    struct inf_tune *tune = open_tune();
    inf_tune_add(tune, 1, &race);
    inf_tune_add(tune, 2, &race);
    expect_found(tune, 1);
    cr_assert_leq(warnings, 2u, "one for reading, one for writing");
    inf_tune_close(&tune);
    // If the directory is missing, the file cannot be written.
    strcat(directory, "/none");
    tune = open_tune();
    inf_tune_add(tune, 1, &race);
    expect_found(tune, 1);
    cr_assert_eq(warnings, 0u);
    inf_tune_close(&tune);
    *strrchr(directory, '/') = '\0';
    inf_device_unref(&tune_device);
}

Test(tune, has_a_key_for_each_thing_that_a_decision_hangs_on)
{
    struct inf_race race = finished_race(), shorter = race;
    const struct inf_shape shapes[] = {INF_SHAPE(1, 4), INF_SHAPE(4, 1), INF_SHAPE(4)};
    shorter.count = 1;
    uint64_t keys[] = {
        inf_tune_key(1, shapes, 1, &race, "1"),     inf_tune_key(2, shapes, 1, &race, "1"),
        inf_tune_key(1, shapes + 1, 1, &race, "1"), inf_tune_key(1, shapes + 2, 1, &race, "1"),
        inf_tune_key(1, shapes, 1, &shorter, "1"),  inf_tune_key(1, shapes, 1, &race, "2"),
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (size_t k = 0; k < i; k++)
            cr_assert_neq(keys[i], keys[k], "%zu and %zu", i, k);
    cr_assert_eq(keys[0], inf_tune_key(1, shapes, 1, &race, "1"));
    // The device has the same name, but its driver is another build.
    strcpy(tune_device->info.identity, "another build");
    cr_assert_neq(keys[0], inf_tune_key(1, shapes, 1, &race, "1"));
    inf_device_unref(&tune_device);
}

Test(speed, is_kept_for_the_next_start, .init = create_directory, .fini = remove_directory)
{
    struct inf_device *device = open_ref();
    const struct inf_speed speed = {1e9, 2e9, 3, 4};
    struct inf_speed found = {0};
    char line[256];
    cr_expect(!inf_speed_load(&found, device, "1", directory));
    inf_speed_save(&speed, device, "1", directory);
    inf_speed_save(&speed, device, "1", NULL); // expect that nothing is saved
    cr_assert(inf_speed_load(&found, device, "1", directory));
    cr_expect_eq(found.macs_per_s, 1e9);
    cr_expect_eq(found.bytes_per_s, 2e9);
    cr_expect_eq(found.submit_ns, 3u);
    cr_expect_eq(found.step_ns, 4u);
    cr_expect(!inf_speed_load(&found, device, "2", directory), "another version");
    // One digit of the stored line is changed, so the line is invalid.
    char path[96];
    snprintf(path, sizeof path, "%s/speed.db", directory);
    FILE *file = fopen(path, "r+");
    cr_assert_not_null(file);
    cr_assert_not_null(fgets(line, sizeof line, file));
    line[20] ^= 1;
    rewind(file);
    fputs(line, file);
    fclose(file);
    cr_expect(!inf_speed_load(&found, device, "1", directory));
    inf_device_unref(&device);
}
