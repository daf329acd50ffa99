"""How a test of ours is built: GoogleTest's main and the shared Abseil, unless it says otherwise."""

def muster_cc_test(name, deps = [], size = "small", main = True, **kwargs):
    native.cc_test(
        name = name,
        size = size,
        deps = deps + ["@system//:absl_shared", "@system//:gtest_main" if main else "@system//:gtest"],
        **kwargs
    )
