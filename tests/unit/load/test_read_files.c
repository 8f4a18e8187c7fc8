// SPDX-License-Identifier: Apache-2.0
// The list of the files that a load reads: which paths mean which entries of the directory, and
// which changes count.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/load/source/read_files.h"
#include "daemon/model/fingerprint.h"

static char root[] = "/tmp/inferd-read-files-XXXXXX";
static struct inf_model_location location = INF_MODEL_LOCATION_NONE;

static void start_test(void)
{
    cr_assert_not_null(mkdtemp(root));
    location.directory_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(location.directory_fd, 0);
    snprintf(location.file, sizeof location.file, "model.json");
    location.has_directory = true;
}

static void end_test(void)
{
    char command[64];
    inf_model_location_fini(&location);
    snprintf(command, sizeof command, "rm -r '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(read_files, .init = start_test, .fini = end_test, .timeout = 60);

// Appends a byte to a file, which may be new.
static void write_file(const char *name)
{
    int fd = openat(location.directory_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    cr_assert_geq(fd, 0, "%s", name);
    cr_assert_eq(write(fd, "x", 1), 1);
    close(fd);
}

static struct inf_read_files *list_files(void)
{
    struct inf_read_files *files;
    cr_assert_eq(inf_read_files_create(&files, &location, NULL), INF_OK);
    return files;
}

Test(read_files, paths_mean_the_entry_that_they_begin_with)
{
    static const struct {
        const char *path, *written, *entry;
    } cases[] = {
        {"w.bin", "w.bin", "w.bin"},
        {"./w.bin", "w.bin", "w.bin"},
        {".//w.bin", "w.bin", "w.bin"},
        {"././/./w.bin", "w.bin", "w.bin"},
        {"sub/w.bin", "sub/w.bin", "sub"},
        {"sub//w.bin", "sub/other", "sub"},
        {".w", ".w", ".w"},
        {"absent", "absent", "absent"},
        {"w.bin", "model.json", "model.json"},
    };
    cr_assert_eq(mkdirat(location.directory_fd, "sub", 0755), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[INF_READ_FILES_NAME];
        write_file("w.bin");
        write_file("model.json");
        struct inf_read_files *files = list_files();
        inf_read_files_note(files, cases[i].path);
        write_file("log");
        cr_expect_not(inf_read_files_find_changed(files, &location, name), "%s: '%s'",
                      cases[i].path, name);
        write_file(cases[i].written);
        cr_expect(inf_read_files_find_changed(files, &location, name), "%s", cases[i].path);
        cr_expect_str_eq(name, cases[i].entry);
        inf_read_files_unref(&files);
        cr_assert_null(files);
    }
    inf_read_files_unref(&(struct inf_read_files *){NULL});
}

// A single file shares its directory with other models.
Test(read_files, of_a_single_file_are_listed_when_they_are_opened)
{
    char name[INF_READ_FILES_NAME];
    location.has_directory = false;
    write_file("w.bin");
    write_file("model.json");
    struct inf_read_files *files = list_files();
    write_file("w.bin");
    inf_read_files_note(files, "w.bin");
    inf_read_files_note(files, "w.bin");
    cr_expect_not(inf_read_files_find_changed(files, &location, name));
    write_file("w.bin");
    cr_expect(inf_read_files_find_changed(files, &location, name));
    cr_expect_str_eq(name, "w.bin");
    inf_read_files_unref(&files);
}

Test(read_files, too_many_for_a_fingerprint_change_with_the_stamp)
{
    char name[INF_READ_FILES_NAME];
    cr_assert_eq(mkdirat(location.directory_fd, "many", 0755), 0);
    for (uint32_t i = 0; i <= INF_FINGERPRINT_ENTRIES_MAX; i++) {
        snprintf(name, sizeof name, "many/%u", (unsigned)i);
        cr_assert_eq(mknodat(location.directory_fd, name, S_IFREG | 0644, 0), 0);
    }
    write_file("model.json");
    struct inf_read_files *files = list_files();
    inf_read_files_close(files);
    size_t size;
    cr_expect_null(inf_read_files_encode(files, &size), "it is not known what was read");
    cr_expect_not(inf_read_files_find_changed(files, &location, name));
    write_file("new");
    cr_expect(inf_read_files_find_changed(files, &location, name));
    cr_expect_str_eq(name, "");
    // The list of a model that is placed again is incomplete too.
    struct inf_read_files *again = list_files();
    inf_read_files_adopt(again, files);
    inf_read_files_close(again);
    cr_expect(inf_read_files_find_changed(again, &location, name));
    inf_read_files_unref(&again);
    inf_read_files_unref(&files);
}

Test(read_files, another_place_of_the_model_is_a_change)
{
    char name[INF_READ_FILES_NAME];
    write_file("model.json");
    snprintf(location.version, sizeof location.version, "3");
    struct inf_read_files *files = list_files();
    inf_read_files_close(files);
    cr_expect_not(inf_read_files_find_changed(files, &location, name));
    struct inf_model_location other = location;
    snprintf(other.version, sizeof other.version, "4");
    cr_expect(inf_read_files_find_changed(files, &other, name));
    cr_expect_str_eq(name, "model.json");
    other = location;
    other.has_directory = false;
    cr_expect(inf_read_files_find_changed(files, &other, name));
    other = location;
    snprintf(other.file, sizeof other.file, "n.json");
    cr_expect(inf_read_files_find_changed(files, &other, name));
    cr_expect_str_eq(name, "n.json");
    inf_read_files_unref(&files);
}

// A model that is placed again was made from the files that its first load has read, so a change
// since that load counts.
Test(read_files, what_an_earlier_load_has_read_is_adopted)
{
    static const char *const names[] = {"model.json", "w.bin", "absent"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[INF_READ_FILES_NAME];
        write_file("model.json");
        write_file("w.bin");
        write_file("log");
        struct inf_read_files *first = list_files();
        inf_read_files_note(first, "w.bin");
        inf_read_files_note(first, "absent");
        inf_read_files_close(first);
        write_file(names[i]);
        struct inf_read_files *second = list_files();
        inf_read_files_adopt(second, first);
        inf_read_files_unref(&first);
        inf_read_files_close(second);
        cr_expect(inf_read_files_find_changed(second, &location, name), "%s", names[i]);
        cr_expect_str_eq(name, names[i]);
        inf_read_files_unref(&second);
        cr_assert_eq(unlinkat(location.directory_fd, "absent", 0), i == 2 ? 0 : -1);
    }
}

Test(read_files, lists_are_written_and_read_again)
{
    char name[INF_READ_FILES_NAME];
    write_file("model.json");
    write_file("w.bin");
    write_file("log");
    struct inf_read_files *first = list_files();
    inf_read_files_note(first, "w.bin");
    inf_read_files_note(first, "check");
    inf_read_files_close(first);
    size_t size;
    char *data = inf_read_files_encode(first, &size);
    cr_assert_not_null(data);
    cr_expect_eq(size,
                 3 * sizeof(uint64_t) + sizeof "model.json" + sizeof "w.bin" + sizeof "check");
    inf_read_files_unref(&first);

    struct inf_read_files *second = list_files();
    struct inf_error err = {0};
    write_file("log");
    cr_expect_eq(inf_read_files_decode(second, data, size, true, &err), INF_OK, "%s", err.text);
    inf_read_files_close(second);
    cr_expect_not(inf_read_files_find_changed(second, &location, name));
    write_file("w.bin");
    cr_expect(inf_read_files_find_changed(second, &location, name));
    cr_expect_str_eq(name, "w.bin");
    inf_read_files_unref(&second);

    second = list_files();
    cr_expect_eq(inf_read_files_decode(second, data, size, true, &err), INF_INVALID);
    cr_expect_not_null(strstr(err.text, "'w.bin'"), "%s", err.text);
    inf_read_files_unref(&second);
    // The fingerprints in a plan from another machine are not compared with those of the files.
    second = list_files();
    cr_expect_eq(inf_read_files_decode(second, data, size, false, &err), INF_OK);
    inf_read_files_close(second);
    write_file("w.bin");
    cr_expect(inf_read_files_find_changed(second, &location, name));
    inf_read_files_unref(&second);
    // Damaged lists: every cut inside of an entry, and a name with a slash.
    for (size_t cut = 0; cut < size; cut++) {
        bool whole =
            cut == 8 + sizeof "model.json" || cut == 16 + sizeof "model.json" + sizeof "w.bin";
        second = list_files();
        char *copy = malloc(cut + 1); // AddressSanitizer finds reads beyond its end
        cr_assert_not_null(copy);
        memcpy(copy, data, cut);
        copy = realloc(copy, cut > 0 ? cut : 1);
        cr_expect_eq(inf_read_files_decode(second, copy, cut, false, NULL),
                     whole ? INF_OK : INF_INVALID, "%zu", cut);
        free(copy);
        inf_read_files_unref(&second);
    }
    data[sizeof(uint64_t) + 1] = '/';
    second = list_files();
    cr_expect_eq(inf_read_files_decode(second, data, size, false, NULL), INF_INVALID);
    inf_read_files_unref(&second);
    free(data);
}
