// SPDX-License-Identifier: Apache-2.0
// Finds the state pairs of a model: outputs that become inputs of the next request. If the settings
// name no pairs, an output and an input belong together if their types and shapes agree and their
// names are equal after removing a common prefix or suffix (such as "out_" and "in_").
#include "daemon/model/state_pairs.h"

#include <stdio.h>
#include <string.h>

#include "proto/core/tensor_name.h"
#include "proto/core/utf8.h"

// --- parsing the pairs that the settings name ---

// A substring, given by its first character and its length; not NUL-terminated.
struct part {
    const char *start;
    size_t length;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct part trim_part(const char *start, const char *end)
{
    while (start < end && is_blank(*start))
        start++;
    while (end > start && is_blank(end[-1]))
        end--;
    return (struct part){start, (size_t)(end - start)};
}

// Parses the next pair "OUTPUT=INPUT" and advances *text. Returns false at the end of the text. If
// the pair is malformed, *output or *input is empty.
static bool parse_pair(const char **text, struct part *output, struct part *input)
{
    const char *start = *text + strspn(*text, " \t");
    if (*start == '\0')
        return false;
    size_t length = strcspn(start, ",;");
    const char *equals = memchr(start, '=', length);
    *text = start + length + (start[length] != '\0');
    *output = *input = (struct part){start, 0};
    if (equals == NULL)
        return true;
    *output = trim_part(start, equals);
    *input = trim_part(equals + 1, start + length);
    return true;
}

bool inf_state_pairs_check(const char *text, char *wanted, size_t size)
{
    struct part output;
    struct part input;
    while (parse_pair(&text, &output, &input)) {
        if (output.length > 0 && input.length > 0)
            continue;
        snprintf(wanted, size, "OUTPUT=INPUT, and commas between pairs");
        return false;
    }
    return true;
}

static uint32_t find_port(const struct inf_port *ports, uint32_t count, struct part name)
{
    return inf_tensor_names_find(INF_TENSOR_NAMES(ports, count), name.start, name.length);
}

static bool are_compatible(const struct inf_graph *graph, const struct inf_state_pair *pair)
{
    const struct inf_value *output = &graph->values[graph->outputs[pair->output].value];
    const struct inf_value *input = &graph->values[graph->inputs[pair->input].value];
    const struct inf_shape *a = &output->shape;
    const struct inf_shape *b = &input->shape;
    if (output->dtype != input->dtype)
        return false;
    if (a->rank == INF_RANK_UNKNOWN || b->rank == INF_RANK_UNKNOWN)
        return true;
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] && a->dims[i] != INF_DIM_UNKNOWN &&
            b->dims[i] != INF_DIM_UNKNOWN)
            return false;
    return true;
}

static enum inf_code refuse_pair(struct inf_error *err, struct part name, const char *what)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "state '%.*s': %s",
                           (int)INF_MIN(name.length, 80), name.start, what);
}

static enum inf_code find_named_pairs(const struct inf_graph *graph, const char *text,
                                      struct inf_state_pair pairs[INF_LIMIT_TENSORS],
                                      uint32_t *count, struct inf_error *err)
{
    struct part output;
    struct part input;
    while (parse_pair(&text, &output, &input)) {
        const struct inf_state_pair pair = {find_port(graph->outputs, graph->output_count, output),
                                            find_port(graph->inputs, graph->input_count, input)};
        if (pair.output == graph->output_count)
            return refuse_pair(err, output, "the model has no such output");
        if (pair.input == graph->input_count)
            return refuse_pair(err, input, "the model has no such input");
        if (!are_compatible(graph, &pair))
            return refuse_pair(err, output, "datatype or shape is not that of its input");
        for (uint32_t i = 0; i < *count; i++)
            if (pairs[i].output == pair.output || pairs[i].input == pair.input)
                return refuse_pair(err, output, "it, or its input, is in two pairs");
        if (*count == INF_LIMIT_TENSORS)
            return refuse_pair(err, output, "it is one pair too many");
        pairs[(*count)++] = pair;
    }
    return INF_OK;
}

// --- guessing pairs from the names of tensors ---

// Prefixes and suffixes by which models mark state outputs and inputs. If one ends with another
// ("_n" and "n"), the longer one comes first, because the first match is used.
static const char *const before[] = {"present_key_values.",
                                     "past_key_values.",
                                     "present.",
                                     "present_",
                                     "next_",
                                     "past.",
                                     "past_",
                                     "prev_",
                                     "out_",
                                     "new_",
                                     "in_",
                                     NULL};
static const char *const behind[] = {"_output", "_input", "_next", "_prev", "_new", "_out",
                                     "_in",     "_n",     "_o",    "N",     "n",    NULL};

// Returns the name of a tensor without the prefix or suffix that distinguishes outputs from inputs,
// and without the ":0" that TensorFlow graphs append.
static struct part find_stem(const char *name)
{
    struct part stem = {name, strlen(name)};
    const char *colon = memchr(stem.start, ':', stem.length);
    if (colon != NULL && colon > stem.start)
        stem.length = (size_t)(colon - stem.start);
    for (const char *const *affix = before; *affix != NULL; affix++) {
        size_t length = strlen(*affix);
        if (stem.length <= length || memcmp(stem.start, *affix, length) != 0)
            continue;
        stem.start += length;
        stem.length -= length;
        break;
    }
    for (const char *const *affix = behind; *affix != NULL; affix++) {
        size_t length = strlen(*affix);
        if (stem.length <= length || memcmp(stem.start + stem.length - length, *affix, length) != 0)
            continue;
        stem.length -= length;
        break;
    }
    return stem;
}

static bool are_names_alike(const char *output, const char *input)
{
    struct part a = find_stem(output);
    struct part b = find_stem(input);
    // Names whose common part is only a number, such as "in_0" and "out_0", are no pair, because
    // such tensors are probably just numbered.
    return a.length == b.length && memcmp(a.start, b.start, a.length) == 0 &&
           strspn(a.start, "0123456789") < a.length;
}

// Returns the input that an output feeds according to its name. Returns input_count if there is no
// such input, or more than one.
static uint32_t guess_input(const struct inf_graph *graph, uint32_t output)
{
    uint32_t found = graph->input_count;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_state_pair pair = {output, i};
        if (!are_names_alike(graph->outputs[output].name, graph->inputs[i].name) ||
            !are_compatible(graph, &pair))
            continue;
        if (found != graph->input_count)
            return graph->input_count;
        found = i;
    }
    return found;
}

static void guess_pairs(const struct inf_graph *graph,
                        struct inf_state_pair pairs[INF_LIMIT_TENSORS], uint32_t *count)
{
    for (uint32_t output = 0; output < graph->output_count && *count < INF_LIMIT_TENSORS;
         output++) {
        uint32_t input = guess_input(graph, output);
        bool taken = input == graph->input_count;
        for (uint32_t i = 0; i < *count; i++)
            taken = taken || pairs[i].input == input;
        if (!taken)
            pairs[(*count)++] = (struct inf_state_pair){output, input};
    }
}

enum inf_code inf_state_pairs_find(const struct inf_graph *graph, const char *text,
                                   struct inf_state_pair pairs[INF_LIMIT_TENSORS],
                                   uint32_t *out_count, struct inf_error *err)
{
    *out_count = 0;
    if (text[strspn(text, " \t")] != '\0')
        return find_named_pairs(graph, text, pairs, out_count, err);
    guess_pairs(graph, pairs, out_count);
    return INF_OK;
}
