// SPDX-License-Identifier: Apache-2.0
// Writes and reads the image of the sessions of one connection:
//
//   header | session | tensor, name, output, value | tensor, ... | session | ...
//
// Every part begins at a multiple of 8 bytes. What is read is checked like a message of a client:
// the functions that requests use open the sessions and charge the user.
#include "daemon/resource/session_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/core/span.h"

#define MAGIC  0x73656e6f69737365u
#define FORMAT 1u // an image of another format is refused, and its sessions are lost
#define SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct image_header {
    uint64_t magic;
    uint32_t format;
    uint32_t session_count;
};

struct image_session {
    uint64_t id;
    // Both are in one 32-bit word, which images of earlier builds have for tensor_count alone. Such
    // an image has a max_length of 0.
    uint32_t tensor_count : 11, max_length : 21;
    uint32_t age; // uses of all sessions since the last use of this one; 0: not known
};

_Static_assert(INF_LIMIT_SESSION_TENSORS < 1u << 11 && INF_LIMIT_HISTORY_ROWS < 1u << 21,
               "the counts of a session fit their bits");

struct image_tensor {
    uint32_t name_bytes;   // with NUL
    uint32_t output_bytes; // with NUL; 0: the tensor belongs to no pair
    uint64_t value_bytes;
    uint32_t dtype;
    uint8_t present, shaped, is_history, axis;
    struct inf_shape shape, first_shape;
};

// --- writing ---

// Bytes that are collected before they are written to the file. Larger parts are written directly:
// a write() takes half the time of a copy to a mapping of the file, whose pages the kernel would
// have to clear and map first.
#define CHUNK_BYTES ((size_t)64 << 10)

// The image while it is written.
struct image_writer {
    int fd; // -1: only the size is counted
    size_t size;
    uint8_t *chunk; // bytes that are not in the file yet
    size_t chunk_bytes;
    int error; // errno of the first failure; 0: none
};

static void write_to_file(struct image_writer *writer, const uint8_t *bytes, size_t size)
{
    while (size > 0 && writer->error == 0) {
        ssize_t written = write(writer->fd, bytes, size);
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            writer->error = written == 0 ? EIO : errno;
        }
    }
}

static void flush_chunk(struct image_writer *writer)
{
    write_to_file(writer, writer->chunk, writer->chunk_bytes);
    writer->chunk_bytes = 0;
}

static void write_bytes(struct image_writer *writer, const void *bytes, size_t size)
{
    writer->size += size;
    if (writer->fd < 0 || size == 0)
        return;
    if (size > CHUNK_BYTES - writer->chunk_bytes)
        flush_chunk(writer);
    if (size > CHUNK_BYTES) {
        write_to_file(writer, bytes, size);
        return;
    }
    memcpy(writer->chunk + writer->chunk_bytes, bytes, size);
    writer->chunk_bytes += size;
}

// Writes zeros up to the next multiple of 8 bytes.
static void end_part(struct image_writer *writer)
{
    static const uint8_t zeros[8];
    write_bytes(writer, zeros, inf_size_align(writer->size, 8) - writer->size);
}

static void write_part(struct image_writer *writer, const void *bytes, size_t size)
{
    write_bytes(writer, bytes, size);
    end_part(writer);
}

static size_t find_value_bytes(const struct inf_session_tensor *tensor)
{
    size_t size = 0;
    if (tensor->present && tensor->dtype == INF_DTYPE_BYTES)
        return tensor->string_bytes;
    if (tensor->present && !inf_shape_bytes(&tensor->shape, tensor->dtype, &size))
        return 0;
    return size;
}

// Writes the elements of a tensor. A history with room for more rows is written without them.
static void write_value(struct image_writer *writer, const struct inf_session_tensor *tensor,
                        size_t size)
{
    size_t sequences = 1, rows = (size_t)tensor->shape.dims[tensor->axis];
    if (tensor->room == 0 || size == 0) {
        write_part(writer, tensor->now.data, size);
        return;
    }
    for (uint8_t i = 0; i < tensor->axis; i++)
        sequences *= (size_t)tensor->shape.dims[i];
    size_t used = size / sequences, step = used / rows * tensor->room;
    for (size_t i = 0; i < sequences; i++)
        write_bytes(writer, tensor->now.data + i * step, used);
    end_part(writer);
}

