// SPDX-License-Identifier: Apache-2.0
// The table of metrics. Rates compare two answers of the daemon; a sample of the older one is found
// by its name and labels. Gauges have no rate.
#include "client/inferctl/metrics/sample_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

// Writes the labels of a sample as "a=x b=y", without those that are empty.
static void print_labels(const json_t *sample, FILE *out)
{
    const char *key;
    json_t *value;
    const char *separator = "";
    json_object_foreach(json_object_get(sample, "labels"), key, value)
    {
        if (json_string_value(value) == NULL || json_string_value(value)[0] == '\0')
            continue;
        fprintf(out, "%s%s=%s", separator, key, json_string_value(value));
        separator = " ";
    }
}

// Returns what identifies a sample: the name of its metric and its labels. The caller frees it.
static char *make_key(const char *name, const json_t *sample)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = json_value_must(open_memstream(&text, &size));
    fprintf(out, "%s ", name);
    print_labels(sample, out);
    fclose(out);
    return json_value_must(text);
}

// Returns the number that a table shows for a sample: for a histogram, its number of values.
static double number_of(const json_t *sample)
{
    const json_t *count = json_object_get(sample, "count");
    return json_number_value(count != NULL ? count : json_object_get(sample, "value"));
}

// Returns an object with the number of each sample by its key, which the caller owns.
static json_t *index_samples(const json_t *metrics)
{
    size_t i, k;
    const json_t *metric, *sample;
    json_t *index = json_value_must(json_object());
    json_array_foreach(metrics, i, metric)
    {
        json_array_foreach(json_object_get(metric, "samples"), k, sample)
        {
            char *key = make_key(text_of(metric, "name"), sample);
            json_object_set_new(index, key, json_value_real(number_of(sample)));
            free(key);
        }
    }
    return index;
}

// Returns the upper bound of the bucket in which the quantile `q` lies. A bucket of the daemon is a
// pair of an index and a number of values, and its upper bound is 2^(index / 4).
static double find_quantile(const json_t *sample, double q)
{
    size_t i;
    const json_t *bucket;
    double below = 0, rank = q * number_of(sample), bound = 0;
    json_array_foreach(json_object_get(sample, "buckets"), i, bucket)
    {
        bound = exp2((double)json_integer_value(json_array_get(bucket, 0)) / 4);
        below += json_number_value(json_array_get(bucket, 1));
        if (below >= rank)
            break;
    }
    return bound;
}

static void add_number(struct table *table, double number)
{
    char text[32];
    snprintf(text, sizeof text, "%.*g", number < 1e15 && number == floor(number) ? 15 : 4, number);
    table_real(table, number, text);
}

// Adds the bounds of two quantiles, or empty cells.
static void add_quantiles(struct table *table, const json_t *sample)
{
    static const double quantiles[] = {0.5, 0.99};
    bool known = json_object_get(sample, "buckets") != NULL && number_of(sample) > 0;
    for (size_t i = 0; i < 2; i++)
        if (known)
            add_number(table, find_quantile(sample, quantiles[i]));
        else
            table_text(table, "");
}

static void add_rate(struct table *table, const json_t *index, const char *key,
                     const json_t *sample, double seconds)
{
    const json_t *old = json_object_get(index, key);
    double before = json_number_value(old); // 0 for a new sample
    double grown = number_of(sample) - before;
    // A counter shrinks only if the daemon was restarted.
    add_number(table, (grown < 0 ? number_of(sample) : grown) / seconds);
}

static void add_row(struct table *table, const json_t *metric, const json_t *sample,
                    const json_t *index, double seconds)
{
    const char *name = text_of(metric, "name");
    char *key = make_key(name, sample);
    table_text(table, name);
    table_text(table, key + strlen(name) + 1);
    add_number(table, number_of(sample));
    if (index != NULL && strcmp(text_of(metric, "type"), "gauge") == 0)
        table_text(table, "");
    else if (index != NULL)
        add_rate(table, index, key, sample, seconds);
    add_quantiles(table, sample);
    free(key);
}

void sample_table_print(const json_t *metrics, const json_t *before, double seconds)
{
    static const char *const columns[] = {"METRIC", "LABELS", "VALUE", "P50", "P99"};
    static const char *const with_rate[] = {"METRIC", "LABELS", "VALUE", "RATE", "P50", "P99"};
    struct table *table = before != NULL ? table_create(with_rate, 6) : table_create(columns, 5);
    json_t *index = before != NULL ? index_samples(before) : NULL;
    size_t i, k;
    const json_t *metric, *sample;
    json_array_foreach(metrics, i, metric)
    {
        json_array_foreach(json_object_get(metric, "samples"), k, sample)
            add_row(table, metric, sample, index, seconds);
    }
    table_print(table, OUTPUT_TABLE, false);
    json_decref(index);
}
