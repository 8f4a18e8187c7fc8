#!/bin/sh
# Updates the cache of the dynamic linker, so that programs find libinferd. `meson install` runs
# this script. For a staged installation (DESTDIR) it does nothing, because the scripts of the
# package update the cache. Without permission it prints the command that the user has to run.
[ -z "$DESTDIR" ] || exit 0
command -v ldconfig >/dev/null || PATH=$PATH:/usr/sbin:/sbin
ldconfig 2>/dev/null || echo "libinferd.so: run ldconfig as root, else programs may not find it"
