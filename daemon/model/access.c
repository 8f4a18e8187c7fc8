// SPDX-License-Identifier: Apache-2.0
// Names of users and groups are looked up once, when the settings of a model are read, on a thread
// that may wait for the system's databases. Requests compare numbers.
#include "daemon/model/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

// Size of the buffer for an entry of the databases. A group with many members needs much.
#define ENTRY_BYTES ((size_t)1 << 20)

// Finds the number of a name. Returns 0; ENOENT if there is no such name; or why the database
// cannot be read.
typedef int find_number(const char *name, char *buffer, uint32_t *out_number);

// Databases say in several ways that they have no such name. getpwnam_r(3) also lists EPERM and
// EBADF, but with these a database cannot be read: the GNU library returns 0 for unknown names.
static int name_errno(int error)
{
    return error == 0 || error == ESRCH ? ENOENT : error;
}

static int find_user(const char *name, char *buffer, uint32_t *out_number)
{
    struct passwd entry, *found = NULL;
    int error = getpwnam_r(name, &entry, buffer, ENTRY_BYTES, &found);
    if (found == NULL)
        return name_errno(error);
    *out_number = found->pw_uid;
    return 0;
}

static int find_group(const char *name, char *buffer, uint32_t *out_number)
{
    struct group entry, *found = NULL;
    int error = getgrnam_r(name, &entry, buffer, ENTRY_BYTES, &found);
    if (found == NULL)
        return name_errno(error);
    *out_number = found->gr_gid;
    return 0;
}

// Parses a number. UINT32_MAX is no id: system calls use it as "unchanged".
static bool parse_number(const char *text, uint32_t *out_number)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0')
        return false;
    unsigned long long number = strtoull(text, NULL, 10);
    *out_number = (uint32_t)number;
    return number < UINT32_MAX;
}

// Resolves a name or a number. `what` is "user" or "group".
static enum inf_code resolve_name(const char *name, const char *what, find_number *find,
                                  char *buffer, uint32_t *out_number,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    if (parse_number(name, out_number))
        return INF_OK;
    int error = find(name, buffer, out_number);
    if (error == ENOENT)
        return inf_fail(err, INF_INVALID,
                        "allow_%ss: there is no %s '%.64s'; wanted names or numbers, with commas "
                        "between",
                        what, what, name);
    if (error != 0)
        return inf_fail(err, INF_UNAVAILABLE, "allow_%ss: %s '%.64s' cannot be looked up: %s", what,
                        what, name, strerror(error));
    return INF_OK;
}

// Resolves a list of names. `what` is "user" or "group".
static enum inf_code resolve_list(const char *list, const char *what, find_number *find,
                                  uint32_t numbers[INF_ACCESS_NAMES], uint32_t *out_count,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    char text[1024];
    char *buffer = malloc(ENTRY_BYTES), *rest = text, *name;
    enum inf_code code = INF_OK;
    if (buffer == NULL || strlen(list) >= sizeof text) {
        free(buffer);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a list");
    }
    memcpy(text, list, strlen(list) + 1);
    while (code == INF_OK && (name = strsep(&rest, ",; \t")) != NULL) {
        if (name[0] == '\0')
            continue;
        if (*out_count == INF_ACCESS_NAMES)
            code = inf_fail(err, INF_INVALID, "allow_%ss: wanted at most %u names", what,
                            INF_ACCESS_NAMES);
        else
            code = resolve_name(name, what, find, buffer, &numbers[(*out_count)++], err);
    }
    free(buffer);
    return code;
}

enum inf_code inf_access_resolve(struct inf_access *access, const char *users, const char *groups,
                                 struct inf_error *err)
{
    _Static_assert(sizeof(uid_t) == sizeof(uint32_t) && sizeof(gid_t) == sizeof(uint32_t),
                   "ids have 32 bits");
    *access = (struct inf_access){.is_restricted = users[0] != '\0' || groups[0] != '\0'};
    if (!access->is_restricted)
        return INF_OK;
    enum inf_code code =
        resolve_list(users, "user", find_user, access->users, &access->user_count, err);
    if (code == INF_OK)
        code = resolve_list(groups, "group", find_group, access->groups, &access->group_count, err);
    if (code != INF_OK)
        *access = (struct inf_access){.is_restricted = true};
    return code;
}

bool inf_access_allows(const struct inf_access *access, struct inf_caller *caller)
{
    if (!access->is_restricted || caller == NULL || caller->admin)
        return true;
    for (uint32_t i = 0; i < access->user_count; i++)
        if (access->users[i] == caller->uid)
            return true;
    for (uint32_t i = 0; i < access->group_count; i++)
        if (inf_caller_is_member(caller, access->groups[i]))
            return true;
    return false;
}
