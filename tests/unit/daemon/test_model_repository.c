// SPDX-License-Identifier: Apache-2.0
// Finding model files in a repository and by path.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/model/repository.h"

#define MODEL "{\"format\": \"graph-model\", \"modelTopology\": {}}"

static char root[] = "/tmp/inferd-repo-XXXXXX";

static void make_root(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(model_repository, .init = make_root, .fini = remove_root);

static const char *path_of(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void make_directory(const char *name)
{
    cr_assert_eq(mkdir(path_of(name), 0755), 0, "%s", name);
}

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    cr_assert_not_null(file, "%s", name);
    fputs(text, file);
    fclose(file);
}

// Returns the inode number of the file that was found, which tests compare with the expected file.
static ino_t found_inode(const struct inf_model_location *location)
{
    struct stat status;
    cr_assert_eq(fstatat(location->directory_fd, location->file, &status, AT_SYMLINK_NOFOLLOW), 0);
    return status.st_ino;
}

static ino_t inode_of(const char *name)
{
    struct stat status;
    cr_assert_eq(lstat(path_of(name), &status), 0, "%s", name);
    return status.st_ino;
}

static void expect_found(const char *name, const char *file, const char *version)
{
    struct inf_model_location location;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_locate(&location, root, name, &err), INF_OK, "%s: %s", name, err.text);
    cr_expect_eq(found_inode(&location), inode_of(file), "%s", name);
    cr_expect_str_eq(location.version, version);
    inf_model_location_fini(&location);
}

static void expect_refused(const char *name, enum inf_code code, const char *text)
{
    struct inf_model_location location;
    struct inf_error err = {0};
    cr_expect_eq(inf_model_locate(&location, root, name, &err), code, "%s: %s", name, err.text);
    cr_expect(strstr(err.text, text) != NULL, "%s: %s", name, err.text);
    cr_expect(strstr(err.text, root) == NULL, "names the repository: %s", err.text);
    inf_model_location_fini(&location);
    cr_expect_eq(location.directory_fd, -1);
}

Test(model_repository, highest_number_is_the_version)
{
    make_directory("m");
    const char *const versions[] = {"m/9", "m/10", "m/2", "m/latest", "m/.11", "m/12x"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(versions); i++) {
        make_directory(versions[i]);
        char file[64];
        snprintf(file, sizeof file, "%s/model.json", versions[i]);
        make_file(file, MODEL);
    }
    make_file("m/model.conf", "x = y\n");
    make_file("m/99", "a file, no version");
    expect_found("m", "m/10/model.json", "10");

    make_directory("m/020240915");
    make_file("m/020240915/graph.json", MODEL);
    expect_found("m", "m/020240915/graph.json", "020240915");
    make_directory("m/1234567890123456789"); // a folder whose name has 19 digits is no version
    expect_found("m", "m/020240915/graph.json", "020240915");
}

Test(model_repository, versions_may_be_left_out)
{
    make_directory("flat");
    make_file("flat/model.json", MODEL);
    make_file("flat/group1-shard1of1.bin", "");
    expect_found("flat", "flat/model.json", "1");
    make_file("single.json", MODEL);
    expect_found("single", "single.json", "1");
    make_file("flat.json", MODEL);
    expect_found("flat", "flat/model.json", "1");
}

Test(model_repository, the_only_model_file_is_accepted)
{
    make_directory("m");
    make_directory("m/1");
    expect_refused("m", INF_INVALID, "'m/1': holds no model file");
    make_file("m/1/labels.json", "[\"cat\"]");
    make_file("m/1/blazeface.json", MODEL);
    expect_found("m", "m/1/blazeface.json", "1");
    make_file("m/1/other.json", MODEL);
    expect_refused("m", INF_INVALID, "'m/1': holds 2 model files");
    make_file("m/1/model.json", MODEL);
    expect_found("m", "m/1/model.json", "1");
}

Test(model_repository, onnx_files_are_models)
{
    make_directory("o");
    make_file("o/resnet.onnx", "");
    make_file("o/labels.json", "[]");
    make_file("o/weights.onnx.data", "");
    expect_found("o", "o/resnet.onnx", "1");
    make_file("o/other.onnx", "");
    expect_refused("o", INF_INVALID, "holds 2 model files");
    expect_refused("o", INF_INVALID, "resnet.onnx");
    expect_refused("o", INF_INVALID, "other.onnx");
    make_file("o/model.onnx", "");
    expect_found("o", "o/model.onnx", "1");
    make_file("o/model.json", MODEL);
    expect_refused("o", INF_INVALID, "'o': files 'model.json' and 'model.onnx': wanted one");
    make_directory("o/7");
    make_file("o/7/net.onnx", "");
    expect_found("o", "o/7/net.onnx", "7");
    make_directory("mixed");
    make_file("mixed/a.onnx", "");
    make_file("mixed/b.json", MODEL);
    expect_refused("mixed", INF_INVALID, "'a.onnx'");
    make_file("alone.onnx", "");
    expect_found("alone", "alone.onnx", "1");
    make_file("alone.json", MODEL);
    expect_refused("alone", INF_INVALID, "model 'alone': files 'alone.json' and 'alone.onnx'");
    make_directory("linked");
    cr_assert_eq(symlink("../alone.onnx", path_of("linked/x.onnx")), 0);
    expect_refused("linked", INF_INVALID, "'linked': holds no model file");
}

