#!/bin/sh
# check_restart.sh BUILD SOURCE_ROOT [ROUNDS] - boots a real systemd (systemd-nspawn) with the units
# of the build, and restarts and kills the service under load, ROUNDS times each: no connection is
# lost, and each request gets one answer. Needs root. Prints how long clients had to wait.
set -eu
build=$(realpath "$1") root=$(realpath "$2") rounds=${3:-100}
if ! command -v systemd-nspawn >/dev/null; then
    echo "SKIP: systemd-nspawn is not installed (package systemd-container)"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/units"
for unit in inferd.service inferd.socket inferd-admin.socket; do
    sed 's|^ExecStart=[^ ]*|ExecStart=/opt/build/daemon/inferd|' "$build/systemd/$unit" \
        >"$out/units/$unit"
done
cat >"$out/units/test.service" <<UNIT
[Unit]
After=basic.target systemd-sysusers.service
[Service]
Type=oneshot
ExecStart=/bin/sh /opt/out/run.sh
StandardOutput=append:/opt/out/log
StandardError=append:/opt/out/log
FailureAction=exit-force
UNIT
cat >"$out/run.sh" <<RUN
rc=0
timeout 1000 /usr/bin/python3 /opt/root/tests/daemon/handover/test_handover_load.py - /opt/root \
    --systemd --rounds $rounds --all || rc=1
systemctl show inferd.service -p NRestarts,ActiveState,NFileDescriptorStore
[ \$rc = 0 ] || journalctl -u inferd.service -n 40 --no-pager
systemctl --force exit \$rc
RUN
set --
for unit in "$out"/units/*; do
    set -- "$@" --bind-ro="$unit:/etc/systemd/system/$(basename "$unit")"
done
rc=0
systemd-nspawn -q --register=no --keep-unit -D / --volatile=yes --private-network \
    --bind-ro="$build:/opt/build" --bind-ro="$root:/opt/root" --bind="$out:/opt/out" \
    --bind-ro="$root/systemd/inferd.sysusers:/etc/sysusers.d/inferd.conf" "$@" --console=pipe \
    -b systemd.unit=test.service systemd.firstboot=off systemd.mask=systemd-firstboot.service \
    </dev/null >"$out/console" 2>&1 || rc=$?
cat "$out/log" || tail -20 "$out/console"
exit $rc
