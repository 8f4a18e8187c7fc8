// SPDX-License-Identifier: Apache-2.0
// The thread that watches the repository. inotify events say which model to examine. Fingerprints
// of its files (daemon/model/fingerprint.h) decide whether it changed, so a superfluous event does
// no harm. If inotify cannot be used, the thread compares the fingerprints of all models at
// intervals.
//
//   inotify or interval --> settle: which models changed, and when their files last changed
//                       --> fingerprint differs from the one reported last --> changed --> loop
//
// A mutex guards `changed`, the list of changed models. Once the thread runs, only
// the thread changes the other fields.
#include "daemon/model/repository_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/storage/file.h"
#include "daemon/model/fingerprint.h"
#include "daemon/model/repository.h"
#include "daemon/model/settle.h"
#include "proto/wire/message.h"

// The most directories that are watched with inotify. If there are more, the thread polls instead.
// On small machines, Linux allows 8192 watches per user by default.
#define DIRECTORIES_MAX 4096u
#define EVENTS                                                                                     \
    (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE |            \
     IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW)

// A watched directory: the repository, or a directory below it.
struct directory {
    int watch; // watch descriptor that inotify returned
    uint32_t depth;
    struct inf_settle_model *model; // whose directory it is; NULL: the repository
    char path[2 * INF_LIMIT_MODEL_NAME + 256];
};

struct inf_repository_watch {
    struct inf_repository_watch_options options;
    struct inf_thread thread;
    int repository_fd, inotify_fd; // inotify_fd is -1 if the thread polls
    int stop_fd, changed_fd;       // eventfds: the thread must stop; `changed` has names
    uint32_t directory_count;
    struct directory *directories; // DIRECTORIES_MAX elements
    struct inf_settle settle;

    struct inf_mutex mutex; // guards `changed`
    struct inf_model_names changed;
};

// --- reporting to the loop ---

