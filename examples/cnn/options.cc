#include "examples/cnn/options.h"

#include "examples/shared/flags.h"

namespace cnn {

const char kHelp[] =
    R"(usage: cnn --data DIR [OPTION…]
       muster run --nproc-per-node 2 cnn --data DIR [OPTION…]

Trains a small residual network on MNIST, Fashion-MNIST or any IDX files of 28x28 pictures, with
batch norm over all ranks, in bfloat16 where that is safe, accumulating gradients, on one process
or many.

  --data DIR            folder with train-images-idx3-ubyte, train-labels-idx1-ubyte,
                        t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or .gz
  --epochs N            default 4
  --batch-size N        pictures per rank and batch, default 16
  --accumulate N        batches per step, default 2
  --lr X                learning rate of one rank, default 0.05; it is multiplied by their number
  --warmup N            steps to get to it, default 5; down to 0 along a cosine then
  --clip X              largest norm of the gradients, default 1; 0: no limit
  --shift N             pictures are moved by up to N pixels at random, default 1
  --no-amp              all in single precision
  --no-sync-batch-norm  batch norm over each rank's own pictures
  --seed N              of the first parameters, of the order of the data and, with the rank added,
                        of the shifts; default 1
  --checkpoint-dir DIR  save there at the end, or when told to end early, and go on from there
  --checkpoint-every N  save each N steps too
  --save-model FILE     the trained network, as torch::save writes it

In the answers at the end the gradients are compared in single precision; without batch norm over
all ranks with the statistics that were learnt, since those of a batch are not those of one process.

Exit codes: 0 trained and all three answers ok, or drained; 1 an answer is not ok; 2 usage; 65 a
data file or checkpoint is damaged; 66 data is missing; 69 the backend cannot run here; 70 any other
error; 74 a file cannot be written, or a checkpoint is of another program; 75 another worker was
lost; 78 the launcher's environment is incomplete.
)";

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  examples::Flags flags;
  flags.Path("--data", options.data);
  flags.Count("--epochs", options.epochs, 1, "a number of epochs from 1 on");
  flags.Count("--batch-size", options.batch_size, 1, "a number of pictures from 1 on");
  examples::AddStepFlags(flags, options.steps);
  flags.Count("--shift", options.shift, 0, "a number of pixels from 0 on");
  flags.Switch("--no-amp", options.amp, false);
  flags.Switch("--no-sync-batch-norm", options.sync_batch_norm, false);
  flags.Seed("--seed", options.seed);
  flags.Path("--checkpoint-dir", options.checkpoint_dir);
  flags.Count("--checkpoint-every", options.checkpoint_every, 0, "a number of steps from 0 on");
  flags.Path("--save-model", options.save_model);
  options.help = !flags.Parse(arguments);
  if (!options.help && options.data.empty()) {
    throw examples::UsageError("--data DIR is missing");
  }
  if (options.checkpoint_every > 0 && options.checkpoint_dir.empty()) {
    throw examples::UsageError("--checkpoint-every needs --checkpoint-dir");
  }
  if (!options.amp) options.steps.amp.clear();
  return options;
}

}  // namespace cnn
