// SPDX-License-Identifier: Apache-2.0
// Reads names of classes from a text file. The text is one allocation, and the pointers to the
// names are another.
#include "client/inferctl/tensor/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"

#define LABELS_BYTES_MAX (16u << 20)

// Replaces line ends ("\n" or "\r\n") by NUL.
static void split_lines(struct labels *labels)
{
    size_t kept = 0;
    for (size_t i = 0; i < labels->size; i++) {
        bool is_end = labels->text[i] == '\n';
        if (is_end && kept > 0 && labels->text[kept - 1] == '\r')
            kept--;
        labels->text[kept++] = is_end ? '\0' : labels->text[i];
    }
    // Drop empty lines at the end.
    while (kept > 1 && labels->text[kept - 1] == '\0' && labels->text[kept - 2] == '\0')
        kept--;
    labels->text[kept] = '\0';
    labels->size = kept;
}

int labels_load(struct labels *labels, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return command_say(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_FILE, "labels '%s': %s", path,
                           strerror(errno));
    labels->text = json_value_must(malloc(LABELS_BYTES_MAX + 2));
    labels->size = fread(labels->text, 1, LABELS_BYTES_MAX + 1, file);
    int error = ferror(file) != 0 ? errno : 0;
    fclose(file);
    if (error != 0)
        return command_say(EXIT_FILE, "labels '%s': %s", path, strerror(error));
    if (labels->size > LABELS_BYTES_MAX)
        return command_say(EXIT_FILE, "labels '%s': more than %u bytes", path, LABELS_BYTES_MAX);
    split_lines(labels);
    return EXIT_OK;
}

const char *labels_get(const struct labels *labels, size_t index)
{
    size_t at = 0;
    for (; index > 0 && at < labels->size; index--)
        at += strlen(labels->text + at) + 1;
    return at < labels->size ? labels->text + at : "";
}

size_t labels_count(const struct labels *labels)
{
    size_t count = 0;
    for (size_t at = 0; at < labels->size; at += strlen(labels->text + at) + 1)
        count++;
    return count;
}

void labels_fini(struct labels *labels)
{
    free(labels->text);
    *labels = (struct labels){0};
}
