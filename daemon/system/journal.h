// SPDX-License-Identifier: Apache-2.0
// Encodes log lines as entries of systemd's journal. A log line is "what happened key=value
// key=value". The entry has the whole line, its priority, a MESSAGE_ID if this kind of line has
// one, and a field INFERD_KEY=value for each key.
#ifndef INF_DAEMON_SYSTEM_JOURNAL_H
#define INF_DAEMON_SYSTEM_JOURNAL_H

#include <stddef.h>

#include "backends/base/log.h"

// The path of the socket of journald.
#define INF_JOURNAL_SOCKET "/run/systemd/journal/socket"

// Buffer size for an entry, which has the log line twice: as a whole and as fields.
#define INF_JOURNAL_ENTRY_BYTES 4096

// Connects to the socket of the journal at `path`. Returns a descriptor, which the caller closes;
// -1 if it cannot connect.
int inf_journal_open(const char *path);

// Writes the entry for a log line to `entry`, and returns the size of the entry. The line must have
// no control characters.
size_t inf_journal_encode(char entry[INF_JOURNAL_ENTRY_BYTES], enum inf_log_level level,
                          const char *line);

#endif
