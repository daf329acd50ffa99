"""C++ stubs of gRPC services, from a rule that every Bazel has."""

def cc_grpc_library(name, proto, deps):
    """Generates and compiles the stubs of the services in one file.

    Args:
      name: of the library.
      proto: the .proto file, in this package; it imports nothing.
      deps: the cc_proto_library of the same file.
    """
    stem = proto[:-len(".proto")]
    source = stem + ".grpc.pb.cc"
    header = stem + ".grpc.pb.h"
    native.genrule(
        name = name + "_stubs",
        srcs = [proto],
        outs = [source, header],
        cmd = "/usr/bin/protoc --proto_path=. --plugin=protoc-gen-stubs=/usr/bin/grpc_cpp_plugin" +
              " --stubs_out=$(GENDIR) $(location %s)" % proto,
    )
    native.cc_library(
        name = name,
        srcs = [source],
        hdrs = [header],
        deps = deps + ["@system//:grpc++"],
    )
