#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs inside the bare system that check_bare.sh has booted: installs inferd with the commands of
# docs/howto/deploy.md (in /src/install.sh) and uses the service for the first time. Prints each
# command before its output; stops at the first one that does not do what a reader expects.
set -euo pipefail

run() {
    echo "\$ $*"
    "$@"
}

# Fails unless the command fails with this exit status.
expect_status() {
    local wanted=$1 status=0
    shift
    run "$@" || status=$?
    [ "$status" = "$wanted" ] || { echo "exit status $status, wanted $wanted"; exit 1; }
}

echo "# the commands of docs/howto/deploy.md"
while read -r line; do
    echo "\$ $line"
    # The packages' own messages would fill pages.
    case $line in
        *apt-get*) eval "${line/apt-get install/apt-get install -qy --no-install-recommends}" \
            >/dev/null 2>&1 ;;
        meson* | ninja*) eval "$line" >build.txt; tail -n 1 build.txt ;;
        *) eval "$line" ;;
    esac
done </src/install.sh

echo "# the service, started by its first client"
run systemctl is-active inferd.socket inferd-admin.socket
run inferctl status
run inferctl devices
run systemctl --no-pager --lines=0 status inferd
inferctl devices >devices.txt
grep -q '^cpu' devices.txt || { echo "the cpu device is missing"; exit 1; }

echo "# a model in a home directory, which the unit hides from the daemon"
# The root may have been kept from an earlier try.
id ana >/dev/null 2>&1 || useradd --create-home ana
home=$(getent passwd ana | cut -d: -f6)
mkdir -p "$home/model"
chmod 700 "$home"
run apt-get install -qy --no-install-recommends python3-numpy >/dev/null
run python3 tests/tools/gen/gen_mobilenet_v2.py --float "$home/model/mobilenet.onnx"
cd "$home"
run inferctl load mobilenet ./model/mobilenet.onnx
run inferctl models
run inferctl bench mobilenet -n 20 || true
run inferctl unload mobilenet
expect_status 4 inferctl unload mobilenet

echo "# a program in C, built with pkg-config"
run inferctl load mobilenet ./model/mobilenet.onnx
cat >first.c <<'C'
#include <inferd.h>
#include <stdio.h>

int main(void)
{
    inferd_client *client;
    inferd_model_row *rows;
    size_t count;
    struct inferd_error error;
    if (inferd_connect(&client, NULL, &error) != INFERD_OK ||
        inferd_models(client, &rows, &count, &error) != INFERD_OK)
        return fprintf(stderr, "%s: %s\n", error.reason, error.text), 1;
    printf("%zu model: %s is %s on %s\n", count, rows[0].name, rows[0].state, rows[0].device);
    inferd_close(client);
    return 0;
}
C
run pkg-config --cflags --libs inferd
run sh -c 'gcc -Wall -o first first.c $(pkg-config --cflags --libs inferd)'
run ./first
run ldd ./first

echo "# a configuration that is wrong, with a client that keeps connecting"
mkdir -p /etc/inferd
echo 'connections_max = many' >/etc/inferd/inferd.conf
run systemctl stop inferd
for _ in $(seq 40); do
    inferctl status >/dev/null 2>&1 & # waits, or fails when the daemon gives up
    sleep 0.2
done
run systemctl is-active inferd.socket inferd-admin.socket
systemctl --no-pager --lines=3 status inferd >status.txt || true
run cat status.txt
grep -q 'Status: .*connections_max = many' status.txt || { echo "no reason"; exit 1; }
echo 'connections_max = 100' >/etc/inferd/inferd.conf
for _ in $(seq 30); do
    inferctl status >/dev/null 2>&1 && break
    sleep 1
done
run inferctl status
wait

echo "# a reload"
echo 'connections_max = 200' >/etc/inferd/inferd.conf
run systemctl reload inferd
sleep 1
inferctl limits >limits.txt
grep -q '^connections_max  *200 ' limits.txt || { echo "not reloaded"; exit 1; }
run journalctl --no-pager -q -u inferd -n 12 -o cat
echo "# done"
