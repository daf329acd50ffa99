"""@libtorch: the C++ half of the PyPI wheel torch 2.11.0, found and never downloaded.
MUSTER_LIBTORCH names a site-packages folder; without it .deps/libtorch (tools/get_libtorch.sh) is used.
Where neither exists the targets are marked incompatible, so `bazel build //...` skips all that needs torch.
"""
def _libtorch_impl(ctx):
    site = ctx.os.environ.get("MUSTER_LIBTORCH", "")
    if not site:
        site = str(ctx.path(Label("//:WORKSPACE")).dirname) + "/.deps/libtorch"
    if not ctx.path(site + "/torch/lib/libtorch_cpu.so").exists:
        # buildifier: disable=print
        print("no LibTorch in %s: run tools/get_libtorch.sh or set MUSTER_LIBTORCH; torch targets are skipped" % site)
        ctx.file("BUILD", ctx.read(Label("//third_party/libtorch:absent.BUILD")))
        return
    # Never the whole include folder: it also holds protobuf 3.13 and fmt 12, which would shadow Debian's.
    for name in ["ATen", "c10", "torch"]:
        ctx.symlink(site + "/torch/include/" + name, "torch/include/" + name)
    nvidia = [name for name in ["cu13", "nccl"] if ctx.path(site + "/nvidia/" + name + "/include").exists]
    for name in nvidia:
        ctx.symlink(site + "/nvidia/" + name + "/include", "nvidia/" + name + "/include")
    version = ctx.read(ctx.path(site + "/torch/version.py")).split("__version__ = '")[1].split("'")[0]
    nccl_needs = ["torch/lib/libtorch_cuda.so", "nvidia/nccl/include/nccl.h", "nvidia/cu13/include/crt/host_config.h"]
    can_nccl = all([ctx.path(site + "/" + name).exists for name in nccl_needs])
    ctx.template("BUILD", Label("//third_party/libtorch:present.BUILD"), {
        "{SITE}": site,
        "{VERSION}": version,
        "{NVIDIA_INCLUDES}": repr(["nvidia/%s/include" % name for name in nvidia]),
        "{NCCL_PLATFORMS}": "[]" if can_nccl else '["@platforms//:incompatible"]',
    })
libtorch_repository = repository_rule(
    implementation = _libtorch_impl,
    # The stamp is set by .deps/libtorch.bazelrc and changes whenever tools/get_libtorch.sh ran.
    environ = ["MUSTER_LIBTORCH", "MUSTER_LIBTORCH_STAMP"],
    local = True,
)
