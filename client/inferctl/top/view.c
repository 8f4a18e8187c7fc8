// SPDX-License-Identifier: Apache-2.0
// The screen has a summary and four lists: devices, models, clients and requests. put_cell() writes
// all text: it cuts a text to the width of its column and of the screen, and replaces control
// characters by '?'. A name that a client chose can therefore neither widen a column nor send
// escape sequences to the terminal. If the height is limited, each list can use a share of the
// lines that are left, and lines that the list does not use are left for the next lists.
#include "client/inferctl/top/view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/table.h"

#define LINE_BYTES 1024

// Escape sequences of the colours.
#define BOLD  "\x1b[1m"
#define RED   "\x1b[31m"
#define RESET "\x1b[0m"

struct screen {
    const struct view *view;
    const struct sample *before, *now;
    FILE *out;
    unsigned left;   // number of lines that may still be written; UINT32_MAX: no limit
    unsigned column; // number of columns of the current line that are written
};

const char *view_order_name(enum view_order order)
{
    static const char *const names[] = {
        [VIEW_BY_RATE] = "rate", [VIEW_BY_MEMORY] = "memory", [VIEW_BY_NAME] = "name"};
    return names[order];
}

// --- lines ---

// Writes a text, cut or filled with blanks to `width` columns. If `width` is negative, aligns the
// text to the right in -width columns. Each UTF-8 character counts as one column.
static void put_cell(struct screen *screen, int width, const char *text)
{
    unsigned room = (unsigned)abs(width);
    unsigned length = 0;
    if (screen->column > 0 && screen->column < screen->view->width) {
        fputc(' ', screen->out);
        screen->column++;
    }
    unsigned limit = screen->view->width - screen->column;
    limit = room < limit ? room : limit;
    for (const char *at = text; *at != '\0'; at++)
        length += ((unsigned char)*at & 0xc0) != 0x80;
    length = length < limit ? length : limit;
    for (unsigned i = length; width < 0 && i < limit; i++)
        fputc(' ', screen->out);
    for (unsigned shown = 0; *text != '\0'; text++) {
        bool first = ((unsigned char)*text & 0xc0) != 0x80;
        if (first && shown++ == length)
            break;
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, screen->out);
    }
    for (unsigned i = length; width >= 0 && i < limit; i++)
        fputc(' ', screen->out);
    screen->column += limit;
}

