// SPDX-License-Identifier: Apache-2.0
// Pictures in memory: allocation, bilinear resizing, and drawing boxes.
#include "client/picture/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

static enum inf_code allocate_pixels(struct inf_picture *picture, struct inf_error *err)
{
    if (picture->width == 0 || picture->height == 0 || picture->width > INF_PICTURE_SIDE_MAX ||
        picture->height > INF_PICTURE_SIDE_MAX)
        return inf_fail(err, INF_EXHAUSTED, "picture of %u x %u, wanted sides of 1 to %d",
                        picture->width, picture->height, INF_PICTURE_SIDE_MAX);
    picture->pixels = malloc((size_t)picture->width * picture->height * 3);
    if (picture->pixels == NULL)
        return inf_fail(err, INF_EXHAUSTED, "picture of %u x %u: no memory", picture->width,
                        picture->height);
    return INF_OK;
}

enum inf_code inf_picture_create(struct inf_picture **out_picture, uint32_t width, uint32_t height,
                                 const uint8_t rgb[3], struct inf_error *err)
{
    struct inf_picture *picture = calloc(1, sizeof *picture);
    if (picture == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a picture");
    picture->width = width;
    picture->height = height;
    enum inf_code code = allocate_pixels(picture, err);
    if (code != INF_OK) {
        inf_picture_destroy(&picture);
        return code;
    }
    for (size_t i = 0; i < (size_t)width * height; i++)
        memcpy(picture->pixels + i * 3, rgb, 3);
    *out_picture = picture;
    return INF_OK;
}

void inf_picture_destroy(struct inf_picture **picture)
{
    if (*picture == NULL)
        return;
    free((*picture)->pixels);
    free(*picture);
    *picture = NULL;
}

// One sample along an axis: `weight` is its position between the pixels `low` and `high`, from 0 to
// 1.
struct sample {
    uint32_t low, high;
    double weight;
};

static struct sample sample_at(uint32_t index, uint32_t from, uint32_t to)
{
    double position = ((double)index + 0.5) * from / to - 0.5;
    position = fmin(fmax(position, 0), (double)from - 1);
    uint32_t low = (uint32_t)position;
    return (struct sample){
        .low = low, .high = INF_MIN(low + 1, from - 1), .weight = position - low};
}

// Resizes `from` to width x height, and writes the result into `to` with the top left corner at
// (left, top).
static void resize_box(const struct inf_picture *from, struct inf_picture *to, uint32_t left,
                       uint32_t top, uint32_t width, uint32_t height)
{
    for (uint32_t y = 0; y < height; y++) {
        struct sample sy = sample_at(y, from->height, height);
        const uint8_t *row0 = from->pixels + (size_t)sy.low * from->width * 3;
        const uint8_t *row1 = from->pixels + (size_t)sy.high * from->width * 3;
        uint8_t *out = to->pixels + ((size_t)(top + y) * to->width + left) * 3;
        for (uint32_t x = 0; x < width; x++) {
            struct sample sx = sample_at(x, from->width, width);
            for (uint32_t c = 0; c < 3; c++) {
                size_t a = (size_t)sx.low * 3 + c;
                size_t b = (size_t)sx.high * 3 + c;
                double upper = row0[a] * (1 - sx.weight) + row0[b] * sx.weight;
                double lower = row1[a] * (1 - sx.weight) + row1[b] * sx.weight;
                *out++ = (uint8_t)floor(upper * (1 - sy.weight) + lower * sy.weight + 0.5);
            }
        }
    }
}

enum inf_code inf_picture_resize(struct inf_picture **out_picture,
                                 const struct inf_picture *picture, uint32_t width, uint32_t height,
                                 struct inf_error *err)
{
    INF_TRY(inf_picture_create(out_picture, width, height, (const uint8_t[3]){0}, err));
    resize_box(picture, *out_picture, 0, 0, width, height);
    return INF_OK;
}

enum inf_code inf_picture_letterbox(struct inf_picture **out_picture,
                                    const struct inf_picture *picture, uint32_t width,
                                    uint32_t height, struct inf_picture_box *out_inside,
                                    struct inf_error *err)
{
    double scale = fmin((double)width / picture->width, (double)height / picture->height);
    uint32_t inner_width = (uint32_t)fmin(fmax(floor(picture->width * scale + 0.5), 1), width);
    uint32_t inner_height = (uint32_t)fmin(fmax(floor(picture->height * scale + 0.5), 1), height);
    uint32_t left = (width - inner_width) / 2;
    uint32_t top = (height - inner_height) / 2;
    INF_TRY(inf_picture_create(out_picture, width, height, (const uint8_t[3]){0}, err));
    resize_box(picture, *out_picture, left, top, inner_width, inner_height);
    *out_inside = (struct inf_picture_box){
        .x0 = left, .y0 = top, .x1 = left + inner_width, .y1 = top + inner_height};
    return INF_OK;
}

static double clamp_value(double value, double low, double high)
{
    return fmin(fmax(value, low), high);
}

void inf_picture_draw_box(struct inf_picture *picture, const struct inf_picture_box *box,
                          uint32_t thickness, const uint8_t rgb[3])
{
    int64_t x0 = (int64_t)clamp_value(box->x0, 0, picture->width - 1);
    int64_t x1 = (int64_t)clamp_value(box->x1, 0, picture->width - 1);
    int64_t y0 = (int64_t)clamp_value(box->y0, 0, picture->height - 1);
    int64_t y1 = (int64_t)clamp_value(box->y1, 0, picture->height - 1);
    for (int64_t y = y0; y <= y1; y++) {
        for (int64_t x = x0; x <= x1; x++) {
            int64_t edge = INF_MIN(INF_MIN(x - x0, x1 - x), INF_MIN(y - y0, y1 - y));
            if (edge < (int64_t)thickness)
                memcpy(picture->pixels + ((size_t)y * picture->width + (size_t)x) * 3, rgb, 3);
        }
    }
}
