#include "examples/shared/program.h"

#include <sysexits.h>

#include <cstdio>
#include <exception>

#include "examples/shared/input_error.h"

namespace examples {
namespace {

enum class Printer { kEachRank, kOnePerNode, kRank0 };

class Ending {
 public:
  Ending(std::string name, const muster::Identity& self) : name_(std::move(name)), self_(self) {}

  // The launcher may take any rank for the first that failed: it is told by each.
  int operator()(int code, const std::string& what, Printer printer = Printer::kEachRank) const {
    const std::string line = what.substr(0, what.find('\n'));
    muster::AgentLink().error(line);
    if ((printer == Printer::kOnePerNode && self_.local_rank != 0) ||
        (printer == Printer::kRank0 && self_.rank != 0)) {
      return code;
    }
    const std::string who = self_.launched ? "rank " + std::to_string(self_.rank) + ": " : "";
    std::fprintf(stderr, "%s: %s%s\n", name_.c_str(), who.c_str(), line.c_str());
    return code;
  }

 private:
  std::string name_;
  const muster::Identity& self_;
};

}  // namespace

int RunProgram(const std::string& name, const std::function<int(const muster::Identity&)>& body) {
  muster::Identity self;
  const Ending end(name, self);
  try {
    self = muster::identity();
    return body(self);
  } catch (const UsageError& error) {
    return end(error.code, std::string(error.what()) + "; " + name + " --help lists the options",
               Printer::kOnePerNode);
  } catch (const InputError& error) {
    return end(error.code, error.what(), Printer::kOnePerNode);
  } catch (const muster::EnvironmentError& error) {
    return end(EX_CONFIG, error.what());
  } catch (const muster::BackendUnavailable& error) {
    return end(EX_UNAVAILABLE, error.what(), Printer::kOnePerNode);
  } catch (const muster::CheckpointCorrupt& error) {
    return end(EX_DATAERR, error.what(), Printer::kRank0);
  } catch (const muster::StaleGeneration& error) {
    return end(EX_TEMPFAIL, error.what(), Printer::kRank0);
  } catch (const muster::CheckpointError& error) {
    return end(EX_IOERR, error.what(), Printer::kRank0);
  } catch (const muster::PeerLost& error) {
    return end(EX_TEMPFAIL, error.what());
  } catch (const muster::Timeout& error) {
    return end(EX_TEMPFAIL, error.what());
  } catch (const std::exception& error) {
    return end(EX_SOFTWARE, error.what());
  }
}

}  // namespace examples
