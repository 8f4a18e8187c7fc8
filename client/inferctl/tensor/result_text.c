// SPDX-License-Identifier: Apache-2.0
// Prints a result: as lines for people, or as one JSON object.
#include "client/inferctl/tensor/result_text.h"

#include <stdio.h>

#include "client/inferctl/tensor/output_files.h"
#include "client/inferctl/tensor/strings.h"
#include "client/inferctl/tensor/text.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

// The texts that are printed for the bits of enum inferd_result_flag.
static const struct {
    unsigned flag;
    const char *name, *text;
} flag_texts[] = {
    {INFERD_PADDED, "padded", "with padding rows"},
    {INFERD_SPLIT, "split", "in several runs"},
    {INFERD_RECOMPUTED, "again", "once more in fp32, since what came was not finite"},
    {INFERD_MOVED, "moved", "after another device had failed"},
};
// Values above this have no label.
#define LABEL_VALUE_MAX 1e9

// The most strings of an output that are printed for people.
#define STRINGS_MAX 32

#define FLAGS (sizeof flag_texts / sizeof flag_texts[0])

// --- labels ---

// How the elements of an output are shown.
enum shown_as {
    SHOWN_NOT,
    SHOWN_CLASSES, // the best classes
    SHOWN_VALUES,  // the first values, which have labels
};

static enum shown_as choose_form(const inferd_tensor *tensor, const struct result_view *view)
{
    if (view->top == 0)
        return SHOWN_NOT;
    if (view->labels->text == NULL)
        switch (description_labels(view->description, tensor)) {
        case LABELS_VALUES:
            return SHOWN_VALUES;
        case LABELS_CLASSES:
            return SHOWN_CLASSES;
        case LABELS_NONE:
            break;
        }
    return tensor_is_class_vector(tensor) ? SHOWN_CLASSES : SHOWN_NOT;
}

static const char *class_label(const inferd_tensor *tensor, const struct result_view *view,
                               size_t index)
{
    if (view->labels->text != NULL)
        return labels_get(view->labels, index);
    return description_labels(view->description, tensor) == LABELS_CLASSES
               ? description_label(view->description, tensor->name, index)
               : "";
}

// Returns the label of the value of an element, or "" if there is none.
static const char *value_label(const inferd_tensor *tensor, const struct result_view *view,
                               size_t index)
{
    double value = tensor_element(tensor, index);
    if (!(value >= 0 && value <= LABEL_VALUE_MAX))
        return "";
    return description_label(view->description, tensor->name, (size_t)(value + 0.5));
}

// --- printing lines for people ---

static void print_values(const inferd_tensor *tensor, const struct result_view *view)
{
    static const char *const columns[] = {"element", "value", "label"};
    char text[32];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < tensor_count(tensor) && i < view->top; i++) {
        double value = tensor_element(tensor, i);
        snprintf(text, sizeof text, "%.6g", value);
        table_whole(table, (int64_t)i, NULL);
        table_real(table, value, text);
        table_text(table, value_label(tensor, view, i));
    }
    printf("\nvalues of %s\n", tensor->name);
    table_print(table, OUTPUT_TABLE, false);
}

static void print_top(const inferd_tensor *tensor, const struct result_view *view)
{
    static const char *const columns[] = {"class", "score", "label"};
    size_t indices[RESULT_TOP_MAX];
    size_t count = tensor_top(tensor, view->top, indices);
    char text[32];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        double score = tensor_element(tensor, indices[i]);
        snprintf(text, sizeof text, "%.6g", score);
        table_whole(table, (int64_t)indices[i], NULL);
        table_real(table, score, text);
        table_text(table, class_label(tensor, view, indices[i]));
    }
    printf("\nbest classes of %s\n", tensor->name);
    table_print(table, OUTPUT_TABLE, false);
}

static void print_outputs(const inferd_result *result, const struct result_view *view)
{
    static const char *const columns[] = {"output", "dtype", "shape", "min",
                                          "max",    "mean",  "nan",   "file"};
    char shape[TENSOR_SHAPE_TEXT];
    char text[32];
    char path[PATH_MAX];
    struct table *table = table_create(columns, view->directory != NULL ? 8 : 7);
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        struct tensor_summary summary = tensor_summarise(tensor);
        const double numbers[] = {summary.min, summary.max, summary.mean};
        table_text(table, tensor->name);
        table_text(table, inferd_dtype_name(tensor->dtype));
        table_text(table, tensor_shape_text(tensor, shape));
        for (size_t n = 0; n < 3; n++) {
            snprintf(text, sizeof text, "%.6g", numbers[n]);
            table_real(table, numbers[n], text);
        }
        table_whole(table, (int64_t)summary.nan_count, NULL);
        if (view->directory != NULL)
            table_text(table, output_files_path(view->directory, result, i, path));
    }
    table_print(table, OUTPUT_TABLE, false);
}

static void print_people(const inferd_result *result, const struct result_view *view)
{
    print_outputs(result, view);
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        enum shown_as form = choose_form(tensor, view);
        if (tensor->dtype == INFERD_BYTES)
            strings_print(tensor, STRINGS_MAX);
        else if (form == SHOWN_CLASSES)
            print_top(tensor, view);
        else if (form == SHOWN_VALUES)
            print_values(tensor, view);
    }
    inferd_timing timing = inferd_result_timing(result);
    unsigned threads = inferd_result_threads(result);
    printf(
        "\nversion %s on %s (%s): queue %.3f ms, compute %.3f ms on %u thread%s, round trip "
        "%.3f ms\n",
        inferd_result_model_version(result), inferd_result_device(result),
        inferd_result_precision(result), (double)timing.queue_ns / 1e6,
        (double)timing.compute_ns / 1e6, threads, threads == 1 ? "" : "s",
        (double)timing.total_ns / 1e6);
    for (size_t i = 0; i < FLAGS; i++)
        if ((inferd_result_flags(result) & flag_texts[i].flag) != 0)
            printf("computed %s\n", flag_texts[i].text);
}

