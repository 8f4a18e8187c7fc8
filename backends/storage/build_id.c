// SPDX-License-Identifier: Apache-2.0
// Finds the build ID that the linker wrote into this program or library. The ID is a note in one of
// the PT_NOTE segments in memory.
#include "backends/storage/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/span.h"

// Notes, their names and their contents each begin at a multiple of this number of bytes.
#define NOTE_ALIGNMENT 4

struct search {
    uintptr_t code; // an address within the program or library whose build ID is wanted
    char *text;
};

static bool has_address(const struct dl_phdr_info *object, uintptr_t address)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t first = object->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && address >= first && address - first < part->p_memsz)
            return true;
    }
    return false;
}

static void write_digits(char *text, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count && 2 * i + 2 < INF_BUILD_ID_TEXT; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

// Searches the notes from `at` to `end`, and writes the build ID to `text`. Returns false if it is
// not found.
static bool read_notes(const char *at, const char *end, char *text)
{
    ElfW(Nhdr) note;
    while ((size_t)(end - at) >= sizeof note) {
        memcpy(&note, at, sizeof note);
        size_t name = inf_size_align(note.n_namesz, NOTE_ALIGNMENT);
        size_t size = inf_size_align(note.n_descsz, NOTE_ALIGNMENT);
        size_t left = (size_t)(end - at) - sizeof note;
        if (name > left || size > left - name)
            return false;
        at += sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
            memcmp(at, "GNU", sizeof "GNU") == 0) {
            write_digits(text, (const uint8_t *)at + name, note.n_descsz);
            return true;
        }
        at += name + size;
    }
    return false;
}

static int look_in_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    const struct search *search = context;
    if (!has_address(object, search->code))
        return 0;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const char *notes = (const char *)(object->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_NOTE && read_notes(notes, notes + part->p_memsz, search->text))
            break;
    }
    return 1;
}

void inf_build_id(char text[INF_BUILD_ID_TEXT])
{
    struct search search = {(uintptr_t)inf_build_id, text};
    snprintf(text, INF_BUILD_ID_TEXT, "none");
    dl_iterate_phdr(look_in_object, &search);
}
