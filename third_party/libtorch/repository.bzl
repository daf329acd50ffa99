"""@libtorch: LibTorch as it lies on this machine. Nothing is fetched here; tools/get_libtorch does that.

It is looked for in $MUSTER_LIBTORCH (a site-packages folder that holds torch/ and nvidia/), else in .deps/libtorch.
If it is in neither, every target that needs it is incompatible: a build of //... leaves those out and goes on.
"""

# Below torch/include there are also the wheel's own google/protobuf and fmt, which would win over Debian's.
_TORCH_HEADERS = ["ATen", "c10", "torch"]

_NVIDIA_HEADERS = ["cu13", "nccl"]

_NCCL_COMPONENT_NEEDS = [
    "torch/lib/libtorch_cuda.so",
    "nvidia/nccl/include/nccl.h",
    "nvidia/cu13/include/crt/host_config.h",
    "nvidia/cu13/include/cublas_v2.h",
]

def _site(ctx):
    named = ctx.os.environ.get("MUSTER_LIBTORCH", "")
    return named or str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.deps/libtorch"

def _torch_version(ctx, site):
    for line in ctx.read(ctx.path(site + "/torch/version.py")).splitlines():
        if line.startswith("__version__"):
            return line.split("=")[1].strip(" '\"")
    fail("%s/torch/version.py names no version: this is not an unpacked torch wheel" % site)

def _libtorch_impl(ctx):
    site = _site(ctx)
    if not ctx.path(site + "/torch/lib/libtorch_cpu.so").exists:
        # buildifier: disable=print
        print("LibTorch is not in %s; what needs it is left out (tools/get_libtorch fetches it)" % site)
        ctx.symlink(Label("//third_party/libtorch:absent.BUILD"), "BUILD")
        return
    for name in _TORCH_HEADERS:
        ctx.symlink(site + "/torch/include/" + name, "include/" + name)
    for name in _NVIDIA_HEADERS:
        if ctx.path("%s/nvidia/%s/include" % (site, name)).exists:
            ctx.symlink("%s/nvidia/%s/include" % (site, name), "nvidia/" + name)
    ctx.file("site.txt", "%s\n%s\n" % (site, _torch_version(ctx, site)))
    missing = [path for path in _NCCL_COMPONENT_NEEDS if not ctx.path(site + "/" + path).exists]
    ctx.template("BUILD", Label("//third_party/libtorch:present.BUILD"), {
        "{LIB}": site + "/torch/lib",
        "{NCCL_ONLY_IF}": '["@platforms//:incompatible"]' if missing else "[]",
        "{VERSION}": _torch_version(ctx, site),
    })

libtorch_repository = repository_rule(
    implementation = _libtorch_impl,
    # The stamp comes from .deps/libtorch.bazelrc and is new after each fetch, so that a running server looks again.
    environ = ["MUSTER_LIBTORCH", "MUSTER_LIBTORCH_STAMP"],
    local = True,
)
