// SPDX-License-Identifier: Apache-2.0
// Shapes that models served, and the file in which they are saved.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/model/served_shapes.h"

static char root[] = "/tmp/inferd-seen-XXXXXX";
static unsigned warnings;

static void count_warnings(void *context, enum inf_log_level level, const char *line)
{
    (void)context;
    (void)line;
    warnings += level == INF_LOG_WARNING;
}

static const struct inf_log sink = {.level = INF_LOG_DEBUG, .write = count_warnings};

static void make_root(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "chmod 700 '%s'; rm -rf '%s'", root, root);
    cr_assert_eq(system(command), 0);
}

TestSuite(served_shapes, .init = make_root, .fini = remove_root);

static struct inf_served_shapes *open_seen(void)
{
    struct inf_served_shapes *seen;
    warnings = 0;
    cr_assert_eq(inf_served_shapes_open(&seen, root, &sink, NULL), INF_OK);
    return seen;
}

static const char *make_path(void)
{
    static char text[128];
    snprintf(text, sizeof text, "%s/shapes.db", root);
    return text;
}

static void expect_kept(uint64_t hash, const char *text, unsigned wanted_warnings)
{
    struct inf_served_shapes *seen = open_seen();
    cr_expect_str_eq(inf_served_shapes_find(seen, hash), text);
    cr_expect_eq(warnings, wanted_warnings);
    inf_served_shapes_close(&seen);
}

static void keep_shapes(uint64_t hash, const char *text)
{
    struct inf_served_shapes *seen = open_seen();
    inf_served_shapes_keep(seen, hash, text);
    inf_served_shapes_close(&seen);
}

Test(served_shapes, are_restored_at_the_next_start)
{
    expect_kept(7, "", 0);
    keep_shapes(7, "1x2;3x2");
    keep_shapes(0xfedcba9876543210u, "scalar,1x128");
    keep_shapes(7, "4x2");
    expect_kept(7, "4x2", 0);
    expect_kept(0xfedcba9876543210u, "scalar,1x128", 0);
    expect_kept(8, "", 0);
}

static char *read_file(size_t *size)
{
    static char text[4096];
    FILE *file = fopen(make_path(), "r");
    cr_assert_not_null(file);
    *size = fread(text, 1, sizeof text, file);
    fclose(file);
    return text;
}

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen(make_path(), "w");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, size, file), size);
    fclose(file);
}

Test(served_shapes, damaged_lines_are_skipped_and_the_rest_is_kept)
{
    size_t size;
    keep_shapes(1, "1x2");
    keep_shapes(2, "5x6");
    char *text = read_file(&size);
    char *digit = strstr(text, "1x2");
    cr_assert_not_null(digit);
    *digit = '9'; // makes the checksum of the line wrong
    write_file(text, size);
    expect_kept(1, "", 1);
    expect_kept(2, "5x6", 1);
    keep_shapes(3, "7"); // rewrites the damaged file
    expect_kept(1, "", 0);
    expect_kept(2, "5x6", 0);
    expect_kept(3, "7", 0);
}

Test(served_shapes, a_truncated_file_is_accepted)
{
    size_t size;
    keep_shapes(1, "1x2");
    keep_shapes(2, "5x6");
    char whole[4096];
    memcpy(whole, read_file(&size), sizeof whole);
    for (size_t cut = 0; cut < size; cut++) {
        write_file(whole, cut);
        struct inf_served_shapes *seen = open_seen();
        const char *first = inf_served_shapes_find(seen, 1),
                   *second = inf_served_shapes_find(seen, 2);
        cr_expect(first[0] == '\0' || strcmp(first, "1x2") == 0, "%zu: %s", cut, first);
        cr_expect_str_eq(second, "", "%zu", cut);
        inf_served_shapes_keep(seen, 3, "7");
        inf_served_shapes_close(&seen);
        expect_kept(3, "7", 0);
    }
}

Test(served_shapes, foreign_files_are_replaced_with_a_warning_and_other_versions_without)
{
    static const char *const texts[] = {
        "inferd-shapes 2\n",      "",
        "inferd-tune 1\n0 1 2\n", "\177ELF",
        "inferd-shapes 1\nx\n",   "inferd-shapes 1\n0000000000000001 1x2 0000000000000000\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_file(texts[i], strlen(texts[i]));
        expect_kept(1, "", i > 0);
        keep_shapes(1, "1x2");
        expect_kept(1, "1x2", 0);
    }
    write_file("inferd-shapes 1\n\0\n", 18);
    expect_kept(1, "", 1);
    cr_assert_eq(unlink(make_path()), 0);
    cr_assert_eq(symlink("/etc/passwd", make_path()), 0);
    expect_kept(1, "", 1);
}

