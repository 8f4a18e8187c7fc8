// SPDX-License-Identifier: Apache-2.0
// TransformerDecoder: self-attention of a sequence, optional attention to another sequence, and two
// dense layers. After each part, its input is added and the sum is normalised. TensorFlow.js 4.22
// has the class only in its sources, saves no weights for it, and normalises three times with the
// same layer. This file implements the format that KerasNLP writes.
#include "backends/import/layers/class_table.h"
#include "backends/import/layers/parts.h"

struct decoder {
    struct inf_layers_scope *scope;
    int32_t heads, width; // width of the inner dense layer
    bool first;           // true: normalise before each part instead of after it
    float epsilon;
    const struct inf_layers_activation *activation;
};

static enum inf_code read_decoder(struct decoder *decoder, struct inf_error *err)
{
    struct inf_layers_scope *scope = decoder->scope;
    const struct inf_json *config = &scope->layer->config;
    INF_TRY(inf_layers_require_rank(scope, 3, err));
    INF_TRY(inf_layers_int(config, "num_heads", 1, 1 << 16, &decoder->heads, err));
    INF_TRY(inf_layers_int(config, "intermediate_dim", 1, 1 << 24, &decoder->width, err));
    INF_TRY(inf_layers_bool(config, "normalize_first", &decoder->first, err));
    INF_TRY(inf_layers_float(config, "layer_norm_epsilon", &decoder->epsilon, err));
    INF_TRY(inf_layers_activation_read(scope, "activation", "relu", &decoder->activation, err));
    if (decoder->heads == 0 || decoder->width == 0)
        return inf_layers_fail(scope, err, INF_INVALID,
                               "does not say its num_heads and its intermediate_dim");
    for (uint32_t i = 0; i < scope->input_count; i++)
        if (scope->inputs[i].mask == INF_LAYERS_MASK_MIXED)
            return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                                   "input %u is made of tensors with different masks", i);
    return INF_OK;
}

// Sets *part to the scope of the inner layer `name`.
static enum inf_code enter_layer(const struct decoder *decoder, const char *name,
                                 struct inf_layers_scope *part, struct inf_error *err)
{
    *part = *decoder->scope;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(part->prefixes); i++) {
        if (part->prefixes[i] == NULL)
            continue;
        part->prefixes[i] = inf_layers_join(part, "%s/%s", part->prefixes[i], name);
        if (part->prefixes[i] == NULL)
            return inf_layers_fail(part, err, INF_EXHAUSTED,
                                   "no memory for the names of its parts");
    }
    return INF_OK;
}

static enum inf_code add_normalization(const struct decoder *decoder, const char *name, bool now,
                                       uint32_t *x, struct inf_error *err)
{
    struct inf_layers_scope part;
    if (!now)
        return INF_OK;
    INF_TRY(enter_layer(decoder, name, &part, err));
    return inf_layers_normalize_last(&part, decoder->epsilon, *x, x, err);
}

// The parameters of add_attention(), which adds one attention to *x. Its mask combines `padding`
// (or, if the call passes no `padding`, the mask of `values`), `whole`, and a causal mask if
// `causal` is set.
struct block {
    const char *attention, *norm;
    const struct inf_layers_tensor *values; // keys and values; NULL: x itself
    const struct inf_layers_tensor *padding, *whole;
    uint32_t known; // the mask of `values`
    bool causal;
};

static enum inf_code add_attention(const struct decoder *decoder, const struct block *block,
                                   uint32_t *x, struct inf_error *err)
{
    struct inf_layers_scope part;
    uint32_t before = *x, mask = INF_VALUE_NONE;
    INF_TRY(enter_layer(decoder, block->attention, &part, err));
    INF_TRY(add_normalization(decoder, block->norm, decoder->first, x, err));
    struct inf_layers_attention attention = {.query = *x, .key = *x, .value = *x, .use_bias = true};
    if (block->values != NULL)
        attention.key = attention.value = block->values->value;
    int64_t features = inf_layers_shape_of(&part, *x)->dims[2];
    if (features < decoder->heads)
        return inf_layers_fail(&part, err, INF_INVALID,
                               "has %lld features (-1: not known), wanted at least its %d heads",
                               (long long)features, decoder->heads);
    attention.key_dim = (int32_t)(features / decoder->heads);
    uint32_t padding = block->padding != NULL ? block->padding->value : block->known;
    INF_TRY(inf_layers_mask_add(&part, padding, INF_LAYERS_MASK_VALUES, &mask, err));
    if (block->whole != NULL)
        INF_TRY(inf_layers_mask_add(&part, block->whole->value, INF_LAYERS_MASK_WHOLE, &mask, err));
    if (block->causal)
        INF_TRY(inf_layers_mask_add_causal(&part, *x, attention.value, &mask, err));
    attention.mask = mask;
    INF_TRY(inf_layers_attend(&part, &attention, x, err));
    INF_TRY(inf_layers_binary(&part, INF_BINARY_ADD, *x, before, x, err));
    return add_normalization(decoder, block->norm, !decoder->first, x, err);
}

