// SPDX-License-Identifier: Apache-2.0
// Races among the forms in which the nodes of a chain or a stream may be computed, with operands of zeros.
#ifndef INF_BACKENDS_CPU_PROGRAM_FORM_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_FORM_RACE_H

#include "backends/base/role.h"
#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/program.h"

// Two forms of a group.
#define INF_CPU_FORMS 2u

// "nodes", "chains", "streams". Static.
const char *inf_cpu_form_name(enum inf_cpu_fusing fusing);

// Fills `forms` with the names and times of the nodes of `group`, of `segment`, computed in steps as large
// as `most` allows, then in steps of the next smaller kind: each is a program on slot 0 of the device, and
// both run in turn for some 20 ms at most. A form that fails keeps the time 0.
//
// INF_EXHAUSTED  memory for operands.
enum inf_code inf_cpu_race_forms(struct inf_cpu_candidate forms[INF_CPU_FORMS],
                                 struct inf_cpu_device *device, const struct inf_segment *segment,
                                 const struct inf_cpu_group *group, enum inf_cpu_fusing most,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
