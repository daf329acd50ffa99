#include "examples/shared/program.h"

#include <errno.h>
#include <muster/record.h>

#include "examples/shared/input_error.h"

namespace examples {
namespace {

// Every worker of a node finds the same fault in what they all share: one line per node is enough.
int Fail(const muster::Identity& self, int code, const std::string& what) {
  muster::Error error(what);
  error.everywhere = self.local_rank != 0;
  muster::report_failure(error);
  return code;
}

}  // namespace

int RunProgram(const std::function<int(const muster::Identity&)>& body) {
  return muster::record([&] {
    const muster::Identity self = muster::identity();
    try {
      return body(self);
    } catch (const UsageError& error) {
      return Fail(self, error.code,
                  std::string(error.what()) + "; " + program_invocation_short_name +
                      " --help lists the options");
    } catch (const InputError& error) {
      return Fail(self, error.code, error.what());
    } catch (const muster::BackendUnavailable& error) {
      return Fail(self, muster::exit_code(error), error.what());
    }
  });
}

}  // namespace examples
