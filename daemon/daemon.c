// SPDX-License-Identifier: Apache-2.0
// The daemon from start to end: opens the devices and the model store, creates the event loop and
// the server, serves until a signal arrives, and closes everything in reverse order.
#include "daemon/daemon.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/system/crash_note.h"
#include "backends/base/thread.h"
#include "backends/registry.h"
#include "daemon/config/persisted.h"
#include "daemon/config/reread.h"
#include "daemon/engine.h"
#include "daemon/memory_watch.h"
#include "daemon/model/repository_watch.h"
#include "daemon/server.h"
#include "daemon/service/environment.h"
#include "daemon/store/store.h"
#include "daemon/system/notify.h"
#include "daemon/takeover.h"

// Signals that the loop handles.
static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP};
#define SIGNALS INF_ARRAY_LENGTH(signal_numbers)

// The longest time that the connections of an earlier process wait for models to be loaded.
#define RESUME_MS 5000
// While models load at the start, the daemon asks systemd to wait for the time limit of one load
// and this margin. If a load makes progress, the daemon asks again, at most once in each period.
#define START_MARGIN_MS  30000
#define EXTEND_PERIOD_MS 1000

struct daemon {
    struct inf_daemon_options options;
    const struct inf_log *logs; // one for each enum inf_log_part; they belong to options.log_writer
    const struct inf_log *log;  // that of INF_LOG_PART_DAEMON
    // Version and build; saved measurements are valid for one build only.
    char build[INF_ENGINE_BUILD_TEXT];
    struct inf_device_list devices;
    struct inf_memory_watch memory;
    struct inf_model_store *store;
    // The configuration as it was read, without what admins made persistent.
    struct inf_config sources;
    struct inf_environment environment;
    struct event_base *base;
    struct inf_notify *notify;
    struct inf_listen_fds fds;
    struct inf_takeover takeover;
    struct event *resume_event; // fires RESUME_MS after the start
    struct inf_server *server;
    struct event *signals[SIGNALS];
    struct inf_config_reread *reread;
    struct event *reread_event;         // fires when the configuration was read again
    struct inf_repository_watch *watch; // NULL: the repository is not watched
    struct event *idle_event;           // fires when the next check for idle models is due
    struct event *watch_event;          // fires when the files of a model changed
    bool draining;
    bool ready;           // systemd knows that the start is complete
    uint64_t extended_ns; // time of the last extension of the start (inf_notify_extend_start())
};

// --- callbacks of the loop and the watchdog ---

static void notify_serving(struct daemon *daemon,
                           void (*tell)(struct inf_notify *notify, const char *status)) INF_ON_LOOP
{
    char status[INF_NOTIFY_STATUS], idle[32] = "", failed[INF_NOTIFY_STATUS] = "";
    struct inf_model_summary summary = inf_model_store_summarize(daemon->store);
    if (summary.idle > 0)
        snprintf(idle, sizeof idle, ", %u idle", summary.idle);
    if (summary.failed_name != NULL)
        snprintf(failed, sizeof failed, "; %s: %s", summary.failed_name, summary.failed_reason);
    snprintf(status, sizeof status, "%s; %u of %u models loaded, %u failed%s, loading: %u%.150s",
             daemon->ready ? "serving" : "starting", summary.served, summary.models, summary.failed,
             idle, inf_model_store_pending(daemon->store), failed);
    tell(daemon->notify, status);
}

// Asks systemd to wait longer for the models. A load that hangs makes no progress, so systemd ends
// a start that does not end by itself.
static void extend_start(struct daemon *daemon) INF_ON_LOOP
{
    uint64_t now_ns = inf_clock_ns();
    if (daemon->extended_ns != 0 && now_ns - daemon->extended_ns < EXTEND_PERIOD_MS * INF_NS_PER_MS)
        return;
    daemon->extended_ns = now_ns;
    inf_notify_extend_start(daemon->notify,
                            (uint64_t)daemon->options.config->load_limit_ms + START_MARGIN_MS);
}

