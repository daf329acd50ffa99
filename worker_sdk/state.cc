#include <ATen/ops/tensor.h>
#include <muster/state.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "worker_sdk/byte_stream.h"
#include "worker_sdk/name_difference.h"
#include "worker_sdk/shared_outcome.h"
#include "worker_sdk/state_bytes.h"
#include "worker_sdk/state_shared.h"

namespace muster {
namespace {

Time Now() { return Time(std::chrono::steady_clock::now().time_since_epoch()); }

std::string Misfit(const std::string& checkpoint, const std::string& why) {
  return checkpoint + " does not fit this program: " + why;
}

// Of a payload whose random numbers have been read: each entry's name and bytes.
std::vector<std::pair<std::string, std::string_view>> SavedEntries(ByteReader* reader) {
  std::vector<std::pair<std::string, std::string_view>> entries;
  const uint64_t count = reader->Number();
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name(reader->String());
    entries.emplace_back(name, reader->String());
  }
  return entries;
}

Author AuthorOf(const Identity& self) { return {0, self.generation, Hash64(self.run_id)}; }

}  // namespace

State::Shared::Shared(World its_world, CheckpointOptions its_options)
    : world(std::move(its_world)),
      options(std::move(its_options)),
      keeper(
          AuthorOf(world.identity()), options.file(), options.keep(),
          [this](const std::filesystem::path& file) { world.agent().checkpoint(file.string()); }) {}

State::State(World world, CheckpointOptions options)
    : shared_(std::make_unique<Shared>(std::move(world), std::move(options))) {
  if (shared_->options.keep() < 1) throw Error("CheckpointOptions::keep must be at least 1");
  if (shared_->options.every() < 0) throw Error("CheckpointOptions::every must not be negative");
  if (shared_->options.every() > 0 && shared_->options.file().empty()) {
    throw Error("CheckpointOptions::every needs a file");
  }
  add("muster.commits", shared_->commits);
}

State::~State() {
  try {
    shared_->keeper.Wait();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the last checkpoint was not written: %s\n", error.what());
  }
}

int64_t State::commits() const { return shared_->commits; }
bool State::draining() const { return shared_->draining; }
const Loaded& State::loaded() const { return shared_->loaded; }

