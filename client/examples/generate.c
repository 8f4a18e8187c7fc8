// SPDX-License-Identifier: Apache-2.0
// Continues a text with a decoder that has a key/value cache, served by inferd. The cache stays in
// the session: each request sends one token and gets the scores of the next one. The tokens of the
// model are the characters from 32 to 127; tests/tools/gen/gen_decoder.py writes such a model.
//
//   generate 'the cat sat on the mat. the'
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <inferd.h>

#define FIRST      32 // code of the first token
#define TOKENS     96
#define TOKENS_MAX 1024 // of the text to continue

static int print_usage(FILE *out, int code)
{
    fputs(
        "usage: generate [--socket PATH] [--model NAME] [--length N] TEXT\n"
        "Prints TEXT and N more characters.\n"
        "  --socket PATH   the daemon's socket (default: $INFERD_SOCKET, "
        "/run/inferd/inferd.sock)\n"
        "  --model NAME    what the decoder is served as (default: decoder)\n"
        "  --length N      characters to add (default: 40)\n",
        out);
    return code;
}

static int report_failure(const struct inferd_error *err)
{
    fprintf(stderr, "generate: %s\n", err->text);
    return 1;
}

// Writes the tokens of a text. Returns their number; 0 if the text is empty, too long, or has other
// characters.
static int64_t encode_text(const char *text, int64_t tokens[TOKENS_MAX])
{
    int64_t count = 0;
    for (; text[count] != '\0'; count++) {
        if (count == TOKENS_MAX || text[count] < FIRST)
            return 0;
        tokens[count] = text[count] - FIRST;
    }
    return count;
}

// Returns the token with the largest score.
static int64_t choose_token(const float *scores)
{
    int64_t best = 0;
    for (int64_t token = 1; token < TOKENS; token++)
        if (scores[token] > scores[best])
            best = token;
    return best;
}

static int continue_text(inferd_client *client, inferd_session *session, const char *model,
                         const char *text, int length)
{
    static int64_t tokens[TOKENS_MAX];
    inferd_tensor input = {.name = "input_ids", .dtype = INFERD_INT64, .rank = 2, .data = tokens};
    const inferd_request request = {
        .model = model, .inputs = &input, .input_count = 1, .session = session};
    struct inferd_error err;
    int64_t count = encode_text(text, tokens);
    if (count == 0) {
        fprintf(stderr, "generate: wanted 1 to %d characters of ASCII\n", TOKENS_MAX);
        return 2;
    }
    printf("%s", text);
    for (int i = 0; i < length; i++) {
        inferd_result *result;
        input.shape[0] = 1;
        input.shape[1] = count;
        input.size = (size_t)count * sizeof tokens[0];
        if (inferd_infer(client, &request, &result, &err) != INFERD_OK)
            return report_failure(&err);
        const inferd_tensor *logits = inferd_result_find(result, "logits");
        bool good = logits != NULL && logits->dtype == INFERD_FP32 &&
                    logits->size == (size_t)count * TOKENS * sizeof(float);
        if (good)
            tokens[0] = choose_token((const float *)logits->data + (count - 1) * TOKENS);
        inferd_result_free(result);
        if (!good) {
            fprintf(stderr, "generate: '%s' is another kind of model\n", model);
            return 1;
        }
        count = 1;
        putchar((int)(FIRST + tokens[0]));
    }
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"model", required_argument, NULL, 'm'},
                                            {"length", required_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *socket = NULL;
    const char *model = "decoder";
    int length = 40;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            socket = optarg;
        else if (option == 'm')
            model = optarg;
        else if (option == 'l')
            length = (int)strtol(optarg, NULL, 10);
        else
            return print_usage(option == 'h' ? stdout : stderr, option == 'h' ? 0 : 2);
    }
    if (optind + 1 != argc)
        return print_usage(stderr, 2);
    struct inferd_error err;
    inferd_client *client;
    inferd_session *session;
    if (inferd_connect(&client, socket, &err) != INFERD_OK)
        return report_failure(&err);
    int code = inferd_session_open_model(client, model, NULL, &session, &err) == INFERD_OK
                   ? continue_text(client, session, model, argv[optind], length)
                   : report_failure(&err);
    inferd_close(client); // closes the session, too
    return code;
}
