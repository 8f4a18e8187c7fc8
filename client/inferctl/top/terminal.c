// SPDX-License-Identifier: Apache-2.0
// Draws with escape sequences that common terminals support: alternate screen, cursor home, clear.
// A library such as ncurses would also support terminals with other sequences, and would redraw
// only what has changed. A screen of 24 lines every two seconds needs neither.
#include "client/inferctl/top/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define SHOW "\x1b[?1049h\x1b[?25l"
#define HIDE "\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
// Clears everything below the cursor.
#define CLEAR_BELOW "\x1b[J"

static void write_text(const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            text += written;
            size -= (size_t)written;
        }
    }
}

static void list_signals(sigset_t *set)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(set, signals[i]);
}

bool terminal_open(struct terminal *terminal)
{
    sigset_t signals;
    if (tcgetattr(STDIN_FILENO, &terminal->before) != 0)
        return false;
    list_signals(&signals);
    terminal->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal->signal_fd < 0)
        return false;
    sigprocmask(SIG_BLOCK, &signals, NULL);
    struct termios raw = terminal->before;
    // Without ISIG, Ctrl-C and Ctrl-Z arrive as keys instead of signals.
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    write_text(SHOW, strlen(SHOW));
    return true;
}

void terminal_close(struct terminal *terminal)
{
    sigset_t signals;
    write_text(HIDE, strlen(HIDE));
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal->before);
    close(terminal->signal_fd);
    list_signals(&signals);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
}

void terminal_size(unsigned *width, unsigned *height)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *width = known ? size.ws_col : 80;
    *height = known ? size.ws_row : 24;
}

void terminal_draw(const char *text, size_t size)
{
    // Leave out the newline of the last line, which would scroll the screen.
    if (size > 0 && text[size - 1] == '\n')
        size--;
    write_text(HOME, strlen(HOME));
    write_text(text, size);
    write_text(CLEAR_BELOW, strlen(CLEAR_BELOW));
}

static int read_signal(const struct terminal *terminal)
{
    struct signalfd_siginfo info;
    ssize_t size = read(terminal->signal_fd, &info, sizeof info);
    if (size != (ssize_t)sizeof info)
        return TERMINAL_TIMEOUT;
    return info.ssi_signo == SIGWINCH ? TERMINAL_RESIZED : TERMINAL_END;
}

int terminal_wait(const struct terminal *terminal, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = terminal->signal_fd, .events = POLLIN}};
    unsigned char key;
    if (poll(fds, 2, timeout_ms) <= 0)
        return TERMINAL_TIMEOUT;
    if (fds[1].revents != 0)
        return read_signal(terminal);
    return read(STDIN_FILENO, &key, 1) == 1 ? key : TERMINAL_END;
}
