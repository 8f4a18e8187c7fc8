// SPDX-License-Identifier: Apache-2.0
// bench_serving [--part NAME,...] [--seconds N] [--models DIR] [--json FILE]
//
// Measures all properties that serving must have under load, in one run on this machine. Prints one
// line per property with the name, the measurement, its bound, and whether the bound holds. The
// parts:
//   rpc       1 KiB compared with a bare socket and a bare loop with a worker; requests per second
//   pinned    the first measurement of rpc again, all on one processor
//   engine    real models (--models DIR, as shared/models) compared with the engine alone
//   overload  three times the load that the device can serve
//   fairness  two users whose models differ tenfold in cost (needs root)
//   batching  16 clients with one row each compared with the best static batch
//   deadlines deadlines, cancels and the duration of a loop iteration while the device is busy
//   idle      memory, wake-ups, ten thousand connections
// The program starts its own daemons: the inferd of this build directory, or $INFERD. Results are
// valid only if nothing else runs on the machine.
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/bench/serving_parts.h"

static void show_pinned(struct figures *figures, const struct serving_options *options)
{
    struct serving_options pinned = *options;
    cpu_set_t before;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    pinned.pinned = true;
    if (sched_getaffinity(0, sizeof before, &before) != 0 ||
        sched_setaffinity(0, sizeof one, &one) != 0) {
        figures_skip(figures, "on one processor", "cannot be pinned to it");
        return;
    }
    serving_show_rpc(figures, &pinned);
    sched_setaffinity(0, sizeof before, &before);
}

static const struct {
    const char *name;
    void (*show)(struct figures *figures, const struct serving_options *options);
} parts[] = {
    {"rpc", serving_show_rpc},
    {"pinned", show_pinned},
    {"engine", serving_show_engine},
    {"overload", serving_show_overload},
    {"fairness", serving_show_fairness},
    {"batching", serving_show_batching},
    {"deadlines", serving_show_deadlines},
    {"idle", serving_show_idle},
};

// Returns true if `name` is in the list of names, or the list is NULL.
static bool is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return list == NULL;
}

int main(int argc, char **argv)
{
    struct serving_options options = {.seconds = 1};
    struct figures figures;
    const char *list = NULL;
    const char *json = NULL;
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (value != NULL && strcmp(argv[i], "--part") == 0)
            list = value;
        else if (value != NULL && strcmp(argv[i], "--json") == 0)
            json = value;
        else if (value != NULL && strcmp(argv[i], "--models") == 0)
            options.models = value;
        else if (value != NULL && strcmp(argv[i], "--seconds") == 0 && atoi(value) > 0)
            options.seconds = (unsigned)atoi(value);
        else
            rpc_die("%s: wanted --part NAME,..., --seconds N, --models DIR or --json FILE",
                    argv[i]);
    }
    figures_begin(&figures, json);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!is_wanted(list, parts[i].name))
            continue;
        printf("-- %s\n", parts[i].name);
        parts[i].show(&figures, &options);
    }
    figures_end(&figures);
    return 0;
}
