#ifndef MUSTER_WORKER_SDK_SHARED_OUTCOME_H_
#define MUSTER_WORKER_SDK_SHARED_OUTCOME_H_

#include <muster/error.h>
#include <muster/world.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

// What rank 0 does for all, and how it fared, on every rank.
namespace muster {

enum class Outcome : int64_t { kDone, kNothing, kStale, kCorrupt, kFailed };

struct Report {
  Outcome outcome = Outcome::kDone;
  std::string text;  // what was made, or the error
};

// Runs `work`, which returns a Report, and says how it went instead of throwing: the other ranks
// wait for the answer.
template <class F>
Report Attempt(F&& work) {
  try {
    return work();
  } catch (const StaleGeneration& error) {
    return {Outcome::kStale, error.what()};
  } catch (const CheckpointCorrupt& error) {
    return {Outcome::kCorrupt, error.what()};
  } catch (const std::exception& error) {
    return {Outcome::kFailed, error.what()};
  }
}

// As the error it was. `everywhere`: every rank throws it.
[[noreturn]] void Throw(const Report& report, bool everywhere);

// Collective: rank 0's report, on every rank.
void Share(const World& world, Report& report);

// Collective: runs `work` on rank 0, and throws on every rank what it threw there.
template <class F>
Report OnLeader(const World& world, F&& work) {
  Report report;
  if (world.leader()) report = Attempt(std::forward<F>(work));
  Share(world, report);
  if (report.outcome != Outcome::kDone && report.outcome != Outcome::kNothing) Throw(report, true);
  return report;
}

}  // namespace muster

#endif  // MUSTER_WORKER_SDK_SHARED_OUTCOME_H_
