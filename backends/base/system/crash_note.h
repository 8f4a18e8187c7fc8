// SPDX-License-Identifier: Apache-2.0
// Leaves a note if the process crashes while it computes something: the key of what was computed.
// The next process reads the notes. State of the whole process, because signal handlers are.
#ifndef INF_BACKENDS_BASE_SYSTEM_CRASH_NOTE_H
#define INF_BACKENDS_BASE_SYSTEM_CRASH_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// Length of a note: a key in 16 hexadecimal digits, and the end of the line.
#define INF_CRASH_NOTE_BYTES 17u

// The signals of a crash: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT.
#define INF_CRASH_SIGNALS 5
extern const int inf_crash_signals[INF_CRASH_SIGNALS];

// Installs handlers for the signals of a crash. A handler
// appends a note to `fd`, and lets the crash take its course. `fd` stays open until
// inf_crash_note_remove(). Signals that another process sent are no crashes.
//
// INF_EXHAUSTED  the system refuses a handler.
enum inf_code inf_crash_note_install(int fd, struct inf_error *err) INF_NODISCARD;

// Restores the handlers that inf_crash_note_install() replaced. Does nothing if it was not called.
void inf_crash_note_remove(void);

// Begins and ends something with a key that is not 0, on the calling thread. Takes a few
// nanoseconds, and never blocks.
void inf_crash_note_begin(uint64_t key);
void inf_crash_note_end(void);

// Returns the key of what the calling thread computes; 0: nothing.
uint64_t inf_crash_note_key(void);

// Makes the calling thread a helper of the thread that began something with this key; 0: it helps
// no longer.
void inf_crash_note_help(uint64_t key);

// Returns the key of a note; 0 if the INF_CRASH_NOTE_BYTES bytes at `line` are none.
uint64_t inf_crash_note_parse(const char *line);

#endif
