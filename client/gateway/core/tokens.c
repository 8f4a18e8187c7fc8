// SPDX-License-Identifier: Apache-2.0
// Tokens are kept padded with zeros to the maximum length. A comparison reads all bytes of all
// tokens, so that its time tells an attacker neither how much of a guess is right nor which token
// it resembles. Error messages name lines, never their contents.
#include "client/gateway/core/tokens.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct inf_tokens {
    size_t count;
    uint8_t tokens[INF_TOKENS_MAX][INF_TOKEN_MAX_BYTES];
};

// Returns true if `text` consists of the characters of a token: token68 of RFC 9110.
static bool is_token(const char *text, size_t size)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";
    return size >= INF_TOKEN_MIN_BYTES && size <= INF_TOKEN_MAX_BYTES &&
           strspn(text, allowed) == size;
}

static enum inf_code read_lines(struct inf_tokens *tokens, FILE *in, const char *path,
                                struct inf_error *err)
{
    char line[INF_TOKEN_MAX_BYTES + 3]; // a token, its line end (CR LF) and a NUL
    enum inf_code code = INF_OK;
    for (unsigned number = 1; code == INF_OK && fgets(line, sizeof line, in) != NULL; number++) {
        size_t size = strcspn(line, "\r\n");
        line[size] = '\0';
        if (size == 0 || line[0] == '#')
            continue;
        if (tokens->count == INF_TOKENS_MAX)
            code = inf_fail(err, INF_INVALID, "%s has more than %u tokens", path, INF_TOKENS_MAX);
        else if (!is_token(line, size))
            code = inf_fail(err, INF_INVALID,
                            "%s, line %u: wanted a token of %u to %u characters A-Z, a-z, 0-9 and "
                            "-._~+/=",
                            path, number, INF_TOKEN_MIN_BYTES, INF_TOKEN_MAX_BYTES);
        else
            memcpy(tokens->tokens[tokens->count++], line, size);
    }
    explicit_bzero(line, sizeof line);
    if (code == INF_OK && ferror(in))
        return inf_fail(err, INF_INVALID, "%s cannot be read", path);
    if (code == INF_OK && tokens->count == 0)
        return inf_fail(err, INF_INVALID, "%s has no token", path);
    return code;
}

enum inf_code inf_tokens_load(struct inf_tokens **tokens, const char *path, struct inf_error *err)
{
    struct inf_tokens *made = calloc(1, sizeof *made);
    FILE *in = fopen(path, "re");
    enum inf_code code;
    if (made == NULL || in == NULL)
        code = inf_fail(err, INF_INVALID, "%s cannot be opened: %s", path, strerror(errno));
    else
        code = read_lines(made, in, path, err);
    if (in != NULL)
        (void)fclose(in);
    if (code != INF_OK) {
        inf_tokens_free(made);
        made = NULL;
    }
    *tokens = made;
    return code;
}

unsigned inf_tokens_find(const struct inf_tokens *tokens, struct inf_span authorization)
{
    static const char scheme[] = "Bearer ";
    size_t skip = sizeof scheme - 1;
    uint8_t given[INF_TOKEN_MAX_BYTES] = {0};
    if (authorization.size <= skip || authorization.size - skip > sizeof given ||
        strncasecmp((const char *)authorization.data, scheme, skip) != 0)
        return 0;
    memcpy(given, authorization.data + skip, authorization.size - skip);
    unsigned number = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        volatile uint8_t difference = 0;
        for (size_t k = 0; k < sizeof given; k++)
            difference = difference | (uint8_t)(given[k] ^ tokens->tokens[i][k]);
        number = difference == 0 ? (unsigned)i + 1 : number;
    }
    explicit_bzero(given, sizeof given);
    return number;
}

void inf_tokens_free(struct inf_tokens *tokens)
{
    if (tokens == NULL)
        return;
    explicit_bzero(tokens, sizeof *tokens);
    free(tokens);
}
