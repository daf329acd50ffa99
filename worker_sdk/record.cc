#include <errno.h>
#include <fcntl.h>
#include <muster/record.h>
#include <muster/worker.h>
#include <sysexits.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/json_text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace muster {
namespace {

template <class T>
bool Is(const std::exception& error) {
  return dynamic_cast<const T*>(&error) != nullptr;
}

// LibTorch appends a backtrace.
std::string FirstLineOf(const char* what) {
  const std::string text(what);
  return text.substr(0, text.find_first_of("\r\n"));
}

// As torch.distributed.elastic writes it.
std::string ErrorJson(const std::string& message) {
  return R"({"message": {"message": )" + JsonString(message) + R"(, "extraInfo": {"timestamp": ")" +
         std::to_string(std::time(nullptr)) + R"("}}})";
}

void WriteErrorFile(const std::string& message) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  const UniqueFd file(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  // If it cannot be written: it is on stderr, too.
  if (file.valid()) static_cast<void>(WriteAll(file.get(), ErrorJson(message)));
}

// A half environment may be the very error that is reported.
Identity IdentityOrNone() {
  try {
    return identity();
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

int exit_code(const std::exception& error) {
  if (Is<CheckpointCorrupt>(error)) return EX_DATAERR;
  if (Is<StaleGeneration>(error)) return EX_TEMPFAIL;
  if (Is<CheckpointError>(error)) return EX_IOERR;
  if (Is<PeerLost>(error) || Is<Timeout>(error)) return EX_TEMPFAIL;
  if (Is<BackendUnavailable>(error)) return EX_UNAVAILABLE;
  if (Is<EnvironmentError>(error)) return EX_CONFIG;
  return EX_SOFTWARE;
}

void report_failure(const std::exception& error) noexcept {
  try {
    const Identity self = IdentityOrNone();
    const std::string what = FirstLineOf(error.what());
    WriteErrorFile(what);
    AgentLink().error(what);
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->everywhere && self.rank != 0) return;
    const std::string who = self.launched ? "rank " + std::to_string(self.rank) + ": " : "";
    std::fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, who.c_str(), what.c_str());
    std::fflush(stderr);
  } catch (...) {
    std::fputs("an error could not be reported: out of memory\n", stderr);
  }
}

int record_main(const std::function<int()>& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    report_failure(error);
    return exit_code(error);
  } catch (...) {
    report_failure(Error("something was thrown that is no std::exception"));
    return EX_SOFTWARE;
  }
}

}  // namespace muster
