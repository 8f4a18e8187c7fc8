// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk. A driver must get only data that it wrote itself.
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/device/counts.h"
#include "backends/vulkan/device/cache_file.h"
#include "tests/support/device/vulkan_kit.h"

#define PAYLOAD 100

// Writes a valid cache file to memory: a header followed by `PAYLOAD` bytes of pipeline data.
static void compose_file(unsigned char *file, struct vk_cache_header *header)
{
    memset(header, 0, sizeof(*header));
    memcpy(header->magic, "infvkpc", 8);
    header->version = 1;
    header->vendor = 0x10005;
    memcpy(header->driver_info, "Mesa 22.3.6 (LLVM 15.0.6)", 25);
    header->shaders = 0x1234567890abcdef;
    unsigned char *payload = file + sizeof(*header);
    for (int i = 0; i < PAYLOAD; i++)
        payload[i] = (unsigned char)(i * 3);
    struct vk_cache_header full = *header;
    full.size = PAYLOAD;
    full.checksum = vk_cache_file_checksum(payload, PAYLOAD);
    memcpy(file, &full, sizeof(full));
}

Test(vulkan_cache, computes_fnv_1a_checksums)
{
    // The expected values were published by the authors of the algorithm.
    cr_assert_eq(vk_cache_file_checksum("", 0), 0xcbf29ce484222325u);
    cr_assert_eq(vk_cache_file_checksum("a", 1), 0xaf63dc4c8601ec8cu);
    cr_assert_eq(vk_cache_file_checksum("foobar", 6), 0x85944171f73967e8u);
}

Test(vulkan_cache, accepts_only_its_own_files)
{
    unsigned char file[sizeof(struct vk_cache_header) + PAYLOAD];
    struct vk_cache_header header;
    compose_file(file, &header);
    size_t size = 0;
    cr_assert_eq(vk_cache_file_payload(file, sizeof(file), &header, &size), file + sizeof(header));
    cr_assert_eq(size, (size_t)PAYLOAD);
    for (size_t i = 0; i < sizeof(file); i++) {
        cr_assert_null(vk_cache_file_payload(file, i, &header, &size), "cut to %zu bytes", i);
        file[i] ^= 0x10;
        cr_assert_null(vk_cache_file_payload(file, sizeof(file), &header, &size), "byte %zu", i);
        file[i] ^= 0x10;
    }
    struct vk_cache_header other = header;
    other.driver++;
    cr_assert_null(vk_cache_file_payload(file, sizeof(file), &other, &size));
}

Test(vulkan_cache, lists_its_variants)
{
    struct vk_known_variants known = {0}, read = {0};
    struct vk_variant variants[200] = {0};
    for (uint32_t i = 0; i < 200; i++)
        variants[i] = (struct vk_variant){.shader = i / 50, .halves = i % 50};
    for (uint32_t i = 0; i < 100; i++) {
        cr_assert(!vk_known_variants_has(&known, &variants[i]));
        vk_known_variants_add(&known, &variants[i]);
        vk_known_variants_add(&known, &variants[i]);
        cr_assert(vk_known_variants_has(&known, &variants[i]));
    }
    size_t size;
    char *bytes = vk_known_variants_encode(&known, 100 * sizeof(uint64_t), &size);
    cr_assert_not_null(bytes);
    cr_assert_eq(size, 101 * sizeof(uint64_t));
    for (size_t cut = 0; cut < size; cut++)
        cr_assert_eq(vk_known_variants_read(&read, bytes, cut), 0u, "%zu bytes", cut);
    cr_assert_eq(vk_known_variants_read(&read, bytes, 201 * sizeof(uint64_t)), size);
    free(bytes);
    for (uint32_t i = 0; i < 200; i++)
        cr_assert_eq(vk_known_variants_has(&read, &variants[i]), i < 100);
    vk_known_variants_fini(&known);
    vk_known_variants_fini(&read);
}

// --- using the cache folder on disk ---

static char folder[] = "/tmp/inf-vk-cache-XXXXXX";

// Finds the only file of the folder and copies its path to `path`. Returns false if the folder is
// empty.
static bool find_file(char *path, size_t size)
{
    DIR *directory = opendir(folder);
    bool found = false;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.') {
            cr_assert_not(found, "more than one file is left");
            snprintf(path, size, "%s/%s", folder, entry->d_name);
            found = true;
        }
    closedir(directory);
    return found;
}

