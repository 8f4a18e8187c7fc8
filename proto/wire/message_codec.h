// SPDX-License-Identifier: Apache-2.0
// Codecs: each converts one kind of message between its C struct and the struct of protobuf-c.
// Private to proto/wire. To add a kind, add a member to enum inf_message_kind and to union
// inf_message, a codec here and in the file of its family, and a row in message.c.
#ifndef INF_PROTO_WIRE_MESSAGE_CODEC_H
#define INF_PROTO_WIRE_MESSAGE_CODEC_H

#include <protobuf-c/protobuf-c.h>

#include "proto/wire/inferd.pb-c.h"
#include "proto/wire/message.h"
#include "proto/wire/scratch.h"

struct inf_message_codec {
    const ProtobufCMessageDescriptor *descriptor;
    // Fills `message` from `wire`, an unpacked protobuf-c message of the codec's type.
    enum inf_code (*decode)(union inf_message *message, const void *wire,
                            struct inf_scratch *scratch, struct inf_error *err);
    // Fills `wire`, which is initialised as the codec's type, from `message`. `wire` may point into
    // `message` afterwards.
    enum inf_code (*encode)(const union inf_message *message, void *wire,
                            struct inf_scratch *scratch, struct inf_error *err);
};

// --- codecs in message_connection.c ---
extern const struct inf_message_codec inf_codec_hello;
extern const struct inf_message_codec inf_codec_hello_ack;
extern const struct inf_message_codec inf_codec_goaway;
// --- codecs in message_region.c ---
extern const struct inf_message_codec inf_codec_region_register;
extern const struct inf_message_codec inf_codec_region_registered;
extern const struct inf_message_codec inf_codec_region_alloc;
extern const struct inf_message_codec inf_codec_region_unregister;
extern const struct inf_message_codec inf_codec_region_released;
// --- codecs in message_infer.c ---
extern const struct inf_message_codec inf_codec_infer_request;
extern const struct inf_message_codec inf_codec_infer_reply;
// --- codecs in message_model.c ---
extern const struct inf_message_codec inf_codec_model_ready_request;
extern const struct inf_message_codec inf_codec_model_metadata_request;
extern const struct inf_message_codec inf_codec_live_reply;
extern const struct inf_message_codec inf_codec_ready_reply;
extern const struct inf_message_codec inf_codec_model_ready_reply;
extern const struct inf_message_codec inf_codec_model_metadata;
extern const struct inf_message_codec inf_codec_server_metadata;
// --- codecs in message_repository.c ---
extern const struct inf_message_codec inf_codec_model_load_request;
extern const struct inf_message_codec inf_codec_model_unload_request;
extern const struct inf_message_codec inf_codec_model_index;
extern const struct inf_message_codec inf_codec_load_progress;
extern const struct inf_message_codec inf_codec_reload_reply;
// --- codecs in message_status.c ---
extern const struct inf_message_codec inf_codec_status;
extern const struct inf_message_codec inf_codec_device_index;
extern const struct inf_message_codec inf_codec_server_status;
extern const struct inf_message_codec inf_codec_memory_info;
// --- codecs in message_limits.c ---
extern const struct inf_message_codec inf_codec_limits_request;
extern const struct inf_message_codec inf_codec_limits_reply;
extern const struct inf_message_codec inf_codec_credit;
extern const struct inf_message_codec inf_codec_data;
// --- codecs in message_session.c ---
extern const struct inf_message_codec inf_codec_session_open;
extern const struct inf_message_codec inf_codec_session_close;
extern const struct inf_message_codec inf_codec_session_rewind;

// --- codecs in message_placement.c ---
extern const struct inf_message_codec inf_codec_placement_request;
extern const struct inf_message_codec inf_codec_placement_reply;
extern const struct inf_message_codec inf_codec_precompile;
// --- codecs in message_environment.c ---
extern const struct inf_message_codec inf_codec_flag_set;
extern const struct inf_message_codec inf_codec_environment;
// --- codecs in message_metrics.c ---
extern const struct inf_message_codec inf_codec_metrics_request;
extern const struct inf_message_codec inf_codec_metrics_reply;
// --- codecs in message_activity.c ---
extern const struct inf_message_codec inf_codec_request_list;
extern const struct inf_message_codec inf_codec_client_list;
extern const struct inf_message_codec inf_codec_client_target;
extern const struct inf_message_codec inf_codec_report_request;

// --- texts and names ---

// The maximum length in bytes of a text field that has no other limit. Applies to texts from
// clients.
#define INF_TEXT_LIMIT 256u
// The maximum length of a path (the limit of Linux), in bytes.
#define INF_PATH_LIMIT 4095u
// The maximum length of the name of a file (the limit of Linux), in bytes.
#define INF_FILE_NAME_LIMIT 255u

// Returns `text` for a field of protobuf-c, which must be neither const nor NULL. For NULL returns
// "".
char *inf_wire_text(const char *text);

// Fails if `text` is longer than `limit` bytes. `field` is the field's name in inferd.proto.
enum inf_code inf_check_text(const char *field, const char *text, size_t limit,
                             struct inf_error *err) INF_NODISCARD;

// Fails if a number is no enum inf_persistence.
enum inf_code inf_wire_check_persistence(uint32_t number, struct inf_error *err) INF_NODISCARD;

// Fails if `name` cannot be the name of a model (inf_model_name_valid()).
enum inf_code inf_check_model_name(const char *field, const char *name,
                                   struct inf_error *err) INF_NODISCARD;

// Checks `name`, which is NAME or NAME:SIGNATURE, and *version, which is empty, a number or a
// label. If '@' and a version follow in `name`, cuts it before the '@', and sets *version, which
// must be empty then. Each part has the form of inf_model_name_valid(). The fields are named as in
// inferd.proto.
enum inf_code inf_decode_model(const char *name_field, char *name, const char *version_field,
                               const char **version, struct inf_error *err) INF_NODISCARD;

// A `repeated string` field as protobuf-c represents it: the array and its length.
struct inf_wire_texts {
    const char *field;
    size_t count;
    char *const *texts;
};

// The capacity of every list of texts in union inf_message.
#define INF_TEXT_LIST 32u

// Fills a list of INF_TEXT_LIST texts.
//
// INF_INVALID  (BAD_PARAMETER) there are more texts, or one is longer than INF_TEXT_LIMIT.
enum inf_code inf_decode_texts(const char **list, uint32_t *count,
                               const struct inf_wire_texts *wire,
                               struct inf_error *err) INF_NODISCARD;

// Returns the list in the form that protobuf-c needs. Returns NULL and fills *err if the scratch is
// exhausted.
char **inf_encode_texts(const char *const *list, uint32_t count, struct inf_scratch *scratch,
                        struct inf_error *err);

// --- allocating messages that are to be encoded ---

// Returns an initialised message of this type. Returns NULL and fills *err if the scratch is
// exhausted.
void *inf_wire_new(const ProtobufCMessageDescriptor *descriptor, struct inf_scratch *scratch,
                   struct inf_error *err);

// Returns an array of pointers to `count` initialised messages, for a repeated field. Returns NULL
// and fills *err (FRAME_TOO_LARGE) if the scratch is exhausted, or if the messages could have more
// than INF_LIMIT_META_FIELDS fields in total, which the receiver would refuse.
void *inf_wire_list(const ProtobufCMessageDescriptor *descriptor, size_t count,
                    struct inf_scratch *scratch, struct inf_error *err);

#endif
