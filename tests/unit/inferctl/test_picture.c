// SPDX-License-Identifier: Apache-2.0
// Tests of pictures: files, resizing, drawing.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/picture/picture.h"

static const uint8_t red[3] = {255, 0, 0};

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    cr_assert_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

Test(picture, png_survives_the_round_trip)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/inf-picture-%d.png", getpid());
    struct inf_picture *picture;
    cr_assert_eq(inf_picture_create(&picture, 5, 3, red, NULL), INF_OK);
    for (int i = 0; i < 5 * 3 * 3; i++)
        picture->pixels[i] = (uint8_t)(i * 5);
    cr_assert_eq(inf_picture_save_png(picture, path, NULL), INF_OK);
    struct inf_picture *again;
    cr_assert_eq(inf_picture_load(&again, path, NULL), INF_OK);
    unlink(path);
    cr_assert_eq(again->width, 5u);
    cr_assert_eq(again->height, 3u);
    cr_assert_arr_eq(again->pixels, picture->pixels, 5 * 3 * 3);
    inf_picture_destroy(&picture);
    inf_picture_destroy(&again);
}

Test(picture, resize_has_half_pixel_centres)
{
    struct inf_picture *picture;
    cr_assert_eq(inf_picture_create(&picture, 2, 1, (const uint8_t[3]){0}, NULL), INF_OK);
    memset(picture->pixels + 3, 100, 3);
    struct inf_picture *wide;
    cr_assert_eq(inf_picture_resize(&wide, picture, 4, 2, NULL), INF_OK);
    // The centres of the 4 output pixels lie at -0.25, 0.25, 0.75 and 1.25 of the 2 input pixels,
    // so the values are 0, 25, 75 and 100.
    static const uint8_t wanted[] = {0, 25, 75, 100, 0, 25, 75, 100};
    for (int i = 0; i < 8; i++)
        cr_assert_eq(wide->pixels[i * 3], wanted[i], "pixel %d is %u", i, wide->pixels[i * 3]);
    inf_picture_destroy(&picture);
    inf_picture_destroy(&wide);
}

Test(picture, letterbox_keeps_the_aspect_ratio)
{
    struct inf_picture *picture;
    cr_assert_eq(inf_picture_create(&picture, 40, 10, red, NULL), INF_OK);
    struct inf_picture *boxed;
    struct inf_picture_box inside;
    cr_assert_eq(inf_picture_letterbox(&boxed, picture, 16, 16, &inside, NULL), INF_OK);
    cr_assert(inside.x0 == 0 && inside.x1 == 16 && inside.y0 == 6 && inside.y1 == 10);
    cr_assert_eq(boxed->pixels[(5 * 16 + 8) * 3], 0);
    cr_assert_eq(boxed->pixels[(6 * 16 + 8) * 3], 255);
    cr_assert_eq(boxed->pixels[(9 * 16 + 8) * 3], 255);
    cr_assert_eq(boxed->pixels[(10 * 16 + 8) * 3], 0);
    inf_picture_destroy(&picture);
    inf_picture_destroy(&boxed);
}

Test(picture, boxes_are_clipped)
{
    struct inf_picture *picture;
    cr_assert_eq(inf_picture_create(&picture, 8, 8, (const uint8_t[3]){0}, NULL), INF_OK);
    inf_picture_draw_box(picture, &(struct inf_picture_box){-100, -100, 1e9, 1e9}, 1, red);
    cr_assert_eq(picture->pixels[0], 255);
    cr_assert_eq(picture->pixels[(7 * 8 + 7) * 3], 255);
    cr_assert_eq(picture->pixels[(4 * 8 + 4) * 3], 0);
    inf_picture_destroy(&picture);
}

Test(picture, refuses_what_is_no_picture)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/inf-broken-%d", getpid());
    static const struct {
        const char *bytes;
        size_t size;
        enum inf_code code;
    } cases[] = {
        {"", 0, INF_UNSUPPORTED},
        {"GIF89a", 6, INF_UNSUPPORTED},
        {"\xff\xd8\xff", 3, INF_INVALID},
        {"\x89PNG\r\n\x1a\n", 8, INF_INVALID},
        // A PNG header for a picture of 2^31-1 x 2^31-1 pixels.
        {"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0\0\0\0\0", 33,
         INF_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(path, cases[i].bytes, cases[i].size);
        struct inf_picture *picture = NULL;
        struct inf_error err;
        cr_assert_eq(inf_picture_load(&picture, path, &err), cases[i].code, "case %zu: %s", i,
                     err.text);
        cr_assert_null(picture);
    }
    unlink(path);
    struct inf_picture *picture = NULL;
    cr_assert_eq(inf_picture_load(&picture, path, NULL), INF_NOT_FOUND);
}
