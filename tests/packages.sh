# The packages of Debian 12 that inferd needs; sourced by ../check and ../quickstart.

packages_build="gcc libc6-dev meson ninja-build pkg-config python3 git
    libevent-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler libsystemd-dev
    libjansson-dev zlib1g-dev libnghttp2-dev libxnnpack-dev libpthreadpool-dev libcpuinfo-dev
    libspng-dev libturbojpeg0-dev libvulkan-dev glslc spirv-tools libshaderc-dev glslang-dev"
packages_check="libcriterion-dev clang libclang-rt-14-dev llvm clang-format-14 clang-format systemd
    man-db ccache lld mesa-vulkan-drivers vulkan-validationlayers procps python3-numpy
    python3-grpcio python3-yaml curl haproxy
    libonnx-testdata xz-utils gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
packages_fetch="npm"

# install_missing PACKAGE... - installs those that are not installed yet.
install_missing() {
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" = "install ok installed" ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    say "installing ${missing[*]}"
    local as_root=(env DEBIAN_FRONTEND=noninteractive)
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            die "these packages are missing and this is not root: ${missing[*]}"
        as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
    fi
    local log
    log=$(mktemp)
    { "${as_root[@]}" apt-get update &&
        "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } \
        >"$log" 2>&1 || { tail -n 20 "$log" >&2; die "apt-get could not install: ${missing[*]}"; }
    rm -f "$log"
}

say() { printf '==> %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
