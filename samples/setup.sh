# setup.sh -- shared by samples/run.sh and tests/run.sh: install what is missing,
# find or fetch NVRTC, build. Sourced with the checkout as current folder.
# Everything but installed packages stays inside the checkout.
# shellcheck shell=bash

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# need_packages PACKAGE...: Debian packages, installed if they are not there.
need_packages() {
  local missing=() p
  command -v dpkg-query >/dev/null || {
    say "no Debian packages here; make sure these are installed: $*"
    return 0
  }
  for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  [ "$(id -u)" -eq 0 ] ||
    die "missing packages; run as root: apt-get install ${missing[*]}"
  step "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update || die "apt-get update failed; is the network there?"
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get install ${missing[*]} failed"
}

# shellcheck disable=SC2034  # used by the scripts that source this
build_packages=(gcc libc6-dev cmake make pkg-config libxxhash-dev libcjson-dev
  liblz4-dev libzstd-dev libpng-dev
  check)

# fetch_library PACKAGE VERSION FILE: a library from a wheel into .deps/, printed
# as a path.
fetch_library() {
  local package=$1 version=$2 file=$3 target=.deps/$1-$2
  if ! find "$target" -name "$file" 2>/dev/null | grep -q .; then
    need_packages python3 python3-pip ca-certificates >&2
    say "fetching $package $version into $target" >&2
    rm -rf "$target.part"
    PYTHONDONTWRITEBYTECODE=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip \
      install --quiet --disable-pip-version-check --no-cache-dir --no-compile \
      --no-deps --target "$target.part" "$package==$version" >&2 ||
      die "could not fetch $package $version; is the network there? a CUDA toolkit works too"
    rm -rf "$target"
    mv "$target.part" "$target"
  fi
  find "$PWD/$target" -name "$file" | head -n 1
}

# fetch_nvrtc VERSION
fetch_nvrtc() {
  local package=nvidia-cuda-nvrtc
  case $1 in
  11.*) package=nvidia-cuda-nvrtc-cu11 ;;
  12.*) package=nvidia-cuda-nvrtc-cu12 ;;
  esac
  fetch_library $package "$1" 'libnvrtc.so.*'
}

# The file in which NVIDIA's driver for GPUs states its version.
driver_file=${driver_file:-/proc/driver/nvidia/version}

# The number of the driver's release, such as 580; nothing without a driver.
driver_release() {
  sed -n 's/^NVRM version:.*  \([0-9]*\)\.[0-9.]* .*/\1/p' "$driver_file" \
    2>/dev/null || true
}

# The newest NVRTC that serves the driver and the GPU that are there.
wanted_nvrtc() {
  local driver cc
  driver=$(driver_release)
  cc=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    sort -n | head -n 1 | tr -d .)
  if [ "${driver:-999}" -lt 525 ] || [ "${cc:-999}" -lt 50 ]; then
    echo 11.8.89
  elif [ "${driver:-999}" -lt 580 ] || [ "${cc:-999}" -lt 75 ]; then
    echo 12.9.86
  else
    echo 13.0.88
  fi
}

# need_nvrtc: nothing to do where a toolkit or a setting has one.
need_nvrtc() {
  [ -n "${KILN_NVRTC:-}" ] && return 0
  ldconfig -p 2>/dev/null | grep -q 'libnvrtc\.so' && return 0
  compgen -G '/usr/local/cuda*/lib64/libnvrtc.so*' >/dev/null && return 0
  compgen -G "${CUDA_PATH:-/nonexistent}/lib64/libnvrtc.so*" >/dev/null &&
    return 0
  KILN_NVRTC=$(fetch_nvrtc "$(wanted_nvrtc)") || exit 1
  export KILN_NVRTC
}

# need_nvdisasm: the disassembler, for SASS. Without it the rest still works, so a
# failed download is reported only.
need_nvdisasm() {
  [ -n "${KILN_NVDISASM:-}" ] && return 0
  command -v nvdisasm >/dev/null && return 0
  compgen -G '/usr/local/cuda*/bin/nvdisasm' >/dev/null && return 0
  compgen -G "${CUDA_PATH:-/nonexistent}/bin/nvdisasm" >/dev/null && return 0
  KILN_NVDISASM=$(fetch_library nvidia-cuda-nvdisasm 13.5.37 nvdisasm) ||
    KILN_NVDISASM=
  if [ -n "$KILN_NVDISASM" ]; then
    chmod +x "$KILN_NVDISASM"
    export KILN_NVDISASM
  else
    unset KILN_NVDISASM
    say "there is no nvdisasm: no SASS; everything else works"
  fi
}

# need_cupti: the library with which kiln profile records a GPU, in a version that
# serves the driver. Nothing is fetched without a driver, where the program runs on
# the CPU device, or where a toolkit or a setting has one.
need_cupti() {
  local driver package=nvidia-cuda-cupti version=13.0.85
  driver=$(driver_release)
  [ -n "$driver" ] && [ -z "${KILN_CUPTI:-}" ] || return 0
  compgen -G '/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*' >/dev/null &&
    return 0
  compgen -G "${CUDA_PATH:-/nonexistent}/extras/CUPTI/lib64/libcupti.so*" \
    >/dev/null && return 0
  if [ "$driver" -lt 525 ]; then
    package=nvidia-cuda-cupti-cu11 version=11.8.87
  elif [ "$driver" -lt 580 ]; then
    package=nvidia-cuda-cupti-cu12 version=12.9.79
  fi
  KILN_CUPTI=$(fetch_library $package $version 'libcupti.so.*') || KILN_CUPTI=
  if [ -n "$KILN_CUPTI" ]; then
    export KILN_CUPTI
  else
    unset KILN_CUPTI
    say "there is no CUPTI: kiln profile records no GPU; everything else works"
  fi
}

# logged LOG COMMAND...: run quietly; on failure show the end of the log.
logged() {
  local log=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -n 40 "$log"
    die "failed: $*; the whole log is in $log"
  fi
}

# build FOLDER "TARGET..." [CMAKE OPTION...]: by Ninja where it is installed, which is
# faster, unless the folder was configured for another. With line numbers as the only
# debugging information, a build takes three quarters of the time.
build() {
  local folder=$1 target=$2 generator=()
  shift 2
  [ -e "$folder/CMakeCache.txt" ] || ! command -v ninja >/dev/null ||
    generator=(-G Ninja)
  mkdir -p "$folder"
  : >"$folder/build.log"
  step "building in $folder"
  logged "$folder/build.log" cmake -S . -B "$folder" \
    ${generator[@]+"${generator[@]}"} \
    "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" "$@"
  # shellcheck disable=SC2086 # several targets are words
  logged "$folder/build.log" cmake --build "$folder" --target $target \
    -j "$(nproc)"
}
