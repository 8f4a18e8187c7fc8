// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/program/form_race.h"

#include "backends/cpu/program/race.h"

struct trial {
    struct inf_program *program; // NULL: it could not be compiled
    struct inf_cpu_candidate *form;
    const struct inf_run *run;
};

const char *inf_cpu_form_name(enum inf_cpu_fusing fusing)
{
    static const char *const names[] = {"nodes", "chains", "streams"};
    return names[fusing];
}

static enum inf_code run(void *context)
{
    struct trial *trial = context;
    struct inf_ticket ticket;
    return inf_cpu_run(trial->program, trial->run, &ticket, NULL);
}

static void take_turn(void *context, uint32_t index)
{
    struct trial *trial = (struct trial *)context + index;
    if (trial->program != NULL && inf_cpu_race_time(trial->form, run, trial) != INF_OK) {
        inf_cpu_program_destroy(trial->program);
        trial->program = NULL;
    }
}

enum inf_code inf_cpu_race_forms(struct inf_cpu_candidate forms[INF_CPU_FORMS],
                                 struct inf_cpu_device *device, const struct inf_segment *segment,
                                 const struct inf_cpu_group *group, enum inf_cpu_fusing most,
                                 struct inf_error *err)
{
    struct trial trials[INF_CPU_FORMS] = {0};
    struct inf_cpu_operands operands = {0};
    struct inf_segment of_group = *segment;
    of_group.nodes = group->nodes;
    of_group.node_count = group->count;
    of_group.slots = 1;
    inf_role_check_may_block();
    for (uint32_t i = 0; i < INF_CPU_FORMS; i++) {
        enum inf_cpu_fusing fusing = (enum inf_cpu_fusing)(most - i);
        forms[i] = (struct inf_cpu_candidate){.family = inf_cpu_form_name(fusing)};
        trials[i].form = &forms[i];
        if (inf_cpu_compile_form(&trials[i].program, device, &of_group, fusing, NULL) != INF_OK)
            trials[i].program = NULL;
    }
    enum inf_code code =
        inf_cpu_operands_init(&operands, segment->graph, group->nodes, group->count, err);
    const struct inf_run run_of_all = {.bindings = operands.bindings};
    for (uint32_t i = 0; i < INF_CPU_FORMS; i++)
        trials[i].run = &run_of_all;
    if (code == INF_OK)
        inf_cpu_race_turns(forms, INF_CPU_FORMS, take_turn, trials);
    for (uint32_t i = 0; i < INF_CPU_FORMS; i++)
        if (trials[i].program != NULL)
            inf_cpu_program_destroy(trials[i].program);
    inf_cpu_operands_fini(&operands);
    return code;
}
