#ifndef MUSTER_STATE_H_
#define MUSTER_STATE_H_

#include <muster/sampler.h>
#include <muster/world.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {

// What load() found. False: no checkpoint, start from the beginning.
struct Loaded {
  bool found = false;                               // there was one
  std::filesystem::path file;                       // the one that was read
  int64_t generation = 0;                           // that wrote it
  std::string note;                                 // why it is not the newest one; empty if it is
  explicit operator bool() const { return found; }  // the same
};

// All that a training run must get back to go on bit for bit: modules, optimizers, samplers,
// counters; and, without being asked, each rank's random numbers. It refers to the objects added
// and must not outlive them. One thread.
class State {
 public:
  explicit State(World world);  // whose ranks save and load together

  // A module, an optimizer, a DistributedSampler, a GradScaler, a Schedule (after its optimizer),
  // or an arithmetic variable. Throws Error for a name used before.
  template <class T>
  State& add(const std::string& name, T& object) {
    if constexpr (std::is_base_of_v<torch::nn::Module, T>) {
      add_module(name, object);
    } else if constexpr (std::is_base_of_v<torch::optim::Optimizer, T>) {
      add_optimizer(name, object);
    } else if constexpr (requires(std::string_view bytes) {
                           { object.snapshot() } -> std::same_as<std::string>;
                           object.check(bytes);
                           object.restore(bytes);
                         }) {
      add_custom(
          name, [&object] { return object.snapshot(); },
          [&object](std::string_view bytes) { object.check(bytes); },
          [&object](std::string_view bytes) { object.restore(bytes); });
    } else {
      static_assert(std::is_arithmetic_v<T>,
                    "a module, an optimizer, a number, or what has snapshot, check and restore");
      add_bytes(name, &object, sizeof object);
    }
    return *this;
  }
  // Anything else, as bytes. `check` throws CheckpointError if they do not fit, and is called
  // before anything is restored.
  State& add_custom(const std::string& name, std::function<std::string()> snapshot,
                    std::function<void(std::string_view)> check,
                    std::function<void(std::string_view)> restore);

  // Collective. Rank 0 writes `file` so that at every moment a whole checkpoint is on disk: to a
  // temporary file, fsync, the one before becomes file.previous, rename, fsync of the folder (made
  // if needed). The others wait. Throws on every rank: StaleGeneration, or CheckpointError (disk
  // full, no permission: the old file stays).
  void save(const std::filesystem::path& file);

  // Collective. Rank 0 reads the newest whole file (file, else file.previous; a damaged `file` is
  // moved to file.corrupt) and gives it to all, whatever their number. Throws on every rank:
  // CheckpointCorrupt if there are files but no whole one, CheckpointError if it is of another
  // program (names what differs). Nothing is changed then.
  Loaded load(const std::filesystem::path& file);

 private:
  struct Entry {
    std::string name;
    std::function<std::string()> snapshot;
    std::function<void(std::string_view)> check;
    std::function<void(std::string_view)> restore;
  };

  void add_module(const std::string& name, torch::nn::Module& module);
  void add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer);
  void add_bytes(const std::string& name, void* data, size_t size);
  std::string serialize(const std::string& random) const;
  void apply(std::string_view payload);

  World world_;
  std::vector<Entry> entries_;
  uint64_t instance_ = 0;  // of the run, one more than that of the run whose checkpoint was loaded
};

}  // namespace muster

#endif  // MUSTER_STATE_H_
