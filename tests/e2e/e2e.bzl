"""Tests that run the programs as a user would, written in Python (standard library only)."""

def e2e_test(name, data = [], size = "medium", tags = [], **kwargs):
    native.sh_test(
        name = name,
        size = size,
        srcs = ["run_unittest.sh"],
        args = ["$(rootpath %s.py)" % name],
        data = [
            name + ".py",
            "harness.py",
            "run_unittest.py",
            "//launcher:muster",
        ] + data,
        tags = tags,
        **kwargs
    )
