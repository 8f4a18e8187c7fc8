// SPDX-License-Identifier: Apache-2.0
// Pictures for inferctl and the examples: reads JPEG and PNG, writes PNG, resizes, draws boxes. The
// daemon does not use pictures.
#ifndef INF_CLIENT_PICTURE_PICTURE_H
#define INF_CLIENT_PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// The maximum width and height. Larger pictures are refused, because they are a mistake or an
// attack on memory.
#define INF_PICTURE_SIDE_MAX 16384
// The maximum size of a picture file in bytes.
#define INF_PICTURE_FILE_BYTES (256u << 20)

// A picture in RGB with 8 bits per channel. Rows start at the top and have no padding: [height,
// width, 3].
struct inf_picture {
    uint32_t width, height;
    uint8_t *pixels; // width * height * 3 bytes
};

// Reads a JPEG or PNG file; the content decides which. Alpha is dropped, and grey becomes RGB. The
// caller destroys *out_picture.
//
// INF_NOT_FOUND    there is no such file.
// INF_UNSUPPORTED  the file is neither JPEG nor PNG.
// INF_INVALID      the file is damaged.
// INF_EXHAUSTED    the file or the picture is too large.
enum inf_code inf_picture_load(struct inf_picture **out_picture, const char *path,
                               struct inf_error *err) INF_NODISCARD;

// Creates a picture of one colour.
enum inf_code inf_picture_create(struct inf_picture **out_picture, uint32_t width, uint32_t height,
                                 const uint8_t rgb[3], struct inf_error *err) INF_NODISCARD;

// Frees the picture and sets the pointer to NULL. A NULL picture is allowed.
void inf_picture_destroy(struct inf_picture **picture);

// Writes a PNG file.
enum inf_code inf_picture_save_png(const struct inf_picture *picture, const char *path,
                                   struct inf_error *err) INF_NODISCARD;

// A rectangle in pixels, which may be fractional.
struct inf_picture_box {
    double x0, y0, x1, y1; // left, top, right, bottom
};

// Creates a copy that is stretched to `width` x `height`. The interpolation is bilinear with
// half-pixel centres and without antialiasing; values are rounded to 8 bits.
enum inf_code inf_picture_resize(struct inf_picture **out_picture,
                                 const struct inf_picture *picture, uint32_t width, uint32_t height,
                                 struct inf_error *err) INF_NODISCARD;

// Creates a picture of `width` x `height` that contains `picture` scaled with its aspect ratio
// kept, centred on black. Sets *out_inside to the rectangle of the scaled picture.
enum inf_code inf_picture_letterbox(struct inf_picture **out_picture,
                                    const struct inf_picture *picture, uint32_t width,
                                    uint32_t height, struct inf_picture_box *out_inside,
                                    struct inf_error *err) INF_NODISCARD;

// Draws the outline of a box, `thickness` pixels wide, clipped to the picture.
void inf_picture_draw_box(struct inf_picture *picture, const struct inf_picture_box *box,
                          uint32_t thickness, const uint8_t rgb[3]);

#endif
