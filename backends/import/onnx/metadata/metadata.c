// SPDX-License-Identifier: Apache-2.0
// The metadata of an ONNX file are texts with keys. ONNX defines model_author, model_license and
// keys that begin with Image. (docs/MetadataProps.md of ONNX). Exporters have keys of their own:
// those of YOLO write `names` (the classes), `stride`, `imgsz` and `task`. What has a place in the
// description goes there; all other keys are lines of its text, so that people see them.
//
// The first failure is kept as the problem of the description.
#include "backends/import/onnx/metadata/metadata.h"

#include <stdio.h>
#include <string.h>

#include "backends/import/common/label_text.h"
#include "backends/import/onnx/proto.h"
#include "proto/core/utf8.h"

// The most keys that are read, and the most bytes of a text that is shown.
#define KEYS_MAX       256u
#define TEXT_BYTES_MAX (64u << 10)
// A value with more bytes is not a line of the text; only its size is.
#define LINE_BYTES_MAX 512u

// Fields of the messages.
enum {
    MODEL_VERSION = 5,
    MODEL_DOC = 6,
    MODEL_GRAPH = 7,
    MODEL_PROPS = 14,
    GRAPH_DOC = 10,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    PORT_NAME = 1,
    PORT_TYPE = 2,
    PORT_DOC = 3,
    TYPE_DENOTATION = 6,
    PROPERTY_KEY = 1,
    PROPERTY_VALUE = 2,
};

struct property {
    struct inf_span key, value;
    bool used; // true: the description has it in a place of its own
};

struct reader {
    struct inf_model_description *description;
    struct property properties[KEYS_MAX];
    uint32_t count;
};

// Copies a text; control characters other than line ends become spaces. Returns "" if it cannot.
static const char *copy_text(struct reader *reader, struct inf_span bytes, const char *what)
{
    struct inf_error err = {0};
    if (bytes.size == 0)
        return "";
    if (bytes.size > TEXT_BYTES_MAX)
        (void)inf_fail(&err, INF_EXHAUSTED, "%s has %zu bytes, at most %u are read", what,
                       bytes.size, TEXT_BYTES_MAX);
    else if (!inf_utf8_valid(bytes))
        (void)inf_fail(&err, INF_INVALID, "%s is no UTF-8", what);
    if (err.code != INF_OK) {
        inf_description_note_problem(reader->description, &err);
        return "";
    }
    char *text = inf_description_alloc(reader->description, bytes.size + 1);
    if (text == NULL)
        return "";
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t byte = bytes.data[i];
        text[i] = (byte < 0x20 && byte != '\n') || byte == 0x7f ? ' ' : (char)byte;
    }
    return text;
}

// --- keys ---

