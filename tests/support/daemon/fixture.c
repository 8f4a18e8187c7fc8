// SPDX-License-Identifier: Apache-2.0
// Starts a real daemon in a temporary folder for one test, and stops it.
#include "tests/support/daemon/fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/models/tfjs_writer.h"
#include "tests/support/sanitized.h"

// --- writing the models of the daemon's repository ---

// The size of W in the model y = sum of (x + W) W ... W. The reference device `ref` takes about 30
// ms for a product, and can be stopped between two products.
#define SLOW_SIZE 320

void inf_fixture_write_products(const char *directory, int count)
{
    static float weights[SLOW_SIZE * SLOW_SIZE];
    const int64_t square[] = {SLOW_SIZE, SLOW_SIZE};
    const int64_t one[] = {1, 1};
    const int32_t axes[] = {0, 1};
    const int64_t two[] = {2};
    for (size_t i = 0; i < SLOW_SIZE * SLOW_SIZE; i++)
        weights[i] = i % (SLOW_SIZE + 1) == 0 ? 1.0f : 0.0f; // the identity matrix
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", one, 2);
    inf_tfjs_writer_floats(writer, "w", weights, square, 2);
    inf_tfjs_writer_ints(writer, "axes", axes, two, 1);
    inf_tfjs_writer_node(writer, "step0", "AddV2", "x,w");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    for (int i = 1; i <= count; i++) {
        char name[32];
        char inputs[64];
        snprintf(name, sizeof name, "step%d", i);
        snprintf(inputs, sizeof inputs, "step%d,w", i - 1);
        inf_tfjs_writer_node(writer, name, "MatMul", inputs);
        inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
        inf_tfjs_writer_attr_bool(writer, "transpose_a", 0);
        inf_tfjs_writer_attr_bool(writer, "transpose_b", 0);
    }
    char last[64];
    snprintf(last, sizeof last, "step%d,axes", count);
    inf_tfjs_writer_node(writer, "y", "Sum", last);
    inf_tfjs_writer_attr_bool(writer, "keep_dims", 0);
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_attr_type(writer, "Tidx", "DT_INT32");
    inf_tfjs_writer_output(writer, "y", "y");
    inf_tfjs_writer_end(writer);
}

static void make_directory(char *path, size_t size, const char *parent, const char *name)
{
    snprintf(path, size, "%s/%s", parent, name);
    cr_assert_eq(mkdir(path, 0700), 0, "mkdir %s: %s", path, strerror(errno));
}

static void write_slow(const char *directory)
{
    inf_fixture_write_products(directory, 48);
}

static void write_brief(const char *directory)
{
    inf_fixture_write_products(directory, 6);
}

// Without a warm-up of the models made of products, each start of a daemon is a second or more
// shorter, and ten seconds in a build with a sanitizer.
static const struct {
    const char *name;
    void (*write)(const char *directory);
    bool warmup;
} models[] = {
    {"add", inf_write_add_model, true},
    {"brief", write_brief, false},
    {"conv", inf_write_conv_model, true},
    {"slow", write_slow, false},
};
#define MODEL_COUNT (sizeof models / sizeof models[0])

// How often a test asks, 10 ms apart, whether a model is ready.
#define READY_TRIES (INF_TESTS_SANITIZED ? 12000 : 3000)

void inf_fixture_write_settings(const struct inf_fixture *fixture, const char *model,
                                const char *text)
{
    char path[192];
    snprintf(path, sizeof path, "%s/%s/model.conf", fixture->repository, model);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file, "%s: %s", path, strerror(errno));
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void write_models(const struct inf_fixture *fixture)
{
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        char model[128];
        char version[160];
        make_directory(model, sizeof model, fixture->repository, models[i].name);
        make_directory(version, sizeof version, model, "1");
        models[i].write(version);
        if (!models[i].warmup)
            inf_fixture_write_settings(fixture, models[i].name, "warmup = no\n");
    }
}

// --- starting and stopping the daemon ---

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void spawn_daemon(struct inf_fixture *fixture, const char *const *arguments)
{
    char runtime[128];
    char repository[128];
    const char *argv[32] = {getenv("INFERD"), runtime,           repository,
                            "--cpu-slots=1",  "--cpu-threads=1", "--log-level=warning",
                            "--race=never",   "--watch=never"};
    size_t count = 8;
    cr_assert_not_null(argv[0], "$INFERD does not name the daemon");
    snprintf(runtime, sizeof runtime, "--runtime-dir=%s", fixture->directory);
    snprintf(repository, sizeof repository, "--repository=%s", fixture->repository);
    for (; arguments != NULL && *arguments != NULL; arguments++) {
        cr_assert_lt(count, 31);
        argv[count++] = *arguments;
    }
    fixture->pid = fork();
    cr_assert_geq(fixture->pid, 0);
    if (fixture->pid == 0) {
        // The kernel kills the daemon if the test process dies.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[0], (char **)argv);
        _exit(127);
    }
}

static bool try_connect(const char *path, int *out_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_geq(fd, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return false;
    }
    *out_fd = fd;
    return true;
}

