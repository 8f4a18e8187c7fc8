// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

// Characters of one line of the file, its end included.
#define LINE_CHARS 1024
// A file of more lines is not a configuration.
#define LINES_MAX 10000

// Characters of a Unix socket's path, its end not included.
#define SOCKET_CHARS (sizeof((struct sockaddr_un *)0)->sun_path - 1)

enum setting_type {
    SETTING_TEXT,
    SETTING_PATH, // "" or absolute
    SETTING_U32,
    SETTING_U64,
    SETTING_BOOL,
    SETTING_WORD,
    SETTING_ASK, // a bool that is set by its bare name, on the command line only
};

struct setting {
    const char *name;
    enum setting_type type;
    size_t offset;
    const char *fallback; // the default, read as if it stood in the file
    uint64_t min, max;    // numbers
    const char *argument; // what its value is called in --help
    const char *help;
    const char *const *words; // what a word may be, ended by NULL; `help` lists them
};

#define AT(field) offsetof(struct inf_config, field)

// The list of settings: reading, --help and the man page's test go by it.
static const struct setting settings[] = {
    {"repository", SETTING_PATH, AT(repository), "/var/lib/inferd/models", 0, 0, "DIR",
     "directory of models"},
    {"load_all", SETTING_BOOL, AT(load_all), "yes", 0, 0, "BOOL",
     "load every model of the repository at start"},
    {"cache_dir", SETTING_PATH, AT(cache_dir), "/var/cache/inferd", 0, 0, "DIR",
     "directory for what a next start need not compile again"},
    {"runtime_dir", SETTING_PATH, AT(runtime_dir), "", 0, 0, "DIR",
     "private run: make both sockets in this directory"},
    {"socket", SETTING_PATH, AT(socket), "/run/inferd/inferd.sock", 0, 0, "PATH",
     "socket for clients, unless systemd passes one"},
    {"admin_socket", SETTING_PATH, AT(admin_socket), "/run/inferd/admin.sock", 0, 0, "PATH",
     "socket for administration, unless systemd passes one"},
    {"admin_group", SETTING_TEXT, AT(admin_group), "", 0, 0, "GROUP",
     "group that may administer, beside root and the daemon's own user"},
    {"backends", SETTING_TEXT, AT(backends), "", 0, 0, "LIST",
     "comma-separated backends to use; empty: all that start"},
    {"device", SETTING_TEXT, AT(device), "auto", 0, 0, "NAME", "device for models that name none"},
    {"race", SETTING_WORD, AT(race), "auto", 0, 0, "WHEN",
     "auto, always or never: whether devices race for models that name none",
     (const char *const[]){"auto", "always", "never", NULL}},
    {"cpu_slots", SETTING_U32, AT(cpu_slots), "0", 0, 256, "N",
     "inferences that run at once on the cpu device; 0: chosen"},
    {"cpu_threads", SETTING_U32, AT(cpu_threads), "0", 0, 1024, "N",
     "threads of one inference on the cpu device; 0: chosen"},
    {"connections_max", SETTING_U32, AT(connections_max), "4096", 1, 65536, "N",
     "connections open at once"},
    {"connections_per_uid_max", SETTING_U32, AT(connections_per_uid_max), "1024", 1, 65536, "N",
     "connections open at once of one user"},
    {"requests_per_uid_max", SETTING_U32, AT(requests_per_uid_max), "768", 1, 1048576, "N",
     "requests in flight of one user"},
    {"request_bytes_per_uid_max", SETTING_U64, AT(request_bytes_per_uid_max), "192M", 1u << 20,
     (uint64_t)1 << 40, "BYTES", "inline tensor bytes in flight of one user"},
    {"regions_per_uid_max", SETTING_U32, AT(regions_per_uid_max), "1024", 1, 65536, "N",
     "memory regions of one user"},
    {"region_bytes_per_uid_max", SETTING_U64, AT(region_bytes_per_uid_max), "16G", 1u << 20,
     (uint64_t)1 << 44, "BYTES", "bytes of them"},
    {"session_bytes_per_uid_max", SETTING_U64, AT(session_bytes_per_uid_max), "1G", 1u << 20,
     (uint64_t)1 << 44, "BYTES", "bytes of tensors kept in sessions of one user"},
    {"queue_requests_max", SETTING_U32, AT(queue_requests_max), "1024", 1, 1048576, "N",
     "requests that may wait for one device"},
    {"queue_bytes_max", SETTING_U64, AT(queue_bytes_max), "256M", 1u << 20, (uint64_t)1 << 40,
     "BYTES", "inline tensor bytes that may wait for one device"},
    {"batch_rows_max", SETTING_U32, AT(batch_rows_max), "16", 1, 32, "N",
     "rows of different requests that a model may run at once; 1: no batches"},
    {"drain_timeout_ms", SETTING_U32, AT(drain_timeout_ms), "10000", 0, 3600000, "MS",
     "time that requests in flight have after SIGTERM"},
    {"run_limit_ms", SETTING_U32, AT(run_limit_ms), "120000", 1000, 86400000, "MS",
     "a run that takes longer counts as hung: systemd's watchdog is no longer fed"},
    {"log_level", SETTING_WORD, AT(log_level), "info", 0, 0, "LEVEL",
     "error, warning, notice, info or debug",
     (const char *const[]){"error", "warning", "notice", "info", "debug", NULL}},
    {"check", SETTING_ASK, AT(check), NULL, 0, 0, NULL, "read the configuration, say so, and exit"},
    {"help", SETTING_ASK, AT(help), NULL, 0, 0, NULL, "print this text and exit"},
    {"version", SETTING_ASK, AT(version), NULL, 0, 0, NULL, "print the version and exit"},
};

