#!/bin/sh
# Run by `meson install`: makes the dynamic linker find libinferd. A staged installation (DESTDIR)
# belongs to a package, whose scripts do this. Without permission it prints what the user has to do.
[ -z "$DESTDIR" ] || exit 0
command -v ldconfig >/dev/null || PATH=$PATH:/usr/sbin:/sbin
ldconfig 2>/dev/null || echo "libinferd.so: run ldconfig as root, else programs may not find it"
