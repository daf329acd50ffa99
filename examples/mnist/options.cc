#include "examples/mnist/options.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <map>

namespace mnist {

const char kHelp[] =
    R"(usage: mnist --data DIR [OPTION…]
       muster run --nproc-per-node 2 mnist --data DIR [OPTION…]

Trains a 784-128-10 network on MNIST, Fashion-MNIST or any IDX files of 28x28 pictures, on one
process or many.

  --data DIR              folder with train-images-idx3-ubyte, train-labels-idx1-ubyte,
                          t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or .gz
  --epochs N              default 5
  --batch-size N          pictures per rank and step, default 64
  --lr X                  learning rate, default 0.01 (momentum is 0.9)
  --checkpoint-dir DIR    save there after each epoch, and go on from there
  --checkpoint-every N    save each N steps too
  --save-model FILE       the trained network as a state_dict, which Python's torch.load reads
  --seed N                of the first parameters and of the order of the data, default 1

Exit codes: 0 trained and all three answers ok; 1 an answer is not ok; 2 usage; 65 a data file or
checkpoint is damaged; 66 data is missing; 69 the backend cannot run here; 70 any other error; 74 a
file cannot be written; 75 another worker was lost, or this one is of a past generation; 78 the
launcher's environment is incomplete.
)";

namespace {

template <class T>
T Number(const std::string& flag, const std::string& text, T low, const char* expected) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size() && value >= low;
  if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
  if (!good) throw UsageError(flag + " '" + text + "' is not " + expected);
  return value;
}

}  // namespace

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  const auto count = [](int64_t& target, int64_t low, const char* expected) {
    return [&target, low, expected](const std::string& flag, const std::string& text) {
      target = Number<int64_t>(flag, text, low, expected);
    };
  };
  const auto path = [](std::filesystem::path& target) {
    return [&target](const std::string& flag, const std::string& text) {
      if (text.empty()) throw UsageError(flag + " needs a name");
      target = text;
    };
  };
  using Setter = std::function<void(const std::string& flag, const std::string& text)>;
  const std::map<std::string, Setter> flags = {
      {"--data", path(options.data)},
      {"--epochs", count(options.epochs, 1, "a number of epochs from 1 on")},
      {"--batch-size", count(options.batch_size, 1, "a number of pictures from 1 on")},
      {"--lr",
       [&](const std::string& flag, const std::string& text) {
         options.lr = Number<double>(flag, text, 0.0, "a learning rate from 0 on");
       }},
      {"--checkpoint-dir", path(options.checkpoint_dir)},
      {"--checkpoint-every", count(options.checkpoint_every, 0, "a number of steps from 0 on")},
      {"--save-model", path(options.save_model)},
      {"--seed",
       [&](const std::string& flag, const std::string& text) {
         options.seed = Number<uint64_t>(flag, text, 0, "a number from 0 on");
       }},
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h" || argument == "--help") {
      options.help = true;
      return options;
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const auto found = flags.find(flag);
    if (found == flags.end()) throw UsageError("unknown argument '" + argument + "'");
    if (equals != std::string::npos) {
      found->second(flag, argument.substr(equals + 1));
    } else if (++i < arguments.size()) {
      found->second(flag, arguments[i]);
    } else {
      throw UsageError(flag + " needs a value");
    }
  }
  if (options.data.empty()) throw UsageError("--data DIR is missing");
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty()) {
    throw UsageError("--checkpoint-every needs --checkpoint-dir");
  }
  return options;
}

}  // namespace mnist
