// SPDX-License-Identifier: Apache-2.0
// Operators on tokens: Tokenizer, MurmurHash3 and NGramRepeatBlock.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

// The longest n-gram that NGramRepeatBlock compares.
#define NGRAM_MAX 64

static uint32_t add_number(struct inf_onnx_scope *s, enum inf_binary_kind kind, uint32_t x,
                           uint32_t number)
{
    return inf_build_binary_number(&s->b, kind, x, (double)number);
}

static uint32_t rotate_left(struct inf_onnx_scope *s, uint32_t x, uint32_t bits)
{
    uint32_t high = add_number(s, INF_BINARY_SHIFT_LEFT, x, bits);
    uint32_t low = add_number(s, INF_BINARY_SHIFT_RIGHT, x, 32 - bits);
    return inf_build_binary(&s->b, INF_BINARY_BITWISE_OR, high, low);
}

// Adds nodes that compute (x ^ (x >> bits)) * factor.
static uint32_t mix_bits(struct inf_onnx_scope *s, uint32_t x, uint32_t bits, uint32_t factor)
{
    uint32_t low = add_number(s, INF_BINARY_SHIFT_RIGHT, x, bits);
    x = inf_build_binary(&s->b, INF_BINARY_BITWISE_XOR, x, low);
    return factor == 1 ? x : add_number(s, INF_BINARY_MUL, x, factor);
}

// Lowers MurmurHash3 (x86, 32 bits) of each element of x. Integers are hashed by operators that
// every device has; strings and floats by the reference device. The hash of an integer is updated
// with each 32-bit word of the element, low word first, then with its length in bytes, and then
// mixed.
static void lower_murmur(struct inf_onnx_scope *s)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    uint32_t seed = (uint32_t)inf_onnx_attr_int(s, "seed", 0);
    bool positive = inf_onnx_attr_int(s, "positive", 1) != 0;
    bool wide = dtype == INF_DTYPE_I64 || dtype == INF_DTYPE_U64;
    if (!wide && dtype != INF_DTYPE_I32 && dtype != INF_DTYPE_U32) {
        struct inf_build_node node =
            inf_build_describe(INF_OP_MURMUR_HASH, s->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
        node.attrs.murmur_hash.seed = (int32_t)seed;
        uint32_t bits = inf_build_value(&s->b, &node);
        s->outputs[0] = positive ? inf_build_cast(&s->b, bits, INF_DTYPE_U32) : bits;
        return;
    }
    uint32_t hash = inf_build_scalar(&s->b, INF_DTYPE_U32, seed), word = s->inputs[0];
    for (int i = 0; i < (wide ? 2 : 1); i++) {
        if (i == 1)
            word = add_number(s, INF_BINARY_SHIFT_RIGHT, s->inputs[0], 32);
        word =
            add_number(s, INF_BINARY_MUL, inf_build_cast(&s->b, word, INF_DTYPE_U32), 0xcc9e2d51);
        word = add_number(s, INF_BINARY_MUL, rotate_left(s, word, 15), 0x1b873593);
        hash = inf_build_binary(&s->b, INF_BINARY_BITWISE_XOR, word, hash);
        hash = add_number(s, INF_BINARY_MUL, rotate_left(s, hash, 13), 5);
        hash = add_number(s, INF_BINARY_ADD, hash, 0xe6546b64);
    }
    hash = add_number(s, INF_BINARY_BITWISE_XOR, hash, wide ? 8 : 4);
    hash = mix_bits(s, mix_bits(s, mix_bits(s, hash, 16, 0x85ebca6b), 13, 0xc2b2ae35), 16, 1);
    s->outputs[0] = inf_build_cast(&s->b, hash, positive ? INF_DTYPE_U32 : INF_DTYPE_I32);
}

// --- Tokenizer ---

// Lowers Tokenizer. A separator that is the empty string means that every character is a token.
static void lower_tokenizer(struct inf_onnx_scope *s)
{
    const char *const *texts;
    uint32_t count = inf_onnx_attr_texts(s, "separators", &texts);
    uint32_t patterns = inf_onnx_attr_strings(s, "separators");
    bool matches = inf_onnx_has_attr(s, "tokenexp");
    bool characters = !matches && count == 1 && texts[0][0] == '\0';
    if (matches)
        patterns =
            inf_build_reshape(&s->b, inf_onnx_attr_string(s, "tokenexp", ""), (int64_t[]){1}, 1);
    if (patterns == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "has neither separators nor tokenexp");
    if (!characters)
        inf_onnx_check_patterns(s, patterns);
    struct inf_build_node node = inf_build_describe(INF_OP_STRING_TOKENS, s->inputs[0], patterns,
                                                    inf_onnx_attr_string(s, "pad_value", ""));
    node.attrs.string_tokens.kind = characters ? INF_TOKENS_CHARACTERS
                                    : matches  ? INF_TOKENS_MATCHED
                                               : INF_TOKENS_SEPARATED;
    node.attrs.string_tokens.mark = inf_onnx_attr_int(s, "mark", 0) != 0;
    node.attrs.string_tokens.characters_min = INF_MAX(inf_onnx_attr_int(s, "mincharnum", 1), 1);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// --- NGramRepeatBlock ---

// Lowers NGramRepeatBlock. Inputs: tokens [batch, sequence], scores [batch, vocabulary]. The score
// of a token becomes minus infinity if appending the token to its row would repeat an n-gram.
static void lower_ngram(struct inf_onnx_scope *s)
{
    int64_t n = inf_onnx_attr_int(s, "ngram_size", 0);
    uint32_t tokens = s->inputs[0], scores = s->inputs[1], matches = INF_VALUE_NONE;
    enum inf_dtype dtype = inf_build_dtype(&s->b, scores);
    if (n < 2 || n > NGRAM_MAX)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "ngram_size is %lld, wanted 2 to %d", (long long)n,
                       NGRAM_MAX);
    // The first n - 1 tokens of each n-gram are compared with the last n - 1 tokens of the row.
    for (int64_t i = 0; inf_build_ok(&s->b) && i + 1 < n; i++) {
        int64_t end = i + 2 < n ? i + 2 - n : INT64_MAX;
        uint32_t own = inf_build_slice(&s->b, tokens, 1, i, i + 1 - n, 1);
        uint32_t last = inf_build_slice(&s->b, tokens, 1, i + 1 - n, end, 1);
        uint32_t same = inf_build_compare(&s->b, INF_COMPARE_EQUAL, own, last);
        matches = matches == INF_VALUE_NONE
                      ? same
                      : inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, matches, same);
    }
    uint32_t next = inf_build_slice(&s->b, tokens, 1, n - 1, INT64_MAX, 1);
    uint32_t updates = inf_build_select(&s->b, matches, inf_build_scalar(&s->b, dtype, -INFINITY),
                                        inf_build_scalar(&s->b, dtype, INFINITY));
    struct inf_build_node node = inf_build_describe(INF_OP_SCATTER_ELEMENTS, scores, next, updates);
    node.attrs.scatter_elements.axis = 1;
    node.attrs.scatter_elements.kind = INF_SCATTER_MIN;
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::MurmurHash3", lower_murmur, 1, 1, 1, 0},
    {"com.microsoft::Tokenizer", lower_tokenizer, 1, 1, 1, 0},
    {"com.microsoft::NGramRepeatBlock", lower_ngram, 2, 2, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_token = {ops, INF_ARRAY_LENGTH(ops)};