static void wait_for_socket(const struct inf_fixture *fixture)
{
    for (int i = 0; i < 3000; i++) {
        int fd;
        int status;
        if (try_connect(fixture->admin_socket, &fd)) {
            close(fd);
            return;
        }
        cr_assert_eq(waitpid(fixture->pid, &status, WNOHANG), 0, "the daemon ended at once");
        pause_ms(10);
    }
    cr_assert_fail("the daemon does not listen");
}

static void wait_for_models(const struct inf_fixture *fixture)
{
    struct inf_raw raw;
    inf_raw_open(&raw, fixture->socket);
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        bool ready = false;
        for (int tries = 0; tries < READY_TRIES && !ready; tries++) {
            union inf_message message = {.model = {.name = models[i].name}};
            inf_raw_call(&raw, INF_METHOD_MODEL_READY, INF_MESSAGE_MODEL_READY_REQUEST, &message,
                         (struct inf_span){0});
            // The daemon answers NOT_FOUND until the loader has started with the model.
            if ((raw.frame.header.flags & INF_FRAME_FLAG_ERROR) == 0) {
                inf_raw_decode(&raw, INF_MESSAGE_MODEL_READY_REPLY);
                ready = raw.message.flag.value;
            }
            if (!ready)
                pause_ms(10);
        }
        cr_assert(ready, "model %s does not get ready", models[i].name);
    }
    inf_raw_close(&raw);
}

void inf_fixture_start(struct inf_fixture *fixture, const char *const *arguments)
{
    *fixture = (struct inf_fixture){.directory = "/tmp/inferd-test-XXXXXX"};
    cr_assert_not_null(mkdtemp(fixture->directory));
    make_directory(fixture->repository, sizeof fixture->repository, fixture->directory, "models");
    snprintf(fixture->socket, sizeof fixture->socket, "%s/inferd.sock", fixture->directory);
    snprintf(fixture->admin_socket, sizeof fixture->admin_socket, "%s/admin.sock",
             fixture->directory);
    write_models(fixture);
    spawn_daemon(fixture, arguments);
    wait_for_socket(fixture);
    wait_for_models(fixture);
}

void inf_fixture_start_logged(struct inf_fixture *fixture, const char *log,
                              const char *const *arguments)
{
    int saved = dup(STDERR_FILENO);
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    dup2(fd, STDERR_FILENO);
    inf_fixture_start(fixture, arguments);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
}

int inf_fixture_wait(struct inf_fixture *fixture)
{
    int status = 0;
    for (int i = 0; i < 6000; i++) {
        pid_t ended = waitpid(fixture->pid, &status, WNOHANG);
        if (ended == fixture->pid) {
            cr_assert(WIFEXITED(status), "the daemon died of signal %d", WTERMSIG(status));
            return WEXITSTATUS(status);
        }
        pause_ms(10);
    }
    kill(fixture->pid, SIGKILL);
    cr_assert_fail("the daemon does not end");
    return -1;
}

static int remove_entry(const char *path, const struct stat *entry, int type, struct FTW *place)
{
    (void)entry;
    (void)type;
    (void)place;
    return remove(path);
}

void inf_fixture_remove(struct inf_fixture *fixture)
{
    nftw(fixture->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void inf_fixture_restart(struct inf_fixture *fixture, const char *const *arguments)
{
    cr_assert_eq(kill(fixture->pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(fixture), 0);
    spawn_daemon(fixture, arguments);
    wait_for_socket(fixture);
    wait_for_models(fixture);
}

void inf_fixture_stop(struct inf_fixture *fixture)
{
    cr_assert_eq(kill(fixture->pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(fixture), 0);
    inf_fixture_remove(fixture);
}

void inf_fixture_open_as(const struct inf_fixture *fixture, struct inf_raw *raw, uid_t uid)
{
    cr_assert_eq(chmod(fixture->directory, 0755), 0);
    cr_assert_eq(chmod(fixture->socket, 0666), 0);
    cr_assert_eq(seteuid(uid), 0);
    inf_raw_open(raw, fixture->socket);
    cr_assert_eq(seteuid(0), 0);
}

uint32_t inf_fixture_fds_of(const struct inf_fixture *fixture, const char *prefix)
{
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)fixture->pid);
    DIR *directory = opendir(path);
    cr_assert_not_null(directory);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        count += strncmp(target, prefix, strlen(prefix)) == 0;
    }
    closedir(directory);
    return count;
}

uint32_t inf_fixture_fds(const struct inf_fixture *fixture)
{
    return inf_fixture_fds_of(fixture, "");
}

void inf_fixture_expect_fds(const struct inf_fixture *fixture, uint32_t count)
{
    for (int i = 0; i < 1000 && inf_fixture_fds(fixture) > count; i++)
        usleep(10000);
    cr_assert_leq(inf_fixture_fds(fixture), count, "a descriptor was left open");
}

uint32_t inf_fixture_memfds(const struct inf_fixture *fixture)
{
    char path[64];
    char line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)fixture->pid);
    FILE *maps = fopen(path, "re");
    cr_assert_not_null(maps);
    uint32_t count = 0;
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "/memfd:inferd-") != NULL;
    fclose(maps);
    return count;
}
