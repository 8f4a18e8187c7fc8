// SPDX-License-Identifier: Apache-2.0
// Finds the handler of a request by its path. A ':' in a pattern stands for the name or the version
// of a model. These have no characters that need escapes in a path, so paths are not decoded: "%41"
// is not "A".
#include "client/gateway/rest/routes.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/response_json.h"
#include "client/gateway/rest/inference.h"
#include "client/gateway/rest/lookup.h"
#include "client/gateway/rest/reply.h"

#define NAMES_MAX 2 // maximum number of names in a path: model and version

static void reply_live(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                       const struct inf_span names[])
{
    (void)names;
    inf_rest_reply_json(gateway, exchange, strdup("{\"live\":true}"));
}

static void reply_ready(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                        const struct inf_span names[])
{
    (void)names;
    if (inf_link_is_ready(gateway->link))
        inf_rest_reply_json(gateway, exchange, strdup("{\"ready\":true}"));
    else
        inf_rest_reply_status(exchange, 503, "the daemon does not answer");
}

static void reply_server(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                         const struct inf_span names[])
{
    (void)names;
    inf_rest_reply_json(gateway, exchange, inf_oip_server_encode(INFERD_GATEWAY_VERSION));
}

// Sends the OpenAPI document, which describes the paths below. A test checks that both agree.
static void reply_document(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[])
{
    (void)names;
    static const char document[] = {
#include "openapi.inc"
    };
    char *text = malloc(sizeof document);
    if (text != NULL)
        memcpy(text, document, sizeof document);
    inf_rest_reply_text(gateway, exchange,
                        &(struct inf_rest_text){.content_type = "application/json",
                                                .data = text,
                                                .size = sizeof document});
}

static void run_inference(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                          const struct inf_span names[])
{
    inf_rest_inference_run(gateway, exchange, names[0], names[1]);
}

static const struct route {
    const char *pattern;
    enum inf_http_method method;
    bool admin; // allowed only on listeners for administrators
    void (*handle)(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                   const struct inf_span names[]);
} routes[] = {
    {"/v2/models/:/infer", INF_HTTP_POST, false, run_inference},
    {"/v2/models/:/versions/:/infer", INF_HTTP_POST, false, run_inference},
    {"/v2", INF_HTTP_GET, false, reply_server},
    {"/v2/health/live", INF_HTTP_GET, false, reply_live},
    {"/v2/health/ready", INF_HTTP_GET, false, reply_ready},
    {"/v2/models/stats", INF_HTTP_GET, false, inf_rest_lookup_statistics},
    {"/v2/models/:", INF_HTTP_GET, false, inf_rest_lookup_model},
    {"/v2/models/:/versions/:", INF_HTTP_GET, false, inf_rest_lookup_model},
    {"/v2/models/:/ready", INF_HTTP_GET, false, inf_rest_lookup_ready},
    {"/v2/models/:/versions/:/ready", INF_HTTP_GET, false, inf_rest_lookup_ready},
    {"/v2/models/:/stats", INF_HTTP_GET, false, inf_rest_lookup_statistics},
    {"/v2/models/:/versions/:/stats", INF_HTTP_GET, false, inf_rest_lookup_statistics},
    {"/openapi.json", INF_HTTP_GET, false, reply_document},
    {"/metrics", INF_HTTP_GET, false, inf_rest_lookup_metrics},
    {"/v2/repository/index", INF_HTTP_POST, true, inf_rest_lookup_index},
    {"/v2/repository/models/:/load", INF_HTTP_POST, true, inf_rest_lookup_load},
    {"/v2/repository/models/:/unload", INF_HTTP_POST, true, inf_rest_lookup_unload},
    {"/v2/repository/models/:/versions/:/unload", INF_HTTP_POST, true, inf_rest_lookup_unload},
};

// Paths of the protocol and of its extensions that inferd does not have.
static const struct {
    const char *pattern, *what;
} missing[] = {
    {"/v2/trace/setting",
     "settings of traces are not supported; 'inferctl slow' lists slow requests"},
    {"/v2/models/:/trace/setting", "settings of traces are not supported"},
    {"/v2/logging", "settings of the log are not supported; the daemon's setting is log_level"},
    {"/v2/models/:/config", "configurations of models are not supported"},
    {"/v2/models/:/versions/:/config", "configurations of models are not supported"},
    {"/v2/models/:/generate", "the generate extension is not supported"},
    {"/v2/systemsharedmemory/:", "system shared memory is not supported"},
    {"/v2/systemsharedmemory/region/:/:", "system shared memory is not supported"},
    {"/v2/cudasharedmemory/:", "CUDA shared memory is not supported"},
    {"/v2/cudasharedmemory/region/:/:", "CUDA shared memory is not supported"},
};

// Returns true if the path matches the pattern. Sets names[i] to the text at the i-th ':'.
static bool match_path(const char *pattern, struct inf_span path, struct inf_span names[NAMES_MAX])
{
    size_t count = 0;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != ':') {
            if (path.size == 0 || *path.data != (uint8_t)*pattern)
                return false;
            path.data++;
            path.size--;
            continue;
        }
        const uint8_t *slash = memchr(path.data, '/', path.size);
        size_t size = slash != NULL ? (size_t)(slash - path.data) : path.size;
        if (size == 0 || count == NAMES_MAX)
            return false;
        names[count++] = (struct inf_span){path.data, size};
        path.data += size;
        path.size -= size;
    }
    return path.size == 0;
}

bool inf_rest_check_head(void *context, const struct inf_http_head *head,
                         struct inf_http_refusal *refusal)
{
    // Load balancers ask these paths without a token.
    static const char *const open[] = {"/v2/health/live", "/v2/health/ready"};
    const struct inf_gateway *gateway = context;
    struct inf_span names[NAMES_MAX];
    if (gateway->tokens == NULL || inf_tokens_find(gateway->tokens, head->authorization) != 0)
        return true;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(open); i++)
        if (match_path(open[i], head->path, names))
            return true;
    *refusal = (struct inf_http_refusal){401, "the request has no valid bearer token"};
    return false;
}

uint8_t *inf_rest_place_body(void *gateway, struct inf_http_exchange *exchange, size_t size)
{
    struct inf_span names[NAMES_MAX];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(routes); i++)
        if (routes[i].handle == run_inference &&
            match_path(routes[i].pattern, exchange->head.path, names))
            return exchange->head.method == INF_HTTP_POST
                       ? inf_rest_inference_place(gateway, exchange, size)
                       : NULL;
    return NULL;
}

void inf_rest_handle(void *gateway, struct inf_http_exchange *exchange)
{
    enum inf_http_method method = exchange->head.method;
    if (method == INF_HTTP_HEAD)
        method = INF_HTTP_GET;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(routes); i++) {
        struct inf_span names[NAMES_MAX] = {0};
        if (!match_path(routes[i].pattern, exchange->head.path, names))
            continue;
        if (method != routes[i].method)
            inf_rest_reply_status(exchange, 405,
                                  routes[i].method == INF_HTTP_POST ? "POST" : "GET, HEAD");
        else if (routes[i].admin && !exchange->admin)
            inf_rest_reply_status(exchange, 403, "only on the listener for administrators");
        else
            routes[i].handle(gateway, exchange, names);
        return;
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(missing); i++) {
        struct inf_span names[NAMES_MAX];
        if (match_path(missing[i].pattern, exchange->head.path, names)) {
            inf_rest_reply_status(exchange, 501, missing[i].what);
            return;
        }
    }
    inf_rest_reply_status(exchange, 404, "there is no such path");
}
