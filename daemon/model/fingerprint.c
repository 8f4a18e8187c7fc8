// SPDX-License-Identifier: Apache-2.0
// Fingerprints of files and directories. The fingerprint of a directory is the sum of the
// fingerprints of its entries, because the order in which the system lists entries is not fixed.
// Changes of a file are recognised by its inode, size and modification time: a file that was
// replaced by a rename has another inode, and a file that was written to has another time.
#include "daemon/model/fingerprint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "proto/core/attributes.h"
#include "proto/core/limits.h"

// Mixes a number into a hash. Multiplying by an odd factor modulo 2^64 maps different numbers to
// different results, so no information is lost; the shift lets high bits change low ones.
static uint64_t mix_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name != '\0'; name++)
        hash = mix_number(hash, (unsigned char)*name);
    return hash;
}

static uint64_t hash_status(const struct stat *status)
{
    const uint64_t facts[] = {(uint64_t)status->st_dev, (uint64_t)status->st_ino,
                              (uint64_t)status->st_size, (uint64_t)status->st_mtim.tv_sec,
                              (uint64_t)status->st_mtim.tv_nsec};
    uint64_t hash = 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(facts); i++)
        hash = mix_number(hash, facts[i]);
    return hash;
}

// Returns a time in nanoseconds.
static uint64_t join_time(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * INF_NS_PER_S + (uint64_t)time->tv_nsec;
}

// What one fingerprint covers.
struct walk {
    uint32_t *left;     // number of entries that can still be covered; decremented for each
    uint64_t newest_ns; // newest change of a file, on CLOCK_REALTIME
};

static uint64_t sum_directory(int fd, const char *skipped, uint32_t depth, struct walk *walk);

// Returns the fingerprint of one entry; 0 if it does not exist.
static uint64_t sum_entry(int directory_fd, const char *name, uint32_t depth, struct walk *walk)
{
    struct stat status;
    if (*walk->left == 0 || fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    (*walk->left)--;
    uint64_t hash = hash_name(name);
    if (!S_ISDIR(status.st_mode)) {
        // Copying programs may set an older modification time, but not that of the status.
        walk->newest_ns = INF_MAX(walk->newest_ns, join_time(&status.st_ctim));
        return mix_number(hash, hash_status(&status)) | 1;
    }
    // The modification time of a directory also changes if a hidden entry is added, so only the
    // visible entries of the directory count.
    int fd = depth < INF_FINGERPRINT_DEPTH
                 ? openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    return mix_number(hash, fd >= 0 ? sum_directory(fd, NULL, depth + 1, walk) : 0) | 1;
}

// Returns the sum of the fingerprints of the entries of a directory except `skipped` (NULL: none).
// Closes `fd`.
static uint64_t sum_directory(int fd, const char *skipped, uint32_t depth, struct walk *walk)
{
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        close(fd);
        return 0;
    }
    uint64_t sum = 0;
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && (skipped == NULL || strcmp(entry->d_name, skipped) != 0))
            sum += sum_entry(dirfd(directory), entry->d_name, depth, walk);
    closedir(directory);
    return sum;
}

uint64_t inf_fingerprint_entry(int directory_fd, const char *name)
{
    uint32_t left = INF_FINGERPRINT_ENTRIES_MAX;
    return inf_fingerprint_entry_within(directory_fd, name, &left);
}

uint64_t inf_fingerprint_entry_within(int directory_fd, const char *name, uint32_t *left)
{
    inf_role_check_may_block();
    struct walk walk = {.left = left};
    return sum_entry(directory_fd, name, 0, &walk);
}

uint64_t inf_fingerprint_model(int repository_fd, const char *name, uint64_t *out_age_ns)
{
    static const char *const suffixes[] = {"", ".json", ".onnx", ".tflite", ".conf"};
    uint64_t sum = 0, newest_ns = 0;
    struct timespec now;
    inf_role_check_may_block();
    clock_gettime(CLOCK_REALTIME, &now);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(suffixes); i++) {
        char entry[INF_LIMIT_MODEL_NAME + 8];
        uint32_t left = INF_FINGERPRINT_ENTRIES_MAX;
        struct walk walk = {.left = &left};
        snprintf(entry, sizeof entry, "%s%s", name, suffixes[i]);
        sum += sum_entry(repository_fd, entry, 0, &walk);
        newest_ns = INF_MAX(newest_ns, walk.newest_ns);
    }
    uint64_t now_ns = join_time(&now);
    *out_age_ns = newest_ns != 0 && newest_ns <= now_ns ? now_ns - newest_ns : UINT64_MAX;
    return sum;
}

uint64_t inf_fingerprint_directory(int directory_fd, const char *skipped)
{
    uint32_t left = INF_FINGERPRINT_ENTRIES_MAX;
    struct walk walk = {.left = &left};
    inf_role_check_may_block();
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (fd >= 0 ? sum_directory(fd, skipped, 1, &walk) : 0) | 1;
}
