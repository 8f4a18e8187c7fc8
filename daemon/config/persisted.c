// SPDX-License-Identifier: Apache-2.0
// The file has a line for each setting, which people can read:
//
//     - slow_ms = 500
//     mobilenet device = cpu
//
// "-" stands for the daemon. The file is replaced as a whole whenever a setting changes, which is
// rare.
#include "daemon/config/persisted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/flag.h"

#define DAEMON_WORD "-"
#define LINE_CHARS  (INF_LIMIT_MODEL_NAME + 64 + INF_CONFIG_TEXT + 8)

struct inf_persisted {
    char *directory; // NULL: nothing is kept
    const struct inf_log *log;
    struct inf_persisted_setting *settings;
    uint32_t count;
};

// --- reading ---

// Parses "MODEL NAME = VALUE". Returns false if the line is none.
static bool parse_line(char *line, struct inf_persisted_setting *setting)
{
    char *name = strchr(line, ' ');
    char *equals = name != NULL ? strstr(name + 1, " = ") : NULL;
    if (equals == NULL)
        return false;
    *name++ = '\0';
    *equals = '\0';
    const char *value = equals + 3;
    if (strcmp(line, DAEMON_WORD) == 0)
        line[0] = '\0';
    if (strlen(line) >= sizeof setting->model || strlen(name) >= sizeof setting->name ||
        name[0] == '\0' || strlen(value) >= sizeof setting->value)
        return false;
    *setting = (struct inf_persisted_setting){.model = ""};
    snprintf(setting->model, sizeof setting->model, "%s", line);
    snprintf(setting->name, sizeof setting->name, "%s", name);
    snprintf(setting->value, sizeof setting->value, "%s", value);
    return true;
}

static void read_settings(struct inf_persisted *persisted, FILE *file)
{
    char line[LINE_CHARS];
    while (persisted->count < INF_PERSISTED_MAX && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (parse_line(line, &persisted->settings[persisted->count]))
            persisted->count++;
        else
            inf_log(
                persisted->log, INF_LOG_WARNING,
                "a line of the file of persistent settings is not used file=%s/" INF_PERSISTED_FILE,
                persisted->directory);
    }
}

enum inf_code inf_persisted_open(struct inf_persisted **out_persisted, const char *directory,
                                 const struct inf_log *log, struct inf_error *err)
{
    char path[INF_CONFIG_PATH];
    struct inf_persisted *persisted = calloc(1, sizeof *persisted);
    if (persisted != NULL) {
        persisted->log = log;
        persisted->settings = calloc(INF_PERSISTED_MAX, sizeof *persisted->settings);
        persisted->directory = directory != NULL ? strdup(directory) : NULL;
    }
    if (persisted == NULL || persisted->settings == NULL ||
        (directory != NULL && persisted->directory == NULL)) {
        inf_persisted_close(&persisted);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for persistent settings");
    }
    *out_persisted = persisted;
    if (directory == NULL)
        return INF_OK;
    snprintf(path, sizeof path, "%s/" INF_PERSISTED_FILE, directory);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        if (errno != ENOENT)
            inf_log(log, INF_LOG_WARNING, "persistent settings not read file=%s error=\"%s\"", path,
                    strerror(errno));
        return INF_OK;
    }
    read_settings(persisted, file);
    fclose(file);
    return INF_OK;
}

void inf_persisted_close(struct inf_persisted **persisted)
{
    if (*persisted == NULL)
        return;
    free((*persisted)->directory);
    free((*persisted)->settings);
    free(*persisted);
    *persisted = NULL;
}

const struct inf_persisted_setting *inf_persisted_get(const struct inf_persisted *persisted,
                                                      uint32_t index)
{
    return index < persisted->count ? &persisted->settings[index] : NULL;
}

// --- writing ---

static bool print_settings(const struct inf_persisted *persisted, FILE *file)
{
    fputs(
        "# Written by inferd for inferctl --persist; inferctl flags reset and inferctl place\n"
        "# --forget remove settings.\n",
        file);
    for (uint32_t i = 0; i < persisted->count; i++) {
        const struct inf_persisted_setting *setting = &persisted->settings[i];
        fprintf(file, "%s %s = %s\n", setting->model[0] != '\0' ? setting->model : DAEMON_WORD,
                setting->name, setting->value);
    }
    return fflush(file) == 0 && fsync(fileno(file)) == 0;
}

