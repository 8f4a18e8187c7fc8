// SPDX-License-Identifier: Apache-2.0
// Reads the configuration from its sources in their order, and derives values that depend on
// several flags.
#include "daemon/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "daemon/config/file.h"
#include "proto/core/span.h"

// The highest number of drop-in files for one configuration file.
#define DROP_INS_MAX 256

// The longest path of a Unix socket in characters, without the final NUL byte.
#define SOCKET_CHARS (sizeof((struct sockaddr_un *)0)->sun_path - 1)

// --- reading the configuration file and its drop-in files ---

// Reads the configuration file at `path`. A missing file is an error only if --config named it.
static enum inf_code read_file(struct inf_config *config, const char *path, bool named,
                               enum inf_origin origin, struct inf_error *err)
{
    FILE *stream = fopen(path, "re");
    if (stream == NULL && errno == ENOENT && !named)
        return INF_OK;
    if (stream == NULL)
        return inf_fail(err, INF_INVALID, "%s: %s", path, strerror(errno));
    enum inf_code code =
        inf_settings_read(&inf_daemon_flags, config, stream,
                          (struct inf_setting_place){.origin = origin, .file = path}, err);
    fclose(stream);
    return code;
}

static int is_drop_in(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".conf") == 0;
}

// Reads FILE.d/*.conf in the order of their names.
static enum inf_code read_drop_ins(struct inf_config *config, const char *file,
                                   struct inf_error *err)
{
    char directory[INF_CONFIG_PATH];
    struct dirent **entries = NULL;
    snprintf(directory, sizeof directory, "%s.d", file);
    int count = scandir(directory, &entries, is_drop_in, alphasort);
    enum inf_code code = INF_OK;
    if (count > DROP_INS_MAX)
        code = inf_fail(err, INF_INVALID, "%s: %d files, wanted at most %d", directory, count,
                        DROP_INS_MAX);
    for (int i = 0; i < count; i++) {
        char path[INF_CONFIG_PATH + sizeof entries[i]->d_name];
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        if (code == INF_OK)
            code = read_file(config, path, true, INF_ORIGIN_DROP_IN, err);
        free(entries[i]);
    }
    free(entries);
    return code;
}

// --- reading the environment variable INFERD_FLAGS ---

// Cuts the next "name=value" off $INFERD_FLAGS, a comma-separated list. Values may contain commas:
// text between two commas without "=" continues the value before it.
static char *next_assignment(char **rest)
{
    char *assignment = *rest, *end = assignment;
    if (*assignment == '\0')
        return NULL;
    for (;;) {
        end += strcspn(end, ",");
        const char *after = *end == ',' ? end + 1 : end;
        size_t piece = strcspn(after, ",");
        bool another = memchr(after, '=', piece) != NULL;
        if (*end == '\0' || another)
            break;
        end++;
    }
    *rest = *end == ',' ? end + 1 : end;
    *end = '\0';
    return assignment;
}

static enum inf_code read_environment(struct inf_config *config, struct inf_error *err)
{
    static const struct inf_setting_place place = {.origin = INF_ORIGIN_ENVIRONMENT,
                                                   .file = INF_CONFIG_VARIABLE};
    const char *given = getenv(INF_CONFIG_VARIABLE);
    char text[INF_SETTING_LINE_CHARS];
    if (given == NULL)
        return INF_OK;
    if (strlen(given) >= sizeof text)
        return inf_fail(err, INF_INVALID, INF_CONFIG_VARIABLE ": longer than %d characters",
                        INF_SETTING_LINE_CHARS - 1);
    memcpy(text, given, strlen(given) + 1);
    char *rest = text, *assignment;
    while ((assignment = next_assignment(&rest)) != NULL) {
        const struct inf_flag *flag = NULL;
        char *equals = strchr(assignment, '=');
        if (equals == NULL)
            return inf_fail(err, INF_INVALID, INF_CONFIG_VARIABLE ": '%s': wanted name=value",
                            assignment);
        *equals = '\0';
        INF_TRY(
            inf_setting_find(&inf_daemon_flags, &flag, inf_setting_trim(assignment), &place, err));
        INF_TRY(inf_setting_set(&inf_daemon_flags, config, flag, inf_setting_trim(equals + 1),
                                &place, err));
    }
    return INF_OK;
}