static void put_number(struct screen *screen, int width, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void put_number(struct screen *screen, int width, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put_cell(screen, -width, text);
}

static void put_bytes(struct screen *screen, uint64_t bytes)
{
    char text[16];
    put_cell(screen, -10, table_bytes(bytes, text));
}

// Begins a line. Returns false if the screen has no line left.
static bool begin_line(struct screen *screen, const char *colour)
{
    if (screen->left == 0)
        return false;
    screen->left -= screen->left != UINT32_MAX;
    screen->column = 0;
    if (screen->view->colour)
        fputs(colour, screen->out);
    return true;
}

static void end_line(struct screen *screen)
{
    if (screen->view->colour)
        fputs(RESET, screen->out);
    fputs(screen->view->line_end, screen->out);
    fputc('\n', screen->out);
}

static void put_blank_line(struct screen *screen)
{
    if (begin_line(screen, ""))
        end_line(screen);
}

// --- lists ---

// A row of a list, with the values by which the list is sorted.
struct row {
    const void *item;
    const char *name;
    double rate;
    uint64_t memory, number;
};

static int compare_by_rate(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->rate != y->rate)
        return x->rate < y->rate ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_by_memory(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->memory != y->memory)
        return x->memory < y->memory ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_by_name(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->number < y->number ? -1 : x->number > y->number;
}

static void sort_rows(const struct view *view, struct row *rows, size_t count)
{
    static int (*const compare[])(const void *, const void *) = {
        [VIEW_BY_RATE] = compare_by_rate,
        [VIEW_BY_MEMORY] = compare_by_memory,
        [VIEW_BY_NAME] = compare_by_name,
    };
    qsort(rows, count, sizeof *rows, compare[view->order]);
}

static bool passes_filter(const struct view *view, const char *name, const char *other)
{
    return strstr(name, view->filter) != NULL || strstr(other, view->filter) != NULL;
}

// Returns how many of `count` rows fit a list that may use 1/share of the lines that are left. A
// list also needs a blank line and a head. If rows do not fit, it needs a line with their number.
static size_t fit_rows(const struct screen *screen, size_t count, unsigned share)
{
    unsigned lines = screen->left / share;
    if (screen->left == UINT32_MAX || count + 2 <= lines)
        return count;
    return lines > 3 ? lines - 3 : 0;
}

static void put_rest(struct screen *screen, size_t rest)
{
    if (rest == 0 || !begin_line(screen, ""))
        return;
    char text[48];
    snprintf(text, sizeof text, "... %zu more", rest);
    put_cell(screen, (int)strlen(text), text);
    end_line(screen);
}

static void draw_summary(struct screen *screen)
{
    const inferd_server_status *status = &screen->now->status;
    const inferd_server_status *old = &screen->before->status;
    char uptime[24];
    char memory[16], used[16], limit[16];
    char text[LINE_BYTES];
    bool healthy = strcmp(status->state, "ready") == 0;
    snprintf(text, sizeof text, "inferd %s  %s  up %s  sorted by %s%s%s", status->version,
             status->state, table_duration(status->uptime_ns, uptime),
             view_order_name(screen->view->order), screen->view->filter[0] != '\0' ? ", only " : "",
             screen->view->filter);
    if (begin_line(screen, healthy ? BOLD : BOLD RED)) {
        put_cell(screen, (int)strlen(text), text);
        end_line(screen);
    }
    snprintf(
        text, sizeof text,
        "%u clients  %u in flight  %.1f ok/s  %.1f failed/s  %u models  memory %s",
        status->connections, status->requests_in_flight,
        sample_rate(screen->before, screen->now, old->requests_ok, status->requests_ok),
        sample_rate(screen->before, screen->now, old->requests_failed, status->requests_failed),
        status->models_ready, table_bytes(status->resident_bytes, memory));
    size_t length = strlen(text);
    const struct memory_use *use = &screen->now->memory;
    if (use->limit_bytes > 0)
        snprintf(text + length, sizeof text - length, "  budget %s of %s",
                 table_bytes(use->used_bytes, used), table_bytes(use->limit_bytes, limit));
    if (begin_line(screen, "")) {
        put_cell(screen, (int)strlen(text), text);
        end_line(screen);
    }
}

static void put_head(struct screen *screen, const char *head)
{
    put_blank_line(screen);
    if (!begin_line(screen, BOLD))
        return;
    put_cell(screen, (int)strlen(head), head);
    end_line(screen);
}

static void draw_devices(struct screen *screen)
{
    const struct sample *now = screen->now;
    size_t shown = fit_rows(screen, now->device_count, 2);
    put_head(screen, "DEVICE           KIND        HEALTH       BUSY  QUEUE    REQ/S     MEMORY");
    for (size_t i = 0; i < shown; i++) {
        const inferd_device_row *device = &now->devices[i];
        if (!begin_line(screen, strcmp(device->health, "ok") == 0 ? "" : RED))
            return;
        put_cell(screen, 16, device->name);
        put_cell(screen, 11, device->kind);
        put_cell(screen, 11, device->health);
        put_number(screen, 4, "%.0f%%", 100 * sample_device_busy(screen->before, now, device));
        put_number(screen, 6, "%u", device->queue_depth);
        put_number(screen, 8, "%.1f", sample_device_rate(screen->before, now, device));
        put_bytes(screen, device->memory_bytes);
        end_line(screen);
    }
    put_rest(screen, now->device_count - shown);
}

static void draw_models(struct screen *screen)
{
    const struct sample *now = screen->now;
    struct row *rows = calloc(now->model_count + 1, sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; rows != NULL && i < now->model_count; i++) {
        const inferd_model_row *model = &now->models[i];
        if (passes_filter(screen->view, model->name, model->device))
            rows[count++] = (struct row){.item = model,
                                         .name = model->name,
                                         .rate = sample_model_rate(screen->before, now, model),
                                         .memory = model->memory_bytes,
                                         .number = i};
    }
    sort_rows(screen->view, rows, count);
    size_t shown = fit_rows(screen, count, 3);
    put_head(screen,
             "MODEL                    STATE       DEVICE      REQ/S   REQUESTS     MEMORY");
    for (size_t i = 0; i < shown; i++) {
        const inferd_model_row *model = rows[i].item;
        if (!begin_line(screen, strcmp(model->state, "UNAVAILABLE") == 0 ? RED : ""))
            break;
        put_cell(screen, 24, model->name);
        put_cell(screen, 11, model->state);
        put_cell(screen, 8, model->device);
        put_number(screen, 8, "%.1f", rows[i].rate);
        put_number(screen, 10, "%" PRIu64, model->requests);
        put_bytes(screen, model->memory_bytes);
        end_line(screen);
    }
    put_rest(screen, count - shown);
    free(rows);
}

static void draw_clients(struct screen *screen)
{
    const struct sample *now = screen->now;
    struct row *rows = calloc(now->client_count + 1, sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; rows != NULL && i < now->client_count; i++) {
        const inferd_client_row *client = &now->clients[i];
        if (passes_filter(screen->view, client->name, client->name))
            rows[count++] = (struct row){.item = client,
                                         .name = client->name,
                                         .rate = sample_client_rate(screen->before, now, client),
                                         .memory = client->region_bytes + client->unread_bytes,
                                         .number = i};
    }
    sort_rows(screen->view, rows, count);
    size_t shown = fit_rows(screen, count, 2);
    put_head(screen, "CLIENT NAME               UID     PID    REQ/S FLIGHT     UNREAD     SHARED");
    for (size_t i = 0; i < shown; i++) {
        const inferd_client_row *client = rows[i].item;
        if (!begin_line(screen, client->unread_bytes > 0 ? RED : ""))
            break;
        put_number(screen, 6, "%" PRIu64, client->client_id);
        put_cell(screen, 14, client->name);
        put_number(screen, 7, "%u", client->uid);
        put_number(screen, 7, "%d", client->pid);
        put_number(screen, 8, "%.1f", rows[i].rate);
        put_number(screen, 6, "%u", client->in_flight);
        put_bytes(screen, client->unread_bytes);
        put_bytes(screen, client->region_bytes);
        end_line(screen);
    }
    put_rest(screen, count - shown + now->clients_left_out);
    free(rows);
}

static void draw_requests(struct screen *screen)
{
    const struct sample *now = screen->now;
    size_t count = 0;
    for (size_t i = 0; i < now->request_count; i++)
        count += passes_filter(screen->view, now->requests[i].model, now->requests[i].device);
    size_t shown = fit_rows(screen, count, 1);
    size_t drawn = 0;
    put_head(screen,
             "REQUEST         MODEL               DEVICE   PHASE      UID       AGE       DATA");
    for (size_t i = 0; i < now->request_count && drawn < shown; i++) {
        const inferd_request_row *request = &now->requests[i];
        char text[64];
        if (!passes_filter(screen->view, request->model, request->device))
            continue;
        if (!begin_line(screen, ""))
            break;
        drawn++;
        snprintf(text, sizeof text, "%" PRIu64 ":%" PRIu64, request->client_id, request->stream_id);
        put_cell(screen, 15, text);
        put_cell(screen, 19, request->model[0] != '\0' ? request->model : request->method);
        put_cell(screen, 8, request->device);
        put_cell(screen, 7, request->phase);
        put_number(screen, 6, "%u", request->uid);
        put_cell(screen, -9, table_duration(request->age_ns, text));
        put_bytes(screen, request->data_bytes);
        end_line(screen);
    }
    put_rest(screen, count - drawn + now->requests_left_out);
}

void view_draw(const struct view *view, const struct sample *before, const struct sample *now,
               FILE *out)
{
    struct screen screen = {.view = view,
                            .before = before,
                            .now = now,
                            .out = out,
                            .left = view->height == 0 ? UINT32_MAX : view->height};
    draw_summary(&screen);
    draw_devices(&screen);
    draw_models(&screen);
    draw_clients(&screen);
    draw_requests(&screen);
}
