// SPDX-License-Identifier: Apache-2.0
// Tests of the functions that send questions and orders to the daemon.
#include <criterion/criterion.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/daemon/client_case.h"

static void send_answer(struct fake_daemon *daemon, const struct fake_frame *frame, bool final,
                        const union inf_message *message, enum inf_message_kind kind)
{
    struct inf_frame_header header = {.type = INF_FRAME_RESPONSE,
                                      .stream_id = frame->header.stream_id,
                                      .method = frame->header.method,
                                      .flags = final ? INF_FRAME_FINAL : 0};
    fake_send(daemon, header, message, kind, NULL, 0);
}

// The fields of the last request that the fake daemon received.
struct asked {
    char name[80], version[80], device[80], path[PATH_MAX], file[256];
};

static void note_request(struct asked *asked, const struct inf_model_request *request)
{
    snprintf(asked->name, sizeof asked->name, "%s", request->name);
    snprintf(asked->version, sizeof asked->version, "%s", request->version);
    snprintf(asked->device, sizeof asked->device, "%s", request->device);
    snprintf(asked->path, sizeof asked->path, "%s", request->path);
    snprintf(asked->file, sizeof asked->file, "%s", request->file);
}

static void answer_load(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    static const struct inf_load_progress steps[] = {
        {"read", 0}, {"read", 100}, {"compile", 50}, {"warm-up", 100}};
    if (strcmp(frame->message->model.name, "broken") == 0) {
        fake_refuse(daemon, frame->header.stream_id,
                    &(struct inf_status){.code = INF_UNSUPPORTED,
                                         .reason = INF_REASON_OPERATOR,
                                         .message = "operators Foo, Bar are not known"});
        return;
    }
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        send_answer(daemon, frame, false, &(union inf_message){.load_progress = steps[i]},
                    INF_MESSAGE_LOAD_PROGRESS);
    send_answer(daemon, frame, true, NULL, INF_MESSAGE_EMPTY);
}

static void list_models(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct inf_model_index_entry models[] = {
        {.name = "blazeface",
         .version = "1",
         .state = "READY",
         .device = "cpu0",
         .platform = "tfjs_graph",
         .memory_bytes = 423424,
         .requests = 12,
         .macs = 31000000},
        {.name = "broken", .version = "7", .state = "UNAVAILABLE", .reason = "operator Foo"}};
    send_answer(daemon, frame, true, &(union inf_message){.model_index = {2, models}},
                INF_MESSAGE_MODEL_INDEX);
}

static void list_devices(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct inf_device_entry device = {.name = "cpu0",
                                      .backend = "cpu",
                                      .kind = "cpu",
                                      .description = "Some processor",
                                      .health = "ok",
                                      .priority = -200,
                                      .slots = 2,
                                      .threads = 4,
                                      .queue_depth = 3,
                                      .queue_limit = 64,
                                      .requests = UINT64_MAX,
                                      .busy_ns = 5,
                                      .memory_bytes = 6};
    send_answer(daemon, frame, true, &(union inf_message){.device_index = {1, &device}},
                INF_MESSAGE_DEVICE_INDEX);
}

static void tell_status(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct inf_server_status status = {.version = "0.1.0",
                                       .state = "draining",
                                       .uptime_ns = 1,
                                       .connections = 2,
                                       .requests_in_flight = 3,
                                       .regions = 4,
                                       .models_ready = 5,
                                       .connections_total = 6,
                                       .requests_accepted = 7,
                                       .requests_ok = 8,
                                       .requests_failed = 9,
                                       .region_bytes = 10,
                                       .resident_bytes = 11,
                                       .log_lines_dropped = 12};
    send_answer(daemon, frame, true, &(union inf_message){.server_status = status},
                INF_MESSAGE_SERVER_STATUS);
}

static void tell_memory(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct inf_memory_entry device = {.name = "cpu0",
                                      .num_tensors = 1,
                                      .num_data_buffers = 2,
                                      .num_bytes = UINT64_MAX,
                                      .constant_bytes = 3,
                                      .weight_bytes = 4,
                                      .buffer_bytes = 5,
                                      .budget_bytes = 6,
                                      .peak_bytes = 7};
    struct inf_memory_info info = {1, &device, 8, 9};
    send_answer(daemon, frame, true, &(union inf_message){.memory_info = info},
                INF_MESSAGE_MEMORY_INFO);
}

