// The classic program, data-parallel: see --help, and docs/TRAINING.md for how it works.
#include <sysexits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "examples/mnist/features.h"
#include "examples/mnist/trainer.h"
#include "examples/shared/checkpoints.h"
#include "examples/shared/program.h"

namespace {

using mnist::Options;

int Run(const muster::Identity& self, const Options& options) {
  // Before joining, so that missing data keeps nobody waiting.
  if (self.rank == 0) examples::CheckPlacesToWrite(options.checkpoint_dir, options.save_model);
  const examples::Split training = examples::ReadSplit(options.data, "train");
  const examples::Split held_out = examples::ReadSplit(options.data, "t10k");
  // The same bits in each run: one thread, and no algorithm that depends on timing.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, false);

  const muster::World world = muster::init(self, mnist::Joining(options));
  if (world.leader()) {
    std::printf("%u training and %u held-out pictures, %d rank%s, %s, generation %ld\n",
                training.count, held_out.count, world.size(), world.size() == 1 ? "" : "s",
                world.backend().c_str(), static_cast<long>(world.generation()));
    std::fflush(stdout);
  }
  mnist::Trainer trainer(world, options, training, held_out);
  if (!trainer.Train()) {
    if (world.leader()) std::printf("drained: ending early as asked\n");
    return EX_OK;
  }
  trainer.SaveModel();
  const muster::Stats stats = trainer.Stats();
  const double accuracy = trainer.Accuracy();
  const examples::Answers answers = trainer.Answer();
  const bool colour = isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr;
  const examples::Verdict verdict = examples::Judge(answers, colour);
  if (world.leader()) {
    if (options.stats) std::printf("%s", mnist::StatsText(stats).c_str());
    std::printf("held-out accuracy %.4f\n%s", accuracy, verdict.text.c_str());
    std::fflush(stdout);
  }
  return verdict.ok ? EX_OK : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::RunProgram([&](const muster::Identity& self) {
    const Options options = mnist::ParseOptions({argv + 1, argv + argc});
    if (!options.help) return Run(self, options);
    std::fputs(mnist::kHelp, stdout);
    return EX_OK;
  });
}
