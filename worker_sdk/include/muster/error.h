#ifndef MUSTER_ERROR_H_
#define MUSTER_ERROR_H_

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// What the SDK throws. what() is one line: what was tried, on what, and what to do about it.
namespace muster {

// Any of them.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  bool everywhere = false;  // every rank throws it with this very text: one need print it
};

// RANK, WORLD_SIZE and their like are there only in part, or one of them is no valid value.
class EnvironmentError : public Error {
 public:
  EnvironmentError(const std::string& what, std::vector<std::string> variables)
      : Error(what), variables(std::move(variables)) {}
  std::vector<std::string> variables;  // those that are missing or wrong
};

// A member of the group died or left. The group is of no more use.
class PeerLost : public Error {
 public:
  explicit PeerLost(const std::string& what, std::vector<int> ranks = {})
      : Error(what), ranks(std::move(ranks)) {}
  std::vector<int> ranks;  // who, as far as it is known; may be empty
};

// Somebody did not come, or did not answer, in time.
class Timeout : public Error {
 public:
  Timeout(const std::string& what, std::chrono::milliseconds waited, std::vector<int> missing = {})
      : Error(what), waited(waited), missing(std::move(missing)) {}
  std::chrono::milliseconds waited;  // the deadline that passed
  std::vector<int> missing;          // who, as far as it is known; may be empty
};

// The ranks do not hold the same thing: parameters, options, shapes. Thrown on every rank, with the
// same text.
class Mismatch : public Error {
 public:
  explicit Mismatch(const std::string& what, std::string parameter = "")
      : Error(what), parameter(std::move(parameter)) {}
  std::string parameter;  // the first one that differs; empty if it is not about one
};

// A parameter got no gradient in a step, and find_unused_parameters is off.
class UnusedParameter : public Error {
 public:
  UnusedParameter(const std::string& what, std::vector<std::string> names)
      : Error(what), names(std::move(names)) {}
  std::vector<std::string> names;  // of the parameters
};

// Some ranks ran out of batches before the others, and JoinOptions::throw_when_uneven is on.
class UnevenInputs : public Error {
 public:
  UnevenInputs(const std::string& what, std::vector<int> ranks)
      : Error(what), ranks(std::move(ranks)) {}
  std::vector<int> ranks;  // that have no more
};

// The backend asked for cannot run here: no GPU, or a library of it is not installed.
class BackendUnavailable : public Error {
 public:
  using Error::Error;
};

// A checkpoint could not be written, read, or applied. Nothing was changed, neither in memory nor
// on disk.
class CheckpointError : public Error {
 public:
  using Error::Error;
};

// A file is truncated or altered, and no earlier one is whole.
class CheckpointCorrupt : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

// The file on disk is from a later generation: this worker belongs to the past and must not
// overwrite it.
class StaleGeneration : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

}  // namespace muster

#endif  // MUSTER_ERROR_H_