Test(model_repository, tflite_files_are_models)
{
    make_directory("t");
    expect_refused("t", INF_INVALID, "wanted model.json, model.onnx or model.tflite");
    make_file("t/face.tflite", "");
    make_file("t/labels.txt", "");
    expect_found("t", "t/face.tflite", "1");
    make_file("t/model.tflite", "");
    expect_found("t", "t/model.tflite", "1");
    make_file("t/model.onnx", "");
    expect_refused("t", INF_INVALID, "'t': files 'model.onnx' and 'model.tflite': wanted one");
    make_file("single.tflite", "");
    expect_found("single", "single.tflite", "1");
    expect_refused("none", INF_NOT_FOUND, "none.json, none.onnx or none.tflite");
}

// Expects that the settings file of the model `name` is `file`. NULL: the model must have no
// settings file.
static void expect_config(const char *name, const char *file)
{
    struct inf_model_location location;
    struct inf_error err = {0};
    struct stat status;
    cr_assert_eq(inf_model_locate(&location, root, name, &err), INF_OK, "%s: %s", name, err.text);
    cr_expect_eq(location.config_fd >= 0, file != NULL, "%s", name);
    cr_expect_eq(location.config_stamp != 0, file != NULL, "%s", name);
    if (file != NULL) {
        cr_assert_eq(fstat(location.config_fd, &status), 0);
        cr_expect_eq(status.st_ino, inode_of(file), "%s", name);
    }
    inf_model_location_fini(&location);
    cr_expect_eq(location.config_fd, -1);
}

Test(model_repository, settings_are_next_to_the_versions)
{
    make_directory("m");
    make_directory("m/2");
    make_file("m/2/model.json", MODEL);
    expect_config("m", NULL);
    make_file("m/2/model.conf", "");
    expect_config("m", NULL);
    make_file("m/model.conf", "device = cpu\n");
    expect_config("m", "m/model.conf");
    make_file("alone.onnx", "");
    expect_config("alone", NULL);
    make_file("alone.conf", "");
    expect_config("alone", "alone.conf");
    make_directory("linked");
    make_file("linked/model.json", MODEL);
    cr_assert_eq(symlink("../alone.conf", path_of("linked/model.conf")), 0);
    expect_refused("linked", INF_DENIED, "model.conf");
}

Test(model_repository, errors_name_what_is_missing)
{
    expect_refused("absent", INF_NOT_FOUND, "model 'absent' is not in the repository");
    make_directory("empty");
    expect_refused("empty", INF_INVALID, "'empty': holds no model file");
    struct inf_model_location location;
    struct inf_error err = {0};
    cr_expect_eq(inf_model_locate(&location, "/nonexistent/models", "m", &err), INF_NOT_FOUND);
    cr_expect_eq(location.directory_fd, -1);
}

Test(model_repository, errors_say_what_is_there_instead_of_a_model)
{
    make_directory("real");
    make_file("real/model.json", MODEL);
    cr_assert_eq(symlink("real", path_of("link")), 0);
    expect_refused("link", INF_NOT_FOUND, "'link' is a link, which is not followed");
    make_directory("v");
    cr_assert_eq(symlink("../real", path_of("v/3")), 0);
    expect_refused("v", INF_INVALID, "'3' is not used: a link");
    make_file("plain", "");
    expect_refused("plain", INF_NOT_FOUND, "'plain' is a file; wanted a directory");
    expect_refused("absent", INF_NOT_FOUND, "wanted a directory 'absent', or the file absent.json");
}

Test(model_repository, errors_name_what_the_daemon_may_not_read)
{
    make_directory("closed");
    make_directory("version");
    make_directory("version/4");
    make_directory("file");
    make_directory("file/1");
    make_file("file/1/face.json", MODEL);
    cr_assert_eq(chmod(path_of("closed"), 0), 0);
    cr_assert_eq(chmod(path_of("version/4"), 0), 0);
    cr_assert_eq(chmod(path_of("file/1/face.json"), 0), 0);
    cr_assert_eq(chmod(root, 0755), 0);
    bool privileged = geteuid() == 0;
    if (privileged)
        cr_assert_eq(seteuid(65534), 0); // drop root rights, because root may read every file
    expect_refused("closed", INF_DENIED, "'closed' in the repository: Permission denied; wanted");
    expect_refused("version", INF_DENIED, "'version/4': Permission denied; wanted one that");
    expect_refused("file", INF_INVALID, "'file/1': holds no model file");
    expect_refused("file", INF_INVALID, "'face.json' is not used: Permission denied");
    cr_assert_eq(chmod(path_of("closed"), 0700) == 0, !privileged);
    if (privileged)
        cr_assert_eq(seteuid(0), 0);
}