State& State::add_custom(const std::string& name, std::function<std::string()> snapshot,
                         std::function<void(std::string_view)> check,
                         std::function<void(std::string_view)> restore) {
  for (const Entry& entry : shared_->entries) {
    if (entry.name == name) throw Error("State: '" + name + "' was added before");
  }
  shared_->entries.push_back({name, std::move(snapshot), std::move(check), std::move(restore)});
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

// random numbers of all ranks, the number of entries, and each one's name and bytes.
std::string State::serialize(const at::Tensor& random) const {
  ByteWriter writer;
  writer.String({static_cast<const char*>(random.const_data_ptr()), random.nbytes()});
  writer.Number(shared_->entries.size());
  for (const Entry& entry : shared_->entries) {
    writer.String(entry.name);
    writer.String(entry.snapshot());
  }
  return writer.Take();
}

// The bytes of each entry, checked. `checkpoint` is what an error calls it.
std::vector<std::string_view> State::parts(std::string_view payload, const std::string& checkpoint,
                                           std::string_view* random) const {
  const std::vector<Entry>& entries = shared_->entries;
  ByteReader reader(payload);
  *random = reader.String();
  std::vector<std::string> saved_names;
  std::vector<std::string_view> parts;
  for (const auto& [name, bytes] : SavedEntries(&reader)) {
    saved_names.push_back(name);
    parts.push_back(bytes);
  }
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  const std::string difference = NameDifference(saved_names, names);
  if (!difference.empty()) throw CheckpointError(Misfit(checkpoint, difference));
  for (size_t i = 0; i < entries.size(); ++i) {
    try {
      entries[i].check(parts[i]);
    } catch (const CheckpointError& error) {
      throw CheckpointError(Misfit(checkpoint, names[i] + ": " + error.what()));
    }
  }
  return parts;
}

void State::restore(const std::vector<std::string_view>& parts, std::string_view random) {
  const World& world = shared_->world;
  for (size_t i = 0; i < parts.size(); ++i) shared_->entries[i].restore(parts[i]);
  // With another number of ranks there is no rank whose numbers these would be.
  const at::Tensor own = RandomState(world.device());
  if (random.size() != own.nbytes() * static_cast<size_t>(world.size())) return;
  std::memcpy(own.data_ptr(), random.data() + own.nbytes() * static_cast<size_t>(world.rank()),
              own.nbytes());
  RestoreRandom(world.device(), own);
}

void State::commit() {
  Shared& self = *shared_;
  ++self.commits;
  self.world.agent().step(self.commits);
  if (self.rhythm.Count()) meet();
  if (self.options.every() > 0 && self.commits % self.options.every() == 0) save();
  if (self.draining && self.within_run) throw Drained();
}

// The news of all ranks, on every rank, and what follows from it.
void State::meet() {
  Shared& self = *shared_;
  const World& world = self.world;
  const CommitNews own = self.rhythm.Tell(Now(), world.leader(), world.agent().drain_requested(),
                                          self.keeper.failed());
  const at::Tensor news =
      at::tensor({own.drain, own.remember, own.failed, own.commit_ns}, at::kLong);
  world.all_reduce(news, Op::max);
  const int64_t* all = news.const_data_ptr<int64_t>();
  const CommitNews heard{all[0], all[1], all[2], all[3]};
  self.rhythm.Heard(heard, Now());
  if (heard.drain != 0) self.draining = true;
  if (heard.failed != 0) wait();
  if (heard.remember == 0 || !self.options.remember()) return;
  const Time begin = Now();
  const at::Tensor random = world.all_gather(RandomState(world.device()));
  self.keeper.Remember({std::make_shared<const std::string>(serialize(random)), self.commits});
  self.rhythm.Remembered(begin, Now());
}

bool State::rollback() {
  const Remembered state = shared_->keeper.remembered();
  if (!state.payload) return false;
  std::string_view random;
  restore(parts(*state.payload, "the remembered commit", &random), random);
  shared_->keeper.RolledBack();
  shared_->saved.reset();
  return true;
}

void State::wait() {
  OnLeader(shared_->world, [this] {
    shared_->keeper.Wait();
    return Report();
  });
}

void State::save() { save(shared_->options.file()); }

void State::save(const std::filesystem::path& file) {
  Shared& self = *shared_;
  if (file.empty()) throw Error("State::save: no file; name one, or set CheckpointOptions::file");
  const at::Tensor random = self.world.all_gather(RandomState(self.world.device()));
  const bool is_own = file == self.options.file();
  if (is_own) self.saved.reset();
  OnLeader(self.world, [&] {
    self.keeper.Wait();  // before the copy is made, so that there are never two
    const auto payload = std::make_shared<const std::string>(serialize(random));
    self.keeper.Write(file, {payload, self.commits}, self.options.async());
    return Report();
  });
  if (is_own) self.saved = self.commits;
}

Loaded State::load() { return load(shared_->options.file()); }

Loaded State::load(const std::filesystem::path& file) {
  Shared& self = *shared_;
  if (file.empty()) throw Error("State::load: no file; name one, or set CheckpointOptions::file");
  Author author;
  Report content;  // by itself, so that it is in memory once
  const Report report = OnLeader(self.world, [&] {
    self.keeper.Wait();
    auto found = ReadCheckpoint(file);
    if (!found) return Report{Outcome::kNothing, ""};
    author = found->author;
    ByteWriter writer;
    writer.String(found->path.string());
    writer.String(found->note);
    writer.Number(static_cast<uint64_t>(found->author.generation));
    content.text = std::move(found->payload);
    return Report{Outcome::kDone, writer.Take()};
  });
  self.loaded = {};
  if (report.outcome == Outcome::kNothing) return self.loaded;
  ByteReader reader(report.text);
  Loaded loaded{true, std::string(reader.String()), 0, std::string(reader.String())};
  loaded.generation = static_cast<int64_t>(reader.Number());
  Share(self.world, content);
  const auto payload = std::make_shared<const std::string>(std::move(content.text));
  apply(*payload, "the checkpoint " + loaded.file.string());
  self.loaded = loaded;
  self.saved.reset();
  if (file == self.options.file()) self.saved = self.commits;
  self.keeper.GoOnFrom(file, author, {self.options.remember() ? payload : nullptr, self.commits});
  return loaded;
}

// Either every rank applies it or none does.
void State::apply(std::string_view payload, const std::string& checkpoint) {
  const World& world = shared_->world;
  std::string_view random;
  std::vector<std::string_view> all;
  const Report report = Attempt([&] {
    all = parts(payload, checkpoint, &random);
    return Report();
  });
  const at::Tensor own = at::tensor({report.outcome == Outcome::kDone ? 1 : 0}, at::kInt);
  const at::Tensor fits = world.all_gather(own).flatten();
  const bool nowhere = !fits.any().item<bool>();
  if (report.outcome != Outcome::kDone) Throw(report, nowhere);
  if (!fits.all().item<bool>()) {
    throw CheckpointError("rank " + std::to_string(fits.argmin().item<int64_t>()) +
                          " cannot apply the checkpoint; its own message says why");
  }
  restore(all, random);
}

}  // namespace muster
