#!/bin/sh
# services.sh PROTOC OUTPUT DIR FILE... - writes the descriptors of FILEs as the elements of an
# array of characters: one FileDescriptorSet, without comments and positions of the sources.
set -e
protoc=$1 output=$2 dir=$3
shift 3
"$protoc" --proto_path="$dir" --descriptor_set_out="$output.bin" "$@"
od -An -v -tu1 "$output.bin" | sed 's/  */,/g; s/^,//; s/$/,/' >"$output"
rm "$output.bin"
