// SPDX-License-Identifier: Apache-2.0
// Tests that the watch of a model repository reports changes, by inotify and by polling, and tests
// of the fingerprints by which it decides whether a model changed.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/model/fingerprint.h"
#include "daemon/model/repository_watch.h"

// Times are short to make the tests quick. A test that expects no report waits for QUIET_MS.
#define SETTLE_MS 60u
#define POLL_MS   20u
#define QUIET_MS  400
#define GROW_MS   500u

static char root[] = "/tmp/inferd-watch-XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[2][1024];
    static unsigned next;
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    cr_assert_not_null(file, "%s", name);
    fputs(text, file);
    fclose(file);
}

static void make_directory(const char *name)
{
    cr_assert_eq(mkdir(path_of(name), 0755), 0, "%s", name);
}

static void make_root(void)
{
    cr_assert_not_null(mkdtemp(root));
    make_directory("emo");
    make_directory("emo/1");
    write_file("emo/1/model.onnx", "one");
    write_file("face.onnx", "face");
}

static void remove_root(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(repository_watch, .init = make_root, .fini = remove_root, .timeout = 60);
TestSuite(fingerprint, .init = make_root, .fini = remove_root);

static struct inf_repository_watch *start_watch(bool poll)
{
    struct inf_repository_watch *watch = NULL;
    struct inf_error err = {0};
    const struct inf_repository_watch_options options = {
        .repository = root, .poll = poll, .poll_ms = POLL_MS, .settle_ms = SETTLE_MS};
    cr_assert_eq(inf_repository_watch_create(&watch, &options, &err), INF_OK, "%s", err.text);
    return watch;
}

// Waits until the watch reports a change of a model other than `other`, and expects that the model
// `name` changed.
static void expect_change_beside(struct inf_repository_watch *watch, const char *name,
                                 const char *other)
{
    char changed[INF_LIMIT_MODEL_NAME + 1] = "";
    do {
        struct pollfd poller = {.fd = inf_repository_watch_fd(watch), .events = POLLIN};
        cr_assert_eq(poll(&poller, 1, 20000), 1, "no change of %s", name);
    } while (!inf_repository_watch_next(watch, changed) || strcmp(changed, other) == 0);
    cr_expect_str_eq(changed, name);
}

static void expect_change(struct inf_repository_watch *watch, const char *name)
{
    expect_change_beside(watch, name, "");
}

static void expect_quiet(struct inf_repository_watch *watch)
{
    char changed[INF_LIMIT_MODEL_NAME + 1] = "";
    struct pollfd poller = {.fd = inf_repository_watch_fd(watch), .events = POLLIN};
    if (poll(&poller, 1, QUIET_MS) > 0)
        cr_expect_not(inf_repository_watch_next(watch, changed), "%s", changed);
}

static const bool ways[] = {false, true};

ParameterizedTestParameters(repository_watch, reports_what_changed)
{
    return cr_make_param_array(const bool, (bool *)ways, 2);
}

ParameterizedTest(const bool *by_polling, repository_watch, reports_what_changed)
{
    struct inf_repository_watch *watch = start_watch(*by_polling);
    expect_quiet(watch);
    write_file("emo/1/model.onnx", "another one");
    expect_change(watch, "emo");
    // A new version is written in a hidden directory, which is renamed when it is complete.
    make_directory("emo/.new");
    write_file("emo/.new/model.onnx", "two");
    expect_quiet(watch);
    cr_assert_eq(rename(path_of("emo/.new"), path_of("emo/2")), 0);
    expect_change(watch, "emo");
    write_file("emo/2/model.onnx", "two and a half");
    expect_change(watch, "emo");
    // Models that are a file in the root of the repository, and their settings files.
    write_file("face.conf", "warmup = no\n");
    expect_change(watch, "face");
    write_file("new.tflite", "new");
    expect_change(watch, "new");
    make_directory("late");
    make_directory("late/1");
    write_file("late/1/model.onnx", "late");
    expect_change(watch, "late");
    write_file("notes.txt", "no model");
    expect_quiet(watch);
    cr_assert_eq(unlink(path_of("emo/2/model.onnx")), 0);
    expect_change(watch, "emo");
    expect_quiet(watch);
    inf_repository_watch_destroy(&watch);
}

Test(repository_watch, reports_nothing_after_it_was_stopped)
{
    struct inf_repository_watch *watch = start_watch(false);
    inf_repository_watch_stop(watch);
    struct pollfd poller = {.fd = inf_repository_watch_fd(watch), .events = POLLIN};
    (void)poll(&poller, 1, QUIET_MS); // the thread ends meanwhile
    write_file("face.conf", "warmup = no\n");
    expect_quiet(watch);
    inf_repository_watch_destroy(&watch);
    inf_repository_watch_stop(watch); // NULL
}

Test(repository_watch, waits_for_a_file_that_is_being_written)
{
    struct inf_repository_watch *watch = start_watch(false);
    int fd = open(path_of("emo/1/model.onnx"), O_WRONLY | O_TRUNC | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "half", 4), 4);
    expect_quiet(watch); // expect no report for QUIET_MS, which is much longer than SETTLE_MS
    cr_assert_eq(write(fd, "whole", 5), 5);
    close(fd);
    expect_change(watch, "emo");
    inf_repository_watch_destroy(&watch);
}

