#ifndef MUSTER_AGENT_WORKER_COMMAND_H_
#define MUSTER_AGENT_WORKER_COMMAND_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace muster {

// What a path leads to, as far as starting it matters. Links are followed.
enum class FileKind {
  kMissing,  // nothing there, or no way to it
  kDirectory,
  kExecutable,  // by us
  kBinary,      // an ELF file that we may not execute
  kOther,       // a text, a pipe, a device
};

using InspectFile = std::function<FileKind(const std::string& path)>;

// PROGRAM and what the command line says of it.
struct ProgramRequest {
  std::string program;
  std::vector<std::string> arguments = {};
  bool module = false;     // -m
  bool no_python = false;  // --no-python
  bool run_path = false;   // --run-path; wins over no_python
};

// The command of a worker: argv[0] is a path that can be executed, arguments are untouched. Pure.
//
//  - module, run_path, *.py, and files that are not executable: "PYTHON -u [-m] PROGRAM
//  ARGUMENTS...", where
//    PYTHON is the variable PYTHON_EXEC, else the first python3 on PATH.
//  - executable files, and everything with no_python: "PROGRAM ARGUMENTS...". A name without a
//    slash is looked for on PATH when there is no such file here, or with no_python.
//
// One line, with the name and what to do, for: NotFound (exit code 127): the program or Python is
// not there. PermissionDenied (126): a directory, or a program without permission to execute.
// InvalidArgument (2): module together with no_python or run_path.
absl::StatusOr<std::vector<std::string>> WorkerCommand(const ProgramRequest& request,
                                                       const EnvMap& env,
                                                       const InspectFile& inspect);

}  // namespace muster

#endif  // MUSTER_AGENT_WORKER_COMMAND_H_
