// SPDX-License-Identifier: Apache-2.0
// Reports that memory is short: the kernel notifies the process when tasks of its control group
// waited for memory for a while (a trigger of pressure stall information).
#ifndef INF_DAEMON_SYSTEM_MEMORY_TRIGGER_H
#define INF_DAEMON_SYSTEM_MEMORY_TRIGGER_H

#include <stdbool.h>

#include "proto/core/status.h"

// Zeroed by inf_memory_trigger_init().
struct inf_memory_trigger {
    int pressure_fd; // the file memory.pressure with the trigger; -1: none
    int epoll_fd;    // becomes readable when the trigger fires; -1: none
};

// Sets up a trigger without files, so that inf_memory_trigger_close() may be called.
void inf_memory_trigger_init(struct inf_memory_trigger *trigger);

// Sets a trigger on the control group of the process, below the directory `root` ("": the real
// system). The pressure of the whole machine is no reason to act: other processes may cause it.
//
// INF_UNSUPPORTED  the process is in the root group, the kernel has no file memory.pressure for its
//                  group, or the process may not write to it.
// INF_EXHAUSTED    descriptors.
enum inf_code inf_memory_trigger_open(struct inf_memory_trigger *trigger, const char *root,
                                      struct inf_error *err) INF_NODISCARD;

// Watches an open descriptor as inf_memory_trigger_open() watches the file: it fires when the
// descriptor has urgent data (EPOLLPRI). Takes ownership of the descriptor, also on failure.
//
// INF_EXHAUSTED  descriptors.
enum inf_code inf_memory_trigger_adopt(struct inf_memory_trigger *trigger, int fd,
                                       struct inf_error *err) INF_NODISCARD;

// Returns the descriptor to watch, or -1 if no trigger is set. The descriptor becomes readable when
// the trigger fires, and stays readable until inf_memory_trigger_clear().
int inf_memory_trigger_fd(const struct inf_memory_trigger *trigger);

// Clears the trigger after its descriptor became readable. Returns false if the control group or
// the file is gone, so that the trigger never fires again.
bool inf_memory_trigger_clear(struct inf_memory_trigger *trigger);

// Closes the files.
void inf_memory_trigger_close(struct inf_memory_trigger *trigger);

#endif
