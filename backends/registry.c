// SPDX-License-Identifier: Apache-2.0
// Finds backends by name, and opens the devices of all backends that can start here. A backend that
// cannot start is left out, with the reason.
#include "backends/registry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "backends/registry_table.h"
#include "proto/core/attributes.h"

const struct inf_backend *const *inf_registry_backends(void)
{
    return inf_registry_table;
}

const char *inf_registry_name(const struct inf_backend *backend)
{
    return backend->name;
}

const struct inf_evaluator *inf_registry_evaluator(void)
{
    return inf_ref_evaluator();
}

// --- finding backends by name, and parsing comma-separated lists of names ---

// Returns the next name of a comma-separated list, without the blanks around it; false at the end
// of the list. An empty list has one name, which is empty.
static bool next_name(const char **list, const char **name, size_t *length)
{
    if (*list == NULL)
        return false;
    const char *comma = strchr(*list, ',');
    const char *end = comma != NULL ? comma : *list + strlen(*list);
    *name = *list + strspn(*list, " \t");
    while (end > *name && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *length = end > *name ? (size_t)(end - *name) : 0;
    *list = comma != NULL ? comma + 1 : NULL;
    return true;
}

static bool names_backend(const struct inf_backend *backend, const char *name, size_t length)
{
    return strlen(backend->name) == length && memcmp(backend->name, name, length) == 0;
}

static const struct inf_backend *find_backend(const char *name, size_t length)
{
    for (size_t i = 0; inf_registry_table[i] != NULL; i++)
        if (names_backend(inf_registry_table[i], name, length))
            return inf_registry_table[i];
    return NULL;
}

const struct inf_backend *inf_registry_find(const char *name)
{
    return find_backend(name, strlen(name));
}

static bool is_listed(const struct inf_backend *backend, const char *list)
{
    const char *name;
    size_t length;
    while (next_name(&list, &name, &length))
        if (names_backend(backend, name, length))
            return true;
    return false;
}

static enum inf_code check_names(const char *list, struct inf_error *err)
{
    char known[128] = "";
    for (size_t i = 0; inf_registry_table[i] != NULL; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", used != 0 ? ", " : "",
                 inf_registry_table[i]->name);
    }
    const char *name;
    size_t length;
    while (next_name(&list, &name, &length))
        if (find_backend(name, length) == NULL)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "unknown backend '%.*s'; known ones: %s",
                                   (int)INF_MIN(length, (size_t)64), name, known);
    return INF_OK;
}

// --- opening the devices of all backends ---

// Records and logs the reason why a backend has no device at all, or one device less than it found.
INF_PRINTF(4, 5)
static void leave_out(struct inf_backend_state *state, const struct inf_device_options *options,
                      enum inf_log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(state->why, sizeof state->why, format, arguments);
    va_end(arguments);
    inf_log(options != NULL ? options->log : NULL, level,
            "backend left out backend=%s reason=\"%s\"", state->name, state->why);
}

// Opens all devices of one backend that can start.
//
// INF_INVALID  a value in `options` is invalid.
static enum inf_code open_devices(struct inf_device_list *list, struct inf_backend_state *state,
                                  const struct inf_backend *backend,
                                  const struct inf_device_options *options,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    uint32_t count = backend->probe();
    if (count == 0)
        leave_out(state, options, INF_LOG_INFO, "it finds no device");
    for (uint32_t i = 0; i < count && list->count < INF_REGISTRY_DEVICES; i++) {
        struct inf_device **device = &list->devices[list->count];
        enum inf_code code = inf_device_open(device, backend, i, options, err);
        if (code == INF_INVALID)
            return code;
        if (code == INF_OK) {
            list->count++;
            state->devices++;
            continue;
        }
        snprintf(state->why, sizeof state->why, "%.159s", err->text);
        inf_log(options != NULL ? options->log : NULL, INF_LOG_WARNING,
                "device left out backend=%s index=%" PRIu32 " reason=\"%s\"", backend->name, i,
                err->text);
    }
    return INF_OK;
}

// Opens the devices of a backend. If the backend is left out, its state records the reason. *err
// holds the last failure.
//
// INF_INVALID  a value in `options` is invalid.
static enum inf_code open_backend(struct inf_device_list *list, const struct inf_backend *backend,
                                  const char *only, const struct inf_device_options *options,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    assert(list->backend_count < INF_REGISTRY_BACKENDS && "the table has no more");
    struct inf_backend_state *state = &list->backends[list->backend_count++];
    *state = (struct inf_backend_state){.name = backend->name, .priority = backend->priority};
    if (only != NULL && backend != &inf_ref_backend && !is_listed(backend, only)) {
        snprintf(state->why, sizeof state->why, "the settings name others");
        return INF_OK;
    }
    if (only == NULL && backend->hardware != NULL && !backend->hardware()) {
        leave_out(state, options, INF_LOG_INFO, "no hardware of its own");
        return INF_OK;
    }
    if (options != NULL && backend->prepare != NULL && backend->prepare(options, err) != INF_OK) {
        leave_out(state, options, INF_LOG_WARNING, "%.159s", err->text);
        return INF_OK;
    }
    // The reference device `ref` must be in the list. If the list is full, it replaces the last
    // device.
    if (backend == &inf_ref_backend && list->count == INF_REGISTRY_DEVICES)
        inf_device_unref(&list->devices[--list->count]);
    return open_devices(list, state, backend, options, err);
}

enum inf_code inf_device_list_open(struct inf_device_list *list, const char *only,
                                   const struct inf_device_options *options, struct inf_error *err)
{
    *list = (struct inf_device_list){0};
    if (only != NULL)
        INF_TRY(check_names(only, err));
    struct inf_error failure = {0};
    for (size_t i = 0; inf_registry_table[i] != NULL; i++) {
        if (open_backend(list, inf_registry_table[i], only, options, &failure) == INF_OK)
            continue;
        inf_device_list_close(list);
        return inf_fail(err, INF_INVALID, "%s", failure.text);
    }
    if (list->count != 0 &&
        strcmp(inf_device_info(list->devices[list->count - 1])->backend, "ref") == 0)
        return INF_OK;
    inf_device_list_close(list);
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                           "the reference device cannot be opened: %s", failure.text);
}

uint32_t inf_device_list_hosts(const struct inf_device_list *list, struct inf_device **hosts,
                               uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!inf_device_info(list->devices[i])->host_memory)
            continue;
        if (count == capacity) // the last device is `ref`, which must be in the list
            count--;
        hosts[count++] = list->devices[i];
    }
    return count;
}

void inf_device_list_close(struct inf_device_list *list)
{
    while (list->count != 0)
        inf_device_unref(&list->devices[--list->count]);
}
