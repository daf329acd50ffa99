#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <muster/state.h>

#include <algorithm>

#include "worker_sdk/byte_stream.h"
#include "worker_sdk/checkpoint_file.h"
#include "worker_sdk/state_bytes.h"

namespace muster {
namespace {

// How rank 0 fared, told to all.
enum class Outcome : int64_t { kDone, kNothing, kStale, kCorrupt, kFailed };

struct Report {
  Outcome outcome = Outcome::kDone;
  std::string text;
};

[[noreturn]] void Throw(const Report& report) {
  switch (report.outcome) {
    case Outcome::kStale:
      throw StaleGeneration(report.text);
    case Outcome::kCorrupt:
      throw CheckpointCorrupt(report.text);
    default:
      throw CheckpointError(report.text);
  }
}

// Runs `work` and says how it went instead of throwing: the other ranks wait for the answer.
template <class F>
Report Attempt(F&& work) {
  try {
    return work();
  } catch (const StaleGeneration& error) {
    return {Outcome::kStale, error.what()};
  } catch (const CheckpointCorrupt& error) {
    return {Outcome::kCorrupt, error.what()};
  } catch (const std::exception& error) {
    return {Outcome::kFailed, error.what()};
  }
}

at::Tensor Pair(int64_t a, int64_t b) {
  at::Tensor pair = at::empty({2}, at::kLong);
  pair.data_ptr<int64_t>()[0] = a;
  pair.data_ptr<int64_t>()[1] = b;
  return pair;
}

// Rank 0's text, on every rank. In pieces, so that a large one needs no second copy of itself.
void BroadcastText(const World& world, std::string& text, int64_t size) {
  constexpr int64_t kPiece = 64 << 20;
  text.resize(static_cast<size_t>(size));
  for (int64_t from = 0; from < size; from += kPiece) {
    const int64_t count = std::min(kPiece, size - from);
    const at::Tensor piece = at::empty({count}, at::kByte);
    std::memcpy(piece.data_ptr(), text.data() + from, static_cast<size_t>(count));
    world.broadcast(piece);
    std::memcpy(text.data() + from, piece.data_ptr(), static_cast<size_t>(count));
  }
}

void Share(const World& world, Report& report) {
  const at::Tensor head =
      Pair(static_cast<int64_t>(report.outcome), static_cast<int64_t>(report.text.size()));
  world.broadcast(head);
  report.outcome = static_cast<Outcome>(head.data_ptr<int64_t>()[0]);
  BroadcastText(world, report.text, head.data_ptr<int64_t>()[1]);
}

std::string Bytes(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()};
}

std::string Misfit(const std::string& name, const std::string& what) {
  return "the checkpoint does not fit this program: " + name + ": " + what;
}

}  // namespace

State::State(World world) : world_(std::move(world)) {}

State& State::add_custom(const std::string& name, std::function<std::string()> snapshot,
                         std::function<void(std::string_view)> check,
                         std::function<void(std::string_view)> restore) {
  for (const Entry& entry : entries_) {
    if (entry.name == name) throw Error("State: '" + name + "' was added before");
  }
  entries_.push_back({name, std::move(snapshot), std::move(check), std::move(restore)});
  return *this;
}

void State::add_module(const std::string& name, torch::nn::Module& module) {
  add_custom(
      name, [&module] { return ModuleBytes(module); },
      [&module](std::string_view bytes) { CheckModule(module, bytes); },
      [&module](std::string_view bytes) { RestoreModule(module, bytes); });
}

void State::add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer) {
  add_custom(
      name, [&optimizer] { return OptimizerBytes(optimizer); },
      [&optimizer](std::string_view bytes) { CheckOptimizer(optimizer, bytes); },
      [&optimizer](std::string_view bytes) { RestoreOptimizer(optimizer, bytes); });
}