static const struct {
    const char *name;
    enum inf_log_level level;
} levels[] = {
    {"error", INF_LOG_ERROR}, {"warning", INF_LOG_WARNING}, {"notice", INF_LOG_NOTICE},
    {"info", INF_LOG_INFO},   {"debug", INF_LOG_DEBUG},
};

// Where a key and its value stand, for error texts.
struct place {
    const char *file; // NULL: the command line
    uint32_t line;
};

static enum inf_code refuse(struct inf_error *err, const struct place *place, const char *key,
                            const char *value, const char *wanted)
{
    if (place->file == NULL)
        return inf_fail(err, INF_INVALID, "--%s=%s: wanted %s", key, value, wanted);
    return inf_fail(err, INF_INVALID, "%s:%u: %s = %s: wanted %s", place->file, place->line, key,
                    value, wanted);
}

// --- names ---

// Whether two keys are the same, '-' counting as '_'.
static bool same_key(const char *a, const char *b)
{
    while (*a != '\0' && (*a == '-' ? '_' : *a) == (*b == '-' ? '_' : *b))
        a++, b++;
    return *a == '\0' && *b == '\0';
}

#define KEY_CHARS 48

// Levenshtein's distance; texts longer than KEY_CHARS are far from everything.
static uint32_t edit_distance(const char *a, const char *b)
{
    size_t width = strlen(b);
    if (strlen(a) > KEY_CHARS || width > KEY_CHARS)
        return UINT32_MAX;
    uint32_t row[KEY_CHARS + 1];
    for (uint32_t i = 0; i <= width; i++)
        row[i] = i;
    for (uint32_t i = 0; a[i] != '\0'; i++) {
        uint32_t diagonal = row[0];
        row[0] = i + 1;
        for (uint32_t j = 0; j < width; j++) {
            uint32_t above = row[j + 1];
            uint32_t swapped = diagonal + (a[i] != b[j]);
            row[j + 1] = INF_MIN(swapped, INF_MIN(row[j], above) + 1);
            diagonal = above;
        }
    }
    return row[width];
}

static const struct setting *nearest_setting(const char *key)
{
    const struct setting *nearest = &settings[0];
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++) {
        uint32_t distance = edit_distance(key, settings[i].name);
        if (distance < least) {
            least = distance;
            nearest = &settings[i];
        }
    }
    return nearest;
}

