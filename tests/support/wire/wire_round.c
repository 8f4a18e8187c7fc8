// SPDX-License-Identifier: Apache-2.0
// Encodes a message, decodes the bytes, and compares both.
#include "tests/support/wire/wire_round.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/wire/wire_samples.h"

struct wire_round wire_round;

void wire_round_open(void)
{
    cr_assert_eq(inf_scratch_create(&wire_round.scratch, NULL), INF_OK);
}

void wire_round_close(void)
{
    inf_scratch_destroy(&wire_round.scratch);
    cr_assert_null(wire_round.scratch);
    inf_scratch_destroy(&wire_round.scratch);
}

void wire_round_encode(enum inf_message_kind kind)
{
    struct inf_error err;
    enum inf_code code =
        inf_message_encode(&wire_round.sent, kind, wire_round.bytes.data, INF_LIMIT_META_BYTES,
                           &wire_round.bytes.size, wire_round.scratch, &err);
    cr_assert_eq(code, INF_OK, "kind %d: %s", kind, err.text);
}

void wire_round_decode(enum inf_message_kind kind)
{
    memset(&wire_round.got, 0xee, sizeof wire_round.got);
    struct inf_error err;
    enum inf_code code = inf_message_decode(&wire_round.got, kind, wire_span(&wire_round.bytes),
                                            wire_round.scratch, &err);
    cr_assert_eq(code, INF_OK, "kind %d: %s", kind, err.text);
}

void wire_round_go(enum inf_message_kind kind)
{
    wire_sample(&wire_round.sent, kind);
    wire_round_encode(kind);
    wire_round_decode(kind);
}

void wire_same_fields(const void *got, const void *sent, const struct wire_field *fields,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const void *a = (const char *)got + fields[i].offset;
        const void *b = (const char *)sent + fields[i].offset;
        if (fields[i].size == 0)
            cr_assert_str_eq(*(const char *const *)a, *(const char *const *)b, "%s",
                             fields[i].name);
        else
            cr_assert_eq(memcmp(a, b, fields[i].size), 0, "%s", fields[i].name);
    }
}

void wire_same_entry(const struct inf_tensor_entry *a, const struct inf_tensor_entry *b)
{
    cr_assert_str_eq(a->name, b->name);
    cr_assert_eq(a->dtype, b->dtype);
    cr_assert(inf_shape_equal(&a->shape, &b->shape));
    cr_assert_eq(a->location.present, b->location.present);
    cr_assert_eq(a->location.region_id, b->location.region_id);
    cr_assert_eq(a->location.offset, b->location.offset);
    cr_assert_eq(a->location.length, b->location.length);
    cr_assert_eq(a->session_tensor == NULL, b->session_tensor == NULL);
    if (a->session_tensor != NULL)
        cr_assert_str_eq(a->session_tensor, b->session_tensor);
}

void wire_same_limits(const struct inf_limits_message *a, const struct inf_limits_message *b)
{
    cr_assert_eq(a->meta_bytes, b->meta_bytes);
    cr_assert_eq(a->data_bytes, b->data_bytes);
    cr_assert_eq(a->streams, b->streams);
    cr_assert_eq(a->regions, b->regions);
    cr_assert_eq(a->region_bytes, b->region_bytes);
    cr_assert_eq(a->frame_fds, b->frame_fds);
    cr_assert_eq(a->stream_bytes, b->stream_bytes);
}
