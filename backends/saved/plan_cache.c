// SPDX-License-Identifier: Apache-2.0
// The time of a file's last modification is that of its last use: finding a plan sets it. Before a
// plan is kept, the oldest files are deleted until the limit has room for it.
#include "backends/saved/plan_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "proto/core/span.h"

#define PREFIX    "plan-"
#define NAME_SIZE 32

struct inf_plan_cache {
    char *directory; // NULL: nothing is kept
    char *build;
    uint64_t bytes_max;
    const struct inf_log *log;
};

enum inf_code inf_plan_cache_create(struct inf_plan_cache **out_cache, const char *directory,
                                    uint64_t bytes_max, const char *build,
                                    const struct inf_log *log, struct inf_error *err)
{
    struct inf_plan_cache *cache = calloc(1, sizeof *cache);
    bool kept = directory != NULL && bytes_max > 0;
    if (cache != NULL) {
        *cache = (struct inf_plan_cache){.bytes_max = bytes_max, .log = log};
        cache->build = strdup(build);
        cache->directory = kept ? strdup(directory) : NULL;
    }
    if (cache == NULL || cache->build == NULL || (kept && cache->directory == NULL)) {
        inf_plan_cache_destroy(&cache);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the cache of plans");
    }
    *out_cache = cache;
    return INF_OK;
}

void inf_plan_cache_destroy(struct inf_plan_cache **cache)
{
    if (*cache == NULL)
        return;
    free((*cache)->directory);
    free((*cache)->build);
    free(*cache);
    *cache = NULL;
}

bool inf_plan_cache_is_open(const struct inf_plan_cache *cache)
{
    return cache->directory != NULL;
}

static void name_plan(uint64_t key, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, PREFIX "%016" PRIx64, key);
}

bool inf_plan_cache_find(struct inf_plan_cache *cache, uint64_t key, struct inf_saved_plan *plan)
{
    char name[NAME_SIZE];
    struct inf_error err = {0};
    int directory;
    if (cache->directory == NULL ||
        inf_directory_open(&directory, cache->directory, NULL) != INF_OK)
        return false;
    name_plan(key, name);
    const struct inf_plan_id id = {.key = key, .build = cache->build};
    enum inf_code code = inf_plan_file_read(plan, directory, name, &id, &err);
    if (code == INF_OK)
        (void)utimensat(directory, name, NULL, AT_SYMLINK_NOFOLLOW);
    else if (code != INF_NOT_FOUND)
        inf_log(cache->log, INF_LOG_NOTICE,
                "plan not used, the model is read instead reason=\"%s\"", err.text);
    close(directory);
    return code == INF_OK;
}

// The plan that was not used for the longest time, and the sum of all.
struct plan_survey {
    char oldest[NAME_SIZE]; // "": there is no plan
    struct timespec time;
    uint64_t oldest_bytes, all_bytes;
};

static bool is_earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void survey_plans(DIR *directory, struct plan_survey *survey)
{
    const struct dirent *entry;
    *survey = (struct plan_survey){.oldest = ""};
    rewinddir(directory);
    while ((entry = readdir(directory)) != NULL) {
        struct stat status;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            strlen(entry->d_name) >= NAME_SIZE ||
            fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        survey->all_bytes += (uint64_t)status.st_size;
        if (survey->oldest[0] != '\0' && !is_earlier(&status.st_mtim, &survey->time))
            continue;
        snprintf(survey->oldest, sizeof survey->oldest, "%s", entry->d_name);
        survey->time = status.st_mtim;
        survey->oldest_bytes = (uint64_t)status.st_size;
    }
}

// Deletes old plans until `wanted` more bytes fit. Returns false if they cannot.
static bool make_room(const struct inf_plan_cache *cache, int directory_fd, uint64_t wanted)
{
    struct plan_survey survey;
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool ok = wanted <= cache->bytes_max;
    for (survey_plans(directory, &survey); ok && survey.all_bytes > cache->bytes_max - wanted;
         survey_plans(directory, &survey))
        ok = survey.oldest[0] != '\0' && unlinkat(fd, survey.oldest, 0) == 0;
    closedir(directory);
    return ok;
}

// Returns about the size of a plan: that of its constants and forms.
static uint64_t estimate_bytes(const struct inf_saved_plan *plan)
{
    uint64_t bytes = inf_graph_cost(plan->graph).const_bytes;
    for (uint32_t i = 0; i < plan->form_count; i++) {
        const struct inf_plan_form *form = &plan->forms[i];
        bytes -= form->replaces ? INF_MIN(bytes, (uint64_t)form->blob->size_bytes) : 0;
        for (size_t k = 0; k < INF_FORM_PARTS; k++)
            bytes += form->record.part_bytes[k];
    }
    return bytes;
}

void inf_plan_cache_keep(struct inf_plan_cache *cache, uint64_t key,
                         const struct inf_saved_plan *plan)
{
    char name[NAME_SIZE];
    struct inf_error err = {0};
    int directory;
    if (cache->directory == NULL ||
        inf_directory_open(&directory, cache->directory, NULL) != INF_OK)
        return;
    name_plan(key, name);
    const struct inf_plan_id id = {.key = key, .build = cache->build};
    enum inf_code code = make_room(cache, directory, estimate_bytes(plan))
                             ? inf_plan_file_write(directory, name, 0600, &id, plan, &err)
                             : inf_fail(&err, INF_EXHAUSTED, "plan_bytes_max is too small for it");
    // The file has more than the constants, which were estimated.
    if (code == INF_OK)
        (void)make_room(cache, directory, 0);
    if (code != INF_OK)
        inf_log(cache->log, INF_LOG_INFO, "plan not kept for the next load reason=\"%s\"",
                err.text);
    close(directory);
}