static enum inf_code find_setting(const struct setting **out_setting, const char *key,
                                  const struct place *place, struct inf_error *err)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++) {
        bool allowed = place->file == NULL || settings[i].type != SETTING_ASK;
        if (allowed && same_key(key, settings[i].name)) {
            *out_setting = &settings[i];
            return INF_OK;
        }
    }
    const char *nearest = nearest_setting(key)->name;
    if (place->file == NULL)
        return inf_fail(err, INF_INVALID, "--%s: no such option; did you mean --%s?", key, nearest);
    return inf_fail(err, INF_INVALID, "%s:%u: '%s' is no setting; did you mean '%s'?", place->file,
                    place->line, key, nearest);
}

// --- values ---

// Decimal digits and at most one of K, M, G (powers of 1024).
static bool parse_number(const char *text, uint64_t *out_number)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    const char *units = "KMG";
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    uint32_t shift = unit != NULL ? (uint32_t)(unit - units + 1) * 10 : 0;
    if (end[unit != NULL] != '\0' || number > UINT64_MAX >> shift)
        return false;
    *out_number = (uint64_t)number << shift;
    return true;
}

static bool parse_bool(const char *text, bool *out_value)
{
    static const char *const words[][2] = {
        {"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(words); i++) {
        for (int value = 0; value < 2; value++) {
            if (strcmp(text, words[i][value]) == 0) {
                *out_value = value != 0;
                return true;
            }
        }
    }
    return false;
}

static bool word_known(const char *const *words, const char *value)
{
    for (; *words != NULL; words++)
        if (strcmp(*words, value) == 0)
            return true;
    return false;
}

static enum inf_code set_number(struct inf_config *config, const struct setting *setting,
                                const char *value, const struct place *place, struct inf_error *err)
{
    uint64_t number;
    if (!parse_number(value, &number) || number < setting->min || number > setting->max) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "a number from %llu to %llu",
                 (unsigned long long)setting->min, (unsigned long long)setting->max);
        return refuse(err, place, setting->name, value, wanted);
    }
    char *field = (char *)config + setting->offset;
    if (setting->type == SETTING_U32)
        *(uint32_t *)(void *)field = (uint32_t)number;
    else
        *(uint64_t *)(void *)field = number;
    return INF_OK;
}

static enum inf_code set_text(struct inf_config *config, const struct setting *setting,
                              const char *value, const struct place *place, struct inf_error *err)
{
    size_t length = strlen(value);
    char *field = (char *)config + setting->offset;
    if (setting->type == SETTING_WORD && !word_known(setting->words, value))
        return refuse(err, place, setting->name, value, setting->help);
    if (length >= INF_CONFIG_TEXT)
        return refuse(err, place, setting->name, value, "at most 255 characters");
    if (setting->type == SETTING_PATH && length > 0 && value[0] != '/')
        return refuse(err, place, setting->name, value, "an absolute path");
    memcpy(field, value, length + 1);
    return INF_OK;
}

static enum inf_code set(struct inf_config *config, const struct setting *setting,
                         const char *value, const struct place *place, struct inf_error *err)
{
    bool *flag = (bool *)((char *)config + setting->offset);
    switch (setting->type) {
    case SETTING_TEXT:
    case SETTING_PATH:
    case SETTING_WORD:
        return set_text(config, setting, value, place, err);
    case SETTING_U32:
    case SETTING_U64:
        return set_number(config, setting, value, place, err);
    case SETTING_BOOL:
        return parse_bool(value, flag) ? INF_OK
                                       : refuse(err, place, setting->name, value, "yes or no");
    case SETTING_ASK:
        *flag = true;
        break;
    }
    return INF_OK;
}

// --- the file ---

// Cuts white space off both ends of a text.
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    text[length] = '\0';
    return text;
}

// Which settings were given, by their index; the rest have their defaults.
struct given {
    bool settings[INF_ARRAY_LENGTH(settings)];
};

static enum inf_code read_line(struct inf_config *config, struct given *given, char *line,
                               const struct place *place, struct inf_error *err)
{
    char *key = trim(line);
    if (key[0] == '\0' || key[0] == '#')
        return INF_OK;
    char *equals = strchr(key, '=');
    if (equals == NULL)
        return inf_fail(err, INF_INVALID, "%s:%u: '%s': wanted key = value", place->file,
                        place->line, key);
    *equals = '\0';
    key = trim(key);
    const struct setting *setting = NULL;
    INF_TRY(find_setting(&setting, key, place, err));
    given->settings[setting - settings] = true;
    return set(config, setting, trim(equals + 1), place, err);
}