// --- reading the command line ---

// One command-line argument: the key without its dashes, and its value, or NULL if it has none.
struct argument {
    char key[INF_FLAG_NAME_CHARS + 1];
    const char *value;
};

// Parses argv[*index], and advances *index past the value if that is a separate argument.
static enum inf_code split_argument(struct argument *argument, int argc, char **argv, int *index,
                                    struct inf_error *err)
{
    const char *text = argv[*index];
    if (strncmp(text, "--", 2) != 0 || text[2] == '\0')
        return inf_fail(err, INF_INVALID, "'%s': wanted --key=value; see --help", text);
    size_t length = strcspn(text + 2, "=");
    if (length > INF_FLAG_NAME_CHARS)
        return inf_fail(err, INF_INVALID, "'%s': no such option; see --help", text);
    memcpy(argument->key, text + 2, length);
    argument->key[length] = '\0';
    argument->value = text[2 + length] == '=' ? text + 3 + length : NULL;
    (*index)++;
    const char *nearest;
    const struct inf_flag *flag = inf_flag_find(argument->key, &nearest);
    if (flag != NULL && flag->type == INF_FLAG_ASK) {
        if (argument->value != NULL)
            return inf_fail(err, INF_INVALID, "--%s takes no value", argument->key);
        argument->value = "";
    }
    if (argument->value == NULL && *index < argc)
        argument->value = argv[(*index)++];
    return INF_OK;
}

// Reads the command-line arguments. With `config`, sets its flags. With `config` NULL, only finds
// the file that --config names, and sets *private_run if --runtime-dir is given.
static enum inf_code read_arguments(struct inf_config *config, int argc, char **argv,
                                    const char **file, bool *private_run, struct inf_error *err)
{
    static const struct inf_setting_place place = {.origin = INF_ORIGIN_ARGUMENT};
    for (int index = 1; index < argc;) {
        struct argument argument;
        INF_TRY(split_argument(&argument, argc, argv, &index, err));
        bool is_file = strcmp(argument.key, "config") == 0;
        const struct inf_flag *flag = NULL;
        if (!is_file)
            INF_TRY(inf_setting_find(&inf_daemon_flags, &flag, argument.key, &place, err));
        if (argument.value == NULL)
            return inf_fail(err, INF_INVALID, "--%s: wanted a value", argument.key);
        if (is_file)
            *file = argument.value;
        else if (flag == &inf_flags[INF_FLAG_ID_runtime_dir])
            *private_run = argument.value[0] != '\0';
        if (!is_file && config != NULL)
            INF_TRY(inf_setting_set(&inf_daemon_flags, config, flag, argument.value, &place, err));
    }
    return INF_OK;
}

// --- combining file, environment and arguments ---

static void set_defaults(struct inf_config *config)
{
    *config = (struct inf_config){0};
    inf_flag_list_reset(&inf_daemon_flags, config);
}

static bool was_given(const struct inf_config *config, enum inf_flag_id id)
{
    return config->origins[id] > INF_ORIGIN_DERIVED;
}

// Sets the path of a socket to RUNTIME_DIR/`file`, unless the user configured the path.
static enum inf_code set_socket_path(struct inf_config *config, enum inf_flag_id id,
                                     const char *file, struct inf_error *err)
{
    char *path = (char *)config + inf_flags[id].offset;
    if (was_given(config, id))
        return INF_OK;
    int length = snprintf(path, INF_CONFIG_TEXT, "%s/%s", config->runtime_dir, file);
    if (length < 0 || length >= INF_CONFIG_TEXT)
        return inf_fail(err, INF_INVALID, "runtime_dir = %s: wanted at most %zu characters",
                        config->runtime_dir, INF_CONFIG_TEXT - 1 - strlen(file) - 1);
    config->origins[id] = INF_ORIGIN_DERIVED;
    return INF_OK;
}

// Sets a path flag to the empty text, unless the user configured the flag.
static void clear_path(struct inf_config *config, enum inf_flag_id id)
{
    if (was_given(config, id))
        return;
    ((char *)config + inf_flags[id].offset)[0] = '\0';
    config->origins[id] = INF_ORIGIN_DERIVED;
}

