#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_bare.sh [--keep] ROOT PART...
#
# Tries the project in a bare Debian 12, as root. Makes a minimal system in the directory ROOT with
# debootstrap (if ROOT does not exist), clones the present commit into it, and runs the parts:
#
#   quickstart  ./quickstart, in a chroot
#   check       ./check --fast, in a chroot
#   check-all   ./check, in a chroot
#   install     the commands of docs/howto/deploy.md, word for word, under a booted systemd
#               (systemd-nspawn), then the first use of the service: status, a model from a home
#               directory, a C program built with pkg-config, a wrong configuration, and a reload
#
# Prints what it runs and what came out, as a transcript. --keep leaves ROOT in place at the end.
# The host's apt settings, CA certificates and npm settings are copied, so that a proxy works. If
# ../shared is there, the chroot sees it, so that the tests on its data run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../../.." && pwd)
mirror=${MIRROR:-http://deb.debian.org/debian}
keep=no

die() { echo "check_bare.sh: $*" >&2; exit 2; }

# Makes the minimal system, with the settings of the host that a proxy needs.
make_root() {
    [ -d "$root" ] && return
    debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" \
        >"$root.debootstrap.log" 2>&1 || { tail "$root.debootstrap.log"; die "debootstrap failed"; }
}

copy_settings() {
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    echo 'cafile=/etc/ssl/certs/ca-certificates.crt' >"$root/root/.npmrc"
}

# Clones the present commit, without build folders.
copy_tree() {
    rm -rf "$root/src/inferd"
    mkdir -p "$root/src"
    git clone -q --no-hardlinks "$tree" "$root/src/inferd"
    git -C "$root/src/inferd" checkout -q "$(git -C "$tree" rev-parse HEAD)"
}

unmount_all() {
    for folder in proc sys dev/pts dev src/shared; do
        mountpoint -q "$root/$folder" && umount "$root/$folder"
    done
    # A mount that is left would be emptied with the directory.
    grep -q " $(realpath "$root")/" /proc/mounts && die "something is still mounted in $root"
    [ $keep = yes ] || rm -rf --one-file-system "$root"
}

# Runs a command line in the tree of the chroot, with nothing of the host's environment.
run_in_chroot() {
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
    mountpoint -q "$root/sys" || mount -t sysfs sys "$root/sys"
    mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
    mountpoint -q "$root/dev/pts" || mount -t devpts devpts "$root/dev/pts"
    if [ -d "$tree/../shared" ] && ! mountpoint -q "$root/src/shared"; then
        mkdir -p "$root/src/shared"
        mount --bind -o ro "$(realpath "$tree/../shared")" "$root/src/shared"
    fi
    echo "# $1"
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        npm_config_registry="${npm_config_registry:-https://registry.npmjs.org/}" \
        bash -c "cd /src/inferd && $1"
}

# Prints the first indented block below the heading "## Install" of the page about deployment.
print_install_commands() {
    awk '/^## Install/ { found = 1 } found && /^    / { print substr($0, 5); seen = 1 }
         seen && !/^    / { exit }' "$tree/docs/howto/deploy.md"
}

# Boots systemd in ROOT and runs check_bare_install.sh there as a service; its exit status counts.
run_install() {
    run_in_chroot "apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install \
        -qy --no-install-recommends systemd systemd-sysv dbus sudo gcc libc6-dev >/dev/null 2>&1"
    print_install_commands >"$root/src/install.sh"
    cp "$here/check_bare_install.sh" "$root/src/first_use.sh"
    cat >"$root/etc/systemd/system/first-use.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
Environment=HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive
WorkingDirectory=/src/inferd
ExecStart=/bin/sh -c 'bash /src/first_use.sh >/src/transcript 2>&1; echo $? >/src/status'
ExecStopPost=systemctl --force --no-block exit 0
[Install]
WantedBy=multi-user.target
UNIT
    rm -f "$root/src/transcript" "$root/src/status"
    for folder in proc sys dev/pts dev; do umount "$root/$folder"; done
    systemd-nspawn -q --register=no --keep-unit -D "$root" --resolv-conf=copy-host \
        --console=pipe -b systemd.unit=first-use.service systemd.firstboot=off </dev/null || true
    cat "$root/src/transcript"
    [ "$(cat "$root/src/status" 2>/dev/null)" = 0 ]
}

while [ $# -gt 0 ] && [ "${1#--}" != "$1" ]; do
    case $1 in
        --keep) keep=yes ;;
        *) die "unknown option '$1'" ;;
    esac
    shift
done
[ $# -ge 2 ] || die "usage: check_bare.sh [--keep] ROOT quickstart|check|check-all|install..."
[ "$(id -u)" = 0 ] || die "needs root: it makes a root directory"
command -v debootstrap >/dev/null || die "install debootstrap and systemd-container"
root=$1
shift
make_root
trap unmount_all EXIT
copy_settings
copy_tree
status=0
for part in "$@"; do
    begin=$SECONDS
    case $part in
        quickstart) run_in_chroot ./quickstart || status=1 ;;
        check) run_in_chroot './check --fast' || status=1 ;;
        check-all) run_in_chroot ./check || status=1 ;;
        install) run_install || status=1 ;;
        *) die "unknown part '$part'" ;;
    esac
    echo "# $part: $([ $status = 0 ] && echo ok || echo FAILED) after $((SECONDS - begin)) s"
    [ $status = 0 ] || break
done
exit $status