// Runs a program that has one pipeline. Asserts that the cache on disk had that pipeline if
// `known`, and that it had to be built otherwise.
static void run_once(bool known)
{
    struct inf_device *device = vulkan_open(folder);
    struct negation negation;
    struct inf_error err = {0};
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    char path[512];
    if (!known)
        cr_assert(find_file(path, sizeof(path)), "nothing was written while the device is open");
    cr_assert_eq(negation_run(&negation, device, 0, 3, false, &err), INF_OK, "%s", err.text);
    cr_assert(negation_holds(&negation, 3));
    negation_fini(&negation);
    cr_assert_eq(inf_device_get_count(device, INF_COUNT_PIPELINES), 1u);
    cr_assert_eq(inf_device_get_count(device, INF_COUNT_PIPELINES_KNOWN), known ? 1u : 0u);
    cr_assert_eq(inf_device_get_count(device, INF_COUNT_SHADERS_COMPILED), 0u);
    inf_device_unref(&device);
}

Test(vulkan_cache, is_written_and_ignored_if_damaged)
{
    char path[512];
    cr_assert_not_null(mkdtemp(folder));
    run_once(false);
    cr_assert(find_file(path, sizeof(path)), "no file was written");
    run_once(true);
    struct stat state;
    cr_assert_eq(stat(path, &state), 0);
    cr_assert_eq(state.st_mode & 0777, 0600u);
    off_t size = state.st_size;
    const off_t cuts[] = {size, size - 1, 40, 0};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cuts); i++) {
        cr_assert_eq(truncate(path, cuts[i]), 0);
        FILE *file = fopen(path, "r+");
        cr_assert_eq(fwrite("rubbish", 1, 7, file), 7u);
        fclose(file);
        run_once(false);
        cr_assert_eq(stat(path, &state), 0);
        cr_assert_eq(state.st_size, size, "the file was not rewritten");
    }
    unlink(path);
    rmdir(folder);
}

// --- cache data that crashed a process ---

static uint32_t count_files(void)
{
    DIR *directory = opendir(folder);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

// Starts a process that creates pipelines from the cache, and runs a program if `runs` is set. If
// `gate` is not -1, the process waits until `gate` is closed before it exits.
static pid_t start_process(bool runs, int ready, int gate)
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child != 0)
        return child;
    struct inf_device *device = vulkan_open(folder);
    struct negation negation;
    char byte = 0;
    bool ok = negation_init(&negation, device, 100, NULL) == INF_OK;
    if (ok && runs)
        ok = negation_run(&negation, device, 0, 3, false, NULL) == INF_OK;
    if (ready >= 0)
        ok = write(ready, &byte, 1) == 1 && ok;
    if (gate >= 0)
        (void)!read(gate, &byte, 1);
    _exit(ok ? 0 : 1);
}

static void expect_end(pid_t child)
{
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process failed");
}

Test(vulkan_cache, drops_a_file_that_crashed_an_earlier_process)
{
    struct inf_device *device = NULL;
    struct inf_buffer *buffer = NULL;
    char line[64];
    // The probe runs in a child process, because a loaded driver does not survive a fork().
    pid_t probe = fork();
    if (probe == 0)
        _exit(inf_vulkan_backend.probe() == 0 ? 77 : 0);
    int status;
    cr_assert_eq(waitpid(probe, &status, 0), probe);
    if (WEXITSTATUS(status) == 77)
        cr_skip_test("no Vulkan driver finds a device");
    cr_assert_not_null(mkdtemp(folder));
    expect_end(start_process(true, -1, -1));
    cr_assert_eq(count_files(), 1u);
    expect_end(start_process(true, -1, -1));
    cr_assert_eq(count_files(), 1u, "the marker stayed after the first run");
    // While one process tries the cache data, a second process must not use the data and must not
    // remove the marker file.
    int ready[2], gate[2];
    char byte;
    cr_assert_eq(pipe(ready), 0);
    cr_assert_eq(pipe(gate), 0);
    pid_t other = start_process(false, ready[1], gate[0]);
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    cr_assert_eq(count_files(), 2u);
    expect_end(start_process(true, -1, -1));
    cr_assert_eq(count_files(), 2u);
    // Kill the process before it has run a program, so that it looks like a crash.
    close(gate[1]);
    cr_assert_eq(write(ready[1], &byte, 1), 1);
    cr_assert_eq(kill(other, SIGKILL), 0);
    cr_assert_eq(waitpid(other, &status, 0), other);
    cr_assert_eq(count_files(), 2u);
    device = vulkan_open(folder);
    cr_assert_eq(inf_buffer_alloc(&buffer, device, 64, INF_BUFFER_STAGING, NULL), INF_OK);
    cr_assert_eq(count_files(), 0u, "the bytes that crashed are still there");
    inf_buffer_free(&buffer);
    run_once(false);
    inf_device_unref(&device);
    cr_assert_eq(count_files(), 1u);
    snprintf(line, sizeof(line), "rm -r %s", folder);
    cr_assert_eq(system(line), 0);
}
