#!/bin/sh
# slim.sh PROTOC OUTDIR DIR FILE - what protoc-c makes of FILE, without what nobody here reads and every program
# with the descriptors would carry: names of messages but the short one, indices by names, a function each to
# fill a message with its defaults (which the descriptor tells too: message_codec.c). Where protoc-c's text is another
# than expected, it stays as it is.
set -e
protoc=$1 out=$2 dir=$3 file=$4
"$protoc" --c_out="$out" --proto_path="$dir" "$file"
made=$out/$(basename "$file" .proto).pb-c.c
sed -e '/PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,/{n;s/".*"/NULL/;n;n;s/".*"/NULL/;n;s/".*"/NULL/;}' \
    -e 's/(ProtobufCMessageInit) [a-z0-9_]*__init,/NULL,/' \
    -e 's/^  [a-z0-9_]*__field_indices_by_name,/  NULL,/' "$made" >"$made.slim"
mv "$made.slim" "$made"
