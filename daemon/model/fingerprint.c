// SPDX-License-Identifier: Apache-2.0
// Fingerprints of files and directories. The fingerprint of a directory is the sum of the
// fingerprints of its entries, because the order in which the system lists entries is not fixed.
// Changes of a file are recognised by its inode, size and modification time: a file that was
// replaced by a rename has another inode, and a file that was written to has another time.
#include "daemon/model/fingerprint.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/core/attributes.h"

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

static uint64_t sum_directory(int fd, const char *skipped, uint32_t depth, uint32_t *left);

// Returns the fingerprint of one entry; 0 if it does not exist. *left is the number of entries that
// this fingerprint can still cover; it is decremented for each entry.
static uint64_t sum_entry(int directory_fd, const char *name, uint32_t depth, uint32_t *left)
{
    struct stat status;
    if (*left == 0 || fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    (*left)--;
    uint64_t hash = hash_name(name);
    if (!S_ISDIR(status.st_mode))
        return mix_number(hash, hash_status(&status)) | 1;
    // The modification time of a directory also changes if a hidden entry is added, so only the
    // visible entries of the directory count.
    int fd = depth < INF_FINGERPRINT_DEPTH
                 ? openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    return mix_number(hash, fd >= 0 ? sum_directory(fd, NULL, depth + 1, left) : 0) | 1;
}

// Returns the sum of the fingerprints of the entries of a directory except `skipped` (NULL: none).
// Closes `fd`.
static uint64_t sum_directory(int fd, const char *skipped, uint32_t depth, uint32_t *left)
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
            sum += sum_entry(dirfd(directory), entry->d_name, depth, left);
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
    return sum_entry(directory_fd, name, 0, left);
}

uint64_t inf_fingerprint_directory(int directory_fd, const char *skipped)
{
    uint32_t left = INF_FINGERPRINT_ENTRIES_MAX;
    inf_role_check_may_block();
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (fd >= 0 ? sum_directory(fd, skipped, 1, &left) : 0) | 1;
}
