#include "worker_sdk/failure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

namespace muster {
namespace {

bool Has(const std::string& text, std::string_view words) {
  return std::search(text.begin(), text.end(), words.begin(), words.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != text.end();
}

}  // namespace

std::string Encode(const FailureNote& note) {
  std::string text = std::to_string(static_cast<int>(note.kind)) + "\n" +
                     std::to_string(note.rank) + "\n" + FirstLine(note.what);
  for (const std::string& name : note.names) text += "\n" + name;
  return text;
}

std::optional<FailureNote> DecodeNote(const std::string& bytes) {
  std::istringstream lines(bytes);
  std::string kind, rank, name;
  FailureNote note;
  if (!std::getline(lines, kind) || !std::getline(lines, rank) || !std::getline(lines, note.what)) {
    return std::nullopt;
  }
  int number = 0;
  std::from_chars(kind.data(), kind.data() + kind.size(), number);
  std::from_chars(rank.data(), rank.data() + rank.size(), note.rank);
  if (number < 0 || number > static_cast<int>(FailureKind::kUnusedParameter)) return std::nullopt;
  note.kind = static_cast<FailureKind>(number);
  while (std::getline(lines, name)) note.names.push_back(name);
  return note;
}

FailureKind Classify(const std::string& message) {
  if (Has(message, "did not receive grad for rank")) return FailureKind::kUnusedParameter;
  constexpr std::array kTimedOut = {"timed out", "timeout", "time out"};
  constexpr std::array kLost = {
      "connection closed by peer", "connection reset",      "broken pipe",
      "connection refused",        "connection was closed", "socket closed",
      "remote process exited",     "failed to recv",        "failed to send",
      "connection aborted",        "no route to host",      "pair is broken",
      "has been destroyed",        "unhandled system error"};
  if (std::any_of(kLost.begin(), kLost.end(), [&](auto words) { return Has(message, words); })) {
    return FailureKind::kPeerLost;
  }
  if (std::any_of(kTimedOut.begin(), kTimedOut.end(),
                  [&](auto words) { return Has(message, words); })) {
    return FailureKind::kTimeout;
  }
  return FailureKind::kOther;
}

std::string FirstLine(const std::string& message) {
  // After where it happened and what kind of error it is NCCL says what is wrong.
  constexpr std::string_view kNccl = "\nLast error:\n";
  const size_t told = message.find(kNccl);
  if (told != std::string::npos && told + kNccl.size() < message.size()) {
    return "NCCL: " + FirstLine(message.substr(told + kNccl.size()));
  }
  std::string line = message.substr(0, message.find('\n'));
  // "[../third_party/gloo/transport/tcp/pair.cc:547] Connection closed …"
  if (line.starts_with('[')) {
    const size_t end = line.find("] ");
    if (end != std::string::npos && line.substr(0, end).find(".cc:") != std::string::npos) {
      line.erase(0, end + 2);
    }
  }
  const size_t hint = line.find(". This may indicate a possible application crash");
  if (hint != std::string::npos) line.erase(hint);
  return line;
}

std::vector<size_t> UnusedIndices(const std::string& message) {
  std::vector<size_t> indices;
  const size_t start = message.find("did not receive grad for rank");
  const size_t colon = start == std::string::npos ? start : message.find(':', start);
  if (colon == std::string::npos) return indices;
  std::istringstream numbers(message.substr(colon + 1));
  for (size_t index; numbers >> index;) indices.push_back(index);
  return indices;
}

}  // namespace muster
