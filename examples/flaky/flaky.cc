// A worker that fails on demand; see kHelp.
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr char kHelp[] = R"(usage: flaky [OPTION...]

Does its steps, a nap each, says so, and ends with 0, unless an option below says how it fails.

when
  --rank N        the rank that fails, or "any" (default 0)
  --step N        the step at whose beginning it fails, from 0 (default 0)
  --attempt N     the start that fails, from 0: after that many restarts; or "any" (default 0)
how, one of
  --exit CODE     exits
  --signal N      sends itself a signal, by number
  --hang          stops making steps, forever
on every rank
  --steps N       how many steps (default 10)
  --step-ms N     length of a step in milliseconds (default 50)
  --ignore-term   ignores SIGTERM
  --grandchild    leaves a child in a session of its own, which ignores SIGTERM and sleeps an hour
)";

constexpr int kAny = INT_MIN;

struct Options {
  int rank = 0;
  int step = 0;
  int attempt = 0;
  int exit_code = -1;  // -1: does not exit early
  int signal = 0;      // 0: sends none
  bool hang = false;
  int steps = 10;
  int step_ms = 50;
  bool ignore_term = false;
  bool grandchild = false;
};

[[noreturn]] void Refuse(const std::string& what) {
  std::fprintf(stderr, "flaky: %s; see flaky --help\n", what.c_str());
  std::exit(2);
}

int Number(const char* text, bool may_be_any) {
  if (may_be_any && std::strcmp(text, "any") == 0) return kAny;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < 0 || value > INT_MAX) {
    Refuse(std::string("'") + text + "' is not a number");
  }
  return static_cast<int>(value);
}

struct NumberFlag {
  const char* name;
  int Options::*field;
  bool may_be_any;
};
constexpr NumberFlag kNumberFlags[] = {
    {"--rank", &Options::rank, true},       {"--step", &Options::step, false},
    {"--attempt", &Options::attempt, true}, {"--exit", &Options::exit_code, false},
    {"--signal", &Options::signal, false},  {"--steps", &Options::steps, false},
    {"--step-ms", &Options::step_ms, false}};

struct SwitchFlag {
  const char* name;
  bool Options::*field;
};
constexpr SwitchFlag kSwitchFlags[] = {{"--hang", &Options::hang},
                                       {"--ignore-term", &Options::ignore_term},
                                       {"--grandchild", &Options::grandchild}};

// Takes the flag at argv[*index], and its value where it has one. False: no such flag.
bool TakeFlag(char** argv, int* index, Options* options) {
  const std::string_view name = argv[*index];
  for (const SwitchFlag& flag : kSwitchFlags) {
    if (name == flag.name) return options->*flag.field = true;
  }
  for (const NumberFlag& flag : kNumberFlags) {
    if (name != flag.name) continue;
    const char* value = argv[++*index];
    if (value == nullptr) Refuse(std::string(name) + " needs a value");
    options->*flag.field = Number(value, flag.may_be_any);
    return true;
  }
  return false;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (!TakeFlag(argv, &i, &options)) Refuse(std::string("no option '") + argv[i] + "'");
  }
  return options;
}

int FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : 0;
}

// Tells the agent, where there is one: one datagram of KEY=VALUE lines.
void Tell(const std::string& message) {
  static const int kAgent = [] {
    const char* path = std::getenv("MUSTER_SOCKET");
    sockaddr_un address{AF_UNIX, {}};
    if (path == nullptr || std::strlen(path) >= sizeof(address.sun_path)) return -1;
    std::strcpy(address.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ? fd : -1;
  }();
  if (kAgent >= 0) send(kAgent, message.data(), message.size(), MSG_NOSIGNAL);
}

// A child that escapes from the worker's session and does not listen to SIGTERM.
void LeaveGrandchild() {
  const pid_t child = fork();
  if (child != 0) {
    std::printf("grandchild %d\n", child);
    return;
  }
  setsid();
  signal(SIGTERM, SIG_IGN);
  sleep(3600);
  _exit(0);
}

void Fail(const Options& options) {
  if (options.exit_code >= 0) std::exit(options.exit_code);
  if (options.signal > 0) raise(options.signal);
  while (options.hang) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  const int rank = FromEnvironment("RANK");
  const int attempt = FromEnvironment("TORCHELASTIC_RESTART_COUNT");
  const bool is_flaky = (options.rank == kAny || options.rank == rank) &&
                        (options.attempt == kAny || options.attempt == attempt);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (options.ignore_term) signal(SIGTERM, SIG_IGN);
  if (options.grandchild) LeaveGrandchild();
  std::printf("rank %d pid %d attempt %d\n", rank, getpid(), attempt);
  Tell("READY=1");
  for (int step = 0; step < options.steps; ++step) {
    Tell("STEP=" + std::to_string(step));
    if (is_flaky && step == options.step) Fail(options);
    std::this_thread::sleep_for(std::chrono::milliseconds(options.step_ms));
  }
  std::printf("rank %d done\n", rank);
}
