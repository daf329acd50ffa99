#!/bin/bash
# Compiles the worker SDK against other versions of LibTorch and runs its tests with each.
#
#   tests/versions/run.sh                  2.8.0, 2.9.1, 2.10.0, 2.12.1, 2.13.0, 2.14.1 and 2.15.0, one after the other
#   tests/versions/run.sh 2.15.0 …         only these
#   tests/versions/run.sh --keep …         leaves the versions where they were unpacked
#
# Each is fetched from PyPI by pip into .deps/versions (1 GB to download, 3 GB unpacked while it is tried; then it is
# removed). The wheels are those that PyPI has under the plain version number; the NCCL component is left out. Twenty minutes a
# version on two cores. Prints a line per version for docs/EMBEDDING.md. MUSTER_WHEELS names a folder with wheels that are there
# already. Exit codes: 1 a version failed; 2 usage; 69 it cannot be fetched; 74 disk full.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
source "$root/tools/lib.sh"
cd "$root"

keep=no
versions=()
for argument in "$@"; do
  case "$argument" in
    -h | --help)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    --keep) keep=yes ;;
    [0-9]*.*.*) versions+=("$argument") ;;
    *) fail 2 "'$argument' is neither --keep nor a version such as 2.15.0" ;;
  esac
done
[[ ${#versions[@]} -gt 0 ]] || versions=(2.8.0 2.9.1 2.10.0 2.12.1 2.13.0 2.14.1 2.15.0)

readonly folder="$root/.deps/versions"
mkdir -p "$folder" || fail $EX_IOERR "cannot make $folder"
log="$folder/log"

# fetch SITE PACKAGE...: unpacks wheels, as tools/get_libtorch does.
fetch() {
  local site="$1" tags=(--platform manylinux2014_x86_64) minor
  shift
  for minor in $(seq 17 36); do tags+=(--platform "manylinux_2_${minor}_x86_64"); done
  TMPDIR="$folder" python3 -m pip install --quiet --no-deps --no-compile --only-binary=:all: --disable-pip-version-check \
    --python-version 311 --implementation cp --abi cp311 --abi none "${tags[@]}" ${MUSTER_WHEELS:+--find-links "$MUSTER_WHEELS"} \
    --target "$site" "$@" >"$log" 2>&1 || fail_from_log "$log" "cannot fetch $*"
}

# The two packages of NVIDIA's that libtorch_cpu.so needs, as the wheel of torch names them.
cuda_packages() {
  local metadata=("$1"/torch-*.dist-info/METADATA)
  sed -nE 's/^Requires-Dist: (nvidia-cuda-(runtime|cupti)-cu12==[0-9.]+).*/\1/p
           s/^Requires-Dist: cuda-toolkit\[.*==([0-9]+\.[0-9]+)\..*/nvidia-cuda-runtime==\1.*\nnvidia-cuda-cupti==\1.*/p' "${metadata[0]}"
}

outcome=0
for version in "${versions[@]}"; do
  site="$folder/$version"
  if [[ ! -e "$site/torch/lib/libtorch_cpu.so" ]]; then
    fetch "$site" "torch==$version"
    mapfile -t packages < <(cuda_packages "$site")
    [[ ${#packages[@]} -gt 0 ]] || fail $EX_UNAVAILABLE "torch $version names no CUDA packages that are known here"
    fetch "$site" "${packages[@]}"
  fi
  result=passed
  # Not optimised: it is the versions that are tried, and half the time.
  tools/bazel test --test_output=errors --copt=-O0 --copt=-g0 --copt=-U_FORTIFY_SOURCE --repo_env=MUSTER_LIBTORCH="$site" --ui_event_filters=-info \
    //tests/worker_sdk:torch_versions_test >"$log" 2>&1 </dev/null || result="failed: $(grep -m1 -E 'error: |FAILED  \]' "$log" || tail -1 "$log")"
  [[ $result == passed ]] || outcome=1
  [[ $result == passed ]] || cp "$log" "$folder/$version.log"
  echo "| $version | $(date +%F) | $result |"
  [[ $keep == yes ]] || rm -rf "$site"
done
exit $outcome
