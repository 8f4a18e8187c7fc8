// SPDX-License-Identifier: Apache-2.0
// The daemon from start to end: opens the devices and the model store, creates the event loop and
// the server, serves until a signal arrives, and closes everything in reverse order.
#include "daemon/daemon.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/thread.h"
#include "backends/registry.h"
#include "backends/storage/build_id.h"
#include "daemon/model/devices.h"
#include "daemon/server.h"
#include "daemon/service/environment.h"
#include "daemon/store/store.h"
#include "daemon/system/notify.h"

// Signals that the loop handles.
static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP};
#define SIGNALS INF_ARRAY_LENGTH(signal_numbers)

struct daemon {
    struct inf_daemon_options options;
    const struct inf_log *log; // where log messages go; belongs to the log writer in the options
    // Version and build; saved measurements are valid for one build only.
    char build[32 + INF_BUILD_ID_TEXT];
    struct inf_device_list devices;
    struct inf_model_store *store;
    struct inf_environment environment;
    struct event_base *base;
    struct inf_notify *notify;
    struct inf_server *server;
    struct event *signals[SIGNALS];
    bool draining;
};

// --- callbacks of the loop and the watchdog ---

static void notify_serving(struct daemon *daemon,
                           void (*tell)(struct inf_notify *notify, const char *status)) INF_ON_LOOP
{
    char status[80];
    snprintf(status, sizeof status, "serving; models: %u, loading: %u",
             inf_model_store_list(daemon->store, NULL, 0), inf_model_store_pending(daemon->store));
    tell(daemon->notify, status);
}

static void on_loaded(void *context, const struct inf_load_event *event)
{
    inf_role_enter_loop();
    struct daemon *daemon = context;
    if (event->final && !daemon->draining)
        notify_serving(daemon, inf_notify_status);
}

static void on_drained(void *context)
{
    struct daemon *daemon = context;
    event_base_loopbreak(daemon->base);
}

static uint64_t log_lines_dropped(void *context)
{
    const struct daemon *daemon = context;
    return inf_log_writer_dropped(daemon->options.log_writer);
}

// Returns whether the daemon is healthy, that is, no run exceeds its time limit, so that the
// watchdog of systemd may be notified. The event loop itself works, because it makes this call.
static bool is_healthy(void *context)
{
    inf_role_enter_loop();
    const struct daemon *daemon = context;
    uint64_t limit_ns = (uint64_t)daemon->options.config->run_limit_ms * 1000000u;
    return daemon->server == NULL || inf_server_longest_run_ns(daemon->server) < limit_ns;
}

static void drain_server(struct daemon *daemon) INF_ON_LOOP
{
    if (daemon->draining) {
        inf_log(daemon->log, INF_LOG_NOTICE, "stopping now");
        inf_server_stop(daemon->server);
        return;
    }
    daemon->draining = true;
    inf_log(daemon->log, INF_LOG_NOTICE, "draining requests=%u connections=%u timeout_ms=%u",
            inf_server_in_flight(daemon->server), inf_server_connections(daemon->server),
            daemon->options.config->drain_timeout_ms);
    inf_notify_stopping(daemon->notify, "draining");
    inf_server_drain(daemon->server);
}

static void reload_repository(struct daemon *daemon) INF_ON_LOOP
{
    struct inf_error err = {0};
    if (daemon->draining)
        return;
    inf_log(daemon->log, INF_LOG_NOTICE, "reading the repository again");
    inf_notify_reloading(daemon->notify);
    if (inf_model_store_load_all(daemon->store, &err) != INF_OK)
        inf_log(daemon->log, INF_LOG_ERROR, "repository not read reason=\"%s\"", err.text);
    notify_serving(daemon, inf_notify_ready);
}

static void on_signal(evutil_socket_t number, short events, void *context)
{
    (void)events;
    inf_role_enter_loop();
    struct daemon *daemon = context;
    if (number == SIGHUP)
        reload_repository(daemon);
    else
        drain_server(daemon);
}

// --- opening devices, store and server ---

static enum inf_code open_engine(struct daemon *daemon, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_config *config = daemon->options.config;
    const struct inf_device_options options = {
        .slots = config->cpu_slots,
        .threads = config->cpu_threads,
        .isa_max = config->cpu_isa_max,
        .kernel_races = strcmp(config->race, "never") != 0,
        .handoff_elements = config->gpu_handoff_elements,
        .memory_bytes = config->gpu_memory_bytes,
        .vulkan_loader = config->vulkan_loader[0] != '\0' ? config->vulkan_loader : NULL,
        .vulkan_drivers = config->vulkan_drivers[0] != '\0' ? config->vulkan_drivers : NULL,
        .log = daemon->log,
        .cache_directory = config->cache_dir[0] != '\0' ? config->cache_dir : NULL,
    };
    const char *only = config->backends[0] != '\0' ? config->backends : NULL;
    INF_TRY(inf_device_list_open(&daemon->devices, only, &options, err));
    inf_model_devices_prune(
        &daemon->devices,
        &(struct inf_allow_rules){.allowed = config->devices, .denied = config->devices_denied},
        daemon->log);
    enum inf_place_races races = INF_PLACE_RACES_AUTO;
    enum inf_power power = INF_POWER_ANY;
    // Parsing cannot fail here, because inf_config_read() validated the text.
    (void)inf_place_races_parse(config->race, &races);
    (void)inf_power_parse(config->power, &power);
    char build[INF_BUILD_ID_TEXT];
    inf_build_id(build);
    snprintf(daemon->build, sizeof daemon->build, "%.31s %s", daemon->options.version, build);
    const struct inf_model_store_options store = {
        .repository = config->repository[0] != '\0' ? config->repository : NULL,
        .devices = &daemon->devices,
        .default_device = config->device,
        .rules = {.races = races, .tolerance = config->race_tolerance, .power = power},
        .cache_directory = options.cache_directory,
        .version = daemon->build,
        .batch_rows_max = config->batch_rows_max,
        .log = daemon->log,
    };
    INF_TRY(inf_model_store_create(&daemon->store, &store, err));
    daemon->environment = (struct inf_environment){.config = daemon->options.config,
                                                   .store = daemon->store,
                                                   .log_writer = daemon->options.log_writer};
    inf_environment_init(&daemon->environment, &daemon->devices);
    return INF_OK;
}

