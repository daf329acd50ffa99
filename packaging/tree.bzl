"""tree: NAME.tar, a part of the installed tree. `files` maps labels to paths below the prefix; one that ends with / is the
folder for the label's files."""

def tree(name, files, libtorch = None, **kwargs):
    needed = ["//base:version.h"] + ([libtorch] if libtorch else [])
    native.genrule(
        name = name,
        srcs = files.keys() + needed,
        outs = [name + ".tar"],
        cmd = " ".join(
            ["$(location make_tree) --out $@ --version-header $(location //base:version.h)"] +
            (["--libtorch $(location %s)" % libtorch] if libtorch else []) +
            ["--place %s $(locations %s)" % (place, label) for label, place in files.items()],
        ),
        tools = ["make_tree"],
        **kwargs
    )
