#ifndef MUSTER_TESTS_RENDEZVOUS_ROUND_SCRIPT_H_
#define MUSTER_TESTS_RENDEZVOUS_ROUND_SCRIPT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/rendezvous/test_job.h"

namespace muster {

// Runs the commands of a transcript (tests/transcripts/README.md) against a round machine.
class RoundScript {
 public:
  RoundScript();

  // Runs "join a slots=2; advance 30s; show" and returns what came of it, one line for each message
  // and decision. An unknown command gives a line that starts with "error:".
  std::string Run(const std::string& commands);

 private:
  struct Command {
    std::string verb;
    std::vector<std::string> words;            // "a" in "fail a rank=1"
    std::map<std::string, std::string> named;  // {"rank": "1"}
    std::string Word(size_t index) const { return index < words.size() ? words[index] : ""; }
    std::string Named(const std::string& key, const std::string& otherwise) const;
    int Number(const std::string& key, int otherwise) const;
  };

  static Command Parse(const std::string& text);
  void RunOne(const Command& command);
  bool RunReport(const Command& command, const std::string& name);
  void Job(const Command& command);
  void Join(const Command& command);
  void Fail(const Command& command, const std::string& name);
  void Leave(const Command& command, const std::string& name);
  void Will(const Command& command, const std::string& name);
  void Show();
  void Print(const RoundEffects& effects);
  void Line(const std::string& text);

  std::unique_ptr<TestJob> job_;
  JobSettings settings_;
  std::map<std::string, Hello> hellos_;
  std::string output_;
  Time shown_time_{};
};

}  // namespace muster

#endif  // MUSTER_TESTS_RENDEZVOUS_ROUND_SCRIPT_H_
