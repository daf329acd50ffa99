#include "examples/mnist/options.h"

#include "examples/shared/flags.h"

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

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  examples::Flags flags;
  flags.Path("--data", options.data);
  flags.Count("--epochs", options.epochs, 1, "a number of epochs from 1 on");
  flags.Count("--batch-size", options.batch_size, 1, "a number of pictures from 1 on");
  flags.Number("--lr", options.lr, 0, "a learning rate from 0 on");
  flags.Path("--checkpoint-dir", options.checkpoint_dir);
  flags.Count("--checkpoint-every", options.checkpoint_every, 0, "a number of steps from 0 on");
  flags.Path("--save-model", options.save_model);
  flags.Seed("--seed", options.seed);
  options.help = !flags.Parse(arguments);
  if (options.help) return options;
  if (options.data.empty()) throw examples::UsageError("--data DIR is missing");
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty()) {
    throw examples::UsageError("--checkpoint-every needs --checkpoint-dir");
  }
  return options;
}

}  // namespace mnist