Test(served_shapes, an_unwritable_directory_loses_the_shapes_only)
{
    struct inf_served_shapes *seen;
    cr_assert_eq(inf_served_shapes_open(&seen, NULL, &sink, NULL), INF_OK);
    inf_served_shapes_keep(seen, 1, "1x2");
    cr_expect_str_eq(inf_served_shapes_find(seen, 1), "1x2", "as long as it runs");
    inf_served_shapes_close(&seen);
    // A directory in place of the file can be neither read nor written as a file, not even by root.
    cr_assert_eq(mkdir(make_path(), 0700), 0);
    seen = open_seen();
    cr_expect_eq(warnings, 1u);
    char inside[160];
    snprintf(inside, sizeof inside, "%s/x", make_path());
    cr_assert_eq(mkdir(inside, 0700), 0);
    inf_served_shapes_keep(seen, 1, "1x2");
    inf_served_shapes_keep(seen, 2, "1x2");
    cr_expect_eq(warnings, 2u, "said once");
    cr_expect_str_eq(inf_served_shapes_find(seen, 1), "1x2");
    inf_served_shapes_close(&seen);
}

Test(served_shapes, the_oldest_models_are_replaced)
{
    struct inf_served_shapes *seen = open_seen();
    for (uint64_t i = 0; i <= INF_SERVED_SHAPES_MODELS; i++)
        inf_served_shapes_keep(seen, i, "1x2");
    cr_expect_str_eq(inf_served_shapes_find(seen, 0), "");
    cr_expect_str_eq(inf_served_shapes_find(seen, 1), "1x2");
    cr_expect_str_eq(inf_served_shapes_find(seen, INF_SERVED_SHAPES_MODELS), "1x2");
    inf_served_shapes_close(&seen);
}

// --- the sets of input shapes that one model has served ---

static bool note_shapes(struct inf_served_shape_set *seen, int64_t rows, uint64_t now_ns)
{
    const struct inf_shape shapes[] = {{.rank = 2, .dims = {rows, 3}}, {.rank = 0}};
    return inf_served_shapes_note(seen, (uint64_t)rows + 1, shapes, 2, now_ns);
}

Test(served_shapes, the_last_sets_are_kept_and_written_with_pauses)
{
    struct inf_served_shape_set seen = {0};
    char text[INF_SERVED_SHAPES_TEXT];
    const uint64_t begin = 5, second = 1000000000;
    cr_expect(note_shapes(&seen, 1, begin), "the first is written at once");
    cr_expect(!note_shapes(&seen, 1, begin + 60 * second), "nothing is new");
    cr_expect(!note_shapes(&seen, 2, begin + 1 * second), "too soon");
    cr_expect(seen.changed);
    cr_expect(!note_shapes(&seen, 3, begin + 9 * second));
    cr_expect(note_shapes(&seen, 4, begin + 10 * second));
    cr_expect(!seen.changed);
    cr_expect_str_eq(inf_served_shapes_print(&seen, text),
                     "4x3,scalar;3x3,scalar;2x3,scalar;1x3,scalar");
    cr_expect(!note_shapes(&seen, 2, begin + 60 * second), "known: only its turn is another");
    cr_expect(note_shapes(&seen, 5, begin + 61 * second));
    cr_expect_str_eq(inf_served_shapes_print(&seen, text),
                     "5x3,scalar;2x3,scalar;4x3,scalar;3x3,scalar");
    struct inf_served_shape_set copy = {0};
    inf_served_shapes_take(&copy, text);
    char again[INF_SERVED_SHAPES_TEXT];
    cr_expect_str_eq(inf_served_shapes_print(&copy, again), text);
    // Given a set whose text is too long, expect that it is not saved.
    struct inf_shape many[64];
    for (int i = 0; i < 64; i++)
        many[i] = (struct inf_shape){.rank = 2, .dims = {1000, 1000}};
    cr_expect(!inf_served_shapes_note(&copy, 99, many, 64, 1));
    cr_expect_str_eq(inf_served_shapes_print(&copy, again), text);
}
