// SPDX-License-Identifier: Apache-2.0
// Finds faces in a picture with BlazeFace, served by inferd: a complete client in one file. The
// input of the network is 256x256 RGB with values from -1 to 1. Its outputs are a score and a box
// for each of 512 + 384 anchors.
//
//   facedetect [--socket PATH] [--model NAME] PICTURE OUT.png
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/examples/blazeface.h"
#include "client/inferd.h"
#include "client/picture/picture.h"

#define SIDE        256
#define SCORE_MIN   0.5f
#define OVERLAP_MAX 0.3f
#define RUNS        30

struct options {
    const char *socket, *model, *picture, *out;
};

static int print_usage(FILE *out, int code)
{
    fputs(
        "usage: facedetect [--socket PATH] [--model NAME] PICTURE OUT.png\n"
        "Finds faces in PICTURE (JPEG or PNG) and writes OUT.png with boxes around them.\n"
        "  --socket PATH   the daemon's socket (default: $INFERD_SOCKET, /run/inferd/inferd.sock)\n"
        "  --model NAME    what BlazeFace is served as (default: blazeface)\n",
        out);
    return code;
}

static int report_failure(const struct inferd_error *err)
{
    fprintf(stderr, "facedetect: %s\n", err->text);
    return -1;
}

// Converts the picture to the input of the network: scaled with a border, and channels from -1 to
// 1.
static int prepare_input(const struct inf_picture *picture, float *input,
                         struct inf_picture_box *inside)
{
    struct inf_picture *boxed;
    struct inf_error err;
    if (inf_picture_letterbox(&boxed, picture, SIDE, SIDE, inside, &err) != INF_OK) {
        fprintf(stderr, "facedetect: %s\n", err.text);
        return -1;
    }
    for (size_t i = 0; i < (size_t)SIDE * SIDE * 3; i++)
        input[i] = (float)boxed->pixels[i] / 127.5f - 1.0f;
    inf_picture_destroy(&boxed);
    return 0;
}

// Decodes the outputs. The size of an output tells which grid it belongs to, and its last dimension
// is 1 for scores and 16 for boxes.
static int find_faces(const inferd_result *result, struct face *faces)
{
    struct blazeface_grid grids[2] = {{.anchor_count = 512, .anchors_per_cell = 2},
                                      {.anchor_count = 384, .anchors_per_cell = 6}};
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        for (size_t g = 0; g < 2; g++) {
            if (tensor->dtype != INFERD_FP32 || tensor->rank != 3 ||
                (size_t)tensor->shape[1] != grids[g].anchor_count)
                continue;
            if (tensor->shape[2] == 1)
                grids[g].scores = tensor->data;
            if (tensor->shape[2] == 16)
                grids[g].boxes = tensor->data;
        }
    }
    for (size_t g = 0; g < 2; g++) {
        if (grids[g].scores == NULL || grids[g].boxes == NULL) {
            fprintf(stderr, "facedetect: the model's outputs are not those of BlazeFace 256x256\n");
            return -1;
        }
    }
    return (int)blazeface_decode(grids, 2, SIDE, SCORE_MIN, OVERLAP_MAX, faces);
}

// Prints the positions of the faces in pixels of the picture, and draws them.
static void show_faces(struct inf_picture *picture, const struct inf_picture_box *inside,
                       const struct face *faces, int count)
{
    static const uint8_t green[3] = {0, 230, 64};
    double scale_x = picture->width / (inside->x1 - inside->x0);
    double scale_y = picture->height / (inside->y1 - inside->y0);
    uint32_t thickness = 2 + picture->width / 400;
    printf("%d face%s found\n", count, count == 1 ? "" : "s");
    for (int i = 0; i < count; i++) {
        struct inf_picture_box box = {.x0 = (faces[i].x0 - inside->x0) * scale_x,
                                      .y0 = (faces[i].y0 - inside->y0) * scale_y,
                                      .x1 = (faces[i].x1 - inside->x0) * scale_x,
                                      .y1 = (faces[i].y1 - inside->y0) * scale_y};
        printf("  face %d: score %.3f, box x %.0f..%.0f y %.0f..%.0f\n", i + 1,
               (double)faces[i].score, box.x0, box.x1, box.y0, box.y1);
        inf_picture_draw_box(picture, &box, thickness, green);
    }
}