static enum inf_code add_dense(const struct decoder *decoder, const char *name, int64_t width,
                               uint32_t *x, struct inf_error *err)
{
    struct inf_layers_scope part;
    struct inf_build_node node =
        inf_build_describe(INF_OP_MATMUL, *x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.input_count = 3;
    INF_TRY(enter_layer(decoder, name, &part, err));
    int64_t depth = inf_layers_shape_of(&part, *x)->dims[2];
    INF_TRY(
        inf_layers_weight(&part, "kernel", &INF_SHAPE(depth, width), NULL, &node.inputs[1], err));
    INF_TRY(inf_layers_weight(&part, "bias", &INF_SHAPE(width), NULL, &node.inputs[2], err));
    return inf_layers_emit(&part, &node, x, err);
}

static enum inf_code add_feed_forward(const struct decoder *decoder, uint32_t *x,
                                      struct inf_error *err)
{
    static const char norm[] = "feedforward_layer_norm";
    struct inf_layers_scope *scope = decoder->scope;
    uint32_t before = *x;
    int64_t features = inf_layers_shape_of(scope, *x)->dims[2];
    INF_TRY(add_normalization(decoder, norm, decoder->first, x, err));
    INF_TRY(add_dense(decoder, "feedforward_intermediate_dense", decoder->width, x, err));
    INF_TRY(inf_layers_activate(scope, decoder->activation, *x, x, err));
    INF_TRY(add_dense(decoder, "feedforward_output_dense", features, x, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, *x, before, x, err));
    return add_normalization(decoder, norm, !decoder->first, x, err);
}

static enum inf_code lower_decoder(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct decoder decoder = {.scope = scope, .epsilon = 1e-5f};
    const struct inf_layers_tensor *encoder = inf_layers_argument(scope, 1, "encoder_sequence");
    struct block self = {
        .attention = "self_attention",
        .norm = "self_attention_layer_norm",
        .padding = inf_layers_argument(scope, 2, "decoder_padding_mask"),
        .whole = inf_layers_argument(scope, 3, "decoder_attention_mask"),
        .known = scope->inputs[0].mask,
        .causal = true,
    };
    uint32_t x = inf_layers_x(scope);
    INF_TRY(read_decoder(&decoder, err));
    INF_TRY(inf_layers_argument_flag(scope, "use_causal_mask", &self.causal, err));
    INF_TRY(add_attention(&decoder, &self, &x, err));
    if (encoder != NULL) {
        const struct block cross = {
            .attention = "cross_attention",
            .norm = "cross_attention_layer_norm",
            .values = encoder,
            .padding = inf_layers_argument(scope, 4, "encoder_padding_mask"),
            .whole = inf_layers_argument(scope, 5, "encoder_attention_mask"),
            .known = encoder->mask,
        };
        INF_TRY(add_attention(&decoder, &cross, &x, err));
    }
    INF_TRY(add_feed_forward(&decoder, &x, err));
    return inf_layers_finish(scope, x, err);
}

static const char *const named[] = {
    "encoder_sequence",     "decoder_padding_mask",   "decoder_attention_mask",
    "encoder_padding_mask", "encoder_attention_mask", NULL,
};

static const struct inf_layers_class classes[] = {
    {"TransformerDecoder", lower_decoder, 1, 6, 0, true, named},
};

const struct inf_layers_class_table inf_layers_classes_decoder = {classes,
                                                                  INF_ARRAY_LENGTH(classes)};
