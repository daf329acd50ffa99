#include "examples/mnist/options.h"

#include <limits>

#include "examples/shared/flags.h"

namespace mnist {
namespace {

using examples::Flags, examples::UsageError;

void AddDataFlags(Flags& flags, Options& options) {
  flags.Path("--data", options.data);
  flags.Count("--epochs", options.epochs, 1, "a number of epochs from 1 on");
  flags.Count("--batch-size", options.batch_size, 1, "a number of pictures from 1 on");
  flags.Seed("--seed", options.seed);
  flags.Switch("--no-shuffle", options.shuffle, false);
  flags.Switch("--drop-last", options.drop_last);
  flags.Switch("--join", options.join);
}

void AddTrainingFlags(Flags& flags, examples::StepOptions& steps) {
  AddStepFlags(flags, steps);
  flags.Switch("--scale-lr", steps.scale_lr);
  flags.Switch("--cosine", steps.cosine);
  flags.Choice("--amp", steps.amp, {"bf16", "fp16"});
  flags.Switch("--scaler", steps.scaler);
}

void AddWrapperFlags(Flags& flags, Options& options) {
  flags.Switch("--batch-norm", options.batch_norm);
  flags.Switch("--sync-batch-norm", options.sync_batch_norm);
  flags.Choice("--hook", options.hook, {"allreduce", "fp16", "bf16"});
  flags.Number("--bucket-mb", options.bucket_mb, std::numeric_limits<double>::min(),
               "a number of MiB above 0");
  flags.Switch("--bucket-view", options.bucket_view);
  flags.Switch("--static-graph", options.static_graph);
  flags.Switch("--find-unused", options.find_unused);
  flags.Switch("--no-broadcast-buffers", options.broadcast_buffers, false);
  flags.Switch("--check-consistency", options.check_consistency);
  flags.Switch("--stats", options.stats);
}

void AddWorldFlags(Flags& flags, Options& options) {
  flags.Choice("--backend", options.backend, {"auto", "gloo", "nccl"});
  flags.Path("--interface", options.interface);
  flags.Count("--init-timeout", options.init_timeout, 1, "a number of seconds from 1 on");
  flags.Count("--op-timeout", options.op_timeout, 1, "a number of seconds from 1 on");
}

void AddFileFlags(Flags& flags, Options& options) {
  flags.Path("--checkpoint-dir", options.checkpoint_dir);
  flags.Count("--checkpoint-every", options.checkpoint_every, 0, "a number of steps from 0 on");
  flags.Count("--keep", options.keep, 1, "a number of files from 1 on");
  flags.Switch("--async", options.async);
  flags.Path("--save-model", options.save_model);
}

void RefuseContradictions(const Options& options) {
  const examples::StepOptions& steps = options.steps;
  const bool nowhere = options.checkpoint_dir.empty();
  const struct {
    bool there;
    const char* what;
  } table[] = {
      {options.data.empty(), "--data DIR is missing"},
      {nowhere && options.checkpoint_every > 0, "--checkpoint-every needs --checkpoint-dir"},
      {nowhere && options.keep > 0, "--keep needs --checkpoint-dir"},
      {nowhere && options.async, "--async needs --checkpoint-dir"},
      {steps.scaler && steps.amp != "fp16",
       "--scaler needs --amp fp16: in no other precision are small gradients lost"},
      {options.find_unused && options.static_graph,
       "--find-unused with --static-graph: a static graph finds them in its first step"},
      {options.static_graph && steps.accumulate > 1,
       "--static-graph with --accumulate: a static graph is learnt from a first step that "
       "averages; "
       "leave one out"},
      {!options.broadcast_buffers && !options.batch_norm && !options.sync_batch_norm,
       "--no-broadcast-buffers needs --batch-norm: the network has no buffers otherwise"},
      {options.join && options.sync_batch_norm,
       "--join with --sync-batch-norm: a rank without a batch has no statistics to give"},
      {options.join && steps.scaler,
       "--join with --scaler: a rank without a batch cannot agree to skip a step"},
      {options.join && steps.accumulate > 1,
       "--join with --accumulate: ranks with fewer batches would end their steps at others"},
      {options.join && options.checkpoint_every > 0,
       "--join with --checkpoint-every: the ranks are at one point after an epoch only"},
      {options.join && options.drop_last, "--join with --drop-last: no sample is repeated there"},
  };
  for (const auto& [there, what] : table) {
    if (there) throw UsageError(what);
  }
}

}  // namespace

const char kHelp[] =
    R"(usage: mnist --data DIR [OPTION…]
       muster run --nproc-per-node 2 mnist --data DIR [OPTION…]

Trains a 784-128-10 network on MNIST, Fashion-MNIST or any IDX files of 28x28 pictures, on one
process or many. Each feature of the worker SDK is a flag.

Data:
  --data DIR              folder with train-images-idx3-ubyte, train-labels-idx1-ubyte,
                          t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each plain or .gz
  --epochs N              default 5
  --batch-size N          pictures per rank and batch, default 64
  --seed N                of the first parameters and of the order of the data, default 1
  --no-shuffle            the data in the order of the files
  --drop-last             where the ranks' shares would be uneven, leave pictures out; without it
                          some are seen twice
  --join                  rank r has a part of its own, in proportion to r + 1, and no picture is
                          seen twice or left out: the ranks have different numbers of batches

Steps:
  --lr X                  learning rate, default 0.01 (momentum is 0.9; 0 with --join, since a rank
                          without batches leaves its momentum behind)
  --scale-lr              times the number of ranks
  --warmup N              steps to get to it, default 0
  --cosine                down to 0 along a cosine then
  --amp bf16|fp16         forward and loss in lower precision where that is safe
  --scaler                with fp16: scale the loss, and skip steps in which a gradient overflows
  --accumulate N          batches per step, default 1
  --clip X                largest norm of the gradients; default 0: no limit

Wrapper:
  --batch-norm            put a batch norm into the network, over each rank's own pictures
  --sync-batch-norm       the same over the pictures of all ranks
  --hook NAME             who averages the gradients: allreduce, or fp16 or bf16, which send half
                          the bytes; default: DDP itself
  --bucket-mb X           MiB of gradients that are sent together, default 25
  --bucket-view           gradients are views into what is sent: saves a copy
  --static-graph          the same parameters are used in each step
  --find-unused           look for parameters that a step does not use
  --no-broadcast-buffers  each rank keeps its own statistics of a batch norm
  --check-consistency     compare the ranks' parameters after each epoch
  --stats                 print at the end how communication went

World:
  --backend NAME          gloo, nccl, or auto, the default: NCCL where it can be
  --interface NAME        network interface, such as eth0
  --init-timeout S        how long to wait for the other ranks, default 600
  --op-timeout S          how long one collective may take, default 600

Files:
  --checkpoint-dir DIR    save there after each epoch, and go on from there
  --checkpoint-every N    save each N steps too
  --keep N                checkpoints that are kept, default 2
  --async                 write them while the training goes on
  --save-model FILE       the trained network as a state_dict, which Python's torch.load reads

In the answers at the end the gradients are compared in single precision. With --hook fp16 or bf16
they may differ by what is lost on the way; with --batch-norm they are compared with the statistics
that rank 0 has learnt, since those of a batch are not those of one process.

Exit codes: 0 trained and all three answers ok; 1 an answer is not ok; 2 usage; 65 a data file or
checkpoint is damaged; 66 data is missing; 69 the backend cannot run here; 70 any other error; 74 a
file cannot be written, or a checkpoint is of other flags; 75 another worker was lost, or this one
is of a past generation; 78 the launcher's environment is incomplete.
)";

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  Flags flags;
  AddDataFlags(flags, options);
  AddTrainingFlags(flags, options.steps);
  AddWrapperFlags(flags, options);
  AddWorldFlags(flags, options);
  AddFileFlags(flags, options);
  options.help = !flags.Parse(arguments);
  if (!options.help) RefuseContradictions(options);
  return options;
}

}  // namespace mnist
