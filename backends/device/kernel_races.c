// SPDX-License-Identifier: Apache-2.0
// Races in the background wait for the idle gate before each timed run. If the daemon is not idle
// in time, the race gives up, because its model cannot be unloaded before the race ends.
#include "backends/device/kernel_races.h"

#include <stddef.h>

bool inf_race_gate_wait(struct inf_race_gate *gate)
{
    if (gate == NULL)
        return true;
    if (atomic_load(&gate->gave_up))
        return false;
    bool idle = inf_idle_gate_wait_shared(gate->idle_gate, gate->stop);
    if (!idle || atomic_load(gate->stop))
        atomic_store(&gate->gave_up, true);
    return !atomic_load(&gate->gave_up);
}