static enum inf_code open_loop(struct daemon *daemon, struct inf_error *err)
{
    daemon->base = event_base_new();
    if (daemon->base == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no event loop");
    for (size_t i = 0; i < SIGNALS; i++) {
        daemon->signals[i] = evsignal_new(daemon->base, signal_numbers[i], on_signal, daemon);
        if (daemon->signals[i] == NULL || event_add(daemon->signals[i], NULL) != 0)
            return inf_fail(err, INF_EXHAUSTED, "no event for a signal");
    }
    const struct inf_notify_options options = {
        .base = daemon->base, .healthy = is_healthy, .context = daemon};
    return inf_notify_create(&daemon->notify, &options, err);
}

static enum inf_code open_server(struct daemon *daemon, struct inf_error *err)
{
    struct inf_listen_fds fds;
    INF_TRY(inf_listen_fds_take(&fds, err));
    const struct inf_server_options options = {
        .base = daemon->base,
        .config = daemon->options.config,
        .store = daemon->store,
        .environment = &daemon->environment,
        .devices = &daemon->devices,
        .log = daemon->log,
        .version = daemon->options.version,
        .data_fds = &fds.data,
        .data_fd_count = fds.data >= 0,
        .admin_fds = &fds.admin,
        .admin_fd_count = fds.admin >= 0,
        .drained = on_drained,
        .loaded = on_loaded,
        .log_lines_dropped = log_lines_dropped,
        .context = daemon,
    };
    return inf_server_create(&daemon->server, &options, err);
}

// Runs the loop until it is asked to end, with its own sleeping strategy. event_base_dispatch()
// would sleep in every iteration.
static void run_loop(struct daemon *daemon) INF_ON_LOOP
{
    int ended;
    inf_thread_set_low_latency();
    do {
        int how = EVLOOP_ONCE;
        if (inf_server_poll(daemon->server))
            how |= EVLOOP_NONBLOCK;
        ended = event_base_loop(daemon->base, how);
    } while (ended == 0 && !event_base_got_break(daemon->base) &&
             !event_base_got_exit(daemon->base));
    if (ended < 0)
        inf_log(daemon->log, INF_LOG_ERROR, "the event loop failed, stopping");
}

// Serves until the server is drained.
static enum inf_code run_server(struct daemon *daemon, struct inf_error *err)
{
    inf_role_enter_loop();
    enum inf_code code = inf_server_start(daemon->server, err);
    if (code == INF_OK && daemon->options.config->load_all)
        code = inf_model_store_load_all(daemon->store, err);
    if (code == INF_OK) {
        inf_log(daemon->log, INF_LOG_NOTICE, "serving version=%s devices=%u pid=%d",
                daemon->options.version, daemon->devices.count, (int)getpid());
        notify_serving(daemon, inf_notify_ready);
        run_loop(daemon);
        inf_log(daemon->log, INF_LOG_NOTICE, "stopping");
    }
    inf_role_leave();
    return code;
}

// --- running and exiting ---

// Logs a failure to start, and converts it to an exit code.
static enum inf_exit_code explain_failure(const struct daemon *daemon, enum inf_code code,
                                          bool engine, const struct inf_error *err)
{
    if (code == INF_OK)
        return INF_EXIT_OK;
    inf_log(daemon->log, INF_LOG_ERROR, "not started: %s", err->text);
    if (code == INF_EXISTS)
        return INF_EXIT_RUNS;
    // An unknown backend or device name counts as a configuration error, although it is found only
    // after the devices are opened.
    return engine && (code == INF_INVALID || code == INF_NOT_FOUND) ? INF_EXIT_CONFIG
                                                                    : INF_EXIT_START;
}

static enum inf_exit_code run_daemon(struct daemon *daemon)
{
    struct inf_error err = {0};
    enum inf_code code = open_engine(daemon, &err);
    if (code != INF_OK)
        return explain_failure(daemon, code, true, &err);
    code = open_loop(daemon, &err);
    if (code == INF_OK)
        code = open_server(daemon, &err);
    if (code == INF_OK)
        code = run_server(daemon, &err);
    return explain_failure(daemon, code, false, &err);
}

// Blocks signals, because a signal that arrives during the shutdown must not interrupt it.
static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&set, signal_numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static void close_all(struct daemon *daemon)
{
    block_signals();
    inf_server_destroy(&daemon->server);
    inf_notify_destroy(&daemon->notify);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (daemon->signals[i] != NULL)
            event_free(daemon->signals[i]);
    }
    inf_model_store_destroy(&daemon->store);
    if (daemon->base != NULL)
        event_base_free(daemon->base);
    inf_device_list_close(&daemon->devices);
}

enum inf_exit_code inf_daemon_run(const struct inf_daemon_options *options)
{
    struct daemon daemon = {
        .options = *options,
        .log = inf_log_writer_log(options->log_writer),
    };
    enum inf_exit_code code = run_daemon(&daemon);
    close_all(&daemon);
    return code;
}
