// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/command.h"

#define LABELS_BYTES_MAX (16u << 20)

int labels_load(struct labels *labels, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "inferctl: labels '%s': %s\n", path, strerror(errno));
        return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_FILE;
    }
    labels->text = malloc(LABELS_BYTES_MAX + 1);
    labels->size = labels->text != NULL ? fread(labels->text, 1, LABELS_BYTES_MAX, file) : 0;
    fclose(file);
    if (labels->text == NULL)
        return command_wrong("labels '%s': no memory", path);
    labels->text[labels->size] = '\0';
    for (size_t i = 0; i < labels->size; i++)
        if (labels->text[i] == '\n')
            labels->text[i] = '\0';
    return EXIT_OK;
}

const char *labels_get(const struct labels *labels, size_t index)
{
    size_t at = 0;
    for (; index > 0 && at < labels->size; index--)
        at += strlen(labels->text + at) + 1;
    return at < labels->size ? labels->text + at : "";
}

void labels_fini(struct labels *labels)
{
    free(labels->text);
    *labels = (struct labels){0};
}
