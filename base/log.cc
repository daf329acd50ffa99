#include "base/log.h"

#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/json_text.h"
#include "base/one_line.h"
#include "base/output_fd.h"

namespace muster {
namespace {

std::string PlainPattern(const std::string& name) { return name + ": %v"; }
std::string DatedPattern(const std::string& name) {
  return "%Y-%m-%dT%H:%M:%S.%eZ %l " + name + ": %v";
}
// Up to the text, which a pattern does not escape.
std::string JsonPattern(const std::string& name) {
  return R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","component":")" + name + R"(","msg":)";
}

// One write per line to a descriptor that may be slow, shared or gone.
class StderrSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  StderrSink(int fd, LogFormat format, const std::string& name)
      : fd_(fd),
        format_(format),
        plain_(PlainPattern(name), spdlog::pattern_time_type::utc),
        dated_(DatedPattern(name), spdlog::pattern_time_type::utc),
        json_(JsonPattern(name), spdlog::pattern_time_type::utc, "") {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    if (mid_line_) text.push_back('\n');
    if (lost_lines_ > 0) {
      fmt::format_to(std::back_inserter(text),
                     fmt::runtime(format_ == LogFormat::kJson ? kLostJson : kLostText),
                     lost_lines_);
    }
    Format(message, text);
    if (Write(std::string_view(text.data(), text.size()))) {
      lost_lines_ = 0;
    } else {
      ++lost_lines_;
    }
  }

  void flush_() override {}

 private:
  void Format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& text) {
    if (format_ == LogFormat::kJson) {
      json_.format(message, text);
      const std::string quoted = JsonString({message.payload.data(), message.payload.size()});
      text.append(quoted.data(), quoted.data() + quoted.size());
      text.push_back('}');
      text.push_back('\n');
    } else if (format_ == LogFormat::kPlain && message.level >= spdlog::level::warn) {
      plain_.format(message, text);
    } else {
      dated_.format(message, text);
    }
  }

  static constexpr char kLostText[] = "muster: {} messages were lost: stderr did not take them\n";
  static constexpr char kLostJson[] =
      R"({{"level":"warning","msg":"{} messages were lost: stderr did not take them"}})"
      "\n";

  bool Write(std::string_view data) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(kLogPatienceMilliseconds);
    while (!data.empty()) {
      const ssize_t written = fd_.TryWrite(data);
      if (written > 0) {
        data.remove_prefix(static_cast<size_t>(written));
        stuck_ = false;
        mid_line_ = !data.empty();
        continue;
      }
      if (written == 0 || errno != EAGAIN || stuck_) return false;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      pollfd poll_for{fd_.poll_fd(), POLLOUT, 0};
      if (left.count() <= 0 || poll(&poll_for, 1, static_cast<int>(left.count())) == 0) {
        stuck_ = true;
        return false;
      }
    }
    return true;
  }

  OutputFd fd_;
  const LogFormat format_;
  spdlog::pattern_formatter plain_;
  spdlog::pattern_formatter dated_;
  spdlog::pattern_formatter json_;
  int64_t lost_lines_ = 0;
  bool stuck_ = false;     // the last write ran out of patience
  bool mid_line_ = false;  // the last write put out only a beginning
};

struct Logger {
  std::atomic<LogLevel> level = LogLevel::kWarning;
  std::mutex mutex;  // the rest of the members, and one line at a time
  int fd = 2;
  LogFormat format = LogFormat::kPlain;
  std::string name = "muster";
  std::unique_ptr<spdlog::logger> log;  // made for the first line: most runs write none
};

Logger& TheLogger() {
  static Logger* logger = new Logger;
  return *logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void Log(LogLevel level, std::string_view text) {
  if (!LogEnabled(level)) return;
  Logger& logger = TheLogger();
  try {
    const std::lock_guard lock(logger.mutex);
    if (logger.log == nullptr) {
      logger.log = std::make_unique<spdlog::logger>(
          "muster", std::make_shared<StderrSink>(logger.fd, logger.format, logger.name));
      logger.log->set_level(spdlog::level::trace);
    }
    logger.log->log(SpdlogLevel(level), spdlog::string_view_t(OneLine(text)));
  } catch (...) {
    // No memory for a message is no reason to end the run.
  }
}

void SetLogStyle(LogFormat format, std::string_view name) {
  Logger& logger = TheLogger();
  const std::lock_guard lock(logger.mutex);
  logger.format = format;
  logger.name = name;
  logger.log.reset();
}

void SetLogLevel(LogLevel level) { TheLogger().level = level; }

bool LogEnabled(LogLevel level) { return level >= TheLogger().level; }

void SetLogFd(int fd) {
  Logger& logger = TheLogger();
  const std::lock_guard lock(logger.mutex);
  logger.fd = fd;
  logger.log.reset();
}

}  // namespace muster
