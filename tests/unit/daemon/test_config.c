// SPDX-License-Identifier: Apache-2.0
// Reading the configuration: files, arguments, environment, defaults and errors.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/flag.h"
#include "proto/core/span.h"

// Reads a configuration from a file with this text, and from up to three arguments.
static enum inf_code read_text_size(struct inf_config *config, const char *text, size_t size,
                                    const char *const *arguments, struct inf_error *err)
{
    char path[] = "/tmp/inferd-test-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, size), (ssize_t)size);
    close(fd);
    char option[64];
    snprintf(option, sizeof option, "--config=%s", path);
    char *argv[8] = {(char *)"inferd", option};
    int argc = 2;
    for (; arguments != NULL && *arguments != NULL; arguments++)
        argv[argc++] = (char *)*arguments;
    enum inf_code code = inf_config_read(config, argc, argv, err);
    unlink(path);
    return code;
}

static enum inf_code read_text(struct inf_config *config, const char *text,
                               const char *const *arguments, struct inf_error *err)
{
    return read_text_size(config, text, strlen(text), arguments, err);
}

static enum inf_code read_arguments(struct inf_config *config, const char *const *arguments,
                                    struct inf_error *err)
{
    return read_text(config, "", arguments, err);
}

// Returns the log level of a part that has no level of its own in these tests.
static enum inf_log_level access_level(const struct inf_config *config)
{
    enum inf_log_level levels[INF_LOG_PARTS];
    inf_config_log_levels(config, levels);
    return levels[INF_LOG_PART_ACCESS];
}

