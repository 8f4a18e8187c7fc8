#!/bin/sh
# Run by `meson install`: tells the dynamic linker of libinferd. A staged installation (DESTDIR) is a
# package's, whose own scripts do this. Without permission the step is left to the user, and said.
[ -z "$DESTDIR" ] || exit 0
command -v ldconfig >/dev/null || PATH=$PATH:/usr/sbin:/sbin
ldconfig 2>/dev/null || echo "libinferd.so: run ldconfig as root, else programs may not find it"
