#!/bin/bash
# report.sh [--seconds N] [--software] - judges and measures the first GPU of this machine with the
# kit that pack.sh made, within N seconds (default 450), and writes report/report.md with plots. If
# it is stopped or the time is over, run it again: steps that are done are not repeated. --software
# allows a device that computes on the CPU (llvmpipe), for trying the kit itself.
set -uo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
limit_s=450 software=no
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) limit_s=${2:?} && shift 2 ;;
        --software) software=yes && shift ;;
        *) sed -n '2,6s/^# //p' "$0" >&2; exit 2 ;;
    esac
done
work=${INF_GPU_REPORT:-$kit/report}
mkdir -p "$work/steps" "$work/cache" "$work/mesa"
export MESA_SHADER_CACHE_DIR=$work/mesa
say() { printf '==> %s\n' "$*"; }

# --- programs and libraries ---

# Prefers the machine's own xz and Vulkan loader.
unpack() {
    [ -x "$work/bin/inferd" ] && return 0
    local xz=xz
    command -v xz >/dev/null || xz="env LD_LIBRARY_PATH=$kit/xz $kit/xz/xz"
    $xz -dc "$kit/kit.tar.xz" | tar -C "$work" -xf - || { say "cannot unpack kit.tar.xz"; exit 1; }
}

libraries=$work/lib
ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1 ' || libraries+=:$work/lib/loader
start=()
# Runs a program of the kit.
run() {
    local program=$1
    shift
    LD_LIBRARY_PATH=$libraries "${start[@]}" "$work/bin/$program" "$@"
}

choose_libc() {
    run inferctl --version >/dev/null 2>&1 && return 0
    libraries=$work/lib/libc:$libraries
    start=("$work/lib/libc/ld-linux-x86-64.so.2" --library-path "$libraries")
    run inferctl --version >/dev/null 2>&1 || { say "no program of the kit starts here"; exit 1; }
}

# --- steps ---

# step NAME SECONDS COMMAND... - runs a command once and keeps what it prints in steps/NAME, and its
# exit code in steps/NAME.done. A step for which no time is left stays undone.
step() {
    local name=$1 most=$2 wanted=$2 left=$((limit_s - SECONDS)) code
    shift 2
    [ ! -f "$work/steps/$name.done" ] || return 0
    if [ "$left" -lt 8 ]; then
        echo "not run: the time was over" >"$work/steps/$name"
        return 0
    fi
    [ "$left" -gt "$most" ] || most=$left
    say "$name"
    local begin=$SECONDS
    rm -f "$work/cut"
    # A process group of its own, so that all of its programs can be ended.
    set -m
    ("$@") >"$work/steps/$name.part" 2>&1 &
    local pid=$!
    set +m
    (sleep "$most" && touch "$work/cut" && kill -- -$pid) 2>/dev/null &
    local watch=$!
    wait $pid
    code=$?
    pkill -P $watch 2>/dev/null
    kill $watch 2>/dev/null
    wait $watch 2>/dev/null
    [ ! -f "$work/cut" ] || code=124
    mv "$work/steps/$name.part" "$work/steps/$name"
    # Cut off by the end of the time: the next call runs the step again.
    [ $code -ne 124 ] || [ "$most" -eq "$wanted" ] || return 0
    echo "$code $((SECONDS - begin))" >"$work/steps/$name.done"
}

engine() { run bench_engine --threads "$(nproc)" "$@"; }
model_file() { find "$kit/models/$1/model" -name '*.json' -o -name '*.onnx' | head -n 1; }
models=$(cd "$kit/models" && ls -d */ | tr -d /)

# The operators, divided so that a machine that is cut off has most of them. Case by case against
# ref.
operators() { INF_OPS_BACKEND=vulkan INF_OPS_PART=$1 run test_ops; }

# Every speed of one model on one line each: WHAT then what bench_engine prints.
speeds() {
    local file time_ms
    file=$(model_file "$1")
    for what in ref cpu vulkan; do
        [ $what = ref ] && time_ms=200 || time_ms=400
        echo "$what $(engine --backend $what --ms $time_ms "$file" 2>&1)"
    done
    mkdir -p "$work/cache/races"
    # Races take their time before the first run; --first keeps what they found.
    engine --backend vulkan --race --first "$work/cache/races" --ms 10 "$file" >/dev/null 2>&1
    echo "raced $(engine --backend vulkan --race --ms 400 "$file" 2>&1)"
    echo "fp16 $(engine --backend vulkan:fp16 --ms 400 "$file" 2>&1)"
}

shaders() { engine --backend vulkan --compare-kernels --ms 100 "$(model_file "$1")"; }

host_times() {
    for model in mobilenet_v2_100_224-tfjs blazeface-front facemesh; do
        VULKAN_FAULT_LAYER=$work/bin engine --backend vulkan --host --ms 800 \
            "$(model_file "$model")"
    done
}

starts() {
    for model in mobilenet_v2_100_224-tfjs facemesh; do
        rm -rf "$work/cache/first" "$work/cache/mesa" && mkdir -p "$work/cache/first"
        for start in 1 2 3; do
            echo "start $start $(MESA_SHADER_CACHE_DIR=$work/cache/mesa engine --backend vulkan \
                --first "$work/cache/first" --ms 50 "$(model_file "$model")" 2>&1)"
        done
    done
}

device_loss() { VULKAN_FAULT_LAYER=$work/bin run test_vulkan_faults; }
shader_checks() { VULKAN_FAULT_LAYER=$work/bin run test_vulkan_check; }