// Appends to a file again and again, for GROW_MS or until the watch reports a change. Returns true
// if the watch has reported one. No pause between two appends is longer than *longest_ns.
static bool is_reported_while_growing(struct inf_repository_watch *watch, uint64_t *longest_ns)
{
    char changed[INF_LIMIT_MODEL_NAME + 1];
    bool reported = false;
    int fd = open(path_of("emo/1/model.onnx"), O_WRONLY | O_APPEND | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    uint64_t begin_ns = inf_clock_ns(), last_ns = begin_ns;
    *longest_ns = 0;
    while (!reported && inf_clock_ns() < begin_ns + GROW_MS * INF_NS_PER_MS) {
        uint64_t next_ns = inf_clock_ns();
        cr_assert_eq(write(fd, "x", 1), 1);
        *longest_ns = INF_MAX(*longest_ns, inf_clock_ns() - last_ns);
        last_ns = next_ns;
        struct pollfd poller = {.fd = inf_repository_watch_fd(watch), .events = POLLIN};
        reported = poll(&poller, 1, 1) == 1 && inf_repository_watch_next(watch, changed);
    }
    *longest_ns = INF_MAX(*longest_ns, inf_clock_ns() - last_ns);
    close(fd);
    return reported;
}

Test(repository_watch, waits_for_a_file_that_grows_between_two_looks)
{
    struct inf_repository_watch *watch = NULL;
    struct inf_error err = {0};
    uint64_t longest_ns = 0;
    const struct inf_repository_watch_options options = {
        .repository = root, .poll = true, .poll_ms = 2 * SETTLE_MS, .settle_ms = SETTLE_MS};
    cr_assert_eq(inf_repository_watch_create(&watch, &options, &err), INF_OK, "%s", err.text);
    // On a busy machine, a pause between two appends may be so long that the file settles.
    bool reported, paused;
    int tries = 0;
    do {
        reported = is_reported_while_growing(watch, &longest_ns);
        paused = longest_ns >= SETTLE_MS * INF_NS_PER_MS;
    } while (reported && paused && ++tries < 20);
    cr_assert(!reported || paused, "longest pause %.1f ms", (double)longest_ns / INF_NS_PER_MS);
    if (reported)
        cr_skip("the machine is too busy to let a file grow without a pause");
    expect_change(watch, "emo");
    inf_repository_watch_destroy(&watch);
}

Test(repository_watch, does_not_wait_for_files_that_were_moved_away)
{
    struct inf_repository_watch *watch = start_watch(false);
    int fd = open(path_of("emo/1/model.onnx"), O_WRONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "half", 4), 4);
    cr_assert_eq(rename(path_of("emo/1"), path_of("emo/.aside")), 0);
    make_directory("emo/2");
    write_file("emo/2/model.onnx", "two");
    expect_change(watch, "emo");
    // The directory that was moved away is no longer a version of the model.
    cr_assert_eq(write(fd, "whole", 5), 5);
    close(fd);
    expect_quiet(watch);
    // A file that is complete takes the place of one that is still written to.
    fd = open(path_of("emo/2/model.onnx"), O_WRONLY | O_CLOEXEC);
    cr_assert_eq(write(fd, "half", 4), 4);
    write_file("emo/2/.new", "complete");
    cr_assert_eq(rename(path_of("emo/2/.new"), path_of("emo/2/model.onnx")), 0);
    expect_change(watch, "emo");
    close(fd);
    inf_repository_watch_destroy(&watch);
}