static bool is_text(struct inf_span bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static void read_properties(struct reader *reader, struct inf_span model)
{
    struct inf_pb pb = {model};
    struct inf_pb_field field, part;
    struct inf_error err = {0};
    bool more = true;
    while (inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        if (field.number != MODEL_PROPS)
            continue;
        if (reader->count == KEYS_MAX) {
            (void)inf_fail(&err, INF_EXHAUSTED, "more than %u metadata_props", KEYS_MAX);
            inf_description_note_problem(reader->description, &err);
            return;
        }
        struct property *property = &reader->properties[reader->count];
        inf_onnx_field(field.bytes, PROPERTY_KEY, &part);
        property->key = part.bytes;
        inf_onnx_field(field.bytes, PROPERTY_VALUE, &part);
        property->value = part.bytes;
        reader->count += property->key.size > 0;
    }
}

static struct property *find_property(struct reader *reader, const char *key)
{
    for (uint32_t i = 0; i < reader->count; i++)
        if (is_text(reader->properties[i].key, key))
            return &reader->properties[i];
    return NULL;
}

// Returns the value of the first of two keys that is there, or "".
static const char *take_text(struct reader *reader, const char *key, const char *other)
{
    struct property *property = find_property(reader, key);
    bool is_other = property == NULL && other != NULL;
    if (is_other)
        property = find_property(reader, other);
    if (property == NULL)
        return "";
    property->used = true;
    return copy_text(reader, property->value, is_other ? other : key);
}

// --- labels ---

// The labels of a model are those of its first output.
static void read_labels(struct reader *reader, struct inf_described_tensor *output)
{
    static const char *const keys[] = {"names", "labels", "classes", "class_names", "id2label"};
    struct inf_label_list list = {0};
    struct inf_error err = {0};
    struct property *property = NULL;
    size_t i = 0;
    while (i < INF_ARRAY_LENGTH(keys) && (property = find_property(reader, keys[i])) == NULL)
        i++;
    if (property == NULL)
        return;
    if (inf_label_list_read(&list, &reader->description->arena, property->value, &err) != INF_OK) {
        (void)inf_error_prefix(&err, err.code, "metadata_props '%s'", keys[i]);
        inf_description_note_problem(reader->description, &err);
        return;
    }
    if (list.count == 0)
        return;
    property->used = true;
    output->labels_file = keys[i];
    output->labels = list.labels;
    output->label_count = list.count;
    output->label_kind = INF_LABELS_CLASSES;
}

// --- how pictures become inputs ---

static void set_normalisation(struct reader *reader, struct inf_described_tensor *input, float mean,
                              float deviation)
{
    float *numbers = inf_description_alloc(reader->description, 2 * sizeof *numbers);
    if (numbers == NULL)
        return;
    numbers[0] = mean;
    numbers[1] = deviation;
    input->mean = &numbers[0];
    input->deviation = &numbers[1];
    input->channel_count = 1;
}

static void read_normalisation(struct reader *reader, struct inf_described_tensor *input)
{
    static const struct {
        const char *range;
        float mean, deviation;
    } ranges[] = {{"NominalRange_0_255", 0, 1},
                  {"Normalized_0_1", 0, 255},
                  {"Normalized_1_1", 127.5f, 127.5f}};
    const struct property *range = find_property(reader, "Image.NominalPixelRange");
    for (size_t i = 0; range != NULL && i < INF_ARRAY_LENGTH(ranges); i++)
        if (is_text(range->value, ranges[i].range))
            set_normalisation(reader, input, ranges[i].mean, ranges[i].deviation);
    // Exporters of YOLO write these keys, and their models take pictures from 0 to 1.
    if (range == NULL && find_property(reader, "stride") != NULL &&
        find_property(reader, "names") != NULL)
        set_normalisation(reader, input, 0, 255);
    const struct property *format = find_property(reader, "Image.BitmapPixelFormat");
    if (format != NULL && format->value.size >= 3 && memcmp(format->value.data, "Bgr", 3) == 0)
        inf_description_note_problem(
            reader->description,
            &(struct inf_error){.text = "Image.BitmapPixelFormat: the model takes blue first"});
}

// --- inputs and outputs ---

// Returns the index of the port called `name`; `count` if there is none. Ports of the file and of
// the graph mostly have the same order, so the search begins at `first`.
static uint32_t find_port(const struct inf_port *ports, uint32_t count, uint32_t first,
                          struct inf_span name)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = (first + i) % count;
        if (is_text(name, ports[index].name))
            return index;
    }
    return count;
}

// Describes the ports in the fields `number` of the graph. *picture becomes the index of the port
// that the file denotes as an image.
static struct inf_described_tensor *describe_ports(struct reader *reader, struct inf_span graph,
                                                   uint32_t number, const struct inf_port *ports,
                                                   uint32_t *count, uint32_t *picture)
{
    struct inf_described_tensor *tensors =
        inf_description_alloc(reader->description, (*count + 1) * sizeof *tensors);
    struct inf_pb pb = {graph};
    struct inf_pb_field field, part;
    bool more = true;
    uint32_t next = 0;
    if (tensors == NULL)
        *count = 0;
    for (uint32_t i = 0; i < *count; i++)
        tensors[i] = (struct inf_described_tensor){.title = "", .text = "", .labels_file = ""};
    while (inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        if (field.number != number || field.type != INF_PB_BYTES)
            continue;
        inf_onnx_field(field.bytes, PORT_NAME, &part);
        uint32_t index = find_port(ports, *count, next, part.bytes);
        if (index == *count)
            continue;
        next = index + 1;
        inf_onnx_field(field.bytes, PORT_DOC, &part);
        tensors[index].text = copy_text(reader, part.bytes, "the doc_string of a port");
        inf_onnx_field(field.bytes, PORT_TYPE, &part);
        inf_onnx_field(part.bytes, TYPE_DENOTATION, &part);
        if (is_text(part.bytes, "IMAGE"))
            *picture = index;
    }
    return tensors;
}

