// SPDX-License-Identifier: Apache-2.0
// What one process leaves to the next: a memfd that the service manager keeps, beside the sockets
// of the clients and their regions. It has one slot for each kept connection, and the bytes that
// were read last. It is updated in place, so that it is right at any instant, also if the process
// is killed. docs/explanation/handover.md has the design.
#ifndef INF_DAEMON_HANDOVER_HANDOVER_H
#define INF_DAEMON_HANDOVER_HANDOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/output/send_log.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// The format that this version writes, and the oldest one that it reads. A change that an older
// reader may ignore (a field in reserved bytes) raises FORMAT only. One that it must not ignore
// raises INF_HANDOVER_READER too, which is written to the memory as the oldest reader.
#define INF_HANDOVER_FORMAT 1u
#define INF_HANDOVER_OLDEST 1u
#define INF_HANDOVER_READER 1u

#define INF_HANDOVER_READ_BYTES   (64u << 10) // size of the buffer for one read
#define INF_HANDOVER_HEADER_BYTES 24u         // bytes of a frame header
#define INF_HANDOVER_NAME_BYTES   64u         // size of the name of a descriptor in the store

enum inf_kept_state {
    INF_KEPT_FREE,
    INF_KEPT_OPEN, // the slot belongs to a connection, whose socket is in the store
};

enum inf_kept_region_flag {
    INF_KEPT_REGION_USED = 1,
    INF_KEPT_REGION_WRITABLE = 2,
    INF_KEPT_REGION_MADE_HERE = 4, // the daemon made the memfd
};

// A region of a kept connection.
struct inf_kept_region {
    uint64_t id;
    uint64_t size_bytes;
    uint64_t stream_id; // stream of the frame that registered it
    uint32_t flags;     // of enum inf_kept_region_flag, written last
    uint32_t reserved;
};

// How much of a frame was read. If no byte of it was read, all members but `read_number` are 0.
struct inf_kept_input {
    uint64_t read_number;  // the last read that this input includes
    uint64_t rest_bytes;   // bytes of the frame that are not read; valid if the header is complete
    uint32_t header_bytes; // bytes of the header that are read
    uint32_t reserved;
    uint8_t header[INF_HANDOVER_HEADER_BYTES];
};

struct inf_kept_slot {
    _Atomic uint32_t state; // enum inf_kept_state
    uint32_t generation;    // number of this use of the slot; in the names of its descriptors
    uint64_t last_stream;
    uint64_t reply_bytes_max;
    uint32_t streams_granted;
    uint32_t data_bytes;    // limit of one frame to the client
    _Atomic uint32_t input; // index of the valid element of `inputs`
    uint32_t reserved[7];
    char name[68]; // name of the client, ends with NUL
    uint32_t reserved_too;
    struct inf_kept_input inputs[2];
    struct inf_sent_record sent;
    struct inf_kept_region regions[INF_LIMIT_REGIONS];
    struct inf_pending pendings[INF_LIMIT_KEPT_PENDINGS];
};

// The read that the loop makes at present. Like msg_len of struct inf_sent_half, the number of
// bytes is written by the kernel.
struct inf_read_record {
    struct mmsghdr message;
    uint64_t number;              // counts the reads of all kept connections
    _Atomic uint32_t slot_plus_1; // slot of the connection that is read; 0: no read is in progress
    uint32_t direct;              // 1: the bytes are not in `buffer`; they are data of one frame
    // End of the last frame of this read that was accepted; 0: none. In a direct read, 1 says that
    // the frame was accepted. A frame is accepted by the store to this member, after its entry is
    // in the send log: an entry with a higher read_end in the same read does not count.
    _Atomic uint32_t done;
    uint32_t reserved;
    uint8_t buffer[INF_HANDOVER_READ_BYTES];
};

struct inf_handover;

// Creates a handover without connections. The caller destroys *out_handover.
//
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_handover_create(struct inf_handover **out_handover,
                                  struct inf_error *err) INF_NODISCARD;

// Adopts the handover that another process made. On success the handover owns `fd`; after a failure
// the caller still owns it. The caller destroys *out_handover.
//
// INF_INVALID    the descriptor is not a handover of this program, or the handover is damaged, or
//                has a format that this version does not read.
// INF_EXHAUSTED  no memory.
enum inf_code inf_handover_adopt(struct inf_handover **out_handover, int fd,
                                 struct inf_error *err) INF_NODISCARD;

// Unmaps the memory and closes its descriptor. NULL is allowed.
void inf_handover_destroy(struct inf_handover **handover);

// Returns the descriptor of the memory, for the store.
int inf_handover_fd(const struct inf_handover *handover);

// Returns the slot with this index, which is below INF_LIMIT_KEPT_CONNECTIONS.
struct inf_kept_slot *inf_handover_slot(struct inf_handover *handover, uint32_t index);

// Returns the record of reads.
struct inf_read_record *inf_handover_read_record(struct inf_handover *handover);

// Takes a free slot, which is all zero except its generation. Its state stays free until the caller
// sets it. Returns false if all slots are taken.
bool inf_handover_take_slot(struct inf_handover *handover, uint32_t *out_index) INF_NODISCARD;

// Takes the slot of a connection that another process left. All such slots must be claimed before
// the first call of inf_handover_take_slot().
void inf_handover_claim_slot(struct inf_handover *handover, uint32_t index);

// Gives a slot back and frees its memory. No thread may use the slot any longer.
void inf_handover_free_slot(struct inf_handover *handover, uint32_t index);

// --- names of descriptors in the store ---

#define INF_HANDOVER_NAME "inferd-handover" // the memory itself

enum inf_stored_kind {
    INF_STORED_UNKNOWN,
    INF_STORED_MEMORY,
    INF_STORED_CONNECTION,
    INF_STORED_REGION,
    INF_STORED_SESSIONS,
};

// The meaning of the name of a stored descriptor.
struct inf_stored_name {
    enum inf_stored_kind kind;
    uint32_t slot, generation; // unless the kind is UNKNOWN or MEMORY
    uint32_t region;           // index of the region in the slot
};

// Writes the name of a descriptor.
void inf_stored_name_format(const struct inf_stored_name *name, char text[INF_HANDOVER_NAME_BYTES]);

// Reads a name. The kind of a name that inf_stored_name_format() does not write is UNKNOWN.
struct inf_stored_name inf_stored_name_parse(const char *text);

#endif