static enum inf_code read_stream(struct inf_config *config, struct given *given, FILE *stream,
                                 const char *path, struct inf_error *err)
{
    char line[LINE_CHARS];
    struct place place = {path, 0};
    while (fgets(line, sizeof line, stream) != NULL) {
        place.line++;
        size_t length = strlen(line);
        bool whole = length > 0 && line[length - 1] == '\n';
        if (place.line > LINES_MAX)
            return inf_fail(err, INF_INVALID, "%s: more than %d lines", path, LINES_MAX);
        // A NUL byte cuts the line as seen here, and so looks like a line without its end.
        if (!whole && !feof(stream))
            return inf_fail(err, INF_INVALID,
                            "%s:%u: longer than %d characters, or with a NUL byte", path,
                            place.line, LINE_CHARS - 2);
        INF_TRY(read_line(config, given, line, &place, err));
    }
    if (ferror(stream))
        return inf_fail(err, INF_INVALID, "%s: %s", path, strerror(errno));
    return INF_OK;
}

// Reads the file at `path`; one that is missing is no fault unless it was asked for by name.
static enum inf_code read_file(struct inf_config *config, struct given *given, const char *path,
                               bool named, struct inf_error *err)
{
    FILE *stream = fopen(path, "re");
    if (stream == NULL && errno == ENOENT && !named)
        return INF_OK;
    if (stream == NULL)
        return inf_fail(err, INF_INVALID, "%s: %s", path, strerror(errno));
    enum inf_code code = read_stream(config, given, stream, path, err);
    fclose(stream);
    return code;
}

// --- the command line ---

// One argument, taken apart: the key without its dashes, and its value or NULL.
struct argument {
    char key[KEY_CHARS + 1];
    const char *value;
};

// Takes argv[*index] apart, and moves *index past the value where that is an argument of its own.
static enum inf_code split_argument(struct argument *argument, int argc, char **argv, int *index,
                                    struct inf_error *err)
{
    const char *text = argv[*index];
    if (strncmp(text, "--", 2) != 0 || text[2] == '\0')
        return inf_fail(err, INF_INVALID, "'%s': wanted --key=value; see --help", text);
    size_t length = strcspn(text + 2, "=");
    if (length > KEY_CHARS)
        return inf_fail(err, INF_INVALID, "'%s': no such option; see --help", text);
    memcpy(argument->key, text + 2, length);
    argument->key[length] = '\0';
    argument->value = text[2 + length] == '=' ? text + 3 + length : NULL;
    (*index)++;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++) {
        if (settings[i].type != SETTING_ASK || !same_key(argument->key, settings[i].name))
            continue;
        if (argument->value != NULL)
            return inf_fail(err, INF_INVALID, "--%s takes no value", argument->key);
        argument->value = "";
    }
    if (argument->value == NULL && *index < argc)
        argument->value = argv[(*index)++];
    return INF_OK;
}

// Applies the arguments; with `config` NULL only finds the file that --config names, and whether
// the run is a private one.
static enum inf_code read_arguments(struct inf_config *config, struct given *given, int argc,
                                    char **argv, const char **file, bool *private_run,
                                    struct inf_error *err)
{
    const struct place place = {NULL, 0};
    for (int index = 1; index < argc;) {
        struct argument argument;
        INF_TRY(split_argument(&argument, argc, argv, &index, err));
        bool is_file = strcmp(argument.key, "config") == 0;
        const struct setting *setting = NULL;
        if (!is_file)
            INF_TRY(find_setting(&setting, argument.key, &place, err));
        if (argument.value == NULL)
            return inf_fail(err, INF_INVALID, "--%s: wanted a value", argument.key);
        if (is_file)
            *file = argument.value;
        else if (setting->offset == AT(runtime_dir))
            *private_run = argument.value[0] != '\0';
        if (is_file || config == NULL)
            continue;
        given->settings[setting - settings] = true;
        INF_TRY(set(config, setting, argument.value, &place, err));
    }
    return INF_OK;
}

