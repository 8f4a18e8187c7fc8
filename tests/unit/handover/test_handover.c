// SPDX-License-Identifier: Apache-2.0
// The handover: slots, names, and which memory of another process is taken over.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/handover/handover.h"

static struct inf_handover *make_handover(void)
{
    struct inf_handover *handover = NULL;
    struct inf_error err;
    cr_assert_eq(inf_handover_create(&handover, &err), INF_OK, "%s", err.text);
    return handover;
}

// Returns the result of taking over a duplicate of the descriptor.
static enum inf_code adopt_copy(int fd, struct inf_handover **handover)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    enum inf_code code = inf_handover_adopt(handover, copy, NULL);
    if (code != INF_OK)
        close(copy);
    return code;
}

Test(handover, is_the_same_for_the_next_process)
{
    struct inf_handover *first = make_handover(), *next = NULL;
    uint32_t index, other;
    cr_assert(inf_handover_take_slot(first, &index));
    struct inf_kept_slot *slot = inf_handover_slot(first, index);
    const uint32_t generation = slot->generation;
    slot->last_stream = 42;
    slot->pendings[INF_LIMIT_KEPT_PENDINGS - 1].stream_id = 43;
    atomic_store(&slot->state, INF_KEPT_OPEN);
    cr_assert_eq(adopt_copy(inf_handover_fd(first), &next), INF_OK);
    inf_handover_destroy(&first);
    slot = inf_handover_slot(next, index);
    cr_assert_eq(atomic_load(&slot->state), INF_KEPT_OPEN);
    cr_assert_eq(slot->generation, generation);
    cr_assert_eq(slot->last_stream, 42);
    cr_assert_eq(slot->pendings[INF_LIMIT_KEPT_PENDINGS - 1].stream_id, 43);
    inf_handover_claim_slot(next, index);
    cr_assert(inf_handover_take_slot(next, &other));
    cr_assert_neq(other, index);
    inf_handover_free_slot(next, index);
    cr_assert(inf_handover_take_slot(next, &other));
    cr_assert_eq(other, index);
    slot = inf_handover_slot(next, index);
    cr_assert_gt(slot->generation, generation, "a name is not used again");
    cr_assert_eq(slot->last_stream, 0);
    cr_assert_eq(slot->pendings[INF_LIMIT_KEPT_PENDINGS - 1].stream_id, 0);
    inf_handover_destroy(&next);
}

Test(handover, clears_a_slot_that_was_not_taken_over)
{
    struct inf_handover *first = make_handover(), *next = NULL;
    uint32_t index, again;
    cr_assert(inf_handover_take_slot(first, &index));
    inf_handover_slot(first, index)->last_stream = 42;
    cr_assert_eq(adopt_copy(inf_handover_fd(first), &next), INF_OK);
    cr_assert(inf_handover_take_slot(next, &again));
    cr_assert_eq(again, index);
    cr_assert_eq(inf_handover_slot(next, again)->last_stream, 0);
    inf_handover_destroy(&next);
    inf_handover_destroy(&first);
}

Test(handover, has_as_many_slots_as_there_may_be_connections)
{
    struct inf_handover *handover = make_handover();
    uint32_t index;
    for (uint32_t i = 0; i < INF_LIMIT_KEPT_CONNECTIONS; i++)
        cr_assert(inf_handover_take_slot(handover, &index));
    cr_assert_not(inf_handover_take_slot(handover, &index));
    inf_handover_free_slot(handover, 17);
    cr_assert(inf_handover_take_slot(handover, &index));
    cr_assert_eq(index, 17);
    inf_handover_destroy(&handover);
}

Test(handover, takes_memory_only_for_what_is_used)
{
    struct inf_handover *handover = make_handover();
    struct stat file;
    uint32_t index;
    cr_assert(inf_handover_take_slot(handover, &index));
    cr_assert_eq(fstat(inf_handover_fd(handover), &file), 0);
    const blkcnt_t before = file.st_blocks;
    cr_assert_leq(before, 4 * 8, "a header and a slot");
    memset(inf_handover_slot(handover, index), 1, sizeof(struct inf_kept_slot));
    inf_handover_free_slot(handover, index);
    cr_assert_eq(fstat(inf_handover_fd(handover), &file), 0);
    cr_assert_leq(file.st_blocks, before, "the pages of a slot are freed with it");
    inf_handover_destroy(&handover);
}

