#include "examples/mnist/features.h"

#include <chrono>
#include <cstdio>

namespace mnist {
namespace {

muster::CommHook Hook(const std::string& name) {
  if (name == "allreduce") return muster::hooks::allreduce();
  if (name == "fp16") return muster::hooks::fp16();
  if (name == "bf16") return muster::hooks::bf16();
  return {};
}

}  // namespace

muster::InitOptions Joining(const Options& options) {
  return muster::InitOptions()
      .backend(options.backend)
      .interface(options.interface.string())
      .init_timeout(std::chrono::seconds(options.init_timeout))
      .op_timeout(std::chrono::seconds(options.op_timeout));
}

muster::SamplerOptions Sampling(const Options& options) {
  return muster::SamplerOptions()
      .seed(options.seed)
      .shuffle(options.shuffle)
      .drop_last(options.drop_last);
}

muster::DDPOptions Wrapping(const Options& options) {
  return muster::DDPOptions()
      .find_unused_parameters(options.find_unused)
      .static_graph(options.static_graph)
      .gradient_as_bucket_view(options.bucket_view)
      .broadcast_buffers(options.broadcast_buffers)
      .sync_batch_norm(options.sync_batch_norm)
      .bucket_cap_mb(options.bucket_mb)
      .comm_hook(Hook(options.hook));
}

muster::CheckpointOptions Checkpoints(const Options& options) {
  if (options.checkpoint_dir.empty()) return {};
  auto checkpoints = muster::CheckpointOptions()
                         .file(options.checkpoint_dir / "mnist.ckpt")
                         .every(options.checkpoint_every)
                         .async(options.async);
  if (options.keep > 0) checkpoints.keep(static_cast<int>(options.keep));
  return checkpoints;
}

std::string StatsText(const muster::Stats& stats) {
  std::string buckets;
  for (const int64_t bytes : stats.bucket_bytes) buckets += ' ' + std::to_string(bytes);
  char times[128];
  std::snprintf(times, sizeof times,
                "forward %.2f ms, backward %.2f ms, communication %.2f ms, of which %.2f ms hidden",
                stats.forward_ms, stats.backward_ms, stats.communication_ms, stats.overlap_ms);
  return "buckets of" + buckets + " bytes; " + times + '\n';
}

}  // namespace mnist