// Answers with the format as the text. The format "openmetrics" comes in two pieces.
static void tell_metrics(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    char text[64];
    snprintf(text, sizeof text, "%s", frame->message->metrics_request.format);
    size_t size = strlen(text);
    size_t first = strcmp(text, "openmetrics") == 0 ? 4 : 0;
    struct inf_frame_header header = {.type = INF_FRAME_DATA,
                                      .stream_id = frame->header.stream_id,
                                      .method = frame->header.method};
    const union inf_message piece = {.data = {.total_bytes = size}};
    const union inf_message answer = {.metrics_reply = {.media_type = "text/plain"}};
    if (first > 0)
        fake_send(daemon, header, &piece, INF_MESSAGE_DATA, (const uint8_t *)text, first);
    header.type = INF_FRAME_RESPONSE;
    header.flags = INF_FRAME_FINAL;
    fake_send(daemon, header, &answer, INF_MESSAGE_METRICS_REPLY, (const uint8_t *)text + first,
              size - first);
}

static bool answer_admin(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    switch (frame->header.method) {
    case INF_METHOD_REPOSITORY_INDEX:
        list_models(daemon, frame);
        return true;
    case INF_METHOD_DEVICE_LIST:
        list_devices(daemon, frame);
        return true;
    case INF_METHOD_SERVER_STATUS:
        tell_status(daemon, frame);
        return true;
    case INF_METHOD_MEMORY_INFO:
        tell_memory(daemon, frame);
        return true;
    case INF_METHOD_METRICS:
        tell_metrics(daemon, frame);
        return true;
    case INF_METHOD_MODEL_READY:
        note_request(context, &frame->message->model);
        send_answer(daemon, frame, true, &(union inf_message){.flag = {true}},
                    INF_MESSAGE_MODEL_READY_REPLY);
        return true;
    case INF_METHOD_REPOSITORY_MODEL_LOAD:
        note_request(context, &frame->message->model);
        answer_load(daemon, frame);
        return true;
    case INF_METHOD_REPOSITORY_MODEL_UNLOAD:
        note_request(context, &frame->message->model);
        send_answer(daemon, frame, true, NULL, INF_MESSAGE_EMPTY);
        return true;
    default:
        return false;
    }
}

static struct fake_daemon *start_daemon(struct asked *asked)
{
    return fake_daemon_start(&(struct fake_options){.on_frame = answer_admin, .context = asked});
}

