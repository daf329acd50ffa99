#!/bin/bash
# What only a machine with a GPU can show: the SDK over NCCL, the examples on it, and the time of a step.
#
#   tests/gpu/run.sh                             fetches NVIDIA's libraries (3.7 GB) and the digits, builds, runs
#   tests/gpu/run.sh --built FOLDER --data DIR   neither fetches nor builds: programs as in bazel-bin, pictures as of MNIST
#
# The run takes five minutes at most, fetching and building apart; each step has a limit of its own. One GPU is enough: that NCCL
# takes no two ranks on it is expected. With two, more cases run. The last line is "N passed, N failed" (", N skipped" may
# follow), or "skipped: " and why. Exit codes: 0 all passed, or skipped; 1 one failed; 2 usage; others: tools/lib.sh.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

readonly budget=300 # seconds
built='' data='' passed=0 failed=0 skipped=0

usage() {
  echo "run.sh: $1; tests/gpu/run.sh --help explains" >&2
  exit 2
}

skip() {
  echo "skipped: $1"
  exit 0
}

# count NAME CODE LIMIT: what the log says: the cases of a GoogleTest, or the program as one.
count() {
  local name="$1" code="$2" limit="$3" good bad left_out why="exit code $2"
  good=$(grep -c '^\[       OK \]' "$log" || true)
  bad=$(grep -c '^\[  FAILED  \] .* ms)$' "$log" || true)
  left_out=$(grep -c '^\[  SKIPPED \] .* ms)$' "$log" || true)
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + left_out))
  if [[ $code == 124 || $code == 137 ]]; then why="stopped after $limit s"; fi
  if [[ $code != 0 && $bad == 0 ]]; then
    failed=$((failed + 1))
  elif [[ $((good + bad + left_out)) == 0 ]]; then
    passed=$((passed + 1))
  fi
  if [[ $code == 0 ]]; then
    sed -n '/^\[  SKIPPED/!{/one GPU: /p}; /^{/p; /ok$/p' "$log"
    echo "--- $name: ok"
  else
    cat "$log"
    echo "--- $name: FAILED, $why"
  fi
}

# step LIMIT NAME EXPECTED COMMAND...: runs it for so many seconds at most; EXPECTED, if any, must be in what it prints.
step() {
  local limit="$1" name="$2" expected="$3" code=0 left
  shift 3
  left=$((budget - (SECONDS - began)))
  if ((left < limit)); then limit=$((left > 0 ? left : 1)); fi
  echo "=== $name (at most $limit s)"
  timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 </dev/null || code=$?
  if [[ $code == 0 && -n $expected ]] && ! grep -qF -e "$expected" "$log"; then
    echo "'$expected' is not in the output" >>"$log"
    code=1
  fi
  count "$name" "$code" "$limit"
}

while [[ $# -gt 0 ]]; do
  case "$1" in
    -h | --help)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    --built | --data)
      [[ $# -gt 1 ]] || usage "$1 needs a folder"
      [[ -d $2 ]] || usage "$1 '$2' is no folder"
      if [[ $1 == --built ]]; then built="$(realpath "$2")"; else data="$(realpath "$2")"; fi
      shift 2
      ;;
    *) usage "unknown argument '$1'" ;;
  esac
done
[[ -z $built || -n $data ]] || usage "--built needs --data"

compgen -G '/dev/nvidia[0-9]*' >/dev/null || skip "there is no GPU here, no /dev/nvidia0"

if [[ -z $built ]]; then
  source "$root/tools/lib.sh"
  cd "$root"
  tools/get_libtorch --gpu
  [[ -n $data ]] || tools/get_digits
  tools/bazel build --ui_event_filters=-info //bench:ddp_steps //examples/cnn //examples/mnist //launcher:muster \
    //tests/gpu:nccl_test //tests/worker_sdk:torch_test //worker_sdk:nccl
  built="$root/bazel-bin" data="${data:-$root/.deps/digits}"
fi

component="$built/worker_sdk/libmuster_nccl.so"
absent="$(ldd "$component" | sed -n 's/^[[:space:]]*\(.*\) => not found$/\1/p' | tr '\n' ' ')"
[[ -z $absent ]] || skip "NVIDIA's libraries are not installed (tools/get_libtorch --gpu): ${absent% }"

log="$(mktemp -t muster-gpu.XXXXXX)"
trap 'rm -f "$log"' EXIT
export OMP_NUM_THREADS=1 NO_COLOR=1
began=$SECONDS
one=("$built/launcher/muster" run --standalone --nproc-per-node 1)
mnist=("${one[@]}" "$built/examples/mnist/mnist" --data "$data" --epochs 2 --backend nccl)

# Without the component: that a GPU is there changes nothing for who does not ask for it.
cd "$root"
step 90 "the SDK's tests, over Gloo beside a GPU" '' env MUSTER_TEST_NCCL="$component" "$built/tests/worker_sdk/torch_test"

export MUSTER_NCCL_LIBRARY="$component"
step 90 "the SDK over NCCL" '' "$built/tests/gpu/nccl_test"
step 30 "mnist" '1 rank, nccl' "${mnist[@]}"
step 30 "mnist, half precision" '1 rank, nccl' "${mnist[@]}" --amp fp16 --scaler --hook fp16 --accumulate 2 --clip 1 --cosine
step 30 "mnist, batch norm over the ranks" '1 rank, nccl' "${mnist[@]}" --sync-batch-norm --static-graph --bucket-view
step 30 "cnn" '' "${one[@]}" "$built/examples/cnn/cnn" --data "$data" --epochs 1
for model in medium large; do
  step 15 "a step of '$model', bare LibTorch" median_us "$built/bench/ddp_steps" "$model" 200 --nccl --bare
  step 15 "a step of '$model', with the wrapper" median_us "$built/bench/ddp_steps" "$model" 200 --nccl
done

text="$passed passed, $failed failed"
if ((skipped)); then text+=", $skipped skipped"; fi
echo "took $((SECONDS - began)) s"
echo "$text"
((failed == 0))