static void write_tensor(struct image_writer *writer, const struct inf_session_tensor *tensor)
{
    const struct image_tensor head = {
        .name_bytes = (uint32_t)strlen(tensor->name) + 1,
        .output_bytes = tensor->output != NULL ? (uint32_t)strlen(tensor->output) + 1 : 0,
        .value_bytes = find_value_bytes(tensor),
        .dtype = tensor->dtype,
        .present = tensor->present,
        .shaped = tensor->shaped,
        .is_history = tensor->is_history,
        .axis = tensor->axis,
        .shape = tensor->shape,
        .first_shape = tensor->first_shape};
    write_part(writer, &head, sizeof head);
    write_part(writer, tensor->name, head.name_bytes);
    write_part(writer, tensor->output, head.output_bytes);
    write_value(writer, tensor, (size_t)head.value_bytes);
}

static void write_session(struct image_writer *writer, const struct inf_session *session)
{
    const int64_t age = session->counters->session_uses - session->last_use;
    const struct image_session head = {.id = session->id,
                                       .tensor_count = session->tensor_count,
                                       .max_length = session->max_length,
                                       .age = (uint32_t)INF_MIN(age, UINT32_MAX)};
    write_part(writer, &head, sizeof head);
    for (uint32_t i = 0; i < session->tensor_count; i++)
        write_tensor(writer, session->tensors[i]);
}

uint64_t inf_session_image_bytes(const struct inf_session *session)
{
    struct image_writer counter = {.fd = -1};
    write_session(&counter, session);
    return counter.size;
}

static void write_sessions(struct image_writer *writer, const struct inf_session_table *table)
{
    struct image_header header = {.magic = MAGIC, .format = FORMAT};
    for (const struct inf_session *session = table->sessions; session != NULL;
         session = session->next)
        header.session_count += session->is_kept ? 1 : 0;
    write_part(writer, &header, sizeof header);
    for (const struct inf_session *session = table->sessions; session != NULL;
         session = session->next)
        if (session->is_kept)
            write_session(writer, session);
}

