#ifndef MUSTER_STATE_H_
#define MUSTER_STATE_H_

#include <muster/sampler.h>
#include <muster/world.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace muster {

// Where a State is kept, and how.
struct CheckpointOptions {
  // Where save() and load() without a name, commit() and run() keep the run. Empty: nowhere.
  TORCH_ARG(std::filesystem::path, file);
  // How many files there are: the newest, file.previous, file.previous.2, …
  TORCH_ARG(int, keep) = 2;
  // Each so many commits commit() saves. 0: save() and the end of run() alone do.
  TORCH_ARG(int64_t, every) = 0;
  // Write in a thread of its own while training goes on. Rank 0 then holds the bytes of one state
  // more in memory; while one is being written the next save waits.
  TORCH_ARG(bool, async) = false;
  // Hold the bytes of the last commit in memory, on each rank.
  TORCH_ARG(bool, remember) = true;
};

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
  // Throws Error for options that make no sense.
  explicit State(World world, CheckpointOptions options = {});
  ~State();  // waits for what is being written; an error of that is printed
  State(const State&) = delete;
  State& operator=(const State&) = delete;

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

  // Collective: a point at which this run can be taken up again; call it after each step, on every
  // rank. It tells the agent STEP, and saves if CheckpointOptions::every says so. At some of its
  // calls, the same on every rank and not more than costs about 2 % of the time, it hears whether
  // a rank is asked to drain, and remembers the state in memory. Throws CheckpointError if a save
  // in the background has failed. Within run() it leaves the body when all are to drain, by an
  // exception that is no std::exception: let it pass.
  void commit();
  int64_t commits() const;  // since the training began, in whatever process
  bool draining() const;    // what commit() heard

  // Back to the commit that is remembered, or to what was loaded. No collective; every rank is to
  // call it. False: nothing is remembered.
  bool rollback();

  // Collective. Rank 0 writes `file` so that at every moment a whole checkpoint is on disk: to a
  // temporary file, fsync, the one before becomes file.previous, rename, fsync of the folder (made
  // if needed), and tells the agent CHECKPOINT. The others wait. Throws on every rank:
  // StaleGeneration, or CheckpointError (disk full, no permission, no checkpoint in its place: the
  // old files stay). With CheckpointOptions::async it returns when the state is copied, and what
  // was wrong with the save before is thrown now, instead of saving.
  void save(const std::filesystem::path& file);
  void save();  // to CheckpointOptions::file
  // Collective: until what is being written is on disk. Throws as save() does.
  void wait();

  // Collective. Rank 0 reads the newest whole file (file, file.previous, …; a damaged `file` is
  // moved to file.corrupt) and gives it to all, whatever their number. Throws on every rank:
  // CheckpointCorrupt if there are files but no whole one, CheckpointError if it is of another
  // program (names what differs) or of a newer format. Nothing is changed then.
  Loaded load(const std::filesystem::path& file);
  Loaded load();                 // from CheckpointOptions::file
  const Loaded& loaded() const;  // by the last load()

 private:
  friend class Runner;
  struct Entry;
  struct Shared;

  void add_module(const std::string& name, torch::nn::Module& module);
  void add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer);
  void add_bytes(const std::string& name, void* data, size_t size);
  std::string serialize(const at::Tensor& random) const;
  std::vector<std::string_view> parts(std::string_view payload, const std::string& checkpoint,
                                      std::string_view* random) const;
  void restore(const std::vector<std::string_view>& parts, std::string_view random);
  void apply(std::string_view payload, const std::string& checkpoint);
  void meet();

  const std::unique_ptr<Shared> shared_;
};

}  // namespace muster

#endif  // MUSTER_STATE_H_
