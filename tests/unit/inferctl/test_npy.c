// SPDX-License-Identifier: Apache-2.0
// Tests of reading and writing .npy files.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/npy/npy.h"

// Parses a version-1 file whose header is this dictionary, and returns the code.
static enum inf_code parse_header(const char *dictionary, struct inf_npy *npy, size_t *offset,
                                  struct inf_error *err)
{
    uint8_t file[INF_NPY_HEADER_MAX] = "\x93NUMPY\x01";
    size_t length = strlen(dictionary);
    file[8] = (uint8_t)(length & 0xff);
    file[9] = (uint8_t)(length >> 8);
    memcpy(file + 10, dictionary, length);
    return inf_npy_parse_header(npy, offset, (struct inf_span){file, 10 + length}, err);
}

// The header that numpy 1.24 writes for numpy.zeros((2, 3), '<f4'): 128 bytes before the data.
static const char numpy_header[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n";

Test(npy, reads_what_numpy_writes)
{
    struct inf_npy npy;
    size_t offset;
    struct inf_error err = {0};
    size_t size = sizeof(numpy_header) - 1;
    cr_assert_eq(size, 128u);
    cr_assert_eq(inf_npy_parse_header(&npy, &offset,
                                      (struct inf_span){(const uint8_t *)numpy_header, size}, &err),
                 INF_OK, "%s", err.text);
    cr_assert_eq(npy.dtype, INF_DTYPE_F32);
    cr_assert(inf_shape_equal(&npy.shape, &INF_SHAPE(2, 3)));
    cr_assert_eq(npy.size_bytes, 24u);
    cr_assert_eq(offset, 128u);
}

Test(npy, reads_version_2_and_other_spellings)
{
    struct inf_npy npy;
    size_t offset;
    static const char two[] =
        "\x93NUMPY\x02\x00\x39\x00\x00\x00"
        "{\"shape\":(7,),\"fortran_order\":False,\"descr\":\"|b1\"}      \n";
    cr_assert_eq(sizeof(two) - 1, 12u + 0x39);
    cr_assert_eq(inf_npy_parse_header(
                     &npy, &offset, (struct inf_span){(const uint8_t *)two, sizeof(two) - 1}, NULL),
                 INF_OK);
    cr_assert_eq(npy.dtype, INF_DTYPE_BOOL);
    cr_assert(inf_shape_equal(&npy.shape, &INF_SHAPE(7)));
    cr_assert_eq(
        parse_header("{'descr':'<i8','fortran_order':False,'shape':()}", &npy, &offset, NULL),
        INF_OK);
    cr_assert_eq(npy.shape.rank, 0);
    cr_assert_eq(npy.size_bytes, 8u);
    cr_assert_eq(
        parse_header("{'descr':'<f2','fortran_order':False,'shape':(0,5)}", &npy, &offset, NULL),
        INF_OK);
    cr_assert_eq(npy.size_bytes, 0u);
}

Test(npy, every_element_type_has_its_numpy_name)
{
    static const struct {
        const char *name;
        enum inf_dtype dtype;
        size_t size;
    } types[] = {
        {"|b1", INF_DTYPE_BOOL, 1}, {"|u1", INF_DTYPE_U8, 1},  {"<u2", INF_DTYPE_U16, 2},
        {"<u4", INF_DTYPE_U32, 4},  {"<u8", INF_DTYPE_U64, 8}, {"|i1", INF_DTYPE_I8, 1},
        {"<i2", INF_DTYPE_I16, 2},  {"<i4", INF_DTYPE_I32, 4}, {"<i8", INF_DTYPE_I64, 8},
        {"<f2", INF_DTYPE_F16, 2},  {"<f4", INF_DTYPE_F32, 4}, {"<f8", INF_DTYPE_F64, 8},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(types); i++) {
        struct inf_npy npy;
        size_t offset;
        size_t size;
        char text[128];
        char header[INF_NPY_HEADER_MAX];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }",
                 types[i].name);
        cr_assert_eq(parse_header(text, &npy, &offset, NULL), INF_OK, "%s", types[i].name);
        cr_assert_eq(npy.dtype, types[i].dtype);
        cr_assert_eq(npy.size_bytes, 3 * types[i].size);
        cr_assert_eq(inf_npy_format_header(header, &size, types[i].dtype, &INF_SHAPE(3), NULL),
                     INF_OK);
        cr_assert_eq(memcmp(header + 10, text, strlen(text)), 0, "%s", types[i].name);
        cr_assert_eq(size % 64, 0u);
        cr_assert_eq(header[size - 1], '\n');
        cr_assert_eq((unsigned char)header[8] + 10u, size);
    }
    char header[INF_NPY_HEADER_MAX];
    size_t size;
    cr_assert_eq(inf_npy_format_header(header, &size, INF_DTYPE_BF16, &INF_SHAPE(3), NULL),
                 INF_UNSUPPORTED);
}