// Adds a model to `changed` and wakes the loop. Returns false if the list is full.
static bool report_change(struct inf_repository_watch *watch, const char *name)
{
    struct inf_model_names *changed = &watch->changed;
    uint32_t i = 0;
    inf_mutex_lock(&watch->mutex);
    while (i < changed->count && strcmp(changed->names[i], name) != 0)
        i++;
    bool room = i < INF_REPOSITORY_MODELS;
    if (i == changed->count && room)
        snprintf(changed->names[changed->count++], sizeof changed->names[0], "%s", name);
    inf_mutex_unlock(&watch->mutex);
    const uint64_t one = 1;
    while (write(watch->changed_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    return room;
}

int inf_repository_watch_fd(const struct inf_repository_watch *watch)
{
    return watch->changed_fd;
}

bool inf_repository_watch_next(struct inf_repository_watch *watch,
                               char name[INF_LIMIT_MODEL_NAME + 1])
{
    // Clear the eventfd before reading the list. If the thread adds a model between these two
    // steps, the loop only wakes up once too often.
    uint64_t count;
    while (read(watch->changed_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    inf_mutex_lock(&watch->mutex);
    bool found = watch->changed.count > 0;
    if (found)
        memcpy(name, watch->changed.names[--watch->changed.count], INF_LIMIT_MODEL_NAME + 1);
    inf_mutex_unlock(&watch->mutex);
    return found;
}

// --- fingerprints of models ---

static uint64_t model_fingerprint(const struct inf_repository_watch *watch,
                                  const char *name) INF_MAY_BLOCK
{
    uint64_t age_ns;
    return inf_fingerprint_model(watch->repository_fd, name, &age_ns);
}

// Returns the name of the model that an entry of the repository belongs to; NULL if it belongs to
// no model. A model name can contain dots, so only known suffixes of files are removed.
static const char *name_model(const char *entry, bool is_directory,
                              char name[INF_LIMIT_MODEL_NAME + 1])
{
    static const char *const suffixes[] = {".json", ".onnx", ".tflite", ".conf"};
    size_t length = strlen(entry), cut = is_directory ? 0 : length;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(suffixes) && !is_directory; i++) {
        size_t size = strlen(suffixes[i]);
        if (length > size && strcmp(entry + length - size, suffixes[i]) == 0)
            cut = size;
    }
    if (cut == length || length - cut > INF_LIMIT_MODEL_NAME)
        return NULL;
    memcpy(name, entry, length - cut);
    name[length - cut] = '\0';
    return inf_model_name_valid(name) ? name : NULL;
}

// --- watching directories with inotify ---

// Watches a directory and the directories below it. Returns false if the system or DIRECTORIES_MAX
// allows no more watches.
static bool watch_tree(struct inf_repository_watch *watch, const char *path, uint32_t depth,
                       struct inf_settle_model *model) INF_MAY_BLOCK;

// Watches the directories below `path`. Those directly in the repository (depth 0) are models.
// Returns false like watch_tree().
static bool watch_children(struct inf_repository_watch *watch, const char *path, uint32_t depth,
                           struct inf_settle_model *model) INF_MAY_BLOCK
{
    int fd = openat(watch->repository_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    bool room = true;
    if (stream == NULL) {
        if (fd >= 0)
            close(fd);
        return true; // `path` was removed, or the daemon is not allowed to read it
    }
    const struct dirent *entry;
    while (room && (entry = readdir(stream)) != NULL) {
        char child[sizeof watch->directories[0].path], name[INF_LIMIT_MODEL_NAME + 1];
        struct inf_settle_model *owner = model;
        if (entry->d_name[0] == '.' ||
            (depth == 0 && name_model(entry->d_name, true, name) == NULL))
            continue;
        if (depth == 0)
            owner = inf_settle_obtain(&watch->settle, name);
        int length = snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
        if (owner != NULL && length < (int)sizeof child)
            room = watch_tree(watch, child, depth + 1, owner);
    }
    closedir(stream);
    return room;
}

static bool watch_tree(struct inf_repository_watch *watch, const char *path, uint32_t depth,
                       struct inf_settle_model *model)
{
    char absolute[4096];
    snprintf(absolute, sizeof absolute, "%s/%s", watch->options.repository, path);
    int number = inotify_add_watch(watch->inotify_fd, absolute, EVENTS);
    if (number < 0)
        return errno != ENOSPC && errno != ENOMEM; // otherwise `path` cannot be watched: skip it
    uint32_t i = 0;
    // For a directory that is already watched, for example before a move, inotify returns the same
    // watch descriptor.
    while (i < watch->directory_count && watch->directories[i].watch != number)
        i++;
    if (i == DIRECTORIES_MAX)
        return false;
    watch->directory_count = INF_MAX(watch->directory_count, i + 1);
    struct directory *directory = &watch->directories[i];
    *directory = (struct directory){.watch = number, .depth = depth, .model = model};
    snprintf(directory->path, sizeof directory->path, "%s", path);
    return depth >= INF_FINGERPRINT_DEPTH || watch_children(watch, path, depth, model);
}

// Switches from inotify to polling, for the reason `why`.
static void fall_back(struct inf_repository_watch *watch, const char *why)
{
    inf_log(watch->options.log, INF_LOG_WARNING,
            "the repository is looked at every %u ms, because inotify cannot be used reason=\"%s\"",
            watch->options.poll_ms, why);
    close(watch->inotify_fd);
    watch->inotify_fd = -1;
    inf_settle_forget_writers(&watch->settle);
}

static void forget_directory(struct inf_repository_watch *watch, struct directory *directory)
{
    inf_settle_forget_directory(&watch->settle, directory->watch);
    *directory = watch->directories[--watch->directory_count];
}

// Stops watching the directory `name` in `parent` and all directories below it. They were moved
// away: inotify would go on to report their changes, which no longer concern a model.
static void unwatch_tree(struct inf_repository_watch *watch, const struct directory *parent,
                         const char *name)
{
    char path[sizeof parent->path + NAME_MAX + 1];
    size_t length = (size_t)snprintf(path, sizeof path, "%s/%s", parent->path, name);
    for (uint32_t i = watch->directory_count; i-- > 0;) {
        struct directory *directory = &watch->directories[i];
        if (strncmp(directory->path, path, length) != 0 ||
            (directory->path[length] != '\0' && directory->path[length] != '/'))
            continue;
        inotify_rm_watch(watch->inotify_fd, directory->watch);
        forget_directory(watch, directory);
    }
}

// Called if inotify lost events: watches all directories again and marks all models as changed.
// Returns false if no more directories can be watched.
static bool begin_again(struct inf_repository_watch *watch, uint64_t now_ns) INF_MAY_BLOCK
{
    inf_settle_forget_writers(&watch->settle);
    bool room = watch_tree(watch, ".", 0, NULL);
    for (uint32_t i = 0; i < watch->settle.model_count; i++)
        inf_settle_note_change(&watch->settle, &watch->settle.models[i], now_ns);
    return room;
}

// Handles one inotify event. Returns false if no more directories can be watched.
static bool handle_event(struct inf_repository_watch *watch, const struct inotify_event *event,
                         uint64_t now_ns) INF_MAY_BLOCK
{
    uint32_t i = 0;
    if ((event->mask & IN_Q_OVERFLOW) != 0)
        return begin_again(watch, now_ns);
    while (i < watch->directory_count && watch->directories[i].watch != event->wd)
        i++;
    if (i == watch->directory_count)
        return true;
    struct directory *directory = &watch->directories[i];
    if ((event->mask & IN_IGNORED) != 0) {
        forget_directory(watch, directory);
        return true;
    }
    char name[INF_LIMIT_MODEL_NAME + 1];
    struct inf_settle_model *model = directory->model;
    bool is_directory = (event->mask & IN_ISDIR) != 0;
    if (event->len == 0 || event->name[0] == '.')
        return true;
    if (model == NULL && name_model(event->name, is_directory, name) != NULL)
        model = inf_settle_obtain(&watch->settle, name);
    if (model == NULL)
        return true;
    if ((event->mask & IN_MODIFY) != 0)
        inf_settle_note_write(&watch->settle, model, event->wd, event->name, now_ns);
    else if ((event->mask & (IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)) != 0)
        inf_settle_note_close(&watch->settle, model, event->wd, event->name, now_ns);
    else
        inf_settle_note_change(&watch->settle, model, now_ns);
    if (is_directory && (event->mask & IN_MOVED_FROM) != 0)
        unwatch_tree(watch, directory, event->name);
    if (!is_directory || (event->mask & (IN_CREATE | IN_MOVED_TO)) == 0 ||
        directory->depth >= INF_FINGERPRINT_DEPTH)
        return true;
    char path[sizeof directory->path];
    int length = snprintf(path, sizeof path, "%s/%s", directory->path, event->name);
    return length >= (int)sizeof path || watch_tree(watch, path, directory->depth + 1, model);
}

static void read_events(struct inf_repository_watch *watch) INF_MAY_BLOCK
{
    _Alignas(struct inotify_event) char buffer[16384];
    ssize_t size;
    bool room = true;
    while (room && (size = read(watch->inotify_fd, buffer, sizeof buffer)) > 0) {
        uint64_t now_ns = inf_clock_ns();
        const struct inotify_event *event;
        for (char *at = buffer; room && at < buffer + size; at += sizeof *event + event->len) {
            event = (const struct inotify_event *)(void *)at;
            room = handle_event(watch, event, now_ns);
        }
    }
    if (!room)
        fall_back(watch, "too many directories for fs.inotify.max_user_watches");
}

// --- polling ---

// Computes the fingerprints of all models, and marks each model as changed whose fingerprint
// differs from that of the previous call.
static void look_at_all(struct inf_repository_watch *watch) INF_MAY_BLOCK
{
    struct inf_model_names *names = NULL;
    uint64_t now_ns = inf_clock_ns();
    if (inf_model_names_scan(&names, watch->options.repository, NULL) != INF_OK)
        return;
    for (uint32_t i = 0; i < names->count; i++)
        (void)inf_settle_obtain(&watch->settle, names->names[i]);
    free(names);
    for (uint32_t i = 0; i < watch->settle.model_count; i++) {
        struct inf_settle_model *model = &watch->settle.models[i];
        uint64_t fingerprint = model_fingerprint(watch, model->name);
        if (fingerprint != model->seen)
            inf_settle_note_change(&watch->settle, model, now_ns);
        model->seen = fingerprint;
    }
}

// Records the present fingerprints of all models as reported, so that only later changes are
// reported.
static void take_baseline(struct inf_repository_watch *watch) INF_MAY_BLOCK
{
    look_at_all(watch);
    for (uint32_t i = 0; i < watch->settle.model_count; i++) {
        struct inf_settle_model *model = &watch->settle.models[i];
        model->fingerprint = model->seen;
        model->due_ns = INF_SETTLE_NEVER;
    }
}

// --- the thread ---

// Forgets a model without files, so that its place serves another name. A model whose directory is
// still watched is kept, because the directory refers to it.
static void forget_model(struct inf_repository_watch *watch, struct inf_settle_model *model)
{
    for (uint32_t i = 0; i < watch->directory_count; i++)
        if (watch->directories[i].model == model)
            return;
    inf_settle_forget(&watch->settle, model);
}

// Reports each model that has settled and whose fingerprint differs from the one reported last.
static void report_settled(struct inf_repository_watch *watch) INF_MAY_BLOCK
{
    struct inf_settle_model *model;
    uint64_t now_ns = inf_clock_ns();
    while ((model = inf_settle_take(&watch->settle, now_ns)) != NULL) {
        uint64_t fingerprint = model_fingerprint(watch, model->name);
        // While the thread polls, it gets no events, so it compares: a file that has changed since
        // the last look has not settled.
        if (watch->inotify_fd < 0 && fingerprint != model->seen) {
            model->seen = fingerprint;
            inf_settle_note_change(&watch->settle, model, now_ns);
            continue;
        }
        if (fingerprint != model->fingerprint) {
            if (!report_change(watch, model->name)) {
                inf_settle_note_change(&watch->settle, model, now_ns);
                continue;
            }
            model->fingerprint = model->seen = fingerprint;
            inf_log(watch->options.log, INF_LOG_DEBUG, "files beside a model changed name=%s",
                    model->name);
        }
        if (fingerprint == 0)
            forget_model(watch, model);
    }
}

// Returns the timeout of the next poll(), in milliseconds; -1: no timeout.
static int sleep_ms(const struct inf_repository_watch *watch)
{
    uint64_t now_ns = inf_clock_ns(), next_ns = inf_settle_next_ns(&watch->settle);
    uint64_t poll_ns = now_ns + watch->options.poll_ms * INF_NS_PER_MS;
    if (watch->inotify_fd < 0)
        next_ns = INF_MIN(next_ns, poll_ns);
    if (next_ns == INF_SETTLE_NEVER)
        return -1;
    return next_ns <= now_ns ? 0 : (int)((next_ns - now_ns) / INF_NS_PER_MS) + 1;
}

static void watch_until_stopped(struct inf_repository_watch *watch)
{
    uint64_t looked_ns = inf_clock_ns();
    for (;;) {
        struct pollfd fds[] = {{.fd = watch->stop_fd, .events = POLLIN},
                               {.fd = watch->inotify_fd, .events = POLLIN}};
        if (poll(fds, 2, sleep_ms(watch)) < 0 && errno != EINTR)
            return;
        if (fds[0].revents != 0)
            return;
        if (watch->inotify_fd >= 0) {
            read_events(watch);
        } else if (inf_clock_ns() - looked_ns >= watch->options.poll_ms * INF_NS_PER_MS) {
            look_at_all(watch);
            looked_ns = inf_clock_ns();
        }
        report_settled(watch);
    }
}

static void watch_repository(void *context)
{
    struct inf_repository_watch *watch = context;
    inf_role_enter_worker();
    watch_until_stopped(watch);
    // Here, because the kernel takes about 20 ms to close an inotify descriptor.
    if (watch->inotify_fd >= 0)
        close(watch->inotify_fd);
    watch->inotify_fd = -1;
}

// --- creating and destroying ---

// Returns true if files of this file system can be changed without an inotify event, for example by
// another machine.
static bool is_remote(int fd)
{
    // The types of NFS, SMB (old and new), CIFS, FUSE, 9P, AFS and Ceph (f_type in statfs(2)).
    static const uint32_t kinds[] = {0x6969,     0x517b,     0xfe534d42, 0xff534d42,
                                     0x65735546, 0x01021997, 0x5346414f, 0x00c36400};
    struct statfs status;
    if (fstatfs(fd, &status) != 0)
        return false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++)
        if ((uint32_t)status.f_type == kinds[i])
            return true;
    return false;
}

static enum inf_code open_watch(struct inf_repository_watch *watch,
                                struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_repository_watch_options *options = &watch->options;
    INF_TRY(inf_directory_open(&watch->repository_fd, options->repository, err));
    watch->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch->changed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch->directories = calloc(DIRECTORIES_MAX, sizeof *watch->directories);
    if (watch->stop_fd < 0 || watch->changed_fd < 0 || watch->directories == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory or descriptor to watch the repository");
    if (!options->poll && !is_remote(watch->repository_fd))
        watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    // Add the watches before computing the fingerprints, so that a change in between is noticed.
    if (watch->inotify_fd >= 0 && !watch_tree(watch, ".", 0, NULL))
        fall_back(watch, "too many directories for fs.inotify.max_user_watches");
    take_baseline(watch);
    inf_log(options->log, INF_LOG_INFO, "watching the repository by=%s settle_ms=%u",
            watch->inotify_fd >= 0 ? "inotify" : "polling", options->settle_ms);
    return inf_thread_start(&watch->thread, "inferd-watch", watch_repository, watch, err);
}

enum inf_code inf_repository_watch_create(struct inf_repository_watch **out_watch,
                                          const struct inf_repository_watch_options *options,
                                          struct inf_error *err)
{
    inf_role_check_may_block();
    struct inf_repository_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to watch the repository");
    watch->options = *options;
    watch->repository_fd = watch->inotify_fd = watch->stop_fd = watch->changed_fd = -1;
    watch->settle.quiet_ns = options->settle_ms * INF_NS_PER_MS;
    inf_mutex_init(&watch->mutex);
    enum inf_code code = open_watch(watch, err);
    if (code != INF_OK) {
        inf_repository_watch_destroy(&watch);
        return code;
    }
    *out_watch = watch;
    return INF_OK;
}

void inf_repository_watch_stop(struct inf_repository_watch *watch)
{
    const uint64_t one = 1;
    if (watch != NULL && watch->stop_fd >= 0)
        (void)!write(watch->stop_fd, &one, sizeof one);
}

void inf_repository_watch_destroy(struct inf_repository_watch **watch)
{
    struct inf_repository_watch *self = *watch;
    if (self == NULL)
        return;
    inf_repository_watch_stop(self);
    inf_thread_join(&self->thread);
    const int fds[] = {self->repository_fd, self->inotify_fd, self->stop_fd, self->changed_fd};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    inf_mutex_fini(&self->mutex);
    free(self->directories);
    free(self);
    *watch = NULL;
}
