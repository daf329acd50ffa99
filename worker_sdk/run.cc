#include <muster/run.h>

#include <cstdio>
#include <deque>
#include <exception>
#include <optional>

#include "worker_sdk/membership.h"
#include "worker_sdk/run_plan.h"
#include "worker_sdk/state_shared.h"
#include "worker_sdk/term_watch.h"

namespace muster {

// The steps of run_plan, done.
class Runner {
 public:
  Runner(const World& world, State& state, const std::function<void()>& body)
      : world_(world), state_(state), shared_(*state.shared_), body_(body) {
    facts_.has_file = !shared_.options.file().empty();
    facts_.leader = world.leader();
  }

  bool Run() {
    Follow(StepsAtStart(facts_));
    while (true) {
      const RunStep step = steps_.front();
      steps_.pop_front();
      if (step == RunStep::kFinish || step == RunStep::kEndDrained) return step == RunStep::kFinish;
      if (step == RunStep::kRethrow) std::rethrow_exception(error_);
      try {
        Do(step);
        if (step == RunStep::kBody) Follow(StepsAfter(BodyEnd::kReturned, facts_));
      } catch (...) {
        error_ = std::current_exception();
        Follow(StepsAfter(EndOf(error_), facts_));
      }
    }
  }

 private:
  void Follow(const std::vector<RunStep>& steps) { steps_ = {steps.begin(), steps.end()}; }

  static BodyEnd EndOf(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Drained&) {
      return BodyEnd::kDrained;
    } catch (const PeerLost&) {
      return BodyEnd::kGroupLost;
    } catch (const Timeout&) {
      return BodyEnd::kGroupLost;
    } catch (const Error& known) {
      return known.everywhere ? BodyEnd::kFailedOnAll : BodyEnd::kFailedAlone;
    } catch (...) {
      return BodyEnd::kFailedAlone;
    }
  }

  void Do(RunStep step) {
    switch (step) {
      case RunStep::kLoad:
        return Load();
      case RunStep::kReady:
        return world_.agent().ready();
      case RunStep::kBody:
        return CallBody();
      case RunStep::kSave:
        if (shared_.saved != shared_.commits) state_.save();
        return;
      case RunStep::kWait:
        return state_.wait();
      case RunStep::kTellPeers:
        return world_.abort(WhatWasThrown());
      case RunStep::kSaveRemembered:
        return SaveRemembered();
      case RunStep::kQuiesce:
      case RunStep::kRejoin:
      case RunStep::kRollBack:
        throw Error("run: groups cannot be changed within a process yet");
      case RunStep::kFinish:
      case RunStep::kEndDrained:
      case RunStep::kRethrow:
        return;
    }
  }

  void Load() {
    const Loaded loaded = state_.load();
    if (facts_.leader && !loaded.note.empty()) {
      std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, loaded.note.c_str());
    }
    if (facts_.leader) last_words_.emplace([this] { SaveRemembered(); });
  }

  void CallBody() {
    struct Within {
      bool& flag;
      explicit Within(bool& its_flag) : flag(its_flag) { flag = true; }
      ~Within() { flag = false; }
    };
    const Within within(shared_.within_run);
    body_();
  }

  // Also in the thread of last_words_.
  void SaveRemembered() {
    const std::string why = shared_.keeper.SaveRemembered();
    if (why.empty()) return;
    std::fprintf(stderr, "%s: the last commit is not saved: %s\n", program_invocation_short_name,
                 why.c_str());
  }

  std::string WhatWasThrown() const {
    try {
      std::rethrow_exception(error_);
    } catch (const std::exception& error) {
      return FirstLine(MessageOf(error));
    } catch (...) {
      return "something was thrown that is no std::exception";
    }
  }

  const World& world_;
  State& state_;
  State::Shared& shared_;
  const std::function<void()>& body_;
  RunFacts facts_;
  std::deque<RunStep> steps_;
  std::exception_ptr error_;
  std::optional<TermWatch> last_words_;
};

bool run(const World& world, State& state, const std::function<void()>& body) {
  return Runner(world, state, body).Run();
}

}  // namespace muster
