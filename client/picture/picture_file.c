// SPDX-License-Identifier: Apache-2.0
// Reads and writes picture files, with libjpeg-turbo and libspng.
#include <errno.h>
#include <spng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <turbojpeg.h>

#include "client/picture/picture.h"
#include "proto/core/span.h"

static enum inf_code read_stream(FILE *file, const char *path, uint8_t **out_data, size_t *out_size,
                                 struct inf_error *err)
{
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        return inf_fail(err, INF_INVALID, "picture '%s': no regular file", path);
    if (status.st_size > INF_PICTURE_FILE_BYTES)
        return inf_fail(err, INF_EXHAUSTED, "picture '%s': %lld bytes, at most %u allowed", path,
                        (long long)status.st_size, INF_PICTURE_FILE_BYTES);
    size_t size = (size_t)status.st_size;
    uint8_t *data = malloc(size + 1);
    if (data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "picture '%s': no memory for %zu bytes", path, size);
    if (fread(data, 1, size, file) != size) {
        free(data);
        return inf_fail(err, INF_INVALID, "picture '%s': could not be read whole", path);
    }
    *out_data = data;
    *out_size = size;
    return INF_OK;
}

static enum inf_code read_file(const char *path, uint8_t **out_data, size_t *out_size,
                               struct inf_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return inf_fail(err, errno == ENOENT ? INF_NOT_FOUND : INF_DENIED, "picture '%s': %s", path,
                        strerror(errno));
    enum inf_code code = read_stream(file, path, out_data, out_size, err);
    fclose(file);
    return code;
}

static enum inf_code decode_jpeg(tjhandle decoder, struct inf_picture **out_picture,
                                 const uint8_t *data, size_t size, struct inf_error *err)
{
    // The variables need initial values, because for a file that has only tables the library
    // reports success and does not set them.
    int width = 0, height = 0, subsampling, colorspace;
    if (tjDecompressHeader3(decoder, data, size, &width, &height, &subsampling, &colorspace) != 0)
        return inf_fail(err, INF_INVALID, "broken jpeg: %s", tjGetErrorStr2(decoder));
    if (width <= 0 || height <= 0)
        return inf_fail(err, INF_INVALID, "broken jpeg: no picture in it");
    INF_TRY(inf_picture_create(out_picture, (uint32_t)width, (uint32_t)height,
                               (const uint8_t[3]){0}, err));
    int result = tjDecompress2(decoder, data, size, (*out_picture)->pixels, width, 0, height,
                               TJPF_RGB, TJFLAG_ACCURATEDCT);
    // Warnings are ignored, because files of cameras often cause them. A truncated file is refused.
    if (result != 0 && (tjGetErrorCode(decoder) != TJERR_WARNING ||
                        strcasestr(tjGetErrorStr2(decoder), "premature end") != NULL)) {
        inf_picture_destroy(out_picture);
        return inf_fail(err, INF_INVALID, "broken jpeg: %s", tjGetErrorStr2(decoder));
    }
    return INF_OK;
}

static enum inf_code load_jpeg(struct inf_picture **out_picture, const uint8_t *data, size_t size,
                               struct inf_error *err)
{
    tjhandle decoder = tjInitDecompress();
    if (decoder == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no jpeg decoder");
    enum inf_code code = decode_jpeg(decoder, out_picture, data, size, err);
    tjDestroy(decoder);
    return code;
}

static enum inf_code decode_png(spng_ctx *decoder, struct inf_picture **out_picture,
                                const uint8_t *data, size_t size, struct inf_error *err)
{
    struct spng_ihdr header;
    size_t decoded_size;
    int result = spng_set_image_limits(decoder, INF_PICTURE_SIDE_MAX, INF_PICTURE_SIDE_MAX);
    if (result == 0)
        result = spng_set_png_buffer(decoder, data, size);
    if (result == 0)
        result = spng_get_ihdr(decoder, &header);
    if (result == 0)
        result = spng_decoded_image_size(decoder, SPNG_FMT_RGB8, &decoded_size);
    if (result != 0)
        return inf_fail(err, INF_INVALID, "broken png: %s", spng_strerror(result));
    INF_TRY(
        inf_picture_create(out_picture, header.width, header.height, (const uint8_t[3]){0}, err));
    result = spng_decode_image(decoder, (*out_picture)->pixels, decoded_size, SPNG_FMT_RGB8, 0);
    if (result != 0) {
        inf_picture_destroy(out_picture);
        return inf_fail(err, INF_INVALID, "broken png: %s", spng_strerror(result));
    }
    return INF_OK;
}

static enum inf_code load_png(struct inf_picture **out_picture, const uint8_t *data, size_t size,
                              struct inf_error *err)
{
    spng_ctx *decoder = spng_ctx_new(0);
    if (decoder == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a png decoder");
    enum inf_code code = decode_png(decoder, out_picture, data, size, err);
    spng_ctx_free(decoder);
    return code;
}

enum inf_code inf_picture_load(struct inf_picture **out_picture, const char *path,
                               struct inf_error *err)
{
    uint8_t *data;
    size_t size;
    INF_TRY(read_file(path, &data, &size, err));
    enum inf_code code;
    if (size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
        code = load_jpeg(out_picture, data, size, err);
    else if (size >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
        code = load_png(out_picture, data, size, err);
    else
        code = inf_fail(err, INF_UNSUPPORTED, "neither a jpeg nor a png file");
    free(data);
    return code == INF_OK ? INF_OK : inf_error_prefix(err, code, "picture '%s'", path);
}

static int encode_png(spng_ctx *encoder, const struct inf_picture *picture, FILE *file)
{
    struct spng_ihdr header = {.width = picture->width,
                               .height = picture->height,
                               .bit_depth = 8,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    int result = spng_set_png_file(encoder, file);
    if (result == 0)
        result = spng_set_ihdr(encoder, &header);
    if (result == 0)
        result = spng_encode_image(encoder, picture->pixels,
                                   (size_t)picture->width * picture->height * 3, SPNG_FMT_PNG,
                                   SPNG_ENCODE_FINALIZE);
    return result;
}

enum inf_code inf_picture_save_png(const struct inf_picture *picture, const char *path,
                                   struct inf_error *err)
{
    FILE *file = fopen(path, "wbe");
    if (file == NULL)
        return inf_fail(err, INF_DENIED, "picture '%s': %s", path, strerror(errno));
    spng_ctx *encoder = spng_ctx_new(SPNG_CTX_ENCODER);
    int result = encoder != NULL ? encode_png(encoder, picture, file) : SPNG_EMEM;
    spng_ctx_free(encoder);
    if (fclose(file) != 0 && result == 0)
        return inf_fail(err, INF_EXHAUSTED, "picture '%s': %s", path, strerror(errno));
    if (result != 0)
        return inf_fail(err, INF_INTERNAL, "picture '%s': %s", path, spng_strerror(result));
    return INF_OK;
}
