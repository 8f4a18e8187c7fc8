// SPDX-License-Identifier: Apache-2.0
// Versions that a save puts into the repository, and their removal: never a file of others.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/model/repository_save.h"
#include "daemon/model/saved_files.h"
#include "daemon/model/saved_version.h"

static char root[] = "/tmp/inferd-saved-XXXXXX";
static int repository_fd;

// Runs a shell command in the folder of the test, and fails if it does.
static void run_shell(const char *format, ...)
{
    char command[512], text[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "cd %s && %s", root, command);
    cr_assert_eq(system(text), 0, "%s", text);
}

// Checks that the repository has these names, hidden ones too, in the order of strcmp().
static void expect_names(const char *wanted)
{
    char command[256], names[1024] = "";
    snprintf(command, sizeof command, "cd %s/repository && find . -mindepth 1 | sort | cut -c3-",
             root);
    setenv("LC_ALL", "C", 1);
    FILE *stream = popen(command, "r");
    size_t size = fread(names, 1, sizeof names - 1, stream);
    pclose(stream);
    names[size] = '\0';
    for (char *at = names; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    cr_expect_str_eq(names, wanted);
}

static void make_folders(void)
{
    cr_assert_not_null(mkdtemp(root));
    run_shell(
        "mkdir -p repository source/more/deep outside; "
        "for i in model.json w.bin more/a more/deep/b model.conf .hidden; do "
        "echo $i > source/$i; done; echo x > outside/precious");
    char path[64];
    snprintf(path, sizeof path, "%s/repository", root);
    repository_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(repository_fd, 0);
}

static void remove_folders(void)
{
    char command[64];
    close(repository_fd);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(saved_version, .init = make_folders, .fini = remove_folders);

// Saves the model of the folder `source` as the next version of "m".
static struct inf_repository_save save_model(const char *ready_file)
{
    char source[64], repository[64];
    struct inf_model_location location = INF_MODEL_LOCATION_NONE;
    struct inf_repository_save save;
    struct inf_error err = {0};
    const atomic_bool cancelled = false;
    snprintf(source, sizeof source, "%s/source", root);
    snprintf(repository, sizeof repository, "%s/repository", root);
    location.directory_fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    location.config_fd = openat(location.directory_fd, "model.conf", O_RDONLY | O_CLOEXEC);
    location.has_directory = true;
    snprintf(location.file, sizeof location.file, "model.json");
    const struct inf_repository_save_options options = {
        .repository = repository, .name = "m", .ready_file = ready_file, .cancelled = &cancelled};
    cr_assert_eq(inf_repository_save(&save, &options, &location, &err), INF_OK, "%s", err.text);
    inf_model_location_fini(&location);
    return save;
}

static void save_and_keep(const char *ready_file)
{
    struct inf_repository_save save = save_model(ready_file);
    inf_repository_save_fini(&save);
}

// Removes a version of "m", which must end with `code`.
static struct inf_saved_version_rest remove_version(const char *version, enum inf_code code,
                                                    const char *text)
{
    struct inf_saved_version_rest rest;
    struct inf_error err = {0};
    cr_expect_eq(inf_saved_version_remove(repository_fd, "m", version, &rest, &err), code,
                 "version '%s': %s", version, err.text);
    cr_expect_not_null(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
    return rest;
}

#define FIRST                                                                                      \
    "m/1 m/1/.saved m/1/model.json m/1/more m/1/more/a m/1/more/deep m/1/more/deep/b m/1/w.bin "

Test(saved_version, goes_with_all_that_was_saved)
{
    save_and_keep("");
    expect_names("m m/.saved " FIRST "m/model.conf ");
    const struct inf_saved_version_rest rest = remove_version("", INF_OK, "");
    cr_expect_str_eq(rest.version, "1");
    cr_expect(!rest.has_versions && !rest.has_files);
    expect_names("");
}

Test(saved_version, that_failed_leaves_what_others_put_there)
{
    struct inf_repository_save save = save_model("READY");
    run_shell(
        "echo x > repository/m/1/more/theirs; echo x > repository/m/notes; "
        "echo x > repository/m/1/.theirs");
    inf_repository_save_undo(&save);
    expect_names("m m/.saved m/1 m/1/.theirs m/1/more m/1/more/theirs m/model.conf m/notes ");
}

Test(saved_version, leaves_other_versions)
{
    save_and_keep("");
    save_and_keep("");
    run_shell("mkdir repository/m/7; echo x > repository/m/7/model.json");
    remove_version("", INF_PRECONDITION, "3 versions in the repository, from 1 to 7");
    remove_version("3", INF_NOT_FOUND, "no version '3'");
    remove_version("../m", INF_NOT_FOUND, "no version '../m'");
    remove_version("7", INF_PRECONDITION, "was not put into the repository by a save");
    struct inf_saved_version_rest rest = remove_version("1", INF_OK, "");
    cr_expect(rest.has_versions);
    rest = remove_version("2", INF_OK, "");
    cr_expect(rest.has_versions);
    // The settings stay, because another version uses them.
    expect_names("m m/.saved m/7 m/7/model.json m/model.conf ");
    remove_version("", INF_PRECONDITION, "version 7 was not put");
}

Test(saved_version, leaves_settings_that_were_changed)
{
    save_and_keep("");
    usleep(20000); // more than the resolution of the times of files
    run_shell("echo changed > repository/m/model.conf");
    remove_version("1", INF_OK, "");
    expect_names("m m/.saved m/model.conf ");
    // The next save finds a directory without versions.
    save_and_keep("");
    expect_names("m m/.saved " FIRST "m/model.conf ");
}

Test(saved_version, keeps_a_directory_that_the_save_did_not_make)
{
    run_shell("mkdir repository/m");
    save_and_keep("");
    expect_names("m " FIRST);
    remove_version("1", INF_OK, "");
    expect_names("m ");
}

Test(saved_version, follows_no_links)
{
    save_and_keep("");
    run_shell(
        "rm -r repository/m/1/more && mkdir outside/deep && echo x > outside/a && "
        "echo x > outside/deep/b && ln -s ../../../outside repository/m/1/more");
    remove_version("1", INF_OK, "");
    expect_names("");
    run_shell("test -e outside/a -a -e outside/deep/b -a -e outside/precious");
    // A link in place of the version or of the model.
    save_and_keep("");
    run_shell("mv repository/m/1 outside/1 && ln -s ../../outside/1 repository/m/1");
    remove_version("1", INF_NOT_FOUND, "no version '1'");
    run_shell("mv repository/m outside/m && ln -s ../outside/m repository/m");
    remove_version("1", INF_NOT_FOUND, "no directory");
    run_shell("test -e outside/1/model.json");
}

#define LIST(text)                                                                                 \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }
Test(saved_version, does_not_trust_every_list)
{
    static const struct {
        const char *list;
        size_t size;
    } lists[] = {
        LIST(""),
        LIST("inferd-saved 1"),
        LIST("inferd-saved 2\0w.bin\0"),
        LIST("inferd-saved 1\0w.bin"),
        LIST("inferd-saved 1\0../../../outside/precious\0"),
        LIST("inferd-saved 1\0/etc/passwd\0"),
        LIST("inferd-saved 1\0more/../../x\0"),
        LIST("inferd-saved 1\0.\0"),
        LIST("inferd-saved 1\0more//a\0"),
        LIST("inferd-saved 1\0more/\0"),
        LIST("inferd-saved 1\0\0"),
        LIST("inferd-saved 1\0a/b/c/d/e/f/g/h/i/j\0"),
    };
    save_and_keep("");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        int fd = openat(repository_fd, "m/1/.saved", O_WRONLY | O_TRUNC | O_CLOEXEC);
        cr_assert_eq(write(fd, lists[i].list, lists[i].size), (ssize_t)lists[i].size);
        close(fd);
        remove_version("1", INF_INVALID, "list of saved files is damaged");
    }
    run_shell("rm repository/m/1/.saved && ln -s model.json repository/m/1/.saved");
    remove_version("1", INF_PRECONDITION, "was not put into the repository by a save");
    run_shell("rm repository/m/1/.saved && mkfifo repository/m/1/.saved");
    remove_version("1", INF_INVALID, "not one that the daemon wrote");
    if (geteuid() == 0) {
        run_shell(
            "rm repository/m/1/.saved && printf 'inferd-saved 1\\0w.bin\\0' > "
            "repository/m/1/.saved && chown 12345 repository/m/1/.saved");
        remove_version("1", INF_INVALID, "not one that the daemon wrote");
    }
    run_shell("test -e repository/m/1/w.bin -a -e outside/precious");
}

Test(saved_version, completes_a_removal_that_a_process_began)
{
    save_and_keep("");
    save_and_keep("");
    run_shell("cp -a repository/m/1 repository/m/.1.gone && rm repository/m/.1.gone/w.bin");
    remove_version("1", INF_OK, "");
    remove_version("2", INF_OK, "");
    expect_names("");
    // One with a file of others is in the way, and stays.
    save_and_keep("");
    run_shell("mkdir repository/m/.1.gone && echo x > repository/m/.1.gone/theirs");
    remove_version("1", INF_PRECONDITION, "'.1.gone' is left from an earlier removal");
    expect_names("m m/.1.gone m/.1.gone/theirs m/.saved " FIRST "m/model.conf ");
}

Test(saved_files, are_bounded)
{
    struct inf_saved_files files = {0};
    struct inf_error err = {0};
    char name[16];
    for (uint32_t i = 0; i < INF_SAVED_FILES_MAX; i++) {
        snprintf(name, sizeof name, "%u", i);
        cr_assert_eq(inf_saved_files_add(&files, "folder", name, &err), INF_OK);
    }
    cr_expect_eq(inf_saved_files_add(&files, "", "x", &err), INF_EXHAUSTED);
    cr_expect_str_eq(err.text, "more than 4096 files");
    cr_expect_str_eq(files.text, "folder/0");
    cr_expect_str_eq(files.text + files.size - 12, "folder/4095");
    inf_saved_files_fini(&files);
    cr_expect_null(files.text);
}
