// SPDX-License-Identifier: Apache-2.0
// Controls the terminal on which inferctl top draws.
#ifndef INF_CLIENT_INFERCTL_TOP_TERMINAL_H
#define INF_CLIENT_INFERCTL_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct terminal {
    struct termios before; // settings that terminal_close() restores
    int signal_fd;         // receives the signals that end the program or resize the terminal
};

// Events that terminal_wait() returns instead of a key.
enum terminal_event {
    TERMINAL_TIMEOUT = -1, // the time has passed
    TERMINAL_RESIZED = -2,
    TERMINAL_END = -3, // a signal asks the program to end, or the input has ended
};

// Turns off echo and line editing of standard input, and switches to the alternate screen of the
// terminal without a cursor. Blocks the signals that end the program; terminal_wait() reports them,
// so that terminal_close() always runs. Returns false if standard input is no terminal.
bool terminal_open(struct terminal *terminal);

// Restores the screen, the cursor, the settings and the signals.
void terminal_close(struct terminal *terminal);

// Reads the size of the terminal in columns and lines. If the size is not known, sets 80 columns
// and 24 lines.
void terminal_size(unsigned *width, unsigned *height);

// Replaces the contents of the screen by a text of `size` bytes.
void terminal_draw(const char *text, size_t size);

// Waits for a key for at most `timeout_ms` milliseconds. Returns the byte of the key, or a value of
// enum terminal_event.
int terminal_wait(const struct terminal *terminal, int timeout_ms);

#endif
