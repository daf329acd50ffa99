#include "agent/worker_command.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/one_line.h"

namespace muster {
namespace {

std::string Quoted(const std::string& text) { return absl::StrCat("'", OneLine(text), "'"); }

bool HasSlash(const std::string& name) { return name.find('/') != std::string::npos; }

// "" when no folder of PATH has it. An empty element of PATH is the working directory.
std::string FindOnPath(const std::string& name, const EnvMap& env, const InspectFile& inspect) {
  const std::string* path = FindVariable(env, "PATH");
  for (absl::string_view folder : absl::StrSplit(path == nullptr ? "/bin:/usr/bin" : *path, ':')) {
    std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (inspect(candidate) == FileKind::kExecutable) return candidate;
  }
  return "";
}

// Turns a name that execve(2) would look for in the working directory into a path.
std::string AsPath(const std::string& name) { return HasSlash(name) ? name : "./" + name; }

absl::Status NotExecutable(const std::string& program) {
  return absl::PermissionDeniedError(
      absl::StrCat(Quoted(program), " is not executable (permission denied): chmod +x it"));
}

absl::StatusOr<std::string> FindPython(const EnvMap& env, const InspectFile& inspect) {
  const std::string* chosen = FindVariable(env, "PYTHON_EXEC");
  if (chosen == nullptr || chosen->empty()) {
    std::string python = FindOnPath("python3", env, inspect);
    if (!python.empty()) return python;
    return absl::NotFoundError("no python3 is on PATH: install Python or set PYTHON_EXEC");
  }
  std::string python = HasSlash(*chosen) ? *chosen : FindOnPath(*chosen, env, inspect);
  FileKind kind = python.empty() ? FileKind::kMissing : inspect(python);
  if (kind == FileKind::kExecutable) return python;
  if (kind == FileKind::kMissing) {
    return absl::NotFoundError(absl::StrCat("PYTHON_EXEC names ", Quoted(*chosen),
                                            ", which is not there: correct or unset it"));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "PYTHON_EXEC names ", Quoted(*chosen), ", which is no executable file: correct or unset it"));
}

// The path to execute, or to give to Python (`by_python` is then set).
absl::StatusOr<std::string> ResolveProgram(const ProgramRequest& request, const EnvMap& env,
                                           const InspectFile& inspect, bool* by_python) {
  const std::string& program = request.program;
  const bool no_python = request.no_python && !request.run_path;
  FileKind kind = program.empty() ? FileKind::kMissing : inspect(program);
  bool is_script = !no_python && (request.run_path || absl::EndsWith(program, ".py"));
  bool look_on_path = !program.empty() && !HasSlash(program) && !is_script &&
                      (no_python || kind == FileKind::kMissing);
  if (look_on_path) {
    std::string found = FindOnPath(program, env, inspect);
    if (!found.empty()) return found;
  }
  switch (kind) {
    case FileKind::kMissing:
      return absl::NotFoundError(absl::StrCat("no such file: ", Quoted(program),
                                              look_on_path ? ", also not on PATH" : "",
                                              ": correct the name of the program"));
    case FileKind::kDirectory:
      return absl::PermissionDeniedError(
          absl::StrCat(Quoted(program), " is a directory: name a program in it"));
    case FileKind::kBinary:
      if (!is_script) return NotExecutable(program);
      break;
    case FileKind::kOther:
      if (no_python) return NotExecutable(program);
      break;
    case FileKind::kExecutable:
      if (!is_script) return AsPath(program);
      break;
  }
  *by_python = true;
  return program;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WorkerCommand(const ProgramRequest& request,
                                                       const EnvMap& env,
                                                       const InspectFile& inspect) {
  if (request.module && request.run_path) {
    return absl::InvalidArgumentError(
        "-m (--module) and --run-path contradict each other: drop one of them");
  }
  if (request.module && request.no_python) {
    return absl::InvalidArgumentError(
        "-m (--module) and --no-python contradict each other: drop one of them");
  }
  bool by_python = request.module;
  std::string program = request.program;
  if (!request.module) {
    absl::StatusOr<std::string> resolved = ResolveProgram(request, env, inspect, &by_python);
    if (!resolved.ok()) return resolved.status();
    program = *std::move(resolved);
  }
  std::vector<std::string> argv;
  if (by_python) {
    absl::StatusOr<std::string> python = FindPython(env, inspect);
    if (!python.ok()) return python.status();
    argv = {*std::move(python), "-u"};
    if (request.module) argv.emplace_back("-m");
  }
  argv.push_back(std::move(program));
  argv.insert(argv.end(), request.arguments.begin(), request.arguments.end());
  return argv;
}

}  // namespace muster
