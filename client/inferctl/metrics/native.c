// SPDX-License-Identifier: Apache-2.0
// Encodes metrics as messages of io.prometheus.client (metrics.proto of github.com/prometheus/
// client_model). The messages are nested four deep, so each is written to a memory stream of its
// own and then copied behind its length. The numbers of the fields are those of metrics.proto.
#include "client/inferctl/metrics/native.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/json_value.h"

// Wire types of protobuf.
enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2
};

// Values of the enum MetricType.
enum metric_type {
    TYPE_COUNTER = 0,
    TYPE_GAUGE = 1,
    TYPE_HISTOGRAM = 4
};

// The daemon numbers its buckets as schema 2 does. Its first bucket also counts all smaller values,
// so it becomes the zero bucket, whose threshold is the upper bound of the first bucket.
#define SCHEMA         2
#define ZERO_INDEX     (-88)
#define ZERO_THRESHOLD 0x1p-22

// --- the encoding of protobuf ---

static void put_varint(FILE *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        putc((int)(value & 0x7f) | 0x80, out);
    putc((int)value, out);
}

static void put_key(FILE *out, unsigned field, enum wire_type type)
{
    put_varint(out, field << 3 | (unsigned)type);
}

static void put_whole(FILE *out, unsigned field, uint64_t value)
{
    put_key(out, field, WIRE_VARINT);
    put_varint(out, value);
}

// The type sint64: small numbers of either sign are short.
static void put_signed(FILE *out, unsigned field, int64_t value)
{
    put_whole(out, field, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void put_double(FILE *out, unsigned field, double value)
{
    put_key(out, field, WIRE_FIXED64);
    fwrite(&value, sizeof value, 1, out); // both are little-endian
}

static void put_bytes(FILE *out, unsigned field, const char *bytes, size_t size)
{
    put_key(out, field, WIRE_BYTES);
    put_varint(out, size);
    fwrite(bytes, 1, size, out);
}

static void put_text(FILE *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

// A message that is being written.
struct message {
    FILE *out;
    char *bytes;
    size_t size;
};

static void begin_message(struct message *message)
{
    message->out = json_value_must(open_memstream(&message->bytes, &message->size));
}

// Ends a message, and appends it to another one as a field; field 0: only its length precedes it.
static void end_message(struct message *message, FILE *out, unsigned field)
{
    fclose(message->out);
    json_value_must(message->bytes);
    if (field != 0)
        put_key(out, field, WIRE_BYTES);
    put_varint(out, message->size);
    fwrite(message->bytes, 1, message->size, out);
    free(message->bytes);
}

// --- the messages ---

static void put_labels(FILE *out, const json_t *labels)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)labels, name, value)
    {
        struct message pair;
        begin_message(&pair);
        put_text(pair.out, 1, name);
        put_text(pair.out, 2, json_string_value(value) != NULL ? json_string_value(value) : "");
        end_message(&pair, out, 1);
    }
}

// A list of buckets, pairs of an index and a number of values, of which the first `zeros` belong to
// the zero bucket.
struct buckets {
    const json_t *pairs;
    size_t zeros, count;
};

static int64_t index_of(const struct buckets *buckets, size_t i)
{
    return json_integer_value(json_array_get(json_array_get(buckets->pairs, i), 0));
}

static int64_t number_of(const struct buckets *buckets, size_t i)
{
    return json_integer_value(json_array_get(json_array_get(buckets->pairs, i), 1));
}

// Writes the spans: buckets that follow each other without a gap. A span has its distance from the
// end of the span before, and its number of buckets.
static void put_spans(FILE *out, const struct buckets *buckets)
{
    int64_t end = 0;
    for (size_t i = buckets->zeros; i < buckets->count;) {
        struct message span;
        int64_t first = index_of(buckets, i);
        int64_t length = 0;
        while (i < buckets->count && index_of(buckets, i) == first + length) {
            length++;
            i++;
        }
        begin_message(&span);
        put_signed(span.out, 1, first - end);
        put_whole(span.out, 2, (uint64_t)length);
        end_message(&span, out, 12);
        end = first + length;
    }
}

// Writes the message Histogram. The numbers of values are differences from the bucket before.
static void put_histogram(FILE *out, const json_t *sample)
{
    struct buckets buckets = {.pairs = json_object_get(sample, "buckets")};
    struct message histogram;
    int64_t zeros = 0, before = 0;
    buckets.count = json_array_size(buckets.pairs);
    for (; buckets.zeros < buckets.count && index_of(&buckets, buckets.zeros) <= ZERO_INDEX;
         buckets.zeros++)
        zeros += number_of(&buckets, buckets.zeros);
    begin_message(&histogram);
    put_whole(histogram.out, 1, (uint64_t)json_integer_value(json_object_get(sample, "count")));
    put_double(histogram.out, 2, json_number_value(json_object_get(sample, "sum")));
    put_signed(histogram.out, 5, SCHEMA);
    put_double(histogram.out, 6, ZERO_THRESHOLD);
    put_whole(histogram.out, 7, (uint64_t)zeros);
    put_spans(histogram.out, &buckets);
    for (size_t i = buckets.zeros; i < buckets.count; i++) {
        put_signed(histogram.out, 13, number_of(&buckets, i) - before);
        before = number_of(&buckets, i);
    }
    end_message(&histogram, out, 7);
}

// Writes the message Counter or Gauge, which both have the value as their field 1.
static void put_value(FILE *out, unsigned field, const json_t *sample)
{
    struct message value;
    begin_message(&value);
    put_double(value.out, 1, json_number_value(json_object_get(sample, "value")));
    end_message(&value, out, field);
}

static enum metric_type find_type(const json_t *metric)
{
    const char *type = json_string_value(json_object_get(metric, "type"));
    if (type != NULL && strcmp(type, "histogram") == 0)
        return TYPE_HISTOGRAM;
    return type != NULL && strcmp(type, "counter") == 0 ? TYPE_COUNTER : TYPE_GAUGE;
}

static void put_family(FILE *out, const json_t *metric)
{
    const enum metric_type type = find_type(metric);
    struct message family;
    size_t i;
    const json_t *sample;
    begin_message(&family);
    put_text(family.out, 1, json_string_value(json_object_get(metric, "name")));
    put_text(family.out, 2, json_string_value(json_object_get(metric, "help")));
    put_whole(family.out, 3, type);
    json_array_foreach(json_object_get(metric, "samples"), i, sample)
    {
        struct message one;
        begin_message(&one);
        put_labels(one.out, json_object_get(sample, "labels"));
        if (type == TYPE_HISTOGRAM)
            put_histogram(one.out, sample);
        else
            put_value(one.out, type == TYPE_COUNTER ? 3 : 2, sample);
        end_message(&one, family.out, 4);
    }
    end_message(&family, out, 0);
}

char *native_encode(const json_t *metrics, size_t *size)
{
    char *bytes = NULL;
    size_t i;
    const json_t *metric;
    FILE *out = json_value_must(open_memstream(&bytes, size));
    json_array_foreach(metrics, i, metric)
    {
        // A family without samples is left out.
        if (json_array_size(json_object_get(metric, "samples")) > 0 &&
            json_string_value(json_object_get(metric, "name")) != NULL &&
            json_string_value(json_object_get(metric, "help")) != NULL)
            put_family(out, metric);
    }
    fclose(out);
    return json_value_must(bytes);
}