# What a first use of the shaders of each model finds and costs, in fp32 and in fp16.
check_model_shaders() {
    for precision in fp32 fp16; do
        for model in $models; do
            echo "$precision $(engine --backend vulkan:$precision --check-shaders --declined \
                --ms 10 "$(model_file "$model")" 2>&1 | grep 'shaders right\|wrongly')"
        done
    done
}

# The slowest of the requests of one client while the device is lost, beside the others. The fault
# layer reads what to do from a file (tests/support/device/vulkan_faults.h): its third word is the
# result of waiting for the device.
loss_time() {
    local folder socket faults
    folder=$(mktemp -d) socket=$folder/admin.sock faults=$folder/faults
    truncate -s 4096 "$faults"
    control() { run inferctl --socket="$socket" "$@"; }
    set_wait() { printf "$1" | dd of="$faults" bs=1 seek=8 conv=notrunc status=none; }
    VULKAN_FAULTS=$faults VK_LAYER_PATH=$work/bin VK_INSTANCE_LAYERS=VK_LAYER_INFERD_faults \
        run inferd --runtime-dir="$folder" --cache_dir="$work/cache/loss" --race=never \
        --backends=vulkan,cpu,ref --log-level=info 2>"$folder/log" &
    local daemon=$!
    trap 'pkill -P $daemon; kill $daemon 2>/dev/null; rm -rf "$folder"' EXIT
    for _ in $(seq 100); do [ -S "$socket" ] && break; sleep 0.1; done
    for model in mobilenet_v2_100_224-tfjs facemesh; do
        control load "$model" "$(model_file "$model")" --device vulkan0 >/dev/null
        for _ in $(seq 100); do
            grep -q "model stands by name=$model" "$folder/log" && break
            sleep 0.1
        done
        control bench "$model" -n 100 -o json >"$folder/bench" &
        local bench=$!
        sleep 0.6
        set_wait '\374\377\377\377' # VK_ERROR_DEVICE_LOST
        sleep 0.2
        set_wait '\0\0\0\0'
        wait $bench
        echo "$model $(tr -d '\n' <"$folder/bench" | grep -o '"\(median\|p99\|max\)_ms": *[0-9.]*' |
            tr -d '":' | tr '\n' ' ')$(grep -c 'device lost' "$folder/log") lost"
        control unload "$model" >/dev/null
    done
}

# A daemon with all devices: what it finds, its self-test, and for each model what it chooses and
# what every device takes.
placement() {
    local folder socket
    folder=$(mktemp -d) socket=$folder/admin.sock
    control() { run inferctl --socket="$socket" "$@"; }
    run inferd --runtime-dir="$folder" --cache_dir="$work/cache/daemon" --backends=vulkan,cpu,ref \
        --log-level=warning &
    local daemon=$!
    trap 'pkill -P $daemon; kill $daemon 2>/dev/null; rm -rf "$folder"' EXIT
    for _ in $(seq 100); do [ -S "$socket" ] && break; sleep 0.1; done
    control devices -o json
    echo "--- selftest"
    control selftest
    for model in $models; do
        control load "$model" "$(model_file "$model")" >/dev/null
        # The race begins when nothing is served, and takes a second or two.
        for _ in $(seq 40); do
            control explain "$model" | grep -q 'not measured' || break
            sleep 0.25
        done
        echo "--- model $model"
        control explain "$model" | sed -n '1,2p'
        control bench "$model" -n 60 --all-backends
        control unload "$model" >/dev/null
    done
}

# --- the report ---

unpack
choose_libc
say "kit: $(tr '\n' ' ' <"$kit/kit.txt")"
[ ! -x "$work/bin/vulkaninfo" ] || step vulkaninfo 20 run vulkaninfo --summary
step device 40 run run_models "$kit/models/manifest.json" --backend vulkan --only blazeface-front
if [ $software = no ] && grep -qiE 'llvmpipe|lavapipe|swiftshader' "$work/steps/device"; then
    say "the first Vulkan device computes on the CPU: $(head -n 1 "$work/steps/device")"
    say "install the GPU's driver, or try the kit itself with --software"
    rm -f "$work/steps/device.done"
    exit 1
fi
step models-fp32 90 run run_models "$kit/models/manifest.json" --backend vulkan
step candidates 90 run test_vulkan_race
step products 60 run test_vulkan_product
step attention 30 run test_vulkan_attention
step winograd 60 run test_vulkan_winograd
for model in $models; do step "speed-$model" 40 speeds "$model"; done
for model in $models; do step "shaders-$model" 40 shaders "$model"; done
step placement 90 placement
step host 30 host_times
step starts 60 starts
step upload 20 run bench_in_place vulkan 100
step device-loss 60 device_loss
step shader-checks 60 shader_checks
step model-shaders 60 check_model_shaders
step loss-time 40 loss_time
step models-fp16 60 run run_models "$kit/models/manifest.json" --backend vulkan:fp16
step random 40 run run_random --backend vulkan --count 150
for part in $(seq 24); do step "operators-$(printf '%02d' "$part")" 60 operators "$part/24"; done
if [ -x "$kit/peer" ]; then
    step "peer" 60 env LD_LIBRARY_PATH="$libraries" "$kit/peer" "$kit/models"
fi

(cd "$work/steps" && awk -f "$kit/page.awk" -v kit="$(tr '\n' ' ' <"$kit/kit.txt")" \
    -v peer="$(cat "$kit/peer.name" 2>/dev/null)" -v software="$software" -v out="$work" \
    -v cpu="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
    -v machine="$(uname -sr), $(nproc) processors" -v day="$(date -u +'%d %B %Y')" \
    $(ls | grep -v '\.done$\|\.part$')) >"$work/report.md"
say "$work/report.md: $(grep -c '^- \*\*' "$work/report.md") findings"