// Changes a field of the header, and returns what the next process says.
static enum inf_code adopt_changed(struct inf_handover *handover, size_t offset, uint32_t value)
{
    uint32_t before;
    struct inf_handover *next = NULL;
    int fd = inf_handover_fd(handover);
    cr_assert_eq(pread(fd, &before, sizeof before, (off_t)offset), sizeof before);
    cr_assert_eq(pwrite(fd, &value, sizeof value, (off_t)offset), sizeof value);
    enum inf_code code = adopt_copy(fd, &next);
    inf_handover_destroy(&next);
    cr_assert_eq(pwrite(fd, &before, sizeof before, (off_t)offset), sizeof before);
    return code;
}

#define FORMAT 16 // offset of the format; the oldest reader follows
#define READER 20
#define SIZES  24 // offset of five sizes

Test(handover, of_another_format_is_taken_over_if_it_may_be)
{
    struct inf_handover *handover = make_handover();
    cr_assert_eq(adopt_changed(handover, FORMAT, INF_HANDOVER_FORMAT + 1), INF_OK);
    cr_assert_eq(adopt_changed(handover, FORMAT, INF_HANDOVER_OLDEST - 1), INF_INVALID);
    cr_assert_eq(adopt_changed(handover, READER, INF_HANDOVER_FORMAT + 1), INF_INVALID);
    cr_assert_eq(adopt_changed(handover, 0, 0x20746f6e), INF_INVALID);
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(adopt_changed(handover, SIZES + 4 * i, 7), INF_INVALID, "size %zu", i);
    inf_handover_destroy(&handover);
}

Test(handover, that_is_no_sealed_memfd_of_its_size_is_refused)
{
    struct inf_handover *handover = make_handover(), *next = NULL;
    struct stat file;
    uint8_t header[4096];
    cr_assert_eq(fstat(inf_handover_fd(handover), &file), 0);
    cr_assert_eq(pread(inf_handover_fd(handover), header, sizeof header, 0), sizeof header);
    int fd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(pwrite(fd, header, sizeof header, 0), sizeof header);
    cr_assert_eq(ftruncate(fd, file.st_size), 0);
    cr_assert_eq(adopt_copy(fd, &next), INF_INVALID, "not sealed");
    cr_assert_eq(ftruncate(fd, file.st_size - 4096), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    cr_assert_eq(adopt_copy(fd, &next), INF_INVALID, "too small");
    close(fd);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    cr_assert_eq(adopt_copy(null, &next), INF_INVALID);
    close(null);
    inf_handover_destroy(&handover);
}

Test(handover, names_descriptors_in_one_way_only)
{
    static const struct {
        const char *text;
        struct inf_stored_name name;
    } names[] = {
        {"inferd-handover", {.kind = INF_STORED_MEMORY}},
        {"inferd-c-0-1", {.kind = INF_STORED_CONNECTION, .slot = 0, .generation = 1}},
        {"inferd-c-4095-4294967295",
         {.kind = INF_STORED_CONNECTION, .slot = 4095, .generation = UINT32_MAX}},
        {"inferd-r-7-8-255",
         {.kind = INF_STORED_REGION, .slot = 7, .generation = 8, .region = 255}},
    };
    static const char *const wrong[] = {"",
                                        "inferd",
                                        "inferd-c-",
                                        "inferd-c-1",
                                        "inferd-c-1-2-3",
                                        "inferd-c-01-2",
                                        "inferd-c-+1-2",
                                        "inferd-c- 1-2",
                                        "inferd-c-1-2x",
                                        "inferd-c-4096-1",
                                        "inferd-r-1-2",
                                        "inferd-r-1-2-256",
                                        "inferd-handover2",
                                        "inferd-c-1-4294967296",
                                        "inferd-q-1-2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[INF_HANDOVER_NAME_BYTES];
        inf_stored_name_format(&names[i].name, text);
        cr_assert_str_eq(text, names[i].text);
        const struct inf_stored_name name = inf_stored_name_parse(names[i].text);
        cr_assert_eq(name.kind, names[i].name.kind, "%s", names[i].text);
        cr_assert_eq(name.slot, names[i].name.slot);
        cr_assert_eq(name.generation, names[i].name.generation);
        cr_assert_eq(name.region, names[i].name.region);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(inf_stored_name_parse(wrong[i]).kind, INF_STORED_UNKNOWN, "%s", wrong[i]);
}