// Tells systemd that the daemon is ready, or still starting. With the setting load_all the daemon
// is ready when a load of each model of the repository has ended. Clients are served before.
static void report_start(struct daemon *daemon) INF_ON_LOOP
{
    if (daemon->options.config->load_all && inf_model_store_summarize(daemon->store).is_starting) {
        notify_serving(daemon, inf_notify_status);
        extend_start(daemon);
        return;
    }
    daemon->ready = true;
    notify_serving(daemon, inf_notify_ready);
}

// Unloads idle models, and sets the timer to the time at which the next loaded model becomes idle.
static void unload_idle(struct daemon *daemon) INF_ON_LOOP
{
    uint64_t now_ns = inf_clock_ns();
    inf_server_update_memory(daemon->server);
    uint64_t next_ns = inf_model_store_unload_idle(daemon->store, now_ns);
    inf_server_watch_models(daemon->server);
    if (next_ns == UINT64_MAX) {
        (void)event_del(daemon->idle_event);
        return;
    }
    uint64_t wait_ms = next_ns > now_ns ? (next_ns - now_ns) / INF_NS_PER_MS + 1 : 1;
    const struct timeval wait = {.tv_sec = (time_t)(wait_ms / 1000),
                                 .tv_usec = (suseconds_t)(wait_ms % 1000 * 1000)};
    // If there is no memory for the timer, idle models stay loaded until the next load ends.
    (void)event_add(daemon->idle_event, &wait);
}

static void on_idle(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    unload_idle(context);
}

static void on_relieved(void *context)
{
    inf_role_enter_loop();
    unload_idle(context);
}

// Reads from the connections of the earlier process as soon as no model is being loaded, so that
// their requests wait instead of being refused.
static void resume_when_loaded(struct daemon *daemon) INF_ON_LOOP
{
    if (!daemon->draining && inf_model_store_pending(daemon->store) == 0)
        inf_server_resume(daemon->server);
}

static void on_resume(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct daemon *daemon = context;
    if (!daemon->draining)
        inf_server_resume(daemon->server);
}

