// SPDX-License-Identifier: Apache-2.0
// Prints results next to their bounds, and writes them as JSON.
#include "tests/tools/bench/figures.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "tests/tools/bench/rpc_samples.h"

void figures_begin(struct figures *figures, const char *json_path)
{
    struct utsname machine;
    double load = 0;
    FILE *file = fopen("/proc/loadavg", "r");
    if (file == NULL || fscanf(file, "%lf", &load) != 1)
        load = 0;
    if (file != NULL)
        fclose(file);
    uname(&machine);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *figures = (struct figures){0};
    printf("%ld cores, %s %s, load average %.2f before\n", cores, machine.sysname, machine.release,
           load);
    printf("%-58s %12s  %-12s\n", "what", "measured", "bound");
    if (json_path == NULL)
        return;
    figures->json = fopen(json_path, "w");
    if (figures->json == NULL)
        rpc_die("cannot write %s", json_path);
    fprintf(figures->json,
            "{\"cores\": %ld, \"kernel\": \"%s\", \"load_before\": %.2f, \"figures\": [", cores,
            machine.release, load);
}

void figures_add(struct figures *figures, const struct figure *figure)
{
    bool held = figure->kind == FIGURE_NONE ||
                (figure->kind == FIGURE_AT_MOST ? figure->measured <= figure->bound
                                                : figure->measured >= figure->bound);
    char bound[32] = "";
    if (figure->kind != FIGURE_NONE)
        snprintf(bound, sizeof bound, "%s %.6g",
                 figure->kind == FIGURE_AT_MOST ? "<=" : ">=", figure->bound);
    printf("%-58s %12.6g  %-12s %-6s %s\n", figure->what, figure->measured, bound, figure->unit,
           figure->kind == FIGURE_NONE ? ""
           : held                      ? "ok"
                                       : "MISSED");
    fflush(stdout);
    if (figures->json != NULL) {
        fprintf(figures->json, "%s\n  {\"what\": \"%s\", \"measured\": %.6g, \"unit\": \"%s\"",
                figures->count > 0 ? "," : "", figure->what, figure->measured, figure->unit);
        if (figure->kind != FIGURE_NONE)
            fprintf(figures->json, ", \"%s\": %.6g, \"held\": %s",
                    figure->kind == FIGURE_AT_MOST ? "at_most" : "at_least", figure->bound,
                    held ? "true" : "false");
        fputc('}', figures->json);
    }
    figures->count++;
    figures->missed += !held;
}

void figures_skip(struct figures *figures, const char *what, const char *why)
{
    printf("%-58s %12s  %s\n", what, "-", why);
    if (figures->json != NULL)
        fprintf(figures->json, "%s\n  {\"what\": \"%s\", \"skipped\": \"%s\"}",
                figures->count > 0 ? "," : "", what, why);
    figures->count++;
}

void figures_end(struct figures *figures)
{
    printf("%u missed of %u lines\n", figures->missed, figures->count);
    if (figures->json == NULL)
        return;
    fprintf(figures->json, "\n], \"missed\": %u}\n", figures->missed);
    fclose(figures->json);
}