static void describe_tensors(struct reader *reader, struct inf_span bytes,
                             const struct inf_graph *graph)
{
    struct inf_model_description *description = reader->description;
    uint32_t picture = graph->input_count, ignored;
    // If the file denotes no input as an image, it is the first one of four axes in floats.
    for (uint32_t i = graph->input_count; i-- > 0;) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        if (value->shape.rank == 4 && inf_dtype_is_float(value->dtype))
            picture = i;
    }
    description->input_count = graph->input_count;
    description->output_count = graph->output_count;
    description->inputs = describe_ports(reader, bytes, GRAPH_INPUT, graph->inputs,
                                         &description->input_count, &picture);
    description->outputs = describe_ports(reader, bytes, GRAPH_OUTPUT, graph->outputs,
                                          &description->output_count, &ignored);
    if (description->output_count > 0)
        read_labels(reader, &description->outputs[0]);
    if (picture < description->input_count)
        read_normalisation(reader, &description->inputs[picture]);
}

// --- the text ---

// Prints a key that has no place of its own, for the text. Control characters become '?'.
static void print_line(char *line, size_t size, const struct property *property)
{
    int key = (int)INF_MIN(property->key.size, LINE_BYTES_MAX);
    if (property->value.size > LINE_BYTES_MAX)
        snprintf(line, size, "%.*s: %zu bytes", key, (const char *)property->key.data,
                 property->value.size);
    else
        snprintf(line, size, "%.*s: %.*s", key, (const char *)property->key.data,
                 (int)property->value.size, (const char *)property->value.data);
    inf_text_clean(line);
}

// Makes the text of `first` and of the keys that have no place of their own, a line each.
static const char *make_text(struct reader *reader, const char *first)
{
    char line[2 * LINE_BYTES_MAX + 64];
    size_t size = strlen(first) + 1, used = 0;
    for (uint32_t i = 0; i < reader->count; i++)
        if (!reader->properties[i].used)
            size += sizeof line;
    char *text = inf_description_alloc(reader->description, size);
    if (text == NULL)
        return first;
    used += (size_t)snprintf(text, size, "%s", first);
    for (uint32_t i = 0; i < reader->count; i++) {
        if (reader->properties[i].used)
            continue;
        print_line(line, sizeof line, &reader->properties[i]);
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "\n" : "", line);
    }
    return text;
}

// Returns true if the description says anything.
static bool is_described(const struct inf_model_description *description)
{
    const char *const texts[] = {description->title,  description->text,    description->version,
                                 description->author, description->license, description->problem};
    bool is_there = false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++)
        is_there |= *texts[i] != '\0';
    for (uint32_t i = 0; i < description->input_count; i++)
        is_there |= *description->inputs[i].text != '\0' || description->inputs[i].mean != NULL;
    for (uint32_t i = 0; i < description->output_count; i++)
        is_there |= *description->outputs[i].text != '\0' || description->outputs[i].labels != NULL;
    return is_there;
}

bool inf_onnx_describe(struct inf_model_description *description, struct inf_span model,
                       const struct inf_graph *graph)
{
    struct reader reader = {.description = description};
    struct inf_pb_field field, text;
    read_properties(&reader, model);
    inf_onnx_field(model, MODEL_GRAPH, &field);
    describe_tensors(&reader, field.bytes, graph);
    inf_onnx_field(model, MODEL_DOC, &text);
    if (text.bytes.size == 0)
        inf_onnx_field(field.bytes, GRAPH_DOC, &text);
    const char *described = take_text(&reader, "description", NULL);
    if (*described == '\0')
        described = copy_text(&reader, text.bytes, "doc_string");
    description->title = take_text(&reader, "model_name", "title");
    description->author = take_text(&reader, "model_author", "author");
    description->license = take_text(&reader, "model_license", "license");
    inf_onnx_field(model, MODEL_VERSION, &field);
    char *version = inf_description_alloc(description, sizeof "18446744073709551615");
    if (version != NULL && field.value != 0) {
        snprintf(version, sizeof "18446744073709551615", "%llu", (unsigned long long)field.value);
        description->version = version;
    }
    description->text = make_text(&reader, described);
    return is_described(description);
}