Test(config, empty_file_gives_the_defaults)
{
    struct inf_config config;
    struct inf_error err = {0};
    cr_assert_eq(read_text(&config, "", NULL, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.repository, "/var/lib/inferd/models");
    cr_expect_str_eq(config.socket, "/run/inferd/inferd.sock");
    cr_expect_str_eq(config.admin_socket, "/run/inferd/admin.sock");
    cr_expect_str_eq(config.cache_dir, "/var/cache/inferd");
    cr_expect_str_eq(config.runtime_dir, "");
    cr_expect_str_eq(config.device, "auto");
    cr_expect_str_eq(config.race, "auto");
    cr_expect_str_eq(config.backends, "");
    cr_expect_eq(config.queue_bytes_max, 268435456u);
    cr_expect_eq(config.connections_max, 4096u);
    cr_expect_eq(config.drain_timeout_ms, 10000u);
    cr_expect_eq(access_level(&config), INF_LOG_INFO);
    cr_expect(config.load_all);
    cr_expect(!config.help && !config.version && !config.check);
}

Test(config, file_has_keys_values_comments_and_space)
{
    struct inf_config config;
    struct inf_error err = {0};
    const char *text =
        "# a comment\n"
        "\n"
        "  repository\t=  /srv/mo dels \r\n"
        "device=ref\n"
        "   # another = comment\n"
        "queue_bytes_max = 3G\n"
        "cpu-slots = 007\n"
        "admin_group = a=b\n"
        "load_all = off\n"
        "log_level = debug\n"
        "socket = /a\n"
        "backends =\n"
        "device = cpu"; // overrides an earlier line; no line end follows
    cr_assert_eq(read_text(&config, text, NULL, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.repository, "/srv/mo dels");
    cr_expect_str_eq(config.device, "cpu");
    cr_expect_eq(config.queue_bytes_max, 3221225472u);
    cr_expect_eq(config.cpu_slots, 7u);
    cr_expect_str_eq(config.admin_group, "a=b");
    cr_expect(!config.load_all);
    cr_expect_eq(access_level(&config), INF_LOG_DEBUG);
    cr_expect_str_eq(config.socket, "/a");
    cr_expect_str_eq(config.backends, "");
}

Test(config, arguments_override_the_file)
{
    struct inf_config config;
    struct inf_error err = {0};
    const char *const arguments[] = {"--device", "ref", "--queue-requests-max=5", "--check", NULL};
    cr_assert_eq(read_text(&config, "device = cpu\ncpu_threads = 2\n", arguments, &err), INF_OK,
                 "%s", err.text);
    cr_expect_str_eq(config.device, "ref");
    cr_expect_eq(config.queue_requests_max, 5u);
    cr_expect_eq(config.cpu_threads, 2u);
    cr_expect(config.check);
}

Test(config, private_run_places_both_sockets_and_has_no_repository)
{
    struct inf_config config;
    struct inf_error err = {0};
    const char *const plain[] = {"--runtime-dir=/tmp/x", NULL};
    cr_assert_eq(read_arguments(&config, plain, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.socket, "/tmp/x/inferd.sock");
    cr_expect_str_eq(config.admin_socket, "/tmp/x/admin.sock");
    cr_expect_str_eq(config.repository, "");
    cr_expect_str_eq(config.cache_dir, "");

    const char *const named[] = {"--runtime_dir",   "/tmp/x",         "--socket=/tmp/s",
                                 "--repository=/m", "--cache-dir=/c", NULL};
    cr_assert_eq(read_arguments(&config, named, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.socket, "/tmp/s");
    cr_expect_str_eq(config.admin_socket, "/tmp/x/admin.sock");
    cr_expect_str_eq(config.repository, "/m");
    cr_expect_str_eq(config.cache_dir, "/c");

    // sockaddr_un has room for 107 characters; "/inferd.sock" takes 12 of them.
    char longest[300] = "--runtime_dir=/";
    memset(longest + 15, 'a', 94);
    const char *const too_long[] = {longest, NULL};
    cr_assert_eq(read_arguments(&config, too_long, &err), INF_OK, "%s", err.text);
    longest[15 + 94] = 'a';
    cr_assert_eq(read_arguments(&config, too_long, &err), INF_INVALID);
    cr_expect(strstr(err.text, "at most 107") != NULL, "%s", err.text);
    memset(longest + 15, 'a', 250);
    cr_assert_eq(read_arguments(&config, too_long, &err), INF_INVALID);
    cr_expect(strstr(err.text, "runtime_dir") != NULL, "%s", err.text);
}

static void make_file(const char *directory, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

// Reads the configuration from `file`, its folder of drop-ins, the environment, and one argument
// (NULL: none). Returns the code of inf_config_read().
static enum inf_code read_all(struct inf_config *config, const char *file, const char *argument,
                              struct inf_error *err)
{
    char option[96];
    snprintf(option, sizeof option, "--config=%s", file);
    char *argv[] = {(char *)"inferd", option, (char *)argument};
    return inf_config_read(config, argument != NULL ? 3 : 2, argv, err);
}

Test(config, each_origin_overrides_those_before_it)
{
    char directory[] = "/tmp/inferd-config-XXXXXX", drop_ins[64], file[64];
    struct inf_config config;
    struct inf_error err = {0};
    cr_assert_not_null(mkdtemp(directory));
    snprintf(drop_ins, sizeof drop_ins, "%s/inferd.conf.d", directory);
    snprintf(file, sizeof file, "%s/inferd.conf", directory);
    make_file(directory, "inferd.conf", "device = a\nrace = never\nrace_tolerance = 0.5\n");
    cr_assert_eq(mkdir(drop_ins, 0700), 0);
    make_file(drop_ins, "20-b.conf", "device = c\n");
    make_file(drop_ins, "10-a.conf", "device = b\nrace = always\n");
    make_file(drop_ins, "30.conf~", "broken\n");
    make_file(drop_ins, ".conf", "broken\n");
    cr_assert_eq(read_all(&config, file, NULL, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.device, "c");
    cr_expect_eq(config.origins[INF_FLAG_ID_device], INF_ORIGIN_DROP_IN);
    cr_expect_str_eq(config.race, "always");
    cr_expect_eq(config.race_tolerance, 0.5);
    cr_expect_eq(config.origins[INF_FLAG_ID_race_tolerance], INF_ORIGIN_FILE);
    cr_expect_eq(config.origins[INF_FLAG_ID_log_level], INF_ORIGIN_DEFAULT);
    setenv("INFERD_FLAGS", "device=d,backends=cpu,ref,log-level=debug", 1);
    cr_assert_eq(read_all(&config, file, NULL, &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.device, "d");
    cr_expect_str_eq(config.backends, "cpu,ref");
    cr_expect_eq(config.origins[INF_FLAG_ID_backends], INF_ORIGIN_ENVIRONMENT);
    cr_expect_eq(access_level(&config), INF_LOG_DEBUG);
    cr_assert_eq(read_all(&config, file, "--device=e", &err), INF_OK, "%s", err.text);
    cr_expect_str_eq(config.device, "e");
    cr_expect_eq(config.origins[INF_FLAG_ID_device], INF_ORIGIN_ARGUMENT);
    // Expect that errors name the file and line, or the argument.
    static const char *const faults[][2] = {
        {"devise=d", "INFERD_FLAGS: 'devise'"}, {"race=x", "INFERD_FLAGS: race=x: wanted auto"},
        {"race_tolerance=inf", "from 0 to 1"},  {"race_tolerance=0x1p-3", "from 0 to 1"},
        {"help=yes", "'help' is no setting"},   {"device", "wanted name=value"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(faults); i++) {
        setenv("INFERD_FLAGS", faults[i][0], 1);
        cr_assert_eq(read_all(&config, file, NULL, &err), INF_INVALID, "%s", faults[i][0]);
        cr_expect(strstr(err.text, faults[i][1]) != NULL, "%s", err.text);
    }
    unsetenv("INFERD_FLAGS");
    make_file(drop_ins, "30-c.conf", "\nrase = x\n");
    cr_assert_eq(read_all(&config, file, NULL, &err), INF_INVALID);
    cr_expect(strstr(err.text, "30-c.conf:2: 'rase' is no setting; did you mean 'race'?") != NULL,
              "%s", err.text);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

Test(config, every_flag_prints_what_it_reads)
{
    struct inf_config config;
    struct inf_error err = {0};
    cr_assert_eq(read_text(&config, "", NULL, &err), INF_OK, "%s", err.text);
    for (size_t i = 0; i < INF_FLAG_COUNT; i++) {
        const struct inf_flag *flag = &inf_flags[i];
        char text[INF_CONFIG_TEXT], again[INF_CONFIG_TEXT], wanted[INF_FLAG_WANTED_SIZE];
        const char *nearest;
        cr_expect_eq(inf_flag_find(flag->name, &nearest), flag);
        inf_flag_print(&config, flag, text);
        cr_assert(inf_flag_parse(&config, flag, text, INF_ORIGIN_ADMIN, wanted), "%s: %s",
                  flag->name, wanted);
        cr_expect_str_eq(inf_flag_print(&config, flag, again),
                         flag->type == INF_FLAG_ASK ? "yes" : text);
        cr_expect_eq(inf_flag_origin(&config, flag), INF_ORIGIN_ADMIN);
    }
}

Test(config, fewer_connections_bound_those_of_one_user)
{
    struct inf_config config;
    struct inf_error err = {0};
    const char *const arguments[] = {"--connections-max=100", NULL};
    cr_assert_eq(read_arguments(&config, arguments, &err), INF_OK, "%s", err.text);
    cr_expect_eq(config.connections_per_uid_max, 100u);
    const char *const both[] = {"--connections-max=100", "--connections-per-uid-max=101", NULL};
    cr_assert_eq(read_arguments(&config, both, &err), INF_INVALID);
    cr_expect(strstr(err.text, "101") != NULL, "%s", err.text);
}

Test(config, help_and_version_work_with_a_broken_configuration)
{
    struct inf_config config;
    struct inf_error err = {0};
    const char *const help[] = {"--nonsense", "--help", NULL};
    cr_assert_eq(read_text(&config, "broken", help, &err), INF_OK);
    cr_expect(config.help);
    const char *const version[] = {"--version", NULL};
    cr_assert_eq(read_text(&config, "broken", version, &err), INF_OK);
    cr_expect(config.version);
}

Test(config, errors_in_the_file_name_their_line)
{
    static const struct {
        const char *text;
        const char *wanted[3]; // expected parts of the error text; all must occur
    } cases[] = {
        {"device = cpu\nqueue_request_max = 3\n",
         {":2:", "'queue_request_max'", "'queue_requests_max'"}},
        {"\n\nrepositry = /x\n", {":3:", "'repositry'", "'repository'"}},
        {"x\n", {":1:", "'x'", "key = value"}},
        {"= 5\n", {":1:", "''", "no setting"}},
        {"help = yes\n", {":1:", "'help'", "no setting"}},
        {"config = /x\n", {":1:", "'config'", "no setting"}},
        {"cpu_slots = \n", {":1:", "cpu_slots", "0 to 256"}},
        {"cpu_slots = -1\n", {":1:", "-1", "0 to 256"}},
        {"cpu_slots = 257\n", {":1:", "257", "0 to 256"}},
        {"cpu_slots = 1.5\n", {":1:", "1.5", "0 to 256"}},
        {"cpu_slots = 0x10\n", {":1:", "0x10", "0 to 256"}},
        {"cpu_slots = 1 2\n", {":1:", "1 2", "0 to 256"}},
        {"cpu_slots = 1KK\n", {":1:", "1KK", "0 to 256"}},
        {"cpu_slots = 1B\n", {":1:", "1B", "0 to 256"}},
        {"cpu_slots = 4294967296\n", {":1:", "4294967296", "0 to 256"}},
        {"connections_max = 0\n", {":1:", "connections_max = 0", "1 to 65536"}},
        {"queue_bytes_max = 18446744073709551616\n", {":1:", "queue_bytes_max", "number"}},
        {"queue_bytes_max = 18446744073709551615G\n", {":1:", "queue_bytes_max", "number"}},
        {"queue_bytes_max = 1048575\n", {":1:", "1048575", "1048576 to"}},
        {"load_all = maybe\n", {":1:", "maybe", "yes or no"}},
        {"log_level = loud\n", {":1:", "loud", "warning"}},
        {"log_level =\n", {":1:", "log_level", "warning"}},
        {"log = debug\n", {":1:", "PART:LEVEL", "scheduler"}},
        {"log = scheduler:loud\n", {":1:", "PART:LEVEL", "loud"}},
        {"log = kitchen:debug\n", {":1:", "kitchen", "connection"}},
        {"log = access:debug,\n", {":1:", "access:debug,", "PART:LEVEL"}},
        {"log = access:debug:info\n", {":1:", "access:debug:info", "PART:LEVEL"}},
        {"log = access:\n", {":1:", "access:", "PART:LEVEL"}},
        {"log = a_name_of_more_than_16:debug\n", {":1:", "a_name", "PART:LEVEL"}},
        {"socket = inferd.sock\n", {":1:", "inferd.sock", "absolute"}},
        {"socket =\n", {"socket", "path", ""}},
        {"socket = /s\nadmin_socket = /s\n", {"socket", "/s", "two"}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_config config;
        struct inf_error err = {0};
        cr_assert_eq(read_text(&config, cases[i].text, NULL, &err), INF_INVALID, "%s",
                     cases[i].text);
        for (int j = 0; j < 3; j++)
            cr_expect(strstr(err.text, cases[i].wanted[j]) != NULL, "%s: no '%s' in: %s",
                      cases[i].text, cases[i].wanted[j], err.text);
    }
}

Test(config, errors_in_arguments_are_named)
{
    static const struct {
        const char *arguments[3];
        const char *wanted;
    } cases[] = {
        {{"--devise=cpu"}, "--device"},
        {{"--devise"}, "--device"},
        {{"device=cpu"}, "'device=cpu'"},
        {{"-h"}, "'-h'"},
        {{"--"}, "'--'"},
        {{""}, "''"},
        {{"--=x"}, "no such option"},
        {{"--device"}, "--device: wanted a value"},
        {{"--check=yes"}, "--check takes no value"},
        {{"--cpu-slots", "many"}, "--cpu_slots=many"},
        {{"--config"}, "--config: wanted a value"},
        {{"--config=/nonexistent/inferd.conf"}, "/nonexistent/inferd.conf: No such file"},
        {{"--config=/"}, "/: "},
        {{"--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1"}, "no such"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_config config;
        struct inf_error err = {0};
        cr_assert_eq(read_arguments(&config, cases[i].arguments, &err), INF_INVALID, "%s",
                     cases[i].arguments[0]);
        cr_expect(strstr(err.text, cases[i].wanted) != NULL, "%s: %s", cases[i].arguments[0],
                  err.text);
    }
}

Test(config, texts_fit_or_are_refused)
{
    struct inf_config config;
    struct inf_error err = {0};
    char text[2048] = "device = ";
    memset(text + 9, 'd', 255);
    cr_assert_eq(read_text(&config, text, NULL, &err), INF_OK, "%s", err.text);
    cr_expect_eq(strlen(config.device), 255u);
    text[9 + 255] = 'd';
    cr_assert_eq(read_text(&config, text, NULL, &err), INF_INVALID);
    memset(text + 9, 'd', 1500);
    text[1509] = '\n';
    cr_assert_eq(read_text(&config, text, NULL, &err), INF_INVALID);
    cr_expect(strstr(err.text, ":1: longer than") != NULL, "%s", err.text);
    cr_assert_eq(read_text_size(&config, "dev\0ice = cpu\n#\n", 16, NULL, &err), INF_INVALID);
}

Test(config, any_bytes_are_read_or_refused)
{
    srand(7);
    static const char *const words[] = {"device",    "=",         "\n",    "#",    " ",
                                        "cpu_slots", "9",         "K",     "\t",   "\r",
                                        "--",        "log_level", "debug", "\xff", "_"};
    for (int round = 0; round < 500; round++) {
        char text[512] = "";
        for (int word = 0; word < 40; word++)
            strcat(text, words[(size_t)rand() % INF_ARRAY_LENGTH(words)]);
        struct inf_config config;
        struct inf_error err = {0};
        enum inf_code code = read_text(&config, text, NULL, &err);
        cr_assert(code == INF_OK || (code == INF_INVALID && err.text[0] != '\0'), "%s", text);
        cr_assert(code != INF_OK || config.cpu_slots <= 256);
    }
}

Test(config, help_names_every_setting_once)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    cr_assert_not_null(out);
    inf_config_help(out);
    fclose(out);
    static const char *const names[] = {"config=FILE",
                                        "repository=DIR",
                                        "load_all=BOOL",
                                        "watch=HOW",
                                        "watch_settle_ms=MS",
                                        "watch_poll_ms=MS",
                                        "ready_file=NAME",
                                        "model_bytes_max=BYTES",
                                        "memory_max=BYTES",
                                        "cache_dir=DIR",
                                        "plan_bytes_max=BYTES",
                                        "state_dir=DIR",
                                        "runtime_dir=DIR",
                                        "socket=PATH",
                                        "device=NAME",
                                        "admin_socket=PATH",
                                        "admin_group=GROUP",
                                        "backends=LIST",
                                        "devices=LIST",
                                        "devices_denied=LIST",
                                        "power=PREFERENCE",
                                        "race=WHEN",
                                        "race_tolerance=T",
                                        "drift_factor=F",
                                        "drift_after_ms=MS",
                                        "shadow_interval=N",
                                        "cpu_slots=N",
                                        "cpu_threads=N",
                                        "cpu_isa_max=SET",
                                        "gpu_handoff_elements=N",
                                        "connections_max=N",
                                        "queue_requests_max=N",
                                        "check\n",
                                        "queue_bytes_max=BY",
                                        "batch_rows_max=N",
                                        "gpu_memory_bytes=BYTES",
                                        "gpu_shader_check=WHEN",
                                        "gpu_standby=BOOL",
                                        "vulkan_loader=PATH",
                                        "vulkan_drivers=PATHS",
                                        "drain_timeout_ms=MS",
                                        "log_level=LEVEL",
                                        "log=LEVELS",
                                        "log_kind_lines=N",
                                        "trace_file=PATH",
                                        "trace_file_bytes=BYTES",
                                        "trace_socket=PATH",
                                        "trace_rate=SHARE",
                                        "trace_parents=BOOL",
                                        "load_limit_ms=MS",
                                        "run_limit_ms=MS",
                                        "run_grace_ms=MS",
                                        "slow_ms=MS",
                                        "help\n",
                                        "version\n",
                                        "connections_per_uid_max=N",
                                        "requests_per_uid_max=N",
                                        "request_bytes_per_uid_max=BYTES",
                                        "regions_per_uid_max=N",
                                        "region_bytes_per_uid_max=BYTES",
                                        "region_alloc_bytes_per_uid_max=BYTES",
                                        "arena_bytes_per_uid_max=BYTES",
                                        "request_memory_max=BYTES",
                                        "session_bytes_per_uid_max=BYTES",
                                        "device_ms_per_uid_max=MS",
                                        "fds_per_uid_max=N",
                                        "requests_per_connection_max=N",
                                        "request_bytes_per_connection_max=BYTES",
                                        "reply_bytes_soft_max=BYTES",
                                        "reply_soft_ms=MS",
                                        "reply_bytes_hard_max=BYTES",
                                        "direct_reply_bytes=BYTES"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++) {
        char option[64];
        snprintf(option, sizeof option, "  --%s", names[i]);
        const char *first = strstr(text, option);
        cr_expect(first != NULL && strstr(first + 1, option) == NULL, "%s", option);
    }
    size_t options = 0;
    for (const char *c = text; (c = strstr(c, "\n  --")) != NULL; c++)
        options++;
    cr_expect_eq(options, INF_ARRAY_LENGTH(names));
    free(text);
}

Test(config, parts_have_their_own_log_levels)
{
    enum inf_log_level levels[INF_LOG_PARTS];
    cr_assert(inf_log_levels_parse("", INF_LOG_NOTICE, levels));
    for (int part = 0; part < INF_LOG_PARTS; part++)
        cr_expect_eq(levels[part], INF_LOG_NOTICE);
    cr_assert(inf_log_levels_parse(" scheduler : debug , device:error;access:info,access:debug",
                                   INF_LOG_WARNING, levels));
    cr_expect_eq(levels[INF_LOG_PART_SCHEDULER], INF_LOG_DEBUG);
    cr_expect_eq(levels[INF_LOG_PART_DEVICE], INF_LOG_ERROR);
    cr_expect_eq(levels[INF_LOG_PART_ACCESS], INF_LOG_DEBUG);
    cr_expect_eq(levels[INF_LOG_PART_MODEL], INF_LOG_WARNING);
    cr_expect_eq(levels[INF_LOG_PART_DAEMON], INF_LOG_WARNING);
    cr_assert(inf_log_levels_parse("daemon:info,model:notice,service:warning,connection:error",
                                   INF_LOG_DEBUG, levels));
    cr_expect_eq(levels[INF_LOG_PART_DAEMON], INF_LOG_INFO);
    cr_expect_eq(levels[INF_LOG_PART_MODEL], INF_LOG_NOTICE);
    cr_expect_eq(levels[INF_LOG_PART_SERVICE], INF_LOG_WARNING);
    cr_expect_eq(levels[INF_LOG_PART_CONNECTION], INF_LOG_ERROR);

    struct inf_config config;
    struct inf_error err = {0};
    cr_assert_eq(read_text(&config, "log_level = error\nlog = model:debug\n", NULL, &err), INF_OK);
    inf_config_log_levels(&config, levels);
    cr_expect_eq(levels[INF_LOG_PART_MODEL], INF_LOG_DEBUG);
    cr_expect_eq(levels[INF_LOG_PART_DEVICE], INF_LOG_ERROR);
    cr_expect_eq(config.log_kind_lines, 60u);
}
