#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_arm64.sh ROOT [TEST...]: builds the whole project for arm64 with Debian's cross compiler
# against libraries that it unpacks below ROOT (an absolute path; 0.6 GB, kept for the next time),
# and runs the unit tests, or those named, under qemu-user. Wants gcc-aarch64-linux-gnu and
# qemu-user-static.
set -euo pipefail
[ $# -ge 1 ] && [ "${1#/}" != "$1" ] ||
    { echo "usage: check_arm64.sh /ROOT [TEST...]" >&2; exit 2; }
root=$1
shift
cd "$(dirname "$0")/../.."

packages="libc6-dev libevent-dev libprotobuf-c-dev libsystemd-dev libjansson-dev libxnnpack-dev
    libpthreadpool-dev libcpuinfo-dev libspng-dev libturbojpeg0-dev libvulkan-dev libshaderc-dev
    zlib1g-dev libnghttp2-dev glslang-dev spirv-tools libstdc++-12-dev libcriterion-dev"

# An apt of its own, which knows nothing as installed: it fetches all that the packages need.
unpack() {
    mkdir -p "$root"/state/lists/partial "$root"/cache/archives/partial "$root"/sys
    : >"$root/status"
    cat >"$root/apt.conf" <<EOF
APT { Architecture "arm64"; Architectures { "arm64"; }; Install-Recommends "false"; };
Dir { State "$root/state"; State::status "$root/status"; Cache "$root/cache"; };
EOF
    export APT_CONFIG=$root/apt.conf
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -qq -y --download-only $packages >/dev/null
    for package in "$root"/cache/archives/*.deb; do dpkg -x "$package" "$root/sys"; done
    unset APT_CONFIG
    cat >"$root/pkg-config" <<EOF
#!/bin/sh
export PKG_CONFIG_SYSROOT_DIR=$root/sys
export PKG_CONFIG_LIBDIR=$root/sys/usr/lib/aarch64-linux-gnu/pkgconfig:$root/sys/usr/share/pkgconfig
exec pkg-config "\$@"
EOF
    chmod +x "$root/pkg-config"
    cat >"$root/cross.ini" <<EOF
[binaries]
c = ['aarch64-linux-gnu-gcc', '--sysroot=$root/sys']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = '$root/pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '$root/sys']
[built-in options]
c_link_args = ['-L$root/sys/usr/lib/gcc/aarch64-linux-gnu/12',
               '-Wl,-rpath-link,$root/sys/usr/lib/aarch64-linux-gnu']
[properties]
sys_root = '$root/sys'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
EOF
    touch "$root/unpacked"
}

[ -e "$root/unpacked" ] || unpack
[ -e build/arm64/build.ninja ] ||
    meson setup build/arm64 --cross-file "$root/cross.ini" -Dwerror=true -Dtests=enabled
ninja -C build/arm64
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(--suite unit)
meson test -C build/arm64 --no-rebuild -t 8 "${tests[@]}"