Test(model_repository, lack_of_descriptors_is_no_absence)
{
    struct inf_error err = {0};
    make_directory("m");
    make_directory("m/3");
    make_file("m/3/model.json", MODEL);
    make_file("m/model.conf", "pinned = yes\n");
    struct rlimit before, limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int lowest = dup(STDIN_FILENO);
    cr_assert_geq(lowest, 0);
    close(lowest);
    // With one descriptor more each time, each call that opens something fails once.
    enum inf_code code = INF_EXHAUSTED;
    rlim_t more = 0;
    for (; code == INF_EXHAUSTED && more < 64; more++) {
        struct inf_model_location location;
        limit = (struct rlimit){(rlim_t)lowest + more, before.rlim_max};
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        code = inf_model_locate(&location, root, "m", &err);
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        cr_expect(code == INF_OK || strstr(err.text, "Too many open files") != NULL, "%s",
                  err.text);
        inf_model_location_fini(&location);
    }
    cr_expect_eq(code, INF_OK, "%s", err.text);
    cr_expect_gt(more, 3u);
}

Test(model_repository, links_are_not_followed)
{
    make_directory("real");
    make_file("real/model.json", MODEL);
    cr_assert_eq(symlink("real", path_of("link")), 0);
    expect_refused("link", INF_NOT_FOUND, "'link'");
    make_directory("v");
    cr_assert_eq(symlink("../real", path_of("v/3")), 0);
    expect_refused("v", INF_INVALID, "'v': holds no model file");
    make_directory("w");
    cr_assert_eq(symlink("../real/model.json", path_of("w/x.json")), 0);
    expect_refused("w", INF_INVALID, "'w': holds no model file");
    make_directory("fifo");
    cr_assert_eq(mkfifo(path_of("fifo/x.json"), 0644), 0);
    // reading the FIFO must not block either
    expect_refused("fifo", INF_INVALID, "'fifo': holds no model file");
}

static void expect_at_path(const char *path, const char *file, const char *version)
{
    struct inf_model_location location;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_locate_path(&location, path, &err), INF_OK, "%s: %s", path, err.text);
    cr_expect_eq(found_inode(&location), inode_of(file), "%s", path);
    cr_expect_str_eq(location.version, version);
    inf_model_location_fini(&location);
}

Test(model_repository, paths_name_files_and_directories)
{
    make_directory("m");
    make_directory("m/7");
    make_file("m/7/anything.json", MODEL);
    expect_at_path(path_of("m"), "m/7/anything.json", "7");
    expect_at_path(path_of("m//"), "m/7/anything.json", "7");
    expect_at_path(path_of("m/7"), "m/7/anything.json", "1");
    expect_at_path(path_of("m/7/anything.json"), "m/7/anything.json", "1");

    char endless[5000];
    memset(endless, 'a', sizeof endless);
    endless[0] = '/';
    endless[4999] = '\0';
    const struct {
        const char *path;
        enum inf_code code;
    } refused[] = {
        {"m", INF_INVALID},     {"", INF_INVALID},
        {"./m", INF_INVALID},   {endless, INF_INVALID},
        {"/proc", INF_INVALID}, {"/nonexistent/secret/x.json", INF_NOT_FOUND},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(refused); i++) {
        struct inf_model_location location;
        struct inf_error err = {0};
        cr_expect_eq(inf_model_locate_path(&location, refused[i].path, &err), refused[i].code,
                     "%.20s: %s", refused[i].path, err.text);
        cr_expect(strstr(err.text, "secret") == NULL, "%s", err.text);
        inf_model_location_fini(&location);
    }
}

Test(model_repository, stamp_changes_with_the_file)
{
    make_file("m.json", MODEL);
    struct inf_model_location before, same, after;
    cr_assert_eq(inf_model_locate(&before, root, "m", NULL), INF_OK);
    cr_assert_eq(inf_model_locate(&same, root, "m", NULL), INF_OK);
    make_file("m.new", MODEL "\n");
    char from[1024];
    snprintf(from, sizeof from, "%s", path_of("m.new"));
    cr_assert_eq(rename(from, path_of("m.json")), 0);
    cr_assert_eq(inf_model_locate(&after, root, "m", NULL), INF_OK);
    cr_expect_neq(before.stamp, 0u);
    cr_expect_eq(before.stamp, same.stamp);
    cr_expect_neq(before.stamp, after.stamp);
    inf_model_location_fini(&before);
    inf_model_location_fini(&same);
    inf_model_location_fini(&after);
}

