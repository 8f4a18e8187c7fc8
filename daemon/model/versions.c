// SPDX-License-Identifier: Apache-2.0
// Parses the settings `versions` and `labels`, and applies them to the versions in the repository.
// A version with a label is served even if `versions` excludes it, so that a label can be moved
// back to this version at any time.
#include "daemon/model/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One element of a list: the text between two separators, without surrounding spaces.
struct piece {
    const char *text;
    size_t length;
};

// Takes the next element of a list, and advances *text. Skips empty elements. Returns false at the
// end.
static bool next_piece(const char **text, struct piece *piece)
{
    *text += strspn(*text, " \t,;");
    piece->text = *text;
    piece->length = strcspn(*text, ",;");
    *text += piece->length;
    while (piece->length > 0 && strchr(" \t", piece->text[piece->length - 1]) != NULL)
        piece->length--;
    return piece->length > 0;
}

static bool is_number(struct piece piece)
{
    size_t digits = strspn(piece.text, "0123456789");
    return piece.length > 0 && piece.length <= INF_VERSION_DIGITS && digits >= piece.length;
}

static uint64_t piece_number(struct piece piece)
{
    return strtoull(piece.text, NULL, 10);
}

// --- the policy ---

// Parses "latest N" and returns N. Returns 1 for "latest", and 0 for any other text.
static uint64_t parse_latest(const char *text)
{
    text += strspn(text, " \t");
    if (strncmp(text, "latest", 6) != 0)
        return 0;
    text += 6;
    struct piece piece;
    if (!next_piece(&text, &piece))
        return 1;
    return is_number(piece) && *text == '\0' ? piece_number(piece) : 0;
}

static bool is_all(const char *text)
{
    struct piece piece;
    return next_piece(&text, &piece) && piece.length == 3 && strncmp(piece.text, "all", 3) == 0 &&
           *text == '\0';
}

bool inf_version_policy_check(const char *text, char *wanted, size_t size)
{
    struct piece piece;
    bool sound = parse_latest(text) > 0 || is_all(text);
    if (!sound) {
        sound = text[0] != '\0';
        while (next_piece(&text, &piece))
            sound = sound && is_number(piece);
    }
    if (!sound)
        snprintf(wanted, size, "latest N, all, or numbers of versions with commas between");
    return sound;
}

// Returns true if the setting `versions` with the value `policy` includes present->versions[index].
static bool is_in_policy(const char *policy, const struct inf_version_list *present, uint32_t index)
{
    uint64_t latest = parse_latest(policy);
    struct piece piece;
    if (latest > 0 || is_all(policy))
        return latest == 0 || index < latest;
    while (next_piece(&policy, &piece))
        if (is_number(piece) && piece_number(piece) == present->versions[index].number)
            return true;
    return false;
}

// --- labels ---

// Takes the next element of a list of labels, and advances *text. Returns false at the end. If the
// element is not of the form "LABEL=VERSION", label->length is 0.
static bool next_label(const char **text, struct piece *label, struct piece *version)
{
    struct piece piece;
    if (!next_piece(text, &piece))
        return false;
    const char *equals = memchr(piece.text, '=', piece.length);
    *label = *version = (struct piece){.text = piece.text};
    if (equals == NULL)
        return true;
    const char *after = equals + 1 + strspn(equals + 1, " \t");
    version->text = after;
    version->length =
        after < piece.text + piece.length ? (size_t)(piece.text + piece.length - after) : 0;
    label->length = (size_t)(equals - piece.text);
    while (label->length > 0 && strchr(" \t", label->text[label->length - 1]) != NULL)
        label->length--;
    return true;
}

static bool is_label(struct piece label)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return label.length > 0 && label.length <= INF_LIMIT_MODEL_NAME &&
           strchr(letters, label.text[0]) != NULL && strspn(label.text, allowed) >= label.length;
}

bool inf_version_labels_check(const char *text, char *wanted, size_t size)
{
    struct piece label, version;
    while (next_label(&text, &label, &version)) {
        if (is_label(label) && is_number(version))
            continue;
        snprintf(wanted, size, "LABEL=VERSION, and commas between; a label begins with a letter");
        return false;
    }
    return true;
}

bool inf_version_is_label(const char *version)
{
    return version[0] != '\0' && strspn(version, "0123456789") != strlen(version);
}

bool inf_version_labels_find(const char *labels, const char *name, char version[INF_VERSION_TEXT])
{
    struct piece label, number;
    while (next_label(&labels, &label, &number)) {
        if (label.length != strlen(name) || strncmp(label.text, name, label.length) != 0 ||
            !is_number(number))
            continue;
        snprintf(version, INF_VERSION_TEXT, "%.*s", (int)number.length, number.text);
        return true;
    }
    return false;
}

bool inf_version_labels_next(const char **labels, char version[INF_VERSION_TEXT])
{
    struct piece label, number;
    if (!next_label(labels, &label, &number))
        return false;
    snprintf(version, INF_VERSION_TEXT, "%.*s", (int)number.length, number.text);
    return true;
}

void inf_version_labels_of(const char *labels, const char *version, char *names)
{
    struct piece label, number;
    size_t length = 0;
    names[0] = '\0';
    while (next_label(&labels, &label, &number))
        if (number.length == strlen(version) && strncmp(number.text, version, number.length) == 0 &&
            length < INF_CONFIG_TEXT)
            length += (size_t)snprintf(names + length, INF_CONFIG_TEXT - length, "%s%.*s",
                                       length > 0 ? "," : "", (int)label.length, label.text);
}

static bool has_label(const char *labels, const char *version)
{
    char names[INF_CONFIG_TEXT];
    inf_version_labels_of(labels, version, names);
    return names[0] != '\0';
}

// --- choosing ---

void inf_versions_choose(struct inf_model_versions *chosen, const char *policy, const char *labels,
                         const struct inf_version_list *present)
{
    // Take the versions that `policy` includes before those that only have a label, so that the
    // highest version of `policy` is the default.
    *chosen = (struct inf_model_versions){.known = true};
    snprintf(chosen->labels, sizeof chosen->labels, "%s", labels);
    for (uint32_t i = 0; i < present->count && chosen->count < INF_VERSIONS_MAX; i++)
        if (is_in_policy(policy, present, i))
            snprintf(chosen->versions[chosen->count++], INF_VERSION_TEXT, "%s",
                     present->versions[i].name);
    for (uint32_t i = 0; i < present->count && chosen->count < INF_VERSIONS_MAX; i++)
        if (!is_in_policy(policy, present, i) && has_label(labels, present->versions[i].name))
            snprintf(chosen->versions[chosen->count++], INF_VERSION_TEXT, "%s",
                     present->versions[i].name);
}
