// SPDX-License-Identifier: Apache-2.0
// Bearer tokens (RFC 6750) of the clients that may use the gateway.
#ifndef INF_GATEWAY_TOKENS_H
#define INF_GATEWAY_TOKENS_H

#include "proto/core/attributes.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Minimum and maximum length of a token in bytes. A shorter token could be guessed.
#define INF_TOKEN_MIN_BYTES 16u
#define INF_TOKEN_MAX_BYTES 256u
// Maximum number of tokens, because each request is compared with all of them.
#define INF_TOKENS_MAX 64u

struct inf_tokens;

// Reads a file with one token in each line; empty lines, and lines that begin with '#', are
// ignored. Fails if the file has no token, too many, or a line that is no token. The caller frees
// *tokens with inf_tokens_free().
enum inf_code inf_tokens_load(struct inf_tokens **tokens, const char *path,
                              struct inf_error *err) INF_NODISCARD;

// Returns the number, from 1 on, of the token in `authorization`, the value of the header field
// Authorization, which must be "Bearer" and the token; 0 if it is none of the tokens. The time does
// not depend on which bytes of a token are wrong.
unsigned inf_tokens_find(const struct inf_tokens *tokens, struct inf_span authorization);

// Erases and frees the tokens. NULL is allowed.
void inf_tokens_free(struct inf_tokens *tokens);

#endif