static void expect_wanted(const char *version, const char *ready_file, enum inf_code code,
                          const char *found)
{
    struct inf_model_location location;
    struct inf_error err = {0};
    const struct inf_model_wanted wanted = {.version = version, .ready_file = ready_file};
    cr_expect_eq(inf_model_locate_version(&location, root, "m", &wanted, &err), code, "%s: %s",
                 version, err.text);
    if (code == INF_OK)
        cr_expect_str_eq(location.version, found);
    inf_model_location_fini(&location);
}

Test(model_repository, finds_the_wanted_version)
{
    make_directory("m");
    make_file("m/model.json", MODEL);
    expect_wanted("1", "", INF_OK, "1");
    expect_wanted("2", "", INF_NOT_FOUND, NULL);
    make_directory("m/2");
    make_file("m/2/model.json", MODEL);
    make_directory("m/10");
    make_file("m/10/model.json", MODEL);
    expect_wanted("", "", INF_OK, "10");
    expect_wanted("2", "", INF_OK, "2");
    expect_wanted("3", "", INF_NOT_FOUND, NULL);
}

Test(model_repository, passes_over_versions_without_their_ready_file)
{
    make_directory("m");
    make_file("m/model.json", MODEL);
    expect_wanted("", "DONE", INF_UNAVAILABLE, NULL);
    make_directory("m/2");
    make_file("m/2/model.json", MODEL);
    expect_wanted("", "DONE", INF_UNAVAILABLE, NULL);
    make_file("m/2/DONE", "");
    make_directory("m/10");
    make_file("m/10/model.json", MODEL);
    expect_wanted("", "DONE", INF_OK, "2");
    expect_wanted("10", "DONE", INF_UNAVAILABLE, NULL);
}

Test(model_repository, neighbours_leave_the_stamp_of_the_model_file)
{
    struct inf_model_location before, after, settings;
    make_directory("m");
    make_file("m/model.json", MODEL);
    make_file("m/w.bin", "1");
    cr_assert_eq(inf_model_locate(&before, root, "m", NULL), INF_OK);
    make_file("m/w.bin", "12");
    cr_assert_eq(inf_model_locate(&after, root, "m", NULL), INF_OK);
    make_file("m/model.conf", "warmup = no\n");
    cr_assert_eq(inf_model_locate(&settings, root, "m", NULL), INF_OK);
    cr_expect_eq(before.stamp, after.stamp);
    cr_expect_eq(after.stamp, settings.stamp, "settings have a stamp of their own");
    cr_expect_neq(after.config_stamp, settings.config_stamp);
    inf_model_location_fini(&before);
    inf_model_location_fini(&after);
    inf_model_location_fini(&settings);
}

Test(model_repository, scan_lists_models_sorted_and_once)
{
    const char *const directories[] = {"zebra", "both", ".hidden", "with space", "a..b"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(directories); i++)
        make_directory(directories[i]);
    make_file("both.json", MODEL);
    make_file("ant.json", MODEL);
    make_file("models.json", "[\"a list\"]");
    make_file("README", MODEL);
    make_file(".json", MODEL);
    make_file("x.json.bak", MODEL);
    char name[80] = "";
    memset(name, 'n', 65); // one character more than a model name may have
    make_directory(name);
    name[64] = '\0';
    make_directory(name);
    cr_assert_eq(symlink("zebra", path_of("link")), 0);

    struct inf_model_names *names = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_names_scan(&names, root, &err), INF_OK, "%s", err.text);
    const char *const expected[] = {"a..b", "ant", "both", name, "zebra"};
    cr_assert_eq(names->count, 5u);
    for (size_t i = 0; i < 5; i++)
        cr_expect_str_eq(names->names[i], expected[i]);
    free(names);

    cr_expect_eq(inf_model_names_scan(&names, "/nonexistent", &err), INF_NOT_FOUND);
}

Test(model_repository, scan_has_a_limit)
{
    for (int i = 0; i <= INF_REPOSITORY_MODELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "m%d", i);
        make_directory(name);
    }
    struct inf_model_names *names = NULL;
    struct inf_error err = {0};
    cr_expect_eq(inf_model_names_scan(&names, root, &err), INF_EXHAUSTED);
    cr_assert_eq(rmdir(path_of("m7")), 0);
    cr_expect_eq(inf_model_names_scan(&names, root, &err), INF_OK, "%s", err.text);
    cr_expect_eq(names->count, (uint32_t)INF_REPOSITORY_MODELS);
    free(names);
}
