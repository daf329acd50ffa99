#include "agent/warden_protocol.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace muster {
namespace {

enum class Type : uint8_t {
  kSpawn = 1,
  kSignal,
  kLastWill,
  kFence,
  kStarted,
  kNotStarted,
  kExited,
  kEmpty,
};

class Writer {
 public:
  explicit Writer(Type type) {
    bytes_.resize(kFrameHeader);
    Put(static_cast<uint8_t>(type));
  }

  template <class T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  void Put(const std::vector<std::string>& list) {
    Put(static_cast<uint32_t>(list.size()));
    for (const std::string& item : list) Put(item);
  }

  void Put(const std::vector<uint32_t>& numbers) {
    Put(static_cast<uint32_t>(numbers.size()));
    for (uint32_t number : numbers) Put(number);
  }

  void Put(const std::string& text) {
    Put(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }

  std::string Finish() {
    const auto length = static_cast<uint32_t>(bytes_.size() - kFrameHeader);
    memcpy(bytes_.data(), &length, sizeof(length));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  bool Get(T& value) {
    static_assert(std::is_arithmetic_v<T>);
    if (left_.size() < sizeof(value)) return false;
    memcpy(&value, left_.data(), sizeof(value));
    left_.remove_prefix(sizeof(value));
    return true;
  }

  bool Get(bool& value) {
    uint8_t byte = 0;
    if (!Get(byte) || byte > 1) return false;
    value = byte == 1;
    return true;
  }

  bool Get(std::vector<std::string>& list) {
    uint32_t count = 0;
    if (!Get(count)) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (!Get(list.emplace_back())) return false;
    }
    return true;
  }

  bool Get(std::vector<uint32_t>& numbers) {
    uint32_t count = 0;
    if (!Get(count)) return false;
    for (uint32_t i = 0; i < count; ++i) {
      if (!Get(numbers.emplace_back())) return false;
    }
    return true;
  }

  bool Get(std::string& text) {
    uint32_t size = 0;
    if (!Get(size) || left_.size() < size) return false;
    text = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }

  bool AtEnd() const { return left_.empty(); }

 private:
  std::string_view left_;
};

// The type byte, with `frame` cut down to its payload.
std::optional<Type> Open(std::string_view& frame) {
  const size_t length = FrameLength(frame);
  if (length == 0 || length != frame.size() || length < kFrameHeader + 1) return std::nullopt;
  const auto type = static_cast<Type>(frame[kFrameHeader]);
  frame.remove_prefix(kFrameHeader + 1);
  return type;
}

}  // namespace

std::string Encode(const WardenRequest& request) {
  if (const auto* spawn = std::get_if<SpawnRequest>(&request)) {
    Writer writer(Type::kSpawn);
    writer.Put(spawn->id);
    writer.Put(spawn->argv);
    writer.Put(spawn->env);
    writer.Put(spawn->fd_count);
    writer.Put(spawn->cpus);
    return writer.Finish();
  }
  if (const auto* signal = std::get_if<SignalRequest>(&request)) {
    Writer writer(Type::kSignal);
    writer.Put(signal->signal);
    writer.Put(signal->whole_tree);
    writer.Put(signal->only);
    return writer.Finish();
  }
  if (const auto* fence = std::get_if<FenceRequest>(&request)) {
    Writer writer(Type::kFence);
    writer.Put(fence->at_ns);
    return writer.Finish();
  }
  Writer writer(Type::kLastWill);
  const auto& will = std::get<LastWillRequest>(request);
  writer.Put(will.argv);
  writer.Put(will.folder);
  return writer.Finish();
}

std::string Encode(const WardenAnswer& answer) {
  if (const auto* started = std::get_if<StartedAnswer>(&answer)) {
    Writer writer(Type::kStarted);
    writer.Put(started->id);
    writer.Put(started->pid);
    return writer.Finish();
  }
  if (const auto* failed = std::get_if<NotStartedAnswer>(&answer)) {
    Writer writer(Type::kNotStarted);
    writer.Put(failed->id);
    writer.Put(failed->error);
    writer.Put(failed->forked);
    return writer.Finish();
  }
  if (const auto* exited = std::get_if<ExitedAnswer>(&answer)) {
    Writer writer(Type::kExited);
    writer.Put(exited->id);
    writer.Put(exited->wait_status);
    writer.Put(exited->tree_empty);
    return writer.Finish();
  }
  return Writer(Type::kEmpty).Finish();
}

size_t FrameLength(std::string_view bytes) {
  if (bytes.size() < kFrameHeader) return 0;
  uint32_t length = 0;
  memcpy(&length, bytes.data(), sizeof(length));
  return kFrameHeader + length;
}

std::optional<WardenRequest> DecodeRequest(std::string_view frame) {
  const std::optional<Type> type = Open(frame);
  if (!type) return std::nullopt;
  Reader reader(frame);
  if (*type == Type::kSpawn) {
    SpawnRequest spawn;
    if (reader.Get(spawn.id) && reader.Get(spawn.argv) && reader.Get(spawn.env) &&
        reader.Get(spawn.fd_count) && reader.Get(spawn.cpus) && reader.AtEnd() &&
        spawn.fd_count <= 3 && !spawn.argv.empty() &&
        std::all_of(spawn.cpus.begin(), spawn.cpus.end(),
                    [](uint32_t cpu) { return cpu < kCpusMax; })) {
      return spawn;
    }
  } else if (*type == Type::kSignal) {
    SignalRequest signal;
    if (reader.Get(signal.signal) && reader.Get(signal.whole_tree) && reader.Get(signal.only) &&
        reader.AtEnd()) {
      return signal;
    }
  } else if (*type == Type::kLastWill) {
    LastWillRequest will;
    if (reader.Get(will.argv) && reader.Get(will.folder) && reader.AtEnd()) return will;
  } else if (*type == Type::kFence) {
    FenceRequest fence;
    if (reader.Get(fence.at_ns) && reader.AtEnd()) return fence;
  }
  return std::nullopt;
}

std::optional<WardenAnswer> DecodeAnswer(std::string_view frame) {
  const std::optional<Type> type = Open(frame);
  if (!type) return std::nullopt;
  Reader reader(frame);
  if (*type == Type::kStarted) {
    StartedAnswer started;
    if (reader.Get(started.id) && reader.Get(started.pid) && reader.AtEnd()) return started;
  } else if (*type == Type::kNotStarted) {
    NotStartedAnswer failed;
    if (reader.Get(failed.id) && reader.Get(failed.error) && reader.Get(failed.forked) &&
        reader.AtEnd()) {
      return failed;
    }
  } else if (*type == Type::kExited) {
    ExitedAnswer exited;
    if (reader.Get(exited.id) && reader.Get(exited.wait_status) && reader.Get(exited.tree_empty) &&
        reader.AtEnd()) {
      return exited;
    }
  } else if (*type == Type::kEmpty) {
    if (reader.AtEnd()) return EmptyAnswer{};
  }
  return std::nullopt;
}

}  // namespace muster