Test(client_admin, describes_a_model)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    inferd_model_info *info = NULL;
    struct inferd_error err;
    int code = inferd_model_describe(client, "grow", NULL, &info, &err);
    cr_assert_eq(code, INFERD_OK, "%s", err.text);
    cr_assert_str_eq(info->name, "grow");
    cr_assert_str_eq(info->version, "3");
    cr_assert_str_eq(info->platform, "fake_graph");
    cr_assert_eq(info->input_count, 1u);
    cr_assert_eq(info->output_count, 2u);
    cr_assert_str_eq(info->inputs[0].name, "n");
    cr_assert_eq(info->inputs[0].dtype, INFERD_INT32);
    cr_assert_eq(info->inputs[0].size, 4u);
    cr_assert_str_eq(info->outputs[1].name, "big");
    cr_assert_eq(info->outputs[1].rank, 1);
    cr_assert_eq(info->outputs[1].shape[0], -1);
    cr_assert_eq(info->outputs[1].size, 0u);
    inferd_model_info_free(info);
    inferd_model_info_free(NULL);
    cr_assert_eq(inferd_model_describe(client, "no/name", NULL, &info, &err),
                 INFERD_INVALID_ARGUMENT);
    cr_assert_null(info);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_admin, lists_models_and_devices)
{
    struct fake_daemon *daemon = start_daemon(NULL);
    inferd_client *client = client_case_connect(daemon);
    inferd_model_row *models = NULL;
    inferd_device_row *devices = NULL;
    size_t count = 0;
    cr_assert_eq(inferd_models(client, &models, &count, NULL), INFERD_OK);
    cr_assert_eq(count, 2u);
    cr_assert_str_eq(models[0].name, "blazeface");
    cr_assert_str_eq(models[0].device, "cpu0");
    cr_assert_eq(models[0].memory_bytes, 423424u);
    cr_assert_eq(models[0].requests, 12u);
    cr_assert_eq(models[0].macs, 31000000u);
    cr_assert_str_eq(models[1].state, "UNAVAILABLE");
    cr_assert_str_eq(models[1].reason, "operator Foo");
    cr_assert_eq(inferd_devices(client, &devices, &count, NULL), INFERD_OK);
    cr_assert_eq(count, 1u);
    cr_assert_str_eq(devices[0].description, "Some processor");
    cr_assert_eq(devices[0].priority, -200);
    cr_assert_eq(devices[0].threads, 4u);
    cr_assert_eq(devices[0].queue_depth, 3u);
    cr_assert_eq(devices[0].requests, UINT64_MAX);
    free(models);
    free(devices);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_admin, tells_what_devices_hold)
{
    struct asked asked;
    struct fake_daemon *daemon = start_daemon(&asked);
    inferd_client *client = client_case_connect(daemon);
    inferd_memory_row *rows = NULL;
    inferd_memory_total total;
    size_t count = 0;
    cr_assert_eq(inferd_memory_info(client, &rows, &count, &total, NULL), INFERD_OK);
    cr_assert_eq(count, 1u);
    cr_assert_str_eq(rows[0].device, "cpu0");
    cr_assert_eq(rows[0].num_tensors, 1u);
    cr_assert_eq(rows[0].num_data_buffers, 2u);
    cr_assert_eq(rows[0].num_bytes, UINT64_MAX);
    cr_assert_eq(rows[0].constant_bytes, 3u);
    cr_assert_eq(rows[0].weight_bytes, 4u);
    cr_assert_eq(rows[0].buffer_bytes, 5u);
    cr_assert_eq(rows[0].budget_bytes, 6u);
    cr_assert_eq(rows[0].peak_bytes, 7u);
    cr_assert_eq(total.region_bytes, 8u);
    cr_assert_eq(total.resident_bytes, 9u);
    free(rows);
    cr_assert_eq(inferd_memory_info(client, &rows, &count, NULL, NULL), INFERD_OK);
    free(rows);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_admin, reads_metrics_whose_text_comes_in_one_or_more_frames)
{
    static const char *const formats[] = {"json", "openmetrics", NULL};
    static const char *const texts[] = {"json", "openmetrics", ""};
    struct asked asked;
    struct fake_daemon *daemon = start_daemon(&asked);
    inferd_client *client = client_case_connect(daemon);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char *text = NULL;
        size_t size = 99;
        cr_assert_eq(inferd_metrics(client, formats[i], &text, &size, NULL), INFERD_OK);
        cr_expect_str_eq(text, texts[i]);
        cr_expect_eq(size, strlen(texts[i]));
        free(text);
    }
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_admin, tells_how_the_daemon_fares)
{
    struct asked asked;
    struct fake_daemon *daemon = start_daemon(&asked);
    inferd_client *client = client_case_connect(daemon);
    inferd_server_status status;
    cr_assert_eq(inferd_status(client, &status, NULL), INFERD_OK);
    cr_assert_str_eq(status.version, "0.1.0");
    cr_assert_str_eq(status.state, "draining");
    cr_assert_eq(status.models_ready, 5u);
    cr_assert_eq(status.requests_failed, 9u);
    cr_assert_eq(status.log_lines_dropped, 12u);
    bool ready = false;
    cr_assert_eq(inferd_model_ready(client, "blazeface", "4", &ready, NULL), INFERD_OK);
    cr_assert(ready);
    cr_assert_str_eq(asked.name, "blazeface");
    cr_assert_str_eq(asked.version, "4");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

struct seen {
    inferd_client *client;
    unsigned count, percents[8];
    char stages[8][16];
    int status_code;
};

static void note_progress(void *context, const char *stage, unsigned percent)
{
    struct seen *seen = context;
    snprintf(seen->stages[seen->count], sizeof seen->stages[0], "%s", stage);
    seen->percents[seen->count++ % 8] = percent;
}

Test(client_admin, loads_with_progress_and_unloads)
{
    struct asked asked;
    struct fake_daemon *daemon = start_daemon(&asked);
    struct seen seen = {.client = client_case_connect(daemon)};
    struct inferd_error err;
    int code = inferd_load(seen.client, "face", "/usr", "cpu0", note_progress, &seen, &err);
    cr_assert_eq(code, INFERD_OK, "%s", err.text);
    cr_assert_str_eq(asked.name, "face");
    cr_assert_str_eq(asked.path, "");
    cr_assert_str_eq(asked.device, "cpu0");
    cr_assert_eq(seen.count, 4u);
    cr_assert_str_eq(seen.stages[0], "read");
    cr_assert_str_eq(seen.stages[2], "compile");
    cr_assert_eq(seen.percents[2], 50u);
    cr_assert_eq(seen.percents[3], 100u);
    cr_assert_eq(inferd_load(seen.client, "face", NULL, NULL, NULL, NULL, NULL), INFERD_OK);
    cr_assert_str_eq(asked.file, "");
    cr_assert_eq(inferd_load(seen.client, "broken", NULL, NULL, NULL, NULL, &err),
                 INFERD_UNIMPLEMENTED);
    cr_assert_str_eq(err.reason, "OPERATOR");
    cr_assert_str_eq(err.text, "operators Foo, Bar are not known");
    cr_assert_eq(inferd_unload(seen.client, "face", "2", NULL), INFERD_OK);
    cr_assert_str_eq(asked.version, "2");
    inferd_close(seen.client);
    fake_daemon_stop(daemon);
}

static void see_and_ask(void *context, const char *stage, unsigned percent)
{
    struct seen *seen = context;
    inferd_server_status status;
    note_progress(context, stage, percent);
    seen->status_code = inferd_status(seen->client, &status, NULL);
}

Test(client_admin, lets_a_progress_callback_use_the_client)
{
    struct asked asked;
    struct fake_daemon *daemon = start_daemon(&asked);
    struct seen seen = {.client = client_case_connect(daemon), .status_code = -1};
    cr_assert_eq(inferd_load(seen.client, "face", NULL, NULL, see_and_ask, &seen, NULL), INFERD_OK);
    cr_assert_eq(seen.status_code, INFERD_OK);
    cr_assert_str_eq(seen.stages[0], "read");
    cr_assert_eq(seen.percents[0], 0u);
    cr_assert_geq(seen.count, 2u, "the last progress is told");
    cr_assert_str_eq(seen.stages[seen.count - 1], "warm-up");
    inferd_close(seen.client);
    fake_daemon_stop(daemon);
}

// Returns the number of open descriptors of this process.
static unsigned count_fds(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    cr_assert_not_null(directory);
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

Test(client_admin, sends_the_directory_of_a_model)
{
    struct asked asked;
    struct fake_daemon *daemon = start_daemon(&asked);
    inferd_client *client = client_case_connect(daemon);
    struct inferd_error err;
    static const struct {
        const char *path, *file;
    } rows[] = {{"../usr/../tmp", ""}, {"/etc/passwd", "passwd"}, {"../etc/passwd", "passwd"}};
    cr_assert_eq(chdir("/usr"), 0);
    cr_assert_eq(inferd_load(client, "face", NULL, NULL, NULL, NULL, &err), INFERD_OK);
    unsigned fds = count_fds();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq(inferd_load(client, "face", rows[i].path, NULL, NULL, NULL, &err), INFERD_OK,
                     "%s", err.text);
        cr_assert_str_eq(asked.file, rows[i].file);
        cr_assert_str_eq(asked.path, "", "the daemon is sent no path of the client's");
    }
    cr_assert_eq(inferd_load(client, "face", "no/such/file", NULL, NULL, NULL, &err),
                 INFERD_NOT_FOUND);
    cr_assert_str_eq(err.text, "model 'no/such/file': No such file or directory");
    cr_assert_eq(count_fds(), fds, "a descriptor was left open");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_admin, knows_the_names_of_types)
{
    cr_assert_str_eq(inferd_dtype_name(INFERD_FP32), "FP32");
    cr_assert_str_eq(inferd_dtype_name((inferd_dtype)0), "NONE");
    cr_assert_str_eq(inferd_dtype_name(INFERD_BYTES), "BYTES");
    cr_assert_str_eq(inferd_dtype_name((inferd_dtype)15), "NONE");
    cr_assert_eq(inferd_dtype_size(INFERD_BF16), 2u);
    cr_assert_eq(inferd_dtype_size((inferd_dtype)-1), 0u);
    cr_assert_eq(inferd_dtype_parse("UINT64"), INFERD_UINT64);
    cr_assert_eq(inferd_dtype_parse("FP8"), 0);
    cr_assert_eq(inferd_dtype_parse(NULL), 0);
}
