// SPDX-License-Identifier: Apache-2.0
// Reads the report "model NAME" of the daemon. The report is kept as JSON, and each question looks
// its tensor up by name: a model has few of them.
#include "client/inferctl/tensor/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/tensor/text.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

// How many labels description_print() shows.
#define LABELS_SHOWN 3

void description_load(struct description *description, inferd_client *client, const char *model,
                      const char *version)
{
    struct inferd_error err;
    char topic[512], *text = NULL;
    size_t size = 0;
    *description = (struct description){0};
    snprintf(topic, sizeof topic, "model %s%s%s", model, version != NULL ? "@" : "",
             version != NULL ? version : "");
    // Older daemons do not have this report. Whether there is such a model, the other questions
    // about it tell.
    if (inferd_report(client, topic, &text, &size, &err) != 0)
        return;
    description->root = json_loadb(text, size, 0, NULL);
    free(text);
}

void description_fini(struct description *description)
{
    json_decref(description->root);
    *description = (struct description){0};
}

// Finds what is said about a tensor; NULL: nothing.
static const json_t *find_tensor(const struct description *description, const char *direction,
                                 const char *name)
{
    size_t i;
    const json_t *tensor;
    json_array_foreach(json_object_get(description->root, direction), i, tensor)
    {
        const char *found = json_string_value(json_object_get(tensor, "name"));
        if (found != NULL && strcmp(found, name) == 0)
            return tensor;
    }
    return NULL;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

// --- normalisation ---

bool description_normalisation(const struct description *description, const char *input,
                               size_t channels, struct normalisation *out)
{
    const json_t *tensor = find_tensor(description, "inputs", input);
    const json_t *mean = json_object_get(tensor, "mean");
    const json_t *deviation = json_object_get(tensor, "deviation");
    size_t count = json_array_size(mean);
    if (count == 0 || json_array_size(deviation) != count || channels > DESCRIPTION_CHANNELS ||
        (count != 1 && count != channels))
        return false;
    for (size_t i = 0; i < channels; i++) {
        out->mean[i] = json_number_value(json_array_get(mean, count > 1 ? i : 0));
        out->deviation[i] = json_number_value(json_array_get(deviation, count > 1 ? i : 0));
        if (out->deviation[i] == 0)
            return false;
    }
    return true;
}

// --- labels ---

enum label_kind description_labels(const struct description *description,
                                   const inferd_tensor *output)
{
    const json_t *tensor = find_tensor(description, "outputs", output->name);
    size_t labels = json_array_size(json_object_get(tensor, "labels"));
    if (labels == 0)
        return LABELS_NONE;
    if (strcmp(text_of(tensor, "labels_of"), "values") == 0)
        return LABELS_VALUES;
    return output->rank >= 1 && labels == tensor_count(output) &&
                   labels == (size_t)output->shape[output->rank - 1]
               ? LABELS_CLASSES
               : LABELS_NONE;
}

const char *description_label(const struct description *description, const char *output,
                              size_t index)
{
    const json_t *tensor = find_tensor(description, "outputs", output);
    const char *label = json_string_value(json_array_get(json_object_get(tensor, "labels"), index));
    return label != NULL ? label : "";
}

// --- printing ---

static void append_text(char *line, size_t size, const char *separator, const char *text)
{
    size_t used = strlen(line);
    if (text[0] != '\0' && used + 1 < size)
        snprintf(line + used, size - used, "%s%s", used > 0 ? separator : "", text);
}

static void append_numbers(char *line, size_t size, const char *what, const json_t *numbers)
{
    char text[32];
    size_t i;
    const json_t *number;
    json_array_foreach(numbers, i, number)
    {
        snprintf(text, sizeof text, "%s%s%.6g", i == 0 ? what : "", i == 0 ? " " : "",
                 json_number_value(number));
        append_text(line, size, ", ", text);
    }
}

static void append_labels(char *line, size_t size, const json_t *tensor)
{
    char text[256];
    const json_t *labels = json_object_get(tensor, "labels");
    size_t count = json_array_size(labels);
    if (count == 0)
        return;
    snprintf(text, sizeof text, "%zu labels of %s in %s", count, text_of(tensor, "labels_of"),
             text_of(tensor, "labels_file"));
    append_text(line, size, "; ", text);
    for (size_t i = 0; i < count && i < LABELS_SHOWN; i++)
        append_text(line, size, i == 0 ? ": " : ", ", json_string_value(json_array_get(labels, i)));
    append_text(line, size, "", count > LABELS_SHOWN ? ", ..." : "");
}

static void print_tensors(struct table *table, const struct description *description,
                          const char *direction)
{
    size_t i;
    const json_t *tensor;
    json_array_foreach(json_object_get(description->root, direction), i, tensor)
    {
        char line[2048] = "", norm[256] = "";
        append_text(line, sizeof line, "", text_of(tensor, "title"));
        append_text(line, sizeof line, ": ", text_of(tensor, "description"));
        append_numbers(norm, sizeof norm, "mean", json_object_get(tensor, "mean"));
        append_numbers(norm, sizeof norm, "deviation", json_object_get(tensor, "deviation"));
        append_text(line, sizeof line, "; ", norm);
        append_labels(line, sizeof line, tensor);
        if (line[0] == '\0')
            continue;
        table_text(table, text_of(tensor, "name"));
        table_text(table, line);
    }
}

// Adds a row with a list of texts, or with the texts `key` of a list of objects.
static void print_list(struct table *table, const char *name, const json_t *list, const char *key)
{
    char line[2048] = "";
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *text = key != NULL ? text_of(item, key) : json_string_value(item);
        append_text(line, sizeof line, ", ", text != NULL ? text : "");
    }
    if (line[0] == '\0')
        return;
    table_text(table, name);
    table_text(table, line);
}