// --- printing JSON for programs ---

static json_t *flags_json(const inferd_result *result)
{
    json_t *flags = json_value_must(json_array());
    for (size_t i = 0; i < FLAGS; i++)
        if ((inferd_result_flags(result) & flag_texts[i].flag) != 0)
            json_array_append_new(flags, json_value_text(flag_texts[i].name));
    return flags;
}

static json_t *top_json(const inferd_tensor *tensor, const struct result_view *view)
{
    size_t indices[RESULT_TOP_MAX];
    size_t count = tensor_top(tensor, view->top, indices);
    json_t *rows = json_value_must(json_array());
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_value_must(json_object());
        json_object_set_new(row, "class", json_value_whole((int64_t)indices[i]));
        json_object_set_new(row, "score", json_value_real(tensor_element(tensor, indices[i])));
        json_object_set_new(row, "label", json_value_text(class_label(tensor, view, indices[i])));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *values_json(const inferd_tensor *tensor, const struct result_view *view)
{
    json_t *rows = json_value_must(json_array());
    for (size_t i = 0; i < tensor_count(tensor) && i < view->top; i++) {
        json_t *row = json_value_must(json_object());
        json_object_set_new(row, "element", json_value_whole((int64_t)i));
        json_object_set_new(row, "value", json_value_real(tensor_element(tensor, i)));
        json_object_set_new(row, "label", json_value_text(value_label(tensor, view, i)));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *output_json(const inferd_result *result, size_t index,
                           const struct result_view *view)
{
    char path[PATH_MAX];
    const inferd_tensor *tensor = inferd_result_output(result, index);
    struct tensor_summary summary = tensor_summarise(tensor);
    json_t *output = json_value_must(json_object());
    json_object_set_new(output, "name", json_value_text(tensor->name));
    json_object_set_new(output, "dtype", json_value_text(inferd_dtype_name(tensor->dtype)));
    json_object_set_new(output, "shape", tensor_shape_json(tensor));
    json_object_set_new(output, "min", json_value_real(summary.min));
    json_object_set_new(output, "max", json_value_real(summary.max));
    json_object_set_new(output, "mean", json_value_real(summary.mean));
    json_object_set_new(output, "nan", json_value_whole((int64_t)summary.nan_count));
    if (view->directory != NULL)
        json_object_set_new(
            output, "file",
            json_value_text(output_files_path(view->directory, result, index, path)));
    enum shown_as form = choose_form(tensor, view);
    if (tensor->dtype == INFERD_BYTES)
        json_object_set_new(output, "strings", strings_json(tensor));
    else if (form == SHOWN_CLASSES)
        json_object_set_new(output, "top", top_json(tensor, view));
    else if (form == SHOWN_VALUES)
        json_object_set_new(output, "values", values_json(tensor, view));
    return output;
}

static void print_programs(const inferd_result *result, const struct result_view *view)
{
    json_t *outputs = json_value_must(json_array());
    for (size_t i = 0; i < inferd_result_output_count(result); i++)
        json_array_append_new(outputs, output_json(result, i, view));
    inferd_timing timing = inferd_result_timing(result);
    const struct {
        const char *name;
        uint64_t ns;
    } times[] = {{"queue_ns", timing.queue_ns},
                 {"input_ns", timing.input_ns},
                 {"compute_ns", timing.compute_ns},
                 {"output_ns", timing.output_ns},
                 {"core_ns", inferd_result_core_ns(result)},
                 {"total_ns", timing.total_ns}};
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "outputs", outputs);
    json_object_set_new(answer, "version", json_value_text(inferd_result_model_version(result)));
    json_object_set_new(answer, "device", json_value_text(inferd_result_device(result)));
    json_object_set_new(answer, "precision", json_value_text(inferd_result_precision(result)));
    json_object_set_new(answer, "batch_size", json_value_whole(inferd_result_batch_size(result)));
    json_object_set_new(answer, "padded_size", json_value_whole(inferd_result_padded_size(result)));
    json_object_set_new(answer, "threads", json_value_whole(inferd_result_threads(result)));
    json_object_set_new(answer, "flags", flags_json(result));
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        json_object_set_new(answer, times[i].name, json_value_whole((int64_t)times[i].ns));
    json_value_print(answer);
}

int result_check_labels(const inferd_result *result, const struct result_view *view)
{
    size_t names = labels_count(view->labels);
    size_t vectors = 0;
    if (view->labels->text == NULL || view->top == 0)
        return EXIT_OK;
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        if (!tensor_is_class_vector(tensor))
            continue;
        size_t classes = tensor_count(tensor);
        if (classes != names)
            return command_say(
                EXIT_USAGE,
                "output '%s' has %zu classes, the labels name %zu: wanted a line for "
                "each class%s",
                tensor->name, classes, names,
                classes == names + 1 ? "; is a line for the background missing?" : "");
        vectors++;
    }
    return vectors > 0 ? EXIT_OK
                       : command_say(EXIT_USAGE, "--labels: no output has scores of classes");
}

void result_print(const inferd_result *result, const struct result_view *view,
                  enum output_format format)
{
    if (format == OUTPUT_JSON)
        print_programs(result, view);
    else
        print_people(result, view);
}
