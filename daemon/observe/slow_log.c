// SPDX-License-Identifier: Apache-2.0
// Keeps slow requests in two tables of fixed size. `recent` is a ring of the requests that reached
// the threshold. `slowest` has the slowest requests of each series; an entry that is older than an
// hour counts as empty.
//
// Nearly all requests belong in neither table. To reject them cheaply, inf_slow_log_wants()
// compares the duration with one number for each series, the bar, which is the shortest duration in
// `slowest`. The bar is valid until the oldest entry of the series expires.
#include "daemon/observe/slow_log.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

#define EXPIRY_NS ((uint64_t)3600 * INF_NS_PER_S)
#define WINDOW_NS ((uint64_t)60 * INF_NS_PER_S)

struct slowest {
    struct inf_slow_request request; // request.number 0: the entry is empty
    uint64_t expires_ns;
};

struct inf_slow_log {
    uint64_t last_number;
    uint64_t recent_count; // requests ever added to `recent`
    struct inf_slow_request recent[INF_SLOW_LOG_RECENT];
    struct slowest slowest[INF_METRICS_SERIES_COUNT][INF_SLOW_LOG_SLOWEST];
    struct {
        uint64_t duration_ns, until_ns;
    } bars[INF_METRICS_SERIES_COUNT];
    uint64_t window_ns; // start of the minute in which `lines` log lines were written
    uint64_t left_out;
    uint32_t lines;
};

enum inf_code inf_slow_log_create(struct inf_slow_log **out_log, struct inf_error *err)
{
    *out_log = calloc(1, sizeof **out_log);
    return *out_log != NULL ? INF_OK
                            : inf_fail(err, INF_EXHAUSTED, "no memory for the slow requests");
}

void inf_slow_log_destroy(struct inf_slow_log **log)
{
    free(*log);
    *log = NULL;
}

bool inf_slow_log_wants(const struct inf_slow_log *log, uint32_t series, uint64_t duration_ns,
                        uint64_t threshold_ns, uint64_t now_ns)
{
    assert(series < INF_METRICS_SERIES_COUNT);
    return duration_ns > log->bars[series].duration_ns || now_ns >= log->bars[series].until_ns ||
           (threshold_ns > 0 && duration_ns >= threshold_ns);
}

static bool is_valid(const struct slowest *entry, uint64_t now_ns)
{
    return entry->request.number != 0 && now_ns < entry->expires_ns;
}

// Sets the bar of a series from the entries of the series in `slowest`.
static void set_bar(struct inf_slow_log *log, uint32_t series, uint64_t now_ns)
{
    uint64_t bar = UINT64_MAX;
    uint64_t until = UINT64_MAX;
    for (uint32_t i = 0; i < INF_SLOW_LOG_SLOWEST; i++) {
        const struct slowest *entry = &log->slowest[series][i];
        bool valid = is_valid(entry, now_ns);
        bar = INF_MIN(bar, valid ? entry->request.duration_ns : 0);
        until = INF_MIN(until, valid ? entry->expires_ns : now_ns);
    }
    log->bars[series].duration_ns = bar;
    log->bars[series].until_ns = until;
}

void inf_slow_log_add(struct inf_slow_log *log, uint32_t series,
                      const struct inf_slow_request *request, bool over, uint64_t now_ns)
{
    log->last_number++;
    if (over) {
        struct inf_slow_request *to = &log->recent[log->recent_count++ % INF_SLOW_LOG_RECENT];
        *to = *request;
        to->number = log->last_number;
    }
    struct slowest *least = NULL;
    uint64_t least_ns = request->duration_ns;
    for (uint32_t i = 0; i < INF_SLOW_LOG_SLOWEST; i++) {
        struct slowest *entry = &log->slowest[series][i];
        uint64_t duration_ns = is_valid(entry, now_ns) ? entry->request.duration_ns : 0;
        if (duration_ns < least_ns) {
            least = entry;
            least_ns = duration_ns;
        }
    }
    if (least != NULL) {
        *least = (struct slowest){.request = *request, .expires_ns = now_ns + EXPIRY_NS};
        least->request.number = log->last_number;
    }
    set_bar(log, series, now_ns);
}

bool inf_slow_log_may_write(struct inf_slow_log *log, uint64_t now_ns, uint64_t *left_out)
{
    if (log->window_ns == 0 || now_ns - log->window_ns >= WINDOW_NS) {
        log->window_ns = now_ns;
        log->lines = 0;
    }
    *left_out = log->left_out;
    if (log->lines == INF_SLOW_LOG_LINES) {
        log->left_out++;
        return false;
    }
    log->lines++;
    log->left_out = 0;
    return true;
}

// Returns true if `recent` has the request with this number.
static bool is_recent(const struct inf_slow_log *log, uint64_t number)
{
    for (uint64_t i = 0; i < INF_MIN(log->recent_count, INF_SLOW_LOG_RECENT); i++)
        if (log->recent[i].number == number)
            return true;
    return false;
}

const struct inf_slow_request *inf_slow_log_next(const struct inf_slow_log *log, uint32_t *cursor,
                                                 uint64_t now_ns)
{
    uint32_t recent = (uint32_t)INF_MIN(log->recent_count, INF_SLOW_LOG_RECENT);
    if (*cursor < recent)
        return &log->recent[(log->recent_count - ++*cursor) % INF_SLOW_LOG_RECENT];
    for (; *cursor < recent + INF_METRICS_SERIES_COUNT * INF_SLOW_LOG_SLOWEST;) {
        uint32_t at = (*cursor)++ - recent;
        const struct slowest *entry =
            &log->slowest[at / INF_SLOW_LOG_SLOWEST][at % INF_SLOW_LOG_SLOWEST];
        if (is_valid(entry, now_ns) && !is_recent(log, entry->request.number))
            return &entry->request;
    }
    return NULL;
}