static void on_loaded(void *context, const struct inf_load_event *event)
{
    inf_role_enter_loop();
    struct daemon *daemon = context;
    if (event->final && !daemon->draining)
        unload_idle(daemon);
    if (!daemon->ready && !event->final && !daemon->draining)
        extend_start(daemon);
    else if (!daemon->ready && !daemon->draining)
        report_start(daemon);
    else if (event->final && !daemon->draining)
        notify_serving(daemon, inf_notify_status);
    resume_when_loaded(daemon);
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

// Returns whether the daemon is healthy, that is, every run ends or reacts to its cancellation, so
// that the watchdog of systemd may be notified. The event loop itself works, because it makes this
// call.
static bool is_healthy(void *context)
{
    inf_role_enter_loop();
    const struct daemon *daemon = context;
    return daemon->server == NULL || !inf_server_is_stuck(daemon->server);
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
    inf_model_store_cancel_loads(daemon->store);
    inf_repository_watch_stop(daemon->watch);
    inf_server_drain(daemon->server);
}

// Starts reading the configuration and the repository again, for SIGHUP or for an admin.
static enum inf_code begin_reload(void *context, struct inf_error *err)
{
    inf_role_enter_loop();
    struct daemon *daemon = context;
    if (daemon->draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_SHUTDOWN, "the daemon ends");
    inf_log(daemon->log, INF_LOG_NOTICE, "reading the configuration and the repository again");
    // A daemon that is not ready has nothing to tell: systemd waits for READY=1 already.
    if (daemon->ready)
        inf_notify_reloading(daemon->notify);
    enum inf_code code = inf_config_reread_start(daemon->reread, err);
    if (code != INF_OK && daemon->ready)
        notify_serving(daemon, inf_notify_ready);
    return code;
}

// Continues a reload after the configuration was read.
static void finish_reload(struct daemon *daemon) INF_ON_LOOP
{
    const struct inf_config *config;
    struct inf_error err = {0};
    if (!inf_config_reread_finish(daemon->reread, &config, &err) || daemon->draining)
        return;
    inf_server_finish_reload(daemon->server, config, &err);
    if (daemon->ready)
        notify_serving(daemon, inf_notify_ready);
}

static void on_signal(evutil_socket_t number, short events, void *context)
{
    (void)events;
    inf_role_enter_loop();
    struct daemon *daemon = context;
    struct inf_error err = {0};
    if (number != SIGHUP)
        drain_server(daemon);
    else if (begin_reload(daemon, &err) != INF_OK && !daemon->draining)
        inf_log(daemon->log, INF_LOG_ERROR, "configuration not read error=\"%s\"", err.text);
}

static void on_config_read(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    finish_reload(context);
}

static void on_repository_changed(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    inf_role_enter_loop();
    struct daemon *daemon = context;
    char name[INF_LIMIT_MODEL_NAME + 1];
    while (inf_repository_watch_next(daemon->watch, name))
        if (!daemon->draining)
            inf_model_store_refresh(daemon->store, name, !daemon->options.config->load_all);
}

// --- opening devices, store and server ---

static enum inf_code open_engine(struct daemon *daemon, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_config *config = daemon->options.config;
    INF_TRY(inf_engine_open_devices(&daemon->devices, config, daemon->logs, err));
    enum inf_place_races races = INF_PLACE_RACES_AUTO;
    enum inf_power power = INF_POWER_ANY;
    // Parsing cannot fail here, because inf_config_read() validated the text.
    (void)inf_place_races_parse(config->race, &races);
    (void)inf_power_parse(config->power, &power);
    inf_engine_build(daemon->build, daemon->options.version);
    inf_memory_watch_init(&daemon->memory, config->memory_max, "",
                          &daemon->logs[INF_LOG_PART_MODEL]);
    const struct inf_model_store_options store = {
        .repository = config->repository[0] != '\0' ? config->repository : NULL,
        .ready_file = config->ready_file,
        .settle_ms = strcmp(config->watch, "never") != 0 ? config->watch_settle_ms : 0,
        .model_bytes_max = config->model_bytes_max,
        .budget = &daemon->memory.budget,
        .plan_bytes_max = config->plan_bytes_max,
        .standby = config->gpu_standby,
        .devices = &daemon->devices,
        .default_device = config->device,
        .rules = {.races = races, .tolerance = config->race_tolerance, .power = power},
        .cache_directory = config->cache_dir[0] != '\0' ? config->cache_dir : NULL,
        .state_directory = config->state_dir[0] != '\0' ? config->state_dir : NULL,
        .version = daemon->build,
        .batch_rows_max = config->batch_rows_max,
        .load_limit_ms = config->load_limit_ms,
        .arena_bytes_per_uid_max = config->arena_bytes_per_uid_max,
        .request_bytes_max = config->request_memory_max,
        .log = &daemon->logs[INF_LOG_PART_MODEL],
    };
    INF_TRY(inf_model_store_create(&daemon->store, &store, err));
    int notes_fd = inf_model_store_notes_fd(daemon->store);
    if (notes_fd >= 0)
        INF_TRY(inf_crash_note_install(notes_fd, err));
    daemon->environment = (struct inf_environment){.config = daemon->options.config,
                                                   .store = daemon->store,
                                                   .log_writer = daemon->options.log_writer};
    inf_environment_init(&daemon->environment, &daemon->sources, &daemon->devices);
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
    INF_TRY(
        inf_config_reread_create(&daemon->reread, daemon->options.argc, daemon->options.argv, err));
    daemon->reread_event = event_new(daemon->base, inf_config_reread_fd(daemon->reread),
                                     EV_READ | EV_PERSIST, on_config_read, daemon);
    if (daemon->reread_event == NULL || event_add(daemon->reread_event, NULL) != 0)
        return inf_fail(err, INF_EXHAUSTED, "no event for the configuration");
    daemon->idle_event = evtimer_new(daemon->base, on_idle, daemon);
    if (daemon->idle_event == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no event for idle models");
    daemon->resume_event = evtimer_new(daemon->base, on_resume, daemon);
    if (daemon->resume_event == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no event for connections");
    const struct inf_notify_options options = {
        .base = daemon->base, .healthy = is_healthy, .context = daemon};
    return inf_notify_create(&daemon->notify, &options, err);
}

// Starts watching the repository. If the watch cannot be created, logs a warning and succeeds: the
// daemon then serves without a watch.
static enum inf_code open_watch(struct daemon *daemon, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_config *config = daemon->options.config;
    struct inf_error why = {0};
    if (config->repository[0] == '\0' || strcmp(config->watch, "never") == 0)
        return INF_OK;
    const struct inf_repository_watch_options options = {.repository = config->repository,
                                                         .poll = strcmp(config->watch, "poll") == 0,
                                                         .poll_ms = config->watch_poll_ms,
                                                         .settle_ms = config->watch_settle_ms,
                                                         .log = &daemon->logs[INF_LOG_PART_MODEL]};
    if (inf_repository_watch_create(&daemon->watch, &options, &why) != INF_OK) {
        inf_log(daemon->log, INF_LOG_WARNING,
                "changes of the repository are not noticed; reload after them reason=\"%s\"",
                why.text);
        return INF_OK;
    }
    daemon->watch_event = event_new(daemon->base, inf_repository_watch_fd(daemon->watch),
                                    EV_READ | EV_PERSIST, on_repository_changed, daemon);
    if (daemon->watch_event == NULL || event_add(daemon->watch_event, NULL) != 0)
        return inf_fail(err, INF_EXHAUSTED, "no event for the repository");
    return INF_OK;
}

static enum inf_code create_server(struct daemon *daemon, struct inf_error *err) INF_ON_LOOP
{
    INF_TRY(inf_listen_fds_take(&daemon->fds, err));
    INF_TRY(inf_takeover_open(&daemon->takeover, daemon->base, &daemon->fds, daemon->log, err));
    const struct inf_server_options options = {
        .base = daemon->base,
        .config = daemon->options.config,
        .store = daemon->store,
        .environment = &daemon->environment,
        .devices = &daemon->devices,
        .memory_budget = &daemon->memory.budget,
        .logs = daemon->logs,
        .version = daemon->options.version,
        .data_fds = &daemon->fds.data,
        .data_fd_count = daemon->fds.data >= 0,
        .admin_fds = &daemon->fds.admin,
        .admin_fd_count = daemon->fds.admin >= 0,
        .handover = daemon->takeover.handover,
        .fd_store = daemon->takeover.fd_store,
        .drained = on_drained,
        .loaded = on_loaded,
        .log_lines_dropped = log_lines_dropped,
        .reload = begin_reload,
        .context = daemon,
    };
    INF_TRY(inf_server_create(&daemon->server, &options, err));
    inf_takeover_restore(&daemon->takeover, &daemon->fds, daemon->server);
    return INF_OK;
}

static enum inf_code open_server(struct daemon *daemon, struct inf_error *err)
{
    inf_role_enter_loop();
    enum inf_code code = create_server(daemon, err);
    inf_role_leave();
    return code;
}

// Runs the event loop until the daemon ends. Does not use event_base_dispatch(), which would sleep
// in every iteration; inf_server_poll() decides whether to sleep or to poll.
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

// Runs the server until a signal ends it and all requests in flight are answered.
static enum inf_code run_server(struct daemon *daemon, struct inf_error *err)
{
    inf_role_enter_loop();
    enum inf_code code = inf_server_start(daemon->server, err);
    if (code == INF_OK && daemon->options.config->load_all)
        code = inf_model_store_load_all(daemon->store, err);
    if (code == INF_OK) {
        inf_log(daemon->log, INF_LOG_NOTICE, "serving version=%s devices=%u pid=%d",
                daemon->options.version, daemon->devices.count, (int)getpid());
        report_start(daemon);
        const struct timeval wait = {.tv_sec = RESUME_MS / 1000};
        // Without memory for the timer, the connections wait for the models.
        (void)event_add(daemon->resume_event, &wait);
        resume_when_loaded(daemon);
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
    // An unknown name of a backend or device is a mistake in the configuration, although it is
    // found only after the devices are opened.
    return engine && (code == INF_INVALID || code == INF_NOT_FOUND) ? INF_EXIT_CONFIG
                                                                    : INF_EXIT_START;
}

// Sets the flags that admins made persistent.
static enum inf_code apply_persisted(struct daemon *daemon, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_config *config = daemon->options.config;
    struct inf_persisted *persisted = NULL;
    enum inf_log_level levels[INF_LOG_PARTS];
    daemon->sources = *config;
    INF_TRY(inf_persisted_open(&persisted, config->state_dir[0] != '\0' ? config->state_dir : NULL,
                               daemon->log, err));
    inf_persisted_apply_flags(persisted, config);
    inf_persisted_close(&persisted);
    inf_config_log_levels(config, levels);
    inf_log_writer_set_levels(daemon->options.log_writer, levels);
    inf_log_writer_set_kind_lines(daemon->options.log_writer, config->log_kind_lines);
    return INF_OK;
}

static enum inf_exit_code run_daemon(struct daemon *daemon, struct inf_error *err)
{
    enum inf_code code = apply_persisted(daemon, err);
    if (code == INF_OK)
        code = open_engine(daemon, err);
    if (code != INF_OK)
        return explain_failure(daemon, code, true, err);
    code = open_loop(daemon, err);
    if (code == INF_OK)
        code = open_watch(daemon, err);
    if (code == INF_OK)
        code = open_server(daemon, err);
    if (code == INF_OK)
        code = inf_memory_watch_start(&daemon->memory, daemon->base, daemon->store, on_relieved,
                                      daemon, err);
    if (code == INF_OK)
        code = run_server(daemon, err);
    return explain_failure(daemon, code, false, err);
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
    inf_crash_note_remove();
    inf_memory_watch_fini(&daemon->memory);
    inf_server_destroy(&daemon->server);
    inf_takeover_fini(&daemon->takeover);
    inf_listen_fds_fini(&daemon->fds);
    if (daemon->resume_event != NULL)
        event_free(daemon->resume_event);
    inf_notify_destroy(&daemon->notify);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (daemon->signals[i] != NULL)
            event_free(daemon->signals[i]);
    }
    if (daemon->reread_event != NULL)
        event_free(daemon->reread_event);
    inf_config_reread_destroy(&daemon->reread);
    if (daemon->idle_event != NULL)
        event_free(daemon->idle_event);
    if (daemon->watch_event != NULL)
        event_free(daemon->watch_event);
    inf_model_store_destroy(&daemon->store);
    // After the store, so that the thread has time to close its inotify descriptor.
    inf_repository_watch_destroy(&daemon->watch);
    if (daemon->base != NULL)
        event_base_free(daemon->base);
    inf_device_list_close(&daemon->devices);
}

enum inf_exit_code inf_daemon_run(const struct inf_daemon_options *options, struct inf_error *err)
{
    struct daemon daemon = {
        .options = *options,
        .logs = inf_log_writer_logs(options->log_writer),
        .log = &inf_log_writer_logs(options->log_writer)[INF_LOG_PART_DAEMON],
    };
    enum inf_exit_code code = run_daemon(&daemon, err);
    close_all(&daemon);
    return code;
}
