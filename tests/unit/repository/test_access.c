// SPDX-License-Identifier: Apache-2.0
// Lists of users and groups, and the groups of a client.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/model/access.h"
#include "proto/core/limits.h"

// Users and groups of every Debian system.
#define DAEMON_UID 1u
#define GAMES_GID  60u

static struct inf_access resolve_lists(const char *users, const char *groups)
{
    struct inf_access access;
    struct inf_error err = {0};
    cr_assert_eq(inf_access_resolve(&access, users, groups, &err), INF_OK, "%s", err.text);
    return access;
}

Test(access, finds_the_numbers_of_names)
{
    struct inf_access access = resolve_lists("", "");
    cr_expect(!access.is_restricted);
    access = resolve_lists("root, daemon;7\t,  4294967294,", "games");
    cr_expect(access.is_restricted);
    cr_assert_eq(access.user_count, 4);
    const uid_t users[] = {0, DAEMON_UID, 7, 4294967294u};
    cr_expect_arr_eq(access.users, users, sizeof users);
    cr_assert_eq(access.group_count, 1);
    cr_expect_eq(access.groups[0], GAMES_GID);
    // A list without names is a list.
    cr_expect(resolve_lists(",", "").is_restricted);
    cr_expect(resolve_lists("", " ;").is_restricted);
}

// What the databases of users and groups answer; -1: they are the system's.
static int database_errno = -1;

// These replace the functions of the C library in this program.
int getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size,
               struct passwd **found)
{
    int (*real)(const char *, struct passwd *, char *, size_t, struct passwd **);
    *(void **)&real = dlsym(RTLD_NEXT, "getpwnam_r");
    if (database_errno < 0)
        return real(name, entry, buffer, size, found);
    *found = NULL;
    return database_errno;
}

int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t size,
               struct group **found)
{
    int (*real)(const char *, struct group *, char *, size_t, struct group **);
    *(void **)&real = dlsym(RTLD_NEXT, "getgrnam_r");
    if (database_errno < 0)
        return real(name, entry, buffer, size, found);
    *found = NULL;
    return database_errno;
}

Test(access, databases_that_cannot_be_read_are_no_unknown_names)
{
    static const struct {
        int error;
        enum inf_code code;
    } cases[] = {{0, INF_INVALID},         {ENOENT, INF_INVALID},    {ESRCH, INF_INVALID},
                 {EPERM, INF_UNAVAILABLE}, {EBADF, INF_UNAVAILABLE}, {ENOMEM, INF_UNAVAILABLE},
                 {EIO, INF_UNAVAILABLE},   {ERANGE, INF_UNAVAILABLE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int group = 0; group < 2; group++) {
            struct inf_access access;
            struct inf_error err = {0};
            database_errno = cases[i].error;
            cr_expect_eq(
                inf_access_resolve(&access, group ? "" : "daemon", group ? "games" : "", &err),
                cases[i].code, "%s: %s", strerror(cases[i].error), err.text);
            const char *text = cases[i].code == INF_INVALID ? "there is no" : "cannot be looked up";
            cr_expect_not_null(strstr(err.text, text), "%s", err.text);
            cr_expect(access.is_restricted && access.user_count + access.group_count == 0);
        }
    }
}

Test(access, refuses_what_is_no_name)
{
    static const struct {
        const char *users, *groups, *text;
    } cases[] = {
        {"not-there", "", "allow_users: there is no user 'not-there'"},
        {"daemon, -1", "", "there is no user '-1'"},
        {"4294967295", "", "there is no user '4294967295'"},
        {"99999999999", "", "there is no user '99999999999'"},
        {"1 000x", "", "there is no user '000x'"},
        {"daemon", "not-there", "allow_groups: there is no group 'not-there'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct inf_access access;
        struct inf_error err = {0};
        cr_expect_eq(inf_access_resolve(&access, cases[i].users, cases[i].groups, &err),
                     INF_INVALID);
        cr_expect_not_null(strstr(err.text, cases[i].text), "%s", err.text);
        cr_expect(access.is_restricted && access.user_count + access.group_count == 0, "%zu", i);
    }
    char many[256] = "";
    for (uint32_t i = 0; i < INF_ACCESS_NAMES; i++)
        strcat(many, "1,");
    cr_expect_eq(resolve_lists(many, "").user_count, INF_ACCESS_NAMES);
    strcat(many, "1");
    struct inf_access access;
    cr_expect_eq(inf_access_resolve(&access, many, "", NULL), INF_INVALID);
}

// Connects as a process with these groups, and returns whether the client is a member of `wanted`.
static bool is_member(gid_t primary, const gid_t *groups, size_t count, gid_t wanted)
{
    int status, listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_storage address = {.ss_family = AF_UNIX};
    socklen_t size = sizeof address.ss_family; // the kernel chooses an abstract name
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(listener, 1), 0);
    size = sizeof address;
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        close(ends[1]);
        if (setgroups(count, groups) != 0 || setgid(primary) != 0 ||
            connect(fd, (struct sockaddr *)&address, size) != 0)
            _exit(1);
        (void)!read(ends[0], &byte, 1);
        _exit(0);
    }
    close(ends[0]);
    struct inf_caller caller;
    int client = accept(listener, NULL, NULL);
    inf_caller_init(&caller, client, 5, false);
    bool member = inf_caller_is_member(&caller, wanted);
    cr_expect_eq(inf_caller_is_member(&caller, wanted), member, "the second answer differs");
    inf_caller_fini(&caller);
    cr_expect(!inf_caller_is_member(&caller, wanted));
    close(client);
    close(listener);
    close(ends[1]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    return member;
}

Test(access, knows_the_groups_of_a_client)
{
    static const gid_t groups[] = {7, 1000, 3, 4000000000u};
    gid_t *many = malloc((INF_LIMIT_PEER_GROUPS + 1) * sizeof *many);
    if (geteuid() != 0)
        cr_skip_test("only root may choose groups");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        cr_expect(is_member(55, groups, 4, groups[i]), "%zu", i);
    cr_expect(is_member(55, groups, 4, 55));
    cr_expect(!is_member(55, groups, 4, 8));
    cr_expect(!is_member(55, groups, 4, 0));
    cr_expect(is_member(55, NULL, 0, 55));
    cr_expect(!is_member(55, NULL, 0, 7));
    for (uint32_t i = 0; i <= INF_LIMIT_PEER_GROUPS; i++)
        many[i] = 10000 + i;
    cr_expect(is_member(55, many, INF_LIMIT_PEER_GROUPS, 10000 + INF_LIMIT_PEER_GROUPS - 1));
    cr_expect(!is_member(55, many, INF_LIMIT_PEER_GROUPS + 1, 10000));
    cr_expect(is_member(55, many, INF_LIMIT_PEER_GROUPS + 1, 55));
    free(many);
}

Test(access, allows_users_groups_and_admins)
{
    struct inf_caller user, admin;
    const struct inf_access all = {0}, none = {.is_restricted = true},
                            some = resolve_lists("7,9", "");
    inf_caller_init(&user, -1, 9, false);
    inf_caller_init(&admin, -1, 8, true);
    cr_expect(inf_access_allows(&all, &user));
    cr_expect(!inf_access_allows(&none, &user));
    cr_expect(inf_access_allows(&some, &user));
    cr_expect(inf_access_allows(&none, &admin));
    cr_expect(inf_access_allows(&none, NULL));
    user.uid = 8;
    cr_expect(!inf_access_allows(&some, &user));
}
