// SPDX-License-Identifier: Apache-2.0
// Prints the topic "model NAME": what a served model says about itself. The texts are from the
// model file.
#include <stdio.h>
#include <string.h>

#include "backends/import/common/described_settings.h"
#include "daemon/service/report/report.h"

static void add_known_text(struct inf_report_text *report, const char *key, const char *text)
{
    if (text[0] != '\0')
        inf_report_add_text(report, key, text);
}

static void print_numbers(struct inf_report_text *report, const char *key, const float *numbers,
                          uint32_t count)
{
    inf_report_open(report, key, '[');
    for (uint32_t i = 0; i < count; i++)
        inf_report_add_real(report, NULL, (double)numbers[i]);
    inf_report_close(report, ']');
}

static void print_labels(struct inf_report_text *report, const struct inf_described_tensor *tensor)
{
    const char *label = tensor->labels;
    inf_report_add_text(report, "labels_file", tensor->labels_file);
    inf_report_add_text(report, "labels_of",
                        tensor->label_kind == INF_LABELS_VALUES ? "values" : "classes");
    inf_report_open(report, "labels", '[');
    for (uint32_t i = 0; i < tensor->label_count; i++) {
        inf_report_add_text(report, NULL, label);
        label += strlen(label) + 1;
    }
    inf_report_close(report, ']');
}

// The descriptions of the inputs, or of the outputs, by the model file and by the settings.
struct described_ports {
    const struct inf_described_tensor *file, *settings;
    uint32_t file_count, settings_count;
    const struct inf_port *ports;
    uint32_t port_count;
};

static void print_tensors(struct inf_report_text *report, const char *key,
                          const struct described_ports *described)
{
    const struct inf_port *ports = described->ports;
    uint32_t count = INF_MAX(described->file_count, described->settings_count);
    inf_report_open(report, key, '[');
    for (uint32_t i = 0; i < INF_MIN(count, described->port_count); i++) {
        const struct inf_described_tensor merged = inf_described_tensor_merge(
            i < described->file_count ? &described->file[i] : NULL,
            i < described->settings_count ? &described->settings[i] : NULL);
        const struct inf_described_tensor *tensor = &merged;
        inf_report_open(report, NULL, '{');
        inf_report_add_text(report, "name", ports[i].name);
        add_known_text(report, "title", tensor->title);
        add_known_text(report, "description", tensor->text);
        if (tensor->channel_count > 0) {
            print_numbers(report, "mean", tensor->mean, tensor->channel_count);
            print_numbers(report, "deviation", tensor->deviation, tensor->channel_count);
        }
        if (tensor->label_kind != INF_LABELS_NONE)
            print_labels(report, tensor);
        inf_report_close(report, '}');
    }
    inf_report_close(report, ']');
}

static void print_description(struct inf_report_text *report, const struct inf_served *served)
{
    static const struct inf_model_description nothing = {
        .title = "", .text = "", .version = "", .author = "", .license = ""};
    const struct inf_graph *graph = inf_model_graph(served->model);
    const struct inf_model_description *description =
        served->description != NULL ? served->description : &nothing;
    const struct inf_model_description *described =
        served->described != NULL ? served->described : &nothing;
    const struct described_ports inputs = {
        description->inputs,    described->inputs, description->input_count,
        described->input_count, graph->inputs,     graph->input_count};
    const struct described_ports outputs = {
        description->outputs,    described->outputs, description->output_count,
        described->output_count, graph->outputs,     graph->output_count};
    add_known_text(report, "title", description->title);
    add_known_text(report, "description",
                   described->text[0] != '\0' ? described->text : description->text);
    add_known_text(report, "model_version", description->version);
    add_known_text(report, "author", description->author);
    add_known_text(report, "license",
                   described->license[0] != '\0' ? described->license : description->license);
    add_known_text(report, "problem", description->problem);
    inf_report_open(report, "signatures", '[');
    for (uint32_t i = 0; i < description->signature_count; i++)
        inf_report_add_text(report, NULL, description->signatures[i]);
    inf_report_close(report, ']');
    print_tensors(report, "inputs", &inputs);
    print_tensors(report, "outputs", &outputs);
    inf_report_open(report, "files", '[');
    for (uint32_t i = 0; i < description->file_count; i++) {
        inf_report_open(report, NULL, '{');
        inf_report_add_text(report, "name", description->files[i].name);
        inf_report_add_number(report, "bytes", description->files[i].size_bytes);
        inf_report_close(report, '}');
    }
    inf_report_close(report, ']');
}

// Prints the quotas that the settings of the model limit, and what is held of them.
static void print_quotas(struct inf_report_text *report, const struct inf_model_quota *quota)
{
    bool is_open = false;
    for (enum inf_model_quota_kind kind = 0; quota != NULL && kind < INF_MODEL_QUOTA_KINDS;
         kind++) {
        if (quota->most[kind] == 0)
            continue;
        if (!is_open)
            inf_report_open(report, "quotas", '[');
        is_open = true;
        inf_report_open(report, NULL, '{');
        inf_report_add_text(report, "name", inf_model_quota_name(kind));
        inf_report_add_number(report, "limit", quota->most[kind]);
        inf_report_add_number(report, "held", quota->held[kind]);
        inf_report_add_number(report, "refused", quota->refused[kind]);
        inf_report_close(report, '}');
    }
    if (is_open)
        inf_report_close(report, ']');
}

enum inf_code inf_service_print_model(struct inf_service *service,
                                      const struct inf_report_reader *reader,
                                      struct inf_report_text *report, struct inf_error *err)
{
    char name[INF_LIMIT_MODEL_NAME + 1];
    struct inf_served *served = NULL;
    const char *asked = reader->topic + strlen(INF_REPORT_MODEL_TOPIC);
    size_t length = strcspn(asked, "@");
    if (length == 0 || length >= sizeof name)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "the topic 'model' takes the name of a model, of 1 to %u characters",
                               INF_LIMIT_MODEL_NAME);
    snprintf(name, sizeof name, "%.*s", (int)length, asked);
    INF_TRY(inf_model_store_find(service->options.store, reader->caller, name,
                                 asked[length] == '@' ? asked + length + 1 : "", &served, err));
    inf_report_open(report, NULL, '{');
    inf_report_add_text(report, "name", served->name);
    inf_report_add_text(report, "version", served->version);
    inf_report_add_text(report, "platform", served->platform);
    if (served->description != NULL || served->described != NULL)
        print_description(report, served);
    print_quotas(report, served->quota);
    inf_report_close(report, '}');
    inf_served_unref(&served);
    return INF_OK;
}