// Adds a row for each quota of the model.
static void print_quotas(struct table *table, const json_t *quotas)
{
    size_t i;
    const json_t *quota;
    json_array_foreach(quotas, i, quota)
    {
        char line[128];
        snprintf(line, sizeof line, "%lld held, limit %lld, %lld refused",
                 (long long)json_integer_value(json_object_get(quota, "held")),
                 (long long)json_integer_value(json_object_get(quota, "limit")),
                 (long long)json_integer_value(json_object_get(quota, "refused")));
        table_text(table, text_of(quota, "name"));
        table_text(table, line);
    }
}

// Adds a row for each line of a text. The first row has the name; the others have "" in its place.
static void print_lines(struct table *table, const char *name, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char *line = json_value_must(strndup(text, length));
        table_text(table, name);
        table_text(table, line);
        free(line);
        name = "";
        text += length + (text[length] == '\n');
    }
}

void description_print(const struct description *description)
{
    static const char *const columns[] = {"about", "text"};
    static const char *const texts[] = {"title",  "description", "model_version",
                                        "author", "license",     "problem"};
    struct table *table = table_create(columns, 2);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        print_lines(table, texts[i], text_of(description->root, texts[i]));
    print_tensors(table, description, "inputs");
    print_tensors(table, description, "outputs");
    print_list(table, "signatures", json_object_get(description->root, "signatures"), NULL);
    print_list(table, "files", json_object_get(description->root, "files"), "name");
    print_quotas(table, json_object_get(description->root, "quotas"));
    if (table_is_empty(table)) {
        table_free(table);
        return;
    }
    putchar('\n');
    table_print(table, OUTPUT_TABLE, false);
}

void description_extend(const struct description *description, const char *direction,
                        const char *name, json_t *row)
{
    static const char *const keys[] = {"title",       "description", "mean",  "deviation",
                                       "labels_file", "labels_of",   "labels"};
    const json_t *tensor = find_tensor(description, direction, name);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_t *value = json_object_get(tensor, keys[i]);
        if (value != NULL)
            json_object_set(row, keys[i], value);
    }
}