static enum inf_code write_settings(const struct inf_persisted *persisted,
                                    struct inf_error *err) INF_MAY_BLOCK
{
    char path[INF_CONFIG_PATH], temporary[INF_CONFIG_PATH + 8];
    if (persisted->directory == NULL)
        return inf_fail(err, INF_PRECONDITION,
                        "not persistent: the flag state_dir names no directory");
    snprintf(path, sizeof path, "%s/" INF_PERSISTED_FILE, persisted->directory);
    snprintf(temporary, sizeof temporary, "%s.new", path);
    (void)unlink(temporary);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool ok = file != NULL && print_settings(persisted, file);
    int error = errno;
    if (file != NULL)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    if (ok && rename(temporary, path) == 0)
        return INF_OK;
    error = ok ? errno : error;
    (void)unlink(temporary);
    return inf_fail(err, INF_PRECONDITION,
                    "not persistent: the file in state_dir cannot be written: %s", strerror(error));
}

// Returns the index of a setting; `count` if there is none.
static uint32_t find_setting(const struct inf_persisted *persisted, const char *model,
                             const char *name)
{
    uint32_t i = 0;
    while (i < persisted->count && (strcmp(persisted->settings[i].model, model) != 0 ||
                                    strcmp(persisted->settings[i].name, name) != 0))
        i++;
    return i;
}

enum inf_code inf_persisted_set(struct inf_persisted *persisted,
                                const struct inf_persisted_setting *setting, struct inf_error *err)
{
    uint32_t index = find_setting(persisted, setting->model, setting->name);
    inf_role_check_may_block();
    if (strpbrk(setting->value, "\r\n") != NULL || setting->name[0] == '\0')
        return inf_fail(err, INF_INVALID, "setting '%s': wanted a value of one line",
                        setting->name);
    if (index == INF_PERSISTED_MAX)
        return inf_fail(err, INF_EXHAUSTED, "more than %u persistent settings", INF_PERSISTED_MAX);
    const struct inf_persisted_setting before = persisted->settings[index];
    const uint32_t count = persisted->count;
    persisted->settings[index] = *setting;
    persisted->count = INF_MAX(count, index + 1);
    enum inf_code code = write_settings(persisted, err);
    if (code != INF_OK) {
        persisted->settings[index] = before;
        persisted->count = count;
    }
    return code;
}

enum inf_code inf_persisted_remove(struct inf_persisted *persisted, const char *model,
                                   const char *name, struct inf_error *err)
{
    const size_t bytes = persisted->count * sizeof *persisted->settings;
    const uint32_t count = persisted->count;
    uint32_t kept = 0;
    inf_role_check_may_block();
    struct inf_persisted_setting *before = malloc(bytes + 1);
    if (before == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for persistent settings");
    memcpy(before, persisted->settings, bytes);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(before[i].model, model) != 0 ||
            (name[0] != '\0' && strcmp(before[i].name, name) != 0))
            persisted->settings[kept++] = before[i];
    persisted->count = kept;
    enum inf_code code = kept < count ? write_settings(persisted, err) : INF_OK;
    if (code != INF_OK) {
        memcpy(persisted->settings, before, bytes);
        persisted->count = count;
    }
    free(before);
    return code;
}

// --- using ---

void inf_persisted_apply_flags(const struct inf_persisted *persisted, struct inf_config *config)
{
    const struct inf_persisted_setting *setting;
    for (uint32_t i = 0; (setting = inf_persisted_get(persisted, i)) != NULL; i++) {
        char wanted[INF_FLAG_WANTED_SIZE];
        const char *nearest;
        if (setting->model[0] != '\0')
            continue;
        const struct inf_flag *flag = inf_flag_find(setting->name, &nearest);
        if (flag == NULL || !flag->live ||
            !inf_flag_parse(config, flag, setting->value, INF_ORIGIN_PERSISTED, wanted))
            inf_log(persisted->log, INF_LOG_WARNING,
                    "persistent flag not used name=%s value=\"%s\"", setting->name, setting->value);
    }
}
