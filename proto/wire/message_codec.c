// SPDX-License-Identifier: Apache-2.0
// Functions that the codecs of messages share: checks of texts and names, lists of strings, and
// initialised protobuf-c messages in scratch memory.
#include "proto/wire/message_codec.h"

#include <assert.h>
#include <string.h>

#include "proto/core/utf8.h"

static_assert(INF_HELLO_FEATURES == INF_TEXT_LIST, "one helper fills both");
static_assert(INF_METADATA_EXTENSIONS == INF_TEXT_LIST, "one helper fills both");

char *inf_wire_text(const char *text)
{
    return (char *)(text != NULL ? text : "");
}

enum inf_code inf_wire_check_persistence(uint32_t number, struct inf_error *err)
{
    return number <= INF_PERSIST_FORGET
               ? INF_OK
               : inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                 "persist is %u, wanted 0, 1 or 2", number);
}

enum inf_code inf_check_text(const char *field, const char *text, size_t limit,
                             struct inf_error *err)
{
    size_t size = strlen(text);
    if (size > limit)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s' has %zu bytes, at most %zu are allowed", field,
                               inf_quote(text).text, size, limit);
    return INF_OK;
}

static bool is_name(const char *text, size_t size)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        "0123456789._-";
    return size > 0 && size <= INF_LIMIT_MODEL_NAME && text[0] != '.' &&
           strspn(text, allowed) >= size;
}

bool inf_model_name_valid(const char *name)
{
    return is_name(name, strlen(name));
}

// Returns true if the first `size` characters of `text` are the name of a model, or such a name,
// ':' and the key of a signature, INF_LIMIT_MODEL_NAME characters in all.
static bool is_model(const char *text, size_t size)
{
    size_t name = INF_MIN(strcspn(text, ":"), size);
    return size <= INF_LIMIT_MODEL_NAME && is_name(text, name) &&
           (name == size || is_name(text + name + 1, size - name - 1));
}

bool inf_model_reference_valid(const char *reference)
{
    size_t size = strcspn(reference, "@");
    return is_model(reference, size) &&
           (reference[size] == '\0' || inf_model_name_valid(reference + size + 1));
}

enum inf_code inf_check_model_name(const char *field, const char *name, struct inf_error *err)
{
    if (inf_model_name_valid(name))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "%s '%s' is no model name: wanted 1 to %u of A-Z a-z 0-9 . _ - and no "
                           "leading dot",
                           field, inf_quote(name).text, INF_LIMIT_MODEL_NAME);
}

static enum inf_code check_version(const char *field, const char *version, struct inf_error *err)
{
    if (version[0] == '\0' || inf_model_name_valid(version))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "%s '%s' is no version: wanted a number or a label of at most %u of "
                           "A-Z a-z 0-9 . _ -",
                           field, inf_quote(version).text, INF_LIMIT_MODEL_NAME);
}

enum inf_code inf_decode_model(const char *name_field, char *name, const char *version_field,
                               const char **version, struct inf_error *err)
{
    char *at = strchr(name, '@');
    if (at != NULL && *version[0] != '\0')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s' names a version, and so does %s '%s': wanted one of them",
                               name_field, inf_quote(name).text, version_field,
                               inf_quote(*version).text);
    if (at != NULL && at[1] == '\0')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': wanted a version or a label after '@'", name_field,
                               inf_quote(name).text);
    if (at != NULL) {
        *at = '\0';
        *version = at + 1;
    }
    if (!is_model(name, strlen(name)))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s' is no model name: wanted NAME or NAME:SIGNATURE, 1 to %u "
                               "of A-Z a-z 0-9 . _ - and no leading dot in either",
                               name_field, inf_quote(name).text, INF_LIMIT_MODEL_NAME);
    return check_version(version_field, *version, err);
}

enum inf_code inf_decode_texts(const char **list, uint32_t *count,
                               const struct inf_wire_texts *wire, struct inf_error *err)
{
    if (wire->count > INF_TEXT_LIST)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s has %zu entries, at most %u are allowed", wire->field,
                               wire->count, INF_TEXT_LIST);
    for (size_t i = 0; i < wire->count; i++) {
        INF_TRY(inf_check_text(wire->field, wire->texts[i], INF_TEXT_LIMIT, err));
        list[i] = wire->texts[i];
    }
    *count = (uint32_t)wire->count;
    return INF_OK;
}

char **inf_encode_texts(const char *const *list, uint32_t count, struct inf_scratch *scratch,
                        struct inf_error *err)
{
    assert(count <= INF_TEXT_LIST);
    char **texts = inf_scratch_array(scratch, count, sizeof *texts, err);
    if (texts == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        texts[i] = inf_wire_text(list[i]);
    return texts;
}

// Fills a message with the defaults of its type. In proto3 every default is zero, except that a
// string is "".
static void init_message(const ProtobufCMessageDescriptor *descriptor, void *wire)
{
    memset(wire, 0, descriptor->sizeof_message);
    ((ProtobufCMessage *)wire)->descriptor = descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->default_value != NULL && field->label != PROTOBUF_C_LABEL_REPEATED)
            memcpy((char *)wire + field->offset, &field->default_value, sizeof(const char *));
    }
}

void *inf_wire_new(const ProtobufCMessageDescriptor *descriptor, struct inf_scratch *scratch,
                   struct inf_error *err)
{
    void *wire = inf_scratch_array(scratch, 1, descriptor->sizeof_message, err);
    if (wire != NULL)
        init_message(descriptor, wire);
    return wire;
}

void *inf_wire_list(const ProtobufCMessageDescriptor *descriptor, size_t count,
                    struct inf_scratch *scratch, struct inf_error *err)
{
    // A message uses one field in its parent, in addition to its own fields.
    size_t most = INF_LIMIT_META_FIELDS / (descriptor->n_fields + 1);
    if (count > most) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                        "%zu entries of %s, a frame takes at most %zu", count,
                        descriptor->short_name, most);
        return NULL;
    }
    void **list = inf_scratch_array(scratch, count, sizeof *list, err);
    for (size_t i = 0; list != NULL && i < count; i++) {
        list[i] = inf_wire_new(descriptor, scratch, err);
        if (list[i] == NULL)
            return NULL;
    }
    return list;
}