static enum inf_code fill_memfd(int fd, const struct inf_session_table *table,
                                struct inf_error *err)
{
    struct image_writer writer = {.fd = fd, .chunk = malloc(CHUNK_BYTES)};
    if (writer.chunk == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for sessions");
    write_sessions(&writer, table);
    flush_chunk(&writer);
    free(writer.chunk);
    if (writer.error == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        writer.error = errno;
    if (writer.error != 0)
        return inf_fail(err, INF_EXHAUSTED, "sessions: %s", strerror(writer.error));
    return INF_OK;
}

enum inf_code inf_session_image_write(const struct inf_session_table *table, int *out_fd,
                                      struct inf_error *err)
{
    int fd = memfd_create("inferd-sessions", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return inf_fail(err, INF_EXHAUSTED, "sessions: %s", strerror(errno));
    enum inf_code code = fill_memfd(fd, table, err);
    if (code == INF_OK)
        *out_fd = fd;
    else
        close(fd);
    return code;
}

// --- reading ---

static enum inf_code refuse_image(struct inf_error *err)
{
    return inf_fail(err, INF_INVALID, "the image of sessions is damaged");
}

// Takes the next `size` bytes of the image. Returns NULL if it has fewer.
static const void *take_part(struct inf_span *image, uint64_t size)
{
    if (size > image->size)
        return NULL;
    const void *part = image->data;
    size_t whole = INF_MIN(inf_size_align((size_t)size, 8), image->size);
    image->data += whole;
    image->size -= whole;
    return part;
}

// Returns true if `text` is a string of `size` bytes with its NUL.
static bool is_text(const char *text, uint32_t size)
{
    return text != NULL && size > 1 && size <= INF_LIMIT_TENSOR_NAME + 1 &&
           memchr(text, '\0', size) == text + size - 1;
}

// A tensor of the image, with pointers into it.
struct tensor_part {
    struct image_tensor head;
    const char *name, *output; // output is NULL: no pair
    const void *value;
};

static enum inf_code take_tensor(struct inf_span *image, struct tensor_part *tensor,
                                 struct inf_error *err)
{
    size_t size = 0;
    const struct image_tensor *head = take_part(image, sizeof *head);
    if (head == NULL)
        return refuse_image(err);
    tensor->head = *head;
    tensor->name = take_part(image, head->name_bytes);
    tensor->output = take_part(image, head->output_bytes);
    if (head->output_bytes == 0)
        tensor->output = NULL;
    tensor->value = take_part(image, head->value_bytes);
    if (!is_text(tensor->name, head->name_bytes) ||
        (head->output_bytes > 0 && !is_text(tensor->output, head->output_bytes)) ||
        tensor->value == NULL || head->dtype >= INF_DTYPE_COUNT || head->present > 1 ||
        head->shaped > 1 || head->is_history > 1 ||
        (head->is_history && (!head->present || head->axis >= head->shape.rank)))
        return refuse_image(err);
    if (head->shaped &&
        (!inf_shape_valid(&head->first_shape) || !inf_shape_known(&head->first_shape)))
        return refuse_image(err);
    // inf_session_set_tensor() checks the size of strings.
    if (head->present &&
        (!inf_shape_valid(&head->shape) || !inf_shape_bytes(&head->shape, head->dtype, &size) ||
         (head->dtype != INF_DTYPE_BYTES && size != head->value_bytes)))
        return refuse_image(err);
    return INF_OK;
}

// Reads one session: first its pairs, which open it, then the values.
static enum inf_code read_session(struct inf_session_table *table, struct inf_span *image,
                                  struct inf_session_message *message,
                                  struct tensor_part parts[INF_LIMIT_SESSION_TENSORS],
                                  struct inf_error *err) INF_ON_LOOP
{
    struct inf_session *session = NULL;
    const struct image_session *head = take_part(image, sizeof *head);
    if (head == NULL || head->id == 0 || head->tensor_count > INF_LIMIT_SESSION_TENSORS ||
        head->max_length > INF_LIMIT_HISTORY_ROWS)
        return refuse_image(err);
    *message = (struct inf_session_message){.session_id = head->id, .max_length = head->max_length};
    for (uint32_t i = 0; i < head->tensor_count; i++) {
        INF_TRY(take_tensor(image, &parts[i], err));
        if (parts[i].output == NULL)
            continue;
        message->states[message->state_count++] =
            (struct inf_session_state){.output = parts[i].output,
                                       .input = parts[i].name,
                                       .shaped = parts[i].head.shaped,
                                       .shape = parts[i].head.first_shape};
    }
    INF_TRY(inf_session_open(table, message, err));
    INF_TRY(inf_session_find(table, message->session_id, &session, err));
    session->last_use = -(int64_t)head->age;
    for (uint32_t i = 0; i < head->tensor_count; i++) {
        const struct image_tensor *tensor = &parts[i].head;
        uint32_t index;
        INF_TRY(inf_session_obtain_tensor(session, parts[i].name, &index, err));
        if (!tensor->present)
            continue;
        INF_TRY(inf_session_set_tensor(session, index, tensor->dtype, &tensor->shape,
                                       parts[i].value, (size_t)tensor->value_bytes, err));
        session->tensors[index]->is_history = tensor->is_history == 1;
        session->tensors[index]->axis = tensor->axis;
    }
    return INF_OK;
}

static enum inf_code read_sessions(struct inf_session_table *table, struct inf_span image,
                                   struct inf_error *err) INF_ON_LOOP
{
    struct tensor_part *parts = calloc(INF_LIMIT_SESSION_TENSORS, sizeof *parts);
    struct inf_session_message *message = calloc(1, sizeof *message);
    const struct image_header *header = take_part(&image, sizeof *header);
    enum inf_code code = INF_OK;
    if (parts == NULL || message == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory for sessions");
    else if (header == NULL || header->magic != MAGIC || header->format != FORMAT)
        code = refuse_image(err);
    for (uint32_t i = 0; code == INF_OK && i < header->session_count; i++)
        code = read_session(table, &image, message, parts, err);
    free(message);
    free(parts);
    return code;
}

enum inf_code inf_session_image_read(struct inf_session_table *table, int fd, struct inf_error *err)
{
    struct stat file;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &file) < 0 || file.st_size <= 0 ||
        (uint64_t)file.st_size > sizeof(struct image_header) + INF_LIMIT_KEPT_SESSION_BYTES)
        return refuse_image(err);
    size_t size = (size_t)file.st_size;
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
        return inf_fail(err, INF_EXHAUSTED, "sessions: %s", strerror(errno));
    enum inf_code code = read_sessions(table, (struct inf_span){memory, size}, err);
    munmap(memory, size);
    return code;
}
