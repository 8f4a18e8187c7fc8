// SPDX-License-Identifier: Apache-2.0
// Health and metadata of models and of the server: the calls of the Open Inference Protocol that
// have no tensors.
#include <assert.h>

#include "proto/core/utf8.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/tensor_entry.h"

typedef Inference__ModelMetadataResponse__TensorMetadata wire_tensor;

// --- requests about one model ---

static enum inf_code decode_question(struct inf_model_request *model, char *name,
                                     const char *version, struct inf_error *err)
{
    *model = (struct inf_model_request){
        .name = name, .version = version, .device = "", .path = "", .file = ""};
    return inf_decode_model("name", name, "version", &model->version, err);
}

static enum inf_code decode_ready_request(union inf_message *message, const void *from,
                                          struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelReadyRequest *wire = from;
    return decode_question(&message->model, wire->name, wire->version, err);
}

static enum inf_code encode_ready_request(const union inf_message *message, void *to,
                                          struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__ModelReadyRequest *wire = to;
    wire->name = inf_wire_text(message->model.name);
    wire->version = inf_wire_text(message->model.version);
    return INF_OK;
}

const struct inf_message_codec inf_codec_model_ready_request = {
    .descriptor = &inference__model_ready_request__descriptor,
    .decode = decode_ready_request,
    .encode = encode_ready_request,
};

static enum inf_code decode_metadata_request(union inf_message *message, const void *from,
                                             struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelMetadataRequest *wire = from;
    return decode_question(&message->model, wire->name, wire->version, err);
}

static enum inf_code encode_metadata_request(const union inf_message *message, void *to,
                                             struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__ModelMetadataRequest *wire = to;
    wire->name = inf_wire_text(message->model.name);
    wire->version = inf_wire_text(message->model.version);
    return INF_OK;
}

const struct inf_message_codec inf_codec_model_metadata_request = {
    .descriptor = &inference__model_metadata_request__descriptor,
    .decode = decode_metadata_request,
    .encode = encode_metadata_request,
};

// --- replies that contain one boolean ---

static enum inf_code decode_live(union inf_message *message, const void *from,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    message->flag.value = ((const Inference__ServerLiveResponse *)from)->live;
    return INF_OK;
}

static enum inf_code encode_live(const union inf_message *message, void *to,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    ((Inference__ServerLiveResponse *)to)->live = message->flag.value;
    return INF_OK;
}

const struct inf_message_codec inf_codec_live_reply = {
    .descriptor = &inference__server_live_response__descriptor,
    .decode = decode_live,
    .encode = encode_live,
};

static enum inf_code decode_ready(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    message->flag.value = ((const Inference__ServerReadyResponse *)from)->ready;
    return INF_OK;
}

static enum inf_code encode_ready(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    ((Inference__ServerReadyResponse *)to)->ready = message->flag.value;
    return INF_OK;
}

const struct inf_message_codec inf_codec_ready_reply = {
    .descriptor = &inference__server_ready_response__descriptor,
    .decode = decode_ready,
    .encode = encode_ready,
};

static enum inf_code decode_model_ready(union inf_message *message, const void *from,
                                        struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    message->flag.value = ((const Inference__ModelReadyResponse *)from)->ready;
    return INF_OK;
}

static enum inf_code encode_model_ready(const union inf_message *message, void *to,
                                        struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    ((Inference__ModelReadyResponse *)to)->ready = message->flag.value;
    return INF_OK;
}

const struct inf_message_codec inf_codec_model_ready_reply = {
    .descriptor = &inference__model_ready_response__descriptor,
    .decode = decode_model_ready,
    .encode = encode_model_ready,
};

// --- inputs and outputs of a model ---

static enum inf_code decode_tensors(struct inf_tensor_entry *entries, const char *what,
                                    wire_tensor *const *tensors, size_t count,
                                    struct inf_error *err)
{
    INF_TRY(inf_tensor_check_count(what, count, err));
    for (size_t i = 0; i < count; i++) {
        const wire_tensor *wire = tensors[i];
        struct inf_wire_tensor tensor = {
            wire->name, wire->datatype, wire->n_shape, wire->shape, NULL,
        };
        INF_TRY(inf_tensor_decode_metadata(&entries[i], what, &tensor, err));
        if (wire->unranked && wire->n_shape != 0)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "%s '%s' is unranked, but has a shape of %zu dimensions", what,
                                   inf_quote(wire->name).text, wire->n_shape);
        if (wire->unranked)
            entries[i].shape.rank = INF_RANK_UNKNOWN;
    }
    return inf_tensor_check_distinct(what, entries, (uint32_t)count, err);
}

