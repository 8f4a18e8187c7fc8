// SPDX-License-Identifier: Apache-2.0
// Pictures for the command line and the examples: JPEG and PNG in, PNG out, resizing, boxes. The
// daemon knows no pictures.
#ifndef INF_CLIENT_PICTURE_PICTURE_H
#define INF_CLIENT_PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// A side's length that is still taken: larger ones are a mistake or an attack on memory.
#define INF_PICTURE_SIDE_MAX 16384
// Bytes of a picture's file that are still taken.
#define INF_PICTURE_FILE_BYTES (256u << 20)

// RGB, 8 bits a channel, rows from the top, no padding: [height, width, 3].
struct inf_picture {
    uint32_t width, height;
    uint8_t *pixels; // width * height * 3
};

// Reads a JPEG or PNG file, told apart by content; alpha is dropped, grey becomes RGB. *out_picture is
// the caller's to destroy.
//
// INF_NOT_FOUND    there is no such file.
// INF_UNSUPPORTED  it is neither JPEG nor PNG.
// INF_INVALID      it is broken.
// INF_EXHAUSTED    it is too large.
enum inf_code inf_picture_load(struct inf_picture **out_picture, const char *path,
                               struct inf_error *err) INF_NODISCARD;

// A picture of one colour.
enum inf_code inf_picture_create(struct inf_picture **out_picture, uint32_t width, uint32_t height,
                                 const uint8_t rgb[3], struct inf_error *err) INF_NODISCARD;

// Frees the picture. NULL is fine.
void inf_picture_destroy(struct inf_picture **picture);

// Writes a PNG file.
enum inf_code inf_picture_save_png(const struct inf_picture *picture, const char *path,
                                   struct inf_error *err) INF_NODISCARD;

// A rectangle in pixels, which may be fractional.
struct inf_picture_box {
    double x0, y0, x1, y1; // left, top, right, bottom
};

// The whole picture stretched to `width` x `height`: bilinear with half-pixel centres, no
// antialiasing, rounded to 8 bits.
enum inf_code inf_picture_resize(struct inf_picture **out_picture,
                                 const struct inf_picture *picture, uint32_t width, uint32_t height,
                                 struct inf_error *err) INF_NODISCARD;

// The picture scaled to fit `width` x `height` with its aspect ratio kept, centred on black.
// *out_inside tells where it lies.
enum inf_code inf_picture_letterbox(struct inf_picture **out_picture,
                                    const struct inf_picture *picture, uint32_t width,
                                    uint32_t height, struct inf_picture_box *out_inside,
                                    struct inf_error *err) INF_NODISCARD;

// Draws the outline of a box, `thickness` pixels wide, clipped to the picture.
void inf_picture_draw_box(struct inf_picture *picture, const struct inf_picture_box *box,
                          uint32_t thickness, const uint8_t rgb[3]);

#endif
