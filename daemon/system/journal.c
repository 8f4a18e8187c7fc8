// SPDX-License-Identifier: Apache-2.0
// Encodes log lines in the native protocol of journald: a datagram of lines "FIELD=value". This
// code replaces sd_journal_send(), which blocks while the journal is full. The thread that writes
// the log instead polls the socket, and gives up shortly after the daemon asks it to stop.
//
// A text from a client can contain something that looks like a field. Only the first field of each
// name is sent, and the daemon writes texts from clients at the end of a log line, except in lines
// about acts of admins. A client that is no admin can therefore add a field that the line does not
// have, but cannot change a field of the line.
#include "daemon/system/journal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/core/span.h"

// The most fields of one log line. No line of the daemon has more.
#define FIELDS_MAX 24u

// The names of the fields that were found in a log line so far. The pointers point into the line.
struct field_names {
    const char *names[FIELDS_MAX];
    size_t sizes[FIELDS_MAX];
    size_t count;
};

// A journal entry that is being encoded. `text` has INF_JOURNAL_ENTRY_BYTES bytes; what exceeds
// them is cut off.
struct entry {
    char *text;
    size_t size;
};

int inf_journal_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void append_bytes(struct entry *entry, const char *bytes, size_t size)
{
    size_t room = INF_JOURNAL_ENTRY_BYTES - entry->size;
    size = INF_MIN(size, room);
    memcpy(entry->text + entry->size, bytes, size);
    entry->size += size;
}

static void append_text(struct entry *entry, const char *text)
{
    append_bytes(entry, text, strlen(text));
}

// Returns the MESSAGE_ID of a log line; NULL if this kind of line has none.
static const char *find_message_id(const char *line)
{
    static const struct {
        const char *text, *id;
    } messages[] = {
#define INF_JOURNAL_MESSAGE(text, id) {text, id},
#include "daemon/system/journal.def"
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(messages); i++) {
        size_t size = strlen(messages[i].text);
        if (strncmp(line, messages[i].text, size) == 0 &&
            (line[size] == '\0' || line[size] == ' ' || line[size] == ':'))
            return messages[i].id;
    }
    return NULL;
}

// If the name is not in `names` yet, adds it and returns true. Returns false if the name is in
// `names` already, or if `names` is full.
static bool is_first(struct field_names *names, const char *name, size_t size)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->sizes[i] == size && memcmp(names->names[i], name, size) == 0)
            return false;
    if (names->count == FIELDS_MAX)
        return false;
    names->names[names->count] = name;
    names->sizes[names->count++] = size;
    return true;
}

static void append_field(struct entry *entry, bool about_model, const char *name, size_t name_size,
                         const char *value, size_t value_size)
{
    append_text(entry, "INFERD_");
    if (about_model && name_size == 4 && memcmp(name, "name", 4) == 0) {
        append_text(entry, "MODEL");
    } else {
        for (size_t i = 0; i < name_size; i++) {
            char upper = (char)toupper((unsigned char)name[i]);
            append_bytes(entry, &upper, 1);
        }
    }
    append_text(entry, "=");
    append_bytes(entry, value, value_size);
    append_text(entry, "\n");
}

// Returns the length of the name [a-z][a-z0-9_]* at `at` if '=' follows it; otherwise 0.
static size_t name_length(const char *at)
{
    size_t size = 0;
    while ((at[size] >= 'a' && at[size] <= 'z') ||
           (size > 0 && (at[size] == '_' || (at[size] >= '0' && at[size] <= '9'))))
        size++;
    return at[size] == '=' ? size : 0;
}

static void append_fields(struct entry *entry, const char *line)
{
    struct field_names names = {.count = 0};
    bool about_model = strncmp(line, "model ", 6) == 0;
    for (const char *at = line; *at != '\0';) {
        size_t size = name_length(at);
        if (size == 0) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
            continue;
        }
        bool quoted = at[size + 1] == '"';
        const char *value = at + size + 1 + quoted;
        size_t value_size = strcspn(value, quoted ? "\"" : " ");
        if (is_first(&names, at, size))
            append_field(entry, about_model, at, size, value, value_size);
        at = value + value_size;
        at += *at == '"';
        at += strspn(at, " ");
    }
}

size_t inf_journal_encode(char text[INF_JOURNAL_ENTRY_BYTES], enum inf_log_level level,
                          const char *line)
{
    struct entry entry = {.text = text};
    const char *id = find_message_id(line);
    char priority[32];
    snprintf(priority, sizeof priority, "PRIORITY=%d\n", (int)level);
    append_text(&entry, "MESSAGE=");
    append_text(&entry, line);
    append_text(&entry, "\nSYSLOG_IDENTIFIER=inferd\n");
    append_text(&entry, priority);
    if (id != NULL) {
        append_text(&entry, "MESSAGE_ID=");
        append_text(&entry, id);
        append_text(&entry, "\n");
    }
    append_fields(&entry, line);
    return entry.size;
}
