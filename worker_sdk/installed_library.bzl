"""installed_library: libNAME.a and libNAME.so.ABI of all objects of ours that `deps` need, directly or not.

An archive of Bazel's holds one cc_library only, and a cc_binary would take in what another library of ours has already
(`beside`). Objects are compiled with -fPIC: .bazelrc says --force_pic.
"""

InstalledLibraryInfo = provider(
    doc = "What a library that is linked beside this one need not contain.",
    fields = {
        "objects": "depset of the objects in it",
        "shared": "libNAME.so.ABI",
    },
)

def _inputs(deps):
    return [li for dep in deps for li in dep[CcInfo].linking_context.linker_inputs.to_list()]

def _objects(linker_inputs):
    lists = [lib.pic_objects or [] for li in linker_inputs for lib in li.libraries]
    return depset([object for objects in lists for object in objects]).to_list()

def _library_flags(linker_inputs):
    # Where LibTorch is on this machine is no concern of the one where the library will be.
    flags = depset([flag for li in linker_inputs for flag in li.user_link_flags]).to_list()
    return [flag for flag in flags if not flag.startswith("-Wl,-rpath,")]

def _installed_library_impl(ctx):
    beside = [library[InstalledLibraryInfo] for library in ctx.attr.beside]
    theirs = {object: True for library in beside for object in library.objects.to_list()}
    linker_inputs = _inputs(ctx.attr.deps)
    objects = [object for object in _objects(linker_inputs) if object not in theirs]
    if len({object.basename: True for object in objects}) != len(objects):
        fail("two objects of one name: one would replace the other in the archive")

    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add("rcsD", archive)
    arguments.add_all(objects)
    ctx.actions.run(
        executable = "/usr/bin/ar",
        arguments = [arguments],
        inputs = objects,
        outputs = [archive],
        mnemonic = "InstalledArchive",
    )

    shared = ctx.actions.declare_file("lib%s.so.%s" % (ctx.label.name, ctx.attr.abi))
    arguments = ctx.actions.args()
    arguments.add_all(["-shared", "-o", shared, "-Wl,-soname," + shared.basename, "-Wl,-z,defs", "-Wl,-rpath,$ORIGIN"])
    arguments.add(ctx.file.symbols, format = "-Wl,--version-script=%s")
    arguments.add_all(objects)
    arguments.add_all([library.shared for library in beside])
    arguments.add_all(_library_flags(linker_inputs))
    ctx.actions.run(
        executable = "/usr/bin/g++",
        arguments = [arguments],
        inputs = objects + [library.shared for library in beside] + [ctx.file.symbols],
        outputs = [shared],
        mnemonic = "InstalledLink",
        # As compilations do, which find LibTorch on this machine as well.
        use_default_shell_env = True,
    )
    return [
        DefaultInfo(files = depset([archive, shared])),
        InstalledLibraryInfo(objects = depset(objects), shared = shared),
    ]

installed_library = rule(
    implementation = _installed_library_impl,
    attrs = {
        "abi": attr.string(mandatory = True, doc = "number behind .so"),
        "beside": attr.label_list(providers = [InstalledLibraryInfo], doc = "shared libraries that this one needs"),
        "deps": attr.label_list(providers = [CcInfo], mandatory = True),
        "symbols": attr.label(allow_single_file = True, mandatory = True, doc = "the linker's version script"),
    },
)