// --- the whole ---

static void set_defaults(struct inf_config *config)
{
    *config = (struct inf_config){0};
    const struct place place = {"defaults", 0};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++) {
        struct inf_error err = {0};
        if (settings[i].fallback != NULL &&
            set(config, &settings[i], settings[i].fallback, &place, &err) != INF_OK)
            abort(); // the table contradicts itself
    }
}

static bool was_given(const struct given *given, size_t offset)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++) {
        if (settings[i].offset == offset)
            return given->settings[i];
    }
    return false;
}

// Makes runtime_dir + file the path of a socket that was not named.
static enum inf_code place_socket(struct inf_config *config, const struct given *given,
                                  size_t offset, const char *file, struct inf_error *err)
{
    char *path = (char *)config + offset;
    if (was_given(given, offset))
        return INF_OK;
    int length = snprintf(path, INF_CONFIG_TEXT, "%s/%s", config->runtime_dir, file);
    if (length < 0 || length >= INF_CONFIG_TEXT)
        return inf_fail(err, INF_INVALID, "runtime_dir = %s: wanted at most %zu characters",
                        config->runtime_dir, INF_CONFIG_TEXT - 1 - strlen(file) - 1);
    return INF_OK;
}

// What follows from several settings together.
static enum inf_code finish(struct inf_config *config, const struct given *given,
                            struct inf_error *err)
{
    if (config->runtime_dir[0] != '\0') {
        INF_TRY(place_socket(config, given, AT(socket), "inferd.sock", err));
        INF_TRY(place_socket(config, given, AT(admin_socket), "admin.sock", err));
        if (!was_given(given, AT(repository)))
            config->repository[0] = '\0';
        if (!was_given(given, AT(cache_dir)))
            config->cache_dir[0] = '\0';
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
        if (was_given(given, AT(connections_per_uid_max)))
            return inf_fail(err, INF_INVALID,
                            "connections_per_uid_max = %u: wanted at most connections_max, %u",
                            config->connections_per_uid_max, config->connections_max);
        config->connections_per_uid_max = config->connections_max;
    }
    return INF_OK;
}

enum inf_code inf_config_read(struct inf_config *config, int argc, char **argv,
                              struct inf_error *err)
{
    struct given given = {0};
    const char *file = NULL;
    bool private_run = false;
    set_defaults(config);
    // Help is for people whose configuration is broken, too.
    for (int i = 1; i < argc; i++) {
        config->help |= strcmp(argv[i], "--help") == 0;
        config->version |= strcmp(argv[i], "--version") == 0;
    }
    if (config->help || config->version)
        return INF_OK;
    INF_TRY(read_arguments(NULL, &given, argc, argv, &file, &private_run, err));
    if (file != NULL || !private_run)
        INF_TRY(
            read_file(config, &given, file != NULL ? file : INF_CONFIG_FILE, file != NULL, err));
    INF_TRY(read_arguments(config, &given, argc, argv, &file, &private_run, err));
    return finish(config, &given, err);
}

enum inf_log_level inf_config_log_level(const struct inf_config *config)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(levels); i++) {
        if (strcmp(config->log_level, levels[i].name) == 0)
            return levels[i].level;
    }
    return INF_LOG_INFO;
}

void inf_config_help(FILE *out)
{
    fprintf(out,
            "Usage: inferd [--config=FILE] [--KEY=VALUE]...\n\n"
            "Serves neural networks over Unix sockets. Settings are read from FILE (default\n"
            "" INF_CONFIG_FILE
            "), as \"key = value\" lines; arguments override them.\n\n"
            "  --config=FILE\n        the file of settings\n");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(settings); i++) {
        const struct setting *setting = &settings[i];
        if (setting->type == SETTING_ASK)
            fprintf(out, "  --%s\n        %s\n", setting->name, setting->help);
        else
            fprintf(out, "  --%s=%s\n        %s (default: %s)\n", setting->name, setting->argument,
                    setting->help, setting->fallback[0] != '\0' ? setting->fallback : "none");
    }
}
