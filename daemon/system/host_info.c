// SPDX-License-Identifier: Apache-2.0
// Reads facts about the machine from /proc, /sys and uname().
#include "daemon/system/host_info.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "backends/base/system/cores.h"
#include "daemon/system/memory_limit.h"
#include "proto/core/span.h"

#define LINE_CHARS 8192

// Names under which /proc/cpuinfo on x86 and arm64 lists the instruction-set extensions.
static const char *const extensions[] = {
    "sse2",     "sse4_1",      "avx",      "f16c",        "fma",         "avx2",     "avx512f",
    "avx512bw", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16",
    "asimd",    "asimdhp",     "asimddp",  "i8mm",        "bf16",        "sve",      "sve2"};

static FILE *open_beneath(const char *root, const char *path)
{
    char name[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s%s", root, path);
    return length > 0 && (size_t)length < sizeof name ? fopen(name, "re") : NULL;
}

// Returns the value of a line "key : value" without its line end; NULL if the line has another key.
static const char *find_value(char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || strspn(line + length, " \t:") == 0)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line + length + strspn(line + length, " \t:");
}

// Returns true if `word` is one of the words of a text.
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += length)
        if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void list_extensions(struct inf_host_info *facts, const char *flags)
{
    size_t used = 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(extensions) && used < sizeof facts->cpu_isa; i++)
        if (has_word(flags, extensions[i]))
            used += (size_t)snprintf(facts->cpu_isa + used, sizeof facts->cpu_isa - used, "%s%s",
                                     used > 0 ? " " : "", extensions[i]);
}

// Reads the name and the instruction-set extensions of the first processor. The other processors
// are assumed to be the same.
static void read_cpu(struct inf_host_info *facts, const char *root) INF_MAY_BLOCK
{
    char line[LINE_CHARS];
    const char *value;
    FILE *file = open_beneath(root, "/proc/cpuinfo");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL &&
           (facts->cpu[0] == '\0' || facts->cpu_isa[0] == '\0')) {
        if ((value = find_value(line, "model name")) != NULL)
            snprintf(facts->cpu, sizeof facts->cpu, "%.95s", value);
        else if ((value = find_value(line, "flags")) != NULL ||
                 (value = find_value(line, "Features")) != NULL)
            list_extensions(facts, value);
    }
    fclose(file);
}

static void read_memory(struct inf_host_info *facts, const char *root) INF_MAY_BLOCK
{
    char line[LINE_CHARS];
    uint64_t kib;
    FILE *file = open_beneath(root, "/proc/meminfo");
    if (file == NULL)
        return;
    while (facts->memory_bytes == 0 && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
            facts->memory_bytes = kib * 1024;
    fclose(file);
}

void inf_host_info_read(struct inf_host_info *facts, const char *root)
{
    struct utsname name;
    *facts = (struct inf_host_info){0};
    if (uname(&name) == 0) {
        snprintf(facts->architecture, sizeof facts->architecture, "%.31s", name.machine);
        snprintf(facts->kernel, sizeof facts->kernel, "%.6s %.64s", name.sysname, name.release);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);
    uint32_t quota = inf_cores_quota(root);
    facts->cores_online = online > 0 ? (uint32_t)online : 0;
    facts->cores_quota = quota == UINT32_MAX ? 0 : quota;
    facts->cores_usable = INF_MIN(inf_cores_usable(), quota);
    facts->page_bytes = page > 0 ? (uint32_t)page : 0;
    read_cpu(facts, root);
    read_memory(facts, root);
    struct inf_memory_limit limit;
    inf_group_memory_limit_read(&limit, root);
    facts->memory_limit_bytes = limit.bytes;
}
