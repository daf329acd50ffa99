#!/bin/bash
# Fails if the object that includes the declarations defines or asks for anything of class layout or code of Gloo's.
set -euo pipefail
symbols="$(nm -C "$@" 2>/dev/null)"
# The right file: it must ask libtorch for the group's constructor.
grep -q 'U c10d::ProcessGroupGloo::ProcessGroupGloo(' <<<"$symbols" || {
  echo "no call of ProcessGroupGloo's constructor in $*: not the object to look at" >&2
  exit 1
}
forbidden='(vtable|typeinfo|typeinfo name) for gloo::|GlooStore|gloo::(Context|rendezvous::|transport::UnboundBuffer)'
forbidden+='|^[0-9a-f ]+ [A-Za-z] gloo::'
# Two functions of LibTorch's Gloo are called: exported, not virtual, and told nothing but where the object is.
called='^ +U gloo::Context::(setTimeout\(std::chrono::duration<.*>\)|closeConnections\(\))$'
if grep -vE "$called" <<<"$symbols" | grep -E "$forbidden"; then
  echo "the lines above come from third_party/gloo, which must only declare" >&2
  exit 1
fi
