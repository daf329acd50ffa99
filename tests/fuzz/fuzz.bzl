"""A parser under libFuzzer, and the same inputs as a plain test."""

load("//third_party:cc.bzl", "muster_cc_test")

def fuzz_target(name, deps):
    """NAME_fuzzer, for `bazel build --config=fuzz` (bench/fuzz), and NAME_replay_test."""
    native.cc_binary(
        name = name + "_fuzzer",
        testonly = True,
        srcs = [name + ".cc", "target.h"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps + ["@system//:absl_shared"],
    )
    muster_cc_test(
        name = name + "_replay_test",
        srcs = [name + ".cc", "replay.cc", "target.h"],
        args = ["tests/fuzz/corpus/" + name],
        data = native.glob(["corpus/" + name + "/*"]),
        main = False,
        tags = ["asan"],
        deps = deps,
    )