static int compare_ascending(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

// Runs the model on one device a few times and prints the median time.
static int time_device(inferd_client *client, inferd_request request, const char *device)
{
    struct inferd_error err;
    double total_ms[RUNS];
    double compute_ms[RUNS];
    // run less often on the reference device, which is slow
    int runs = strcmp(device, "ref") == 0 ? 3 : RUNS;
    request.device = device;
    for (int i = -1; i < runs; i++) { // the first run compiles for the device, so it is not timed
        inferd_result *result;
        if (inferd_infer(client, &request, &result, &err) != 0)
            return report_failure(&err);
        inferd_timing timing = inferd_result_timing(result);
        if (i >= 0) {
            total_ms[i] = (double)timing.total_ns / 1e6;
            compute_ms[i] = (double)timing.compute_ns / 1e6;
        }
        inferd_result_free(result);
    }
    qsort(total_ms, (size_t)runs, sizeof *total_ms, compare_ascending);
    qsort(compute_ms, (size_t)runs, sizeof *compute_ms, compare_ascending);
    printf("  %-8s %8.2f ms a request, of which %.2f ms compute (median of %d)\n", device,
           total_ms[runs / 2], compute_ms[runs / 2], runs);
    return 0;
}

static int time_devices(inferd_client *client, const inferd_request *request)
{
    struct inferd_error err;
    inferd_device_row *rows;
    size_t count;
    if (inferd_devices(client, &rows, &count, &err) != 0)
        return report_failure(&err);
    printf("latency on each backend:\n");
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = time_device(client, *request, rows[i].name);
    free(rows);
    return result;
}

static void show_timing(const inferd_result *result)
{
    inferd_timing timing = inferd_result_timing(result);
    printf(
        "answered by device %s in %s: queue %.3f ms, compute %.3f ms, in and out %.3f ms, "
        "round trip %.3f ms\n",
        inferd_result_device(result), inferd_result_precision(result),
        (double)timing.queue_ns / 1e6, (double)timing.compute_ns / 1e6,
        (double)(timing.input_ns + timing.output_ns) / 1e6, (double)timing.total_ns / 1e6);
}

static int detect_faces(inferd_client *client, const struct options *options,
                        struct inf_picture *picture)
{
    struct inferd_error err;
    inferd_model_info *info;
    if (inferd_model_describe(client, options->model, NULL, &info, &err) != 0)
        return report_failure(&err);
    static float input[SIDE * SIDE * 3];
    struct inf_picture_box inside;
    inferd_tensor tensor = {.name = info->input_count == 1 ? info->inputs[0].name : "input",
                            .dtype = INFERD_FP32,
                            .rank = 4,
                            .shape = {1, SIDE, SIDE, 3},
                            .data = input,
                            .size = sizeof input};
    inferd_request request = {.model = options->model, .inputs = &tensor, .input_count = 1};
    inferd_result *result = NULL;
    int code = prepare_input(picture, input, &inside);
    if (code == 0 && inferd_infer(client, &request, &result, &err) != 0)
        code = report_failure(&err);
    if (code == 0) {
        struct face faces[BLAZEFACE_FACES_MAX];
        int count = find_faces(result, faces);
        code = count < 0 ? -1 : 0;
        show_faces(picture, &inside, faces, count < 0 ? 0 : count);
        show_timing(result);
        inferd_result_free(result);
    }
    if (code == 0)
        code = time_devices(client, &request);
    inferd_model_info_free(info);
    return code;
}

static int run_detection(const struct options *options)
{
    struct inf_error picture_err;
    struct inf_picture *picture;
    if (inf_picture_load(&picture, options->picture, &picture_err) != INF_OK) {
        fprintf(stderr, "facedetect: %s\n", picture_err.text);
        return 1;
    }
    struct inferd_error err;
    inferd_client *client;
    if (inferd_connect(&client, options->socket, &err) != 0) {
        inf_picture_destroy(&picture);
        report_failure(&err);
        return 1;
    }
    int code = detect_faces(client, options, picture);
    inferd_close(client);
    if (code == 0 && inf_picture_save_png(picture, options->out, &picture_err) != INF_OK) {
        fprintf(stderr, "facedetect: %s\n", picture_err.text);
        code = -1;
    }
    if (code == 0)
        printf("picture with boxes: %s\n", options->out);
    inf_picture_destroy(&picture);
    return code == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"socket", required_argument, NULL, 's'},
                                          {"model", required_argument, NULL, 'm'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct options options = {.model = "blazeface"};
    for (int c; (c = getopt_long(argc, argv, "s:m:h", longs, NULL)) != -1;) {
        if (c == 's')
            options.socket = optarg;
        else if (c == 'm')
            options.model = optarg;
        else
            return print_usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
    }
    if (argc - optind != 2)
        return print_usage(stderr, 2);
    options.picture = argv[optind];
    options.out = argv[optind + 1];
    return run_detection(&options);
}