Test(repository_watch, notices_new_names_after_many_others_were_removed)
{
    struct inf_repository_watch *watch = start_watch(false);
    for (unsigned i = 0; i < 1200; i++) {
        char name[32];
        snprintf(name, sizeof name, "m%u.onnx", i);
        write_file(name, "x");
        cr_assert_eq(unlink(path_of(name)), 0);
        if (i % 400 == 399)
            expect_quiet(watch);
    }
    write_file("last.onnx", "last");
    expect_change(watch, "last");
    inf_repository_watch_destroy(&watch);
}

// More directories than one watch observes by inotify.
#define DIRECTORIES 4200

static void make_many_directories(void)
{
    make_directory("many");
    make_directory("many/1");
    for (unsigned i = 0; i < DIRECTORIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/1/d%u", i);
        make_directory(name);
    }
}

// Returns true if this process has an inotify descriptor.
static bool has_inotify(void)
{
    bool found = false;
    DIR *directory = opendir("/proc/self/fd");
    cr_assert_not_null(directory);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        char target[64] = "";
        if (readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1) > 0)
            found = found || strstr(target, "inotify") != NULL;
    }
    closedir(directory);
    return found;
}

Test(repository_watch, polls_if_there_are_too_many_directories)
{
    make_many_directories();
    struct inf_repository_watch *watch = start_watch(false);
    cr_expect_not(has_inotify());
    write_file("emo/1/model.onnx", "another one");
    expect_change(watch, "emo");
    inf_repository_watch_destroy(&watch);
}

Test(repository_watch, polls_as_soon_as_there_are_too_many_directories)
{
    struct inf_repository_watch *watch = start_watch(false);
    cr_expect(has_inotify());
    make_many_directories();
    for (int tries = 0; has_inotify() && tries < 2000; tries++)
        usleep(10000);
    cr_expect_not(has_inotify());
    write_file("emo/1/model.onnx", "another one");
    // The directories may settle more than once, on a busy machine also after the file was written.
    expect_change_beside(watch, "emo", "many");
    inf_repository_watch_destroy(&watch);
}

Test(repository_watch, reports_nothing_if_files_are_as_before)
{
    struct inf_repository_watch *watch = start_watch(false);
    cr_assert_eq(rename(path_of("emo/1"), path_of("emo/.aside")), 0);
    cr_assert_eq(rename(path_of("emo/.aside"), path_of("emo/1")), 0);
    expect_quiet(watch);
    inf_repository_watch_destroy(&watch);
}

Test(repository_watch, needs_a_directory)
{
    struct inf_repository_watch *watch = NULL;
    struct inf_error err = {0};
    const struct inf_repository_watch_options options = {.repository = "/tmp/inferd-absent"};
    cr_expect_eq(inf_repository_watch_create(&watch, &options, &err), INF_NOT_FOUND);
    cr_expect_null(watch);
}

static uint64_t fingerprint_of(const char *name)
{
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    uint64_t fingerprint = inf_fingerprint_entry(fd, name);
    close(fd);
    return fingerprint;
}

Test(fingerprint, differs_if_any_file_below_does)
{
    uint64_t first = fingerprint_of("emo");
    cr_expect_eq(fingerprint_of("emo"), first);
    cr_expect_eq(fingerprint_of("absent"), 0);
    write_file("emo/1/more", "");
    uint64_t second = fingerprint_of("emo");
    cr_expect_neq(second, first);
    cr_assert_eq(rename(path_of("emo/1/more"), path_of("emo/1/else")), 0);
    cr_expect_neq(fingerprint_of("emo"), second, "the name counts");
    cr_assert_eq(unlink(path_of("emo/1/else")), 0);
    cr_expect_eq(fingerprint_of("emo"), first, "the time of a directory does not count");
}

Test(fingerprint, of_a_directory_leaves_out_one_file_and_hidden_ones)
{
    int fd = open(path_of("emo/1"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    uint64_t first = inf_fingerprint_directory(fd, "model.conf");
    write_file("emo/1/model.conf", "warmup = no\n");
    write_file("emo/1/.swap", "x");
    cr_expect_eq(inf_fingerprint_directory(fd, "model.conf"), first);
    cr_expect_neq(inf_fingerprint_directory(fd, NULL), first);
    close(fd);
}
