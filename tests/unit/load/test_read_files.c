// SPDX-License-Identifier: Apache-2.0
// The list of the files that a load reads: which paths mean which entries of the directory, and
// which changes count.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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
        cr_expect_not(inf_read_files_find_changed(files, name), "%s: '%s'", cases[i].path, name);
        write_file(cases[i].written);
        cr_expect(inf_read_files_find_changed(files, name), "%s", cases[i].path);
        cr_expect_str_eq(name, cases[i].entry);
        inf_read_files_destroy(&files);
        cr_assert_null(files);
    }
    inf_read_files_destroy(&(struct inf_read_files *){NULL});
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
    cr_expect_not(inf_read_files_find_changed(files, name));
    write_file("w.bin");
    cr_expect(inf_read_files_find_changed(files, name));
    cr_expect_str_eq(name, "w.bin");
    inf_read_files_destroy(&files);
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
    location.stamp = inf_fingerprint_directory(location.directory_fd, "model.conf");
    struct inf_read_files *files = list_files();
    cr_expect_not(inf_read_files_find_changed(files, name));
    write_file("new");
    cr_expect(inf_read_files_find_changed(files, name));
    cr_expect_str_eq(name, "");
    inf_read_files_destroy(&files);
}