void State::add_bytes(const std::string& name, void* data, size_t size) {
  add_custom(
      name, [=] { return std::string(static_cast<const char*>(data), size); },
      [=](std::string_view bytes) {
        if (bytes.size() != size) throw CheckpointError("a number of another type");
      },
      [=](std::string_view bytes) { std::memcpy(data, bytes.data(), size); });
}

// random numbers, the number of entries, and each one's name and bytes.
std::string State::serialize(const std::string& random) const {
  ByteWriter writer;
  writer.String(random);
  writer.Number(entries_.size());
  for (const Entry& entry : entries_) {
    writer.String(entry.name);
    writer.String(entry.snapshot());
  }
  return writer.Take();
}

void State::save(const std::filesystem::path& file) {
  const std::string random = Bytes(world_.all_gather(RandomState(world_.device())));
  Report report;
  if (world_.leader()) {
    report = Attempt([&] {
      const Identity& self = world_.identity();
      WriteCheckpoint(file, {instance_, self.generation, Hash64(self.run_id)}, serialize(random));
      return Report();
    });
  }
  Share(world_, report);
  if (report.outcome != Outcome::kDone) Throw(report);
}

Loaded State::load(const std::filesystem::path& file) {
  Loaded loaded;
  Report report;
  if (world_.leader()) {
    report = Attempt([&] {
      auto found = ReadCheckpoint(file);
      if (!found) return Report{Outcome::kNothing, ""};
      const Identity& self = world_.identity();
      const Author author{instance_, self.generation, Hash64(self.run_id)};
      instance_ = Successor(found->author, author).instance;
      ByteWriter writer;
      writer.String(found->path.string());
      writer.String(found->note);
      writer.Number(static_cast<uint64_t>(found->author.generation));
      writer.String(found->payload);
      return Report{Outcome::kDone, writer.Take()};
    });
  }
  Share(world_, report);
  if (report.outcome == Outcome::kNothing) return loaded;
  if (report.outcome != Outcome::kDone) Throw(report);
  ByteReader reader(report.text);
  loaded.file = std::string(reader.String());
  loaded.note = std::string(reader.String());
  loaded.generation = static_cast<int64_t>(reader.Number());
  loaded.found = true;
  apply(reader.String());
  return loaded;
}

void State::apply(std::string_view payload) {
  std::string_view random;
  std::vector<std::string_view> parts;
  const Report report = Attempt([&] {
    ByteReader reader(payload);
    random = reader.String();
    const uint64_t count = reader.Number();
    for (size_t i = 0; i < std::max<size_t>(count, entries_.size()); ++i) {
      const std::string saved(i < count ? reader.String() : "nothing");
      const std::string name = i < entries_.size() ? entries_[i].name : "nothing";
      if (saved != name) {
        throw CheckpointError(Misfit(saved, "the program has " + name + " in its place"));
      }
      parts.push_back(reader.String());
      try {
        entries_[i].check(parts[i]);
      } catch (const CheckpointError& error) {
        throw CheckpointError(Misfit(name, error.what()));
      }
    }
    return Report();
  });
  // Either every rank applies it or none does.
  const at::Tensor fits = world_.all_gather(Pair(report.outcome == Outcome::kDone, 0)).select(1, 0);
  if (report.outcome != Outcome::kDone) Throw(report);
  if (!fits.all().item<bool>()) {
    throw CheckpointError("rank " + std::to_string(fits.argmin().item<int64_t>()) +
                          " cannot apply the checkpoint; its own message says why");
  }
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].restore(parts[i]);
  // With another number of ranks there is no rank whose numbers these would be.
  const at::Tensor own = RandomState(world_.device());
  if (random.size() != own.nbytes() * static_cast<size_t>(world_.size())) return;
  std::memcpy(own.data_ptr(), random.data() + own.nbytes() * static_cast<size_t>(world_.rank()),
              own.nbytes());
  RestoreRandom(world_.device(), own);
}

}  // namespace muster
