// SPDX-License-Identifier: Apache-2.0
// Runs a model many times without waiting for each answer. A background thread of the library
// receives the answers, so the program is free to do other work. This example only waits until the
// daemon accepts more requests.
//
// With --spans the program writes a span of each request, which is the parent of the daemon's spans
// of this request.
//
//   background [--socket PATH] [--spans FILE] MODEL COUNT
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <inferd.h>

#include "span_file.h"

#define CREDIT_WAIT_MS 60000

// Numbers of good and bad answers. The callbacks count them on the library's background thread.
struct answers {
    atomic_ulong good, bad;
    const char *model;
    FILE *spans; // NULL: no spans are written
};

// A request in flight.
struct call {
    struct answers *answers;
    struct span span; // used only if spans are written
};

static int print_usage(FILE *out, int code)
{
    fputs(
        "usage: background [--socket PATH] [--spans FILE] MODEL COUNT\n"
        "Runs MODEL on zeros COUNT times, as many at once as the daemon takes.\n"
        "  --socket PATH   the daemon's socket (default: $INFERD_SOCKET, "
        "/run/inferd/inferd.sock)\n"
        "  --spans FILE    append a span of each request, as OTLP/JSON\n",
        out);
    return code;
}

static int report_failure(const struct inferd_error *err)
{
    fprintf(stderr, "background: %s\n", err->text);
    return 1;
}

static void on_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct call *call = context;
    struct answers *answers = call->answers;
    if (answers->spans != NULL)
        span_end(&call->span, answers->spans, answers->model, result == NULL ? err->text : NULL);
    if (result == NULL && atomic_fetch_add(&answers->bad, 1) == 0)
        (void)report_failure(err);
    else if (result != NULL)
        atomic_fetch_add(&answers->good, 1);
    inferd_result_free(result);
    free(call);
}

// Creates all inputs of the model, filled with zeros, in shared memory that the daemon reads
// without copying. Each dimension of unknown size becomes 1.
static int make_inputs(inferd_client *client, inferd_model_info *info, struct inferd_error *err)
{
    for (size_t i = 0; i < info->input_count; i++) {
        inferd_tensor *input = &info->inputs[i];
        input->size = inferd_dtype_size(input->dtype);
        for (int k = 0; k < input->rank; k++) {
            if (input->shape[k] < 0)
                input->shape[k] = 1;
            input->size *= (size_t)input->shape[k];
        }
        if (inferd_memory_alloc(client, input->size, &input->memory, err) != INFERD_OK)
            return err->code;
        input->data = inferd_memory_data(input->memory);
        memset(input->data, 0, input->size);
    }
    return INFERD_OK;
}

static int send_request(inferd_client *client, const inferd_request *request,
                        struct answers *answers, struct inferd_error *err)
{
    struct call *call = calloc(1, sizeof *call);
    char traceparent[SPAN_PARENT_BYTES];
    if (call == NULL) {
        *err = (struct inferd_error){INFERD_RESOURCE_EXHAUSTED, "", "no memory", 0};
        return err->code;
    }
    call->answers = answers;
    // The context is that of the next request. It is set by the thread that sends the request.
    if (answers->spans != NULL && span_begin(&call->span, traceparent))
        inferd_set_trace_context(client, traceparent, NULL);
    int code = inferd_infer_async(client, request, on_answer, call, NULL, err);
    if (code != INFERD_OK)
        free(call); // on_answer() is not called
    return code;
}

static int send_requests(inferd_client *client, unsigned long count, struct answers *answers,
                         struct inferd_error *err)
{
    inferd_model_info *info = NULL;
    if (inferd_start_thread(client, err) != INFERD_OK ||
        inferd_model_describe(client, answers->model, NULL, &info, err) != INFERD_OK)
        return err->code;
    int code = make_inputs(client, info, err);
    const inferd_request request = {
        .model = answers->model, .inputs = info->inputs, .input_count = info->input_count};
    for (unsigned long i = 0; i < count && code == INFERD_OK; i++) {
        code = inferd_wait_credit(client, 0, CREDIT_WAIT_MS, err);
        if (code == INFERD_OK)
            code = send_request(client, &request, answers, err);
    }
    if (code == INFERD_OK)
        code = inferd_wait(client, err); // blocks until the last callback has returned
    inferd_model_info_free(info);
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"spans", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *socket = NULL, *spans = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h')
            return print_usage(stdout, 0);
        if (option == '?')
            return print_usage(stderr, 2);
        *(option == 's' ? &socket : &spans) = optarg;
    }
    if (argc - optind != 2)
        return print_usage(stderr, 2);
    struct inferd_error err;
    inferd_client *client = NULL;
    struct answers answers = {.model = argv[optind]};
    struct timespec begin, end;
    if (spans != NULL && (answers.spans = fopen(spans, "a")) == NULL) {
        perror(spans);
        return 1;
    }
    if (inferd_connect(&client, socket, &err) != INFERD_OK)
        return report_failure(&err);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int code = send_requests(client, strtoul(argv[optind + 1], NULL, 10), &answers, &err);
    clock_gettime(CLOCK_MONOTONIC, &end);
    inferd_close(client);
    if (answers.spans != NULL && fclose(answers.spans) != 0)
        perror(spans);
    if (code != INFERD_OK)
        return report_failure(&err);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("%lu answers in %.3f s, %.0f a second; %lu failed\n", atomic_load(&answers.good),
           seconds, (double)atomic_load(&answers.good) / seconds, atomic_load(&answers.bad));
    return atomic_load(&answers.bad) == 0 ? 0 : 1;
}