static enum inf_code decode_metadata(union inf_message *message, const void *from,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelMetadataResponse *wire = from;
    struct inf_model_metadata *metadata = &message->model_metadata;
    metadata->name = wire->name;
    metadata->version = wire->n_versions > 0 ? wire->versions[0] : "";
    metadata->platform = wire->platform;
    INF_TRY(decode_tensors(metadata->inputs, "input", wire->inputs, wire->n_inputs, err));
    metadata->input_count = (uint32_t)wire->n_inputs;
    INF_TRY(decode_tensors(metadata->outputs, "output", wire->outputs, wire->n_outputs, err));
    metadata->output_count = (uint32_t)wire->n_outputs;
    return INF_OK;
}

// Converts tensor entries to protobuf-c messages and stores them in *out_tensors.
static enum inf_code encode_tensors(wire_tensor ***out_tensors, const char *what,
                                    const struct inf_tensor_entry *entries, uint32_t count,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    assert(count <= INF_LIMIT_TENSORS);
    wire_tensor **tensors = inf_wire_list(
        &inference__model_metadata_response__tensor_metadata__descriptor, count, scratch, err);
    if (tensors == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_tensor_entry *entry = &entries[i];
        INF_TRY(inf_tensor_check_encodable(what, entry, true, err));
        tensors[i]->name = inf_wire_text(entry->name);
        tensors[i]->datatype = (char *)inf_dtype_name(entry->dtype);
        tensors[i]->unranked = entry->shape.rank == INF_RANK_UNKNOWN;
        tensors[i]->n_shape = tensors[i]->unranked ? 0 : (size_t)entry->shape.rank;
        tensors[i]->shape = (int64_t *)entry->shape.dims;
    }
    *out_tensors = tensors;
    return INF_OK;
}

static enum inf_code encode_metadata(const union inf_message *message, void *to,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_model_metadata *metadata = &message->model_metadata;
    Inference__ModelMetadataResponse *wire = to;
    const char *version = inf_wire_text(metadata->version);
    wire->name = inf_wire_text(metadata->name);
    wire->platform = inf_wire_text(metadata->platform);
    wire->n_versions = version[0] != '\0' ? 1 : 0;
    wire->versions = inf_encode_texts(&version, (uint32_t)wire->n_versions, scratch, err);
    if (wire->versions == NULL)
        return INF_EXHAUSTED;
    wire->n_inputs = metadata->input_count;
    INF_TRY(encode_tensors(&wire->inputs, "input", metadata->inputs, metadata->input_count, scratch,
                           err));
    wire->n_outputs = metadata->output_count;
    return encode_tensors(&wire->outputs, "output", metadata->outputs, metadata->output_count,
                          scratch, err);
}

const struct inf_message_codec inf_codec_model_metadata = {
    .descriptor = &inference__model_metadata_response__descriptor,
    .decode = decode_metadata,
    .encode = encode_metadata,
};

// --- the name and the extensions of the server ---

static enum inf_code decode_server(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ServerMetadataResponse *wire = from;
    struct inf_server_metadata *metadata = &message->server_metadata;
    metadata->name = wire->name;
    metadata->version = wire->version;
    return inf_decode_texts(
        metadata->extensions, &metadata->extension_count,
        &(struct inf_wire_texts){"extensions", wire->n_extensions, wire->extensions}, err);
}

static enum inf_code encode_server(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_server_metadata *metadata = &message->server_metadata;
    Inference__ServerMetadataResponse *wire = to;
    wire->name = inf_wire_text(metadata->name);
    wire->version = inf_wire_text(metadata->version);
    wire->n_extensions = metadata->extension_count;
    wire->extensions =
        inf_encode_texts(metadata->extensions, metadata->extension_count, scratch, err);
    return wire->extensions != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_server_metadata = {
    .descriptor = &inference__server_metadata_response__descriptor,
    .decode = decode_server,
    .encode = encode_server,
};