Test(npy, refuses_invalid_headers)
{
    static const struct {
        const char *dictionary;
        enum inf_code code;
    } bad[] = {
        {"", INF_INVALID},
        {"{}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2147483648,)}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
         INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 2147483647)}",
         INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,2", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", INF_INVALID},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", INF_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", INF_INVALID},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", INF_INVALID},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", INF_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", INF_UNSUPPORTED},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", INF_UNSUPPORTED},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", INF_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", INF_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", INF_UNSUPPORTED},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(bad); i++) {
        struct inf_npy npy;
        size_t offset;
        struct inf_error err = {0};
        cr_assert_eq(parse_header(bad[i].dictionary, &npy, &offset, &err), bad[i].code, "%s: %s",
                     bad[i].dictionary, err.text);
    }
}

Test(npy, refuses_every_truncation_of_a_good_header)
{
    for (size_t size = 0; size < sizeof(numpy_header) - 1; size++) {
        struct inf_npy npy;
        size_t offset;
        // Parse a copy of exactly this size, so that the sanitizer detects reads beyond its end.
        uint8_t *copy = malloc(size + (size == 0));
        memcpy(copy, numpy_header, size);
        cr_assert_eq(inf_npy_parse_header(&npy, &offset, (struct inf_span){copy, size}, NULL),
                     INF_INVALID, "%zu", size);
        free(copy);
    }
    uint8_t version[16] = "\x93NUMPY\x03";
    struct inf_npy npy;
    size_t offset;
    cr_assert_eq(
        inf_npy_parse_header(&npy, &offset, (struct inf_span){version, sizeof version}, NULL),
        INF_UNSUPPORTED);
}

static char *make_temporary(void)
{
    char *path = strdup("/tmp/inf_test_npy_XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    return path;
}

Test(npy, a_saved_tensor_loads_again)
{
    char *path = make_temporary();
    const float data[6] = {1, -2, 3.5f, 0, 1e30f, -1e-30f};
    cr_assert_eq(inf_npy_save(path, INF_DTYPE_F32, &INF_SHAPE(1, 2, 3), data, NULL), INF_OK);
    struct inf_npy npy;
    struct inf_error err = {0};
    cr_assert_eq(inf_npy_load(&npy, path, &err), INF_OK, "%s", err.text);
    cr_assert_eq(npy.dtype, INF_DTYPE_F32);
    cr_assert(inf_shape_equal(&npy.shape, &INF_SHAPE(1, 2, 3)));
    cr_assert_eq(memcmp(npy.data, data, sizeof data), 0);
    cr_assert_eq((uintptr_t)npy.data % 64, 0u);
    for (size_t i = 0; i < INF_NPY_SLACK_BYTES; i++)
        cr_assert_eq(((char *)npy.data)[sizeof data + i], 0);
    inf_npy_unload(&npy);
    cr_assert_null(npy.data);
    inf_npy_unload(&npy);
    unlink(path);
    free(path);
}

Test(npy, a_file_must_hold_exactly_its_data)
{
    char *path = make_temporary();
    struct inf_error err = {0};
    struct inf_npy npy;
    for (size_t size = 23; size <= 25; size++) {
        FILE *file = fopen(path, "wb");
        char data[25] = {0};
        fwrite(numpy_header, 1, sizeof(numpy_header) - 1, file);
        fwrite(data, 1, size, file);
        fclose(file);
        cr_assert_eq(inf_npy_load(&npy, path, &err), size == 24 ? INF_OK : INF_INVALID, "%zu",
                     size);
        inf_npy_unload(&npy);
    }
    const uint8_t no_bool[3] = {0, 2, 1};
    cr_assert_eq(inf_npy_save(path, INF_DTYPE_BOOL, &INF_SHAPE(3), no_bool, NULL), INF_OK);
    cr_assert_eq(inf_npy_load(&npy, path, &err), INF_INVALID);
    cr_assert(strstr(err.text, "element 1 is 2") != NULL, "%s", err.text);
    unlink(path);
    cr_assert_eq(inf_npy_load(&npy, path, &err), INF_NOT_FOUND);
    cr_assert_eq(inf_npy_load(&npy, "/tmp", &err), INF_INVALID);
    cr_assert_eq(inf_npy_save("/nonexistent/x.npy", INF_DTYPE_BOOL, &INF_SHAPE(3), no_bool, &err),
                 INF_DENIED);
    free(path);
}
