#include "worker_sdk/ddp_agreement.h"

#include <ATen/ATen.h>

#include <limits>
#include <sstream>

#include "worker_sdk/checkpoint_file.h"

namespace muster {
namespace {

constexpr const char* kProblem = "problem";

// One line per thing to agree on: its name, a tab, and what it is.
std::string Describe(const DDPOptions& options, const std::string& problem,
                     const NamedTensors& parameters, const NamedTensors& buffers) {
  std::ostringstream text;
  if (!problem.empty()) text << kProblem << "\t" << problem << "\n";
  const auto option = [&](const char* name, const auto& value) {
    text << "option " << name << "\t" << value << "\n";
  };
  option("find_unused_parameters", options.find_unused_parameters());
  option("static_graph", options.static_graph());
  option("broadcast_buffers", options.broadcast_buffers());
  option("sync_batch_norm", options.sync_batch_norm());
  option("bucket_cap_mb", options.bucket_cap_mb());
  option("first_bucket_mb", options.first_bucket_mb());
  option("comm_hook", options.comm_hook().run ? "'" + options.comm_hook().name + "'" : "none");
  const auto list = [&](const NamedTensors& tensors, const char* kind, bool trained) {
    for (const auto& [name, tensor] : tensors) {
      text << kind << name << "\t" << tensor.sizes() << " " << tensor.scalar_type();
      if (!tensor.is_contiguous()) text << " strides " << tensor.strides();
      if (!tensor.is_cpu()) text << " on " << c10::DeviceTypeName(tensor.device().type(), true);
      if (trained && !tensor.requires_grad()) text << " frozen";
      text << "\n";
    }
  };
  list(parameters, "parameter ", true);
  list(buffers, "buffer ", false);
  return text.str();
}

at::Tensor ToTensor(const std::string& bytes, const at::Device& device, int64_t size) {
  at::Tensor tensor = at::zeros({size}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), tensor.data_ptr<uint8_t>());
  return tensor.to(device);
}

std::vector<std::string> Lines(const at::Tensor& bytes) {
  const auto* data = reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>());
  std::istringstream text(std::string(data, strnlen(data, static_cast<size_t>(bytes.numel()))));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::string Key(const std::string& line) { return line.substr(0, line.find('\t')); }

std::string Value(const std::string& line) {
  const size_t tab = line.find('\t');
  return tab == std::string::npos ? "nothing" : line.substr(tab + 1);
}

// "parameter fc1.weight" -> "fc1.weight"; options are no parameter.
std::string ParameterOf(const std::string& key) {
  const size_t space = key.find(' ');
  return key.starts_with("option ") || space == std::string::npos ? "" : key.substr(space + 1);
}

void ThrowProblem(int rank, const std::vector<std::string>& lines) {
  if (lines.empty() || Key(lines[0]) != kProblem) return;
  throw Error("DistributedDataParallel: on rank " + std::to_string(rank) + ", " + Value(lines[0]));
}

[[noreturn]] void ThrowFirstDifference(int rank, const std::vector<std::string>& theirs,
                                       const std::vector<std::string>& leaders) {
  size_t i = 0;
  while (i < theirs.size() && i < leaders.size() && theirs[i] == leaders[i]) ++i;
  const std::string their_line = i < theirs.size() ? theirs[i] : "";
  const std::string leader_line = i < leaders.size() ? leaders[i] : "";
  const std::string key = Key(leader_line.empty() ? their_line : leader_line);
  const bool same_key = !their_line.empty() && Key(their_line) == Key(leader_line);
  const std::string has = same_key             ? Value(their_line)
                          : their_line.empty() ? "no such one"
                                               : "'" + Key(their_line) + "' in its place";
  throw Mismatch("the ranks hold different models: " + key + " is " + Value(leader_line) +
                     " on rank 0, rank " + std::to_string(rank) + " has " + has +
                     ": build the same model with the same options on every rank",
                 ParameterOf(key));
}

}  // namespace

void RequireAgreement(const World& world, const DDPOptions& options, const std::string& problem,
                      const NamedTensors& parameters, const NamedTensors& buffers) {
  const std::string text = Describe(options, problem, parameters, buffers);
  const int64_t hash = static_cast<int64_t>(Hash64(text) >> 1);
  const at::Tensor own = at::tensor({hash, static_cast<int64_t>(text.size())}, at::kLong);
  const at::Tensor all = world.all_gather(own.to(world.device())).cpu();
  const at::Tensor same = all.eq(all[0]).all();
  if (same.item<bool>()) {
    if (!problem.empty()) throw Error("DistributedDataParallel: " + problem);
    return;
  }
  // Only now is the text sent around: all ranks see the same table, hence all come here.
  const int64_t size = all.select(1, 1).max().item<int64_t>() + 1;
  const at::Tensor texts = world.all_gather(ToTensor(text, world.device(), size)).cpu();
  for (int rank = 0; rank < world.size(); ++rank) ThrowProblem(rank, Lines(texts[rank]));
  const std::vector<std::string> leaders = Lines(texts[0]);
  for (int rank = 1; rank < world.size(); ++rank) {
    if (all[rank].equal(all[0])) continue;
    ThrowFirstDifference(rank, Lines(texts[rank]), leaders);
  }
}

int64_t HashOf(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().cpu().contiguous();
  return static_cast<int64_t>(
      Hash64({static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()}));
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  const auto widen = [](const at::Tensor& t) {
    return (t.is_sparse() ? t.detach().to_dense() : t.detach()).to(at::kCPU, at::kDouble);
  };
  const at::Tensor wide_a = widen(a), wide_b = widen(b);
  const at::Tensor both_nan = wide_a.isnan().logical_and(wide_b.isnan());
  const at::Tensor equal = wide_a.eq(wide_b).logical_or(both_nan);
  const at::Tensor difference = (wide_a - wide_b).abs().masked_fill(equal, 0);
  return difference.nan_to_num(std::numeric_limits<double>::infinity()).max().item<double>();
}

}  // namespace muster
