// SPDX-License-Identifier: Apache-2.0
// Chooses the nice value of a load. A low one alone would starve the load on a machine whose cores
// are all busy, so a load that got nearly nothing in a period gets a better one in the next.
#include "daemon/policy/load_nice.h"

int inf_load_nice_choose(struct inf_load_nice *load, bool serving, uint64_t now_ns, uint64_t cpu_ns)
{
    bool starved =
        load->at_ns != 0 && (cpu_ns - load->cpu_ns) * INF_LOAD_STARVED_PARTS < now_ns - load->at_ns;
    load->cpu_ns = cpu_ns;
    load->at_ns = now_ns;
    if (load->wanted || !serving)
        return 0;
    return starved ? INF_LOAD_NICE_STARVED : INF_LOAD_NICE_LOW;
}