// Computes the flags whose value depends on other flags.
static enum inf_code derive_values(struct inf_config *config, struct inf_error *err)
{
    if (config->runtime_dir[0] != '\0') {
        INF_TRY(set_socket_path(config, INF_FLAG_ID_socket, "inferd.sock", err));
        INF_TRY(set_socket_path(config, INF_FLAG_ID_admin_socket, "admin.sock", err));
        clear_path(config, INF_FLAG_ID_repository);
        clear_path(config, INF_FLAG_ID_cache_dir);
        clear_path(config, INF_FLAG_ID_state_dir);
    }
    if (config->socket[0] == '\0' || config->admin_socket[0] == '\0')
        return inf_fail(err, INF_INVALID, "socket and admin_socket: wanted a path each");
    if (strlen(config->socket) > SOCKET_CHARS || strlen(config->admin_socket) > SOCKET_CHARS)
        return inf_fail(err, INF_INVALID,
                        "socket = %s, admin_socket = %s: wanted at most %zu characters each",
                        config->socket, config->admin_socket, SOCKET_CHARS);
    if (strcmp(config->socket, config->admin_socket) == 0)
        return inf_fail(err, INF_INVALID, "socket and admin_socket are both %s: wanted two",
                        config->socket);
    if (config->connections_per_uid_max > config->connections_max) {
        if (was_given(config, INF_FLAG_ID_connections_per_uid_max))
            return inf_fail(err, INF_INVALID,
                            "connections_per_uid_max = %u: wanted at most connections_max, %u",
                            config->connections_per_uid_max, config->connections_max);
        config->connections_per_uid_max = config->connections_max;
        config->origins[INF_FLAG_ID_connections_per_uid_max] = INF_ORIGIN_DERIVED;
    }
    return INF_OK;
}

enum inf_code inf_config_read(struct inf_config *config, int argc, char **argv,
                              struct inf_error *err)
{
    const char *file = NULL;
    bool private_run = false;
    set_defaults(config);
    // Look for --help and --version first, so that they work even if the configuration is broken.
    for (int i = 1; i < argc; i++) {
        config->help |= strcmp(argv[i], "--help") == 0;
        config->version |= strcmp(argv[i], "--version") == 0;
    }
    if (config->help || config->version)
        return INF_OK;
    INF_TRY(read_arguments(NULL, argc, argv, &file, &private_run, err));
    if (file != NULL || !private_run) {
        const char *path = file != NULL ? file : INF_CONFIG_FILE;
        INF_TRY(read_file(config, path, file != NULL, INF_ORIGIN_FILE, err));
        INF_TRY(read_drop_ins(config, path, err));
    }
    INF_TRY(read_environment(config, err));
    INF_TRY(read_arguments(config, argc, argv, &file, &private_run, err));
    return derive_values(config, err);
}

void inf_config_log_levels(const struct inf_config *config,
                           enum inf_log_level levels[INF_LOG_PARTS])
{
    enum inf_log_level base = INF_LOG_INFO;
    // Parsing cannot fail here, because the flags `log_level` and `log` were
    // validated when they were read.
    (void)inf_log_level_parse(config->log_level, &base);
    (void)inf_log_levels_parse(config->log, base, levels);
}

void inf_config_help(FILE *out)
{
    fprintf(out,
            "Usage: inferd [--config=FILE] [--KEY=VALUE]...\n\n"
            "Serves neural networks over Unix sockets. Settings are read from FILE (default\n"
            "" INF_CONFIG_FILE
            "), as \"key = value\" lines, then from FILE.d/*.conf and from\n"
            "$" INF_CONFIG_VARIABLE
            "; arguments override them.\n\n"
            "  --config=FILE\n        the file of settings\n");
    for (size_t i = 0; i < INF_FLAG_COUNT; i++) {
        const struct inf_flag *flag = &inf_flags[i];
        if (flag->type == INF_FLAG_ASK)
            fprintf(out, "  --%s\n        %s\n", flag->name, flag->help);
        else
            fprintf(out, "  --%s=%s\n        %s (default: %s)\n", flag->name, flag->argument,
                    flag->help, flag->fallback[0] != '\0' ? flag->fallback : "none");
    }
}
