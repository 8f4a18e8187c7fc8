#!/bin/sh
# slim.sh PROTOC OUTDIR DIR FILE - generates C from FILE with protoc-c, and removes what is not used
# but would be linked into every program: the long names of messages, the indices by name, and the
# functions that fill a message with its defaults (message_codec.c uses the descriptor instead). The
# default of texts is a constant of the generated file, because a reference to that of protobuf-c
# needs a relocation of 24 bytes for each field.
# Lines that do not look as expected are not changed.
set -e
protoc=$1 out=$2 dir=$3 file=$4
"$protoc" --c_out="$out" --proto_path="$dir" "$file"
made=$out/$(basename "$file" .proto).pb-c.c
sed -e '/PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,/{n;s/".*"/NULL/;n;n;s/".*"/NULL/;n;s/".*"/NULL/;}' \
    -e 's/(ProtobufCMessageInit) [a-z0-9_]*__init,/NULL,/' \
    -e 's/^  [a-z0-9_]*__field_indices_by_name,/  NULL,/' \
    -e '/^#include "/a static const char no_text[1];' \
    -e 's/&protobuf_c_empty_string/no_text/' "$made" >"$made.slim"
mv "$made.slim" "$made"
