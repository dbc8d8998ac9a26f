#pragma once

#include "actors/gpu_executor.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace gristmill {

/// What an executor and the hub hand to each other beside their messages: an executor speaks of
/// children, and what a child of another machine has to measure, or has measured, does not fit into
/// the words about a child. By the number of the child. Any thread may call.
class remote_book {
public:
  void ask(uint64_t child, measure_request what);
  /// Nothing for a child that is not a measurement.
  std::optional<measure_request> asked(uint64_t child) const;
  void measured(uint64_t child, measurement what);
  /// What was measured, if anything; the child is forgotten.
  std::optional<measurement> take(uint64_t child);
  size_t size() const;

private:
  struct entry {
    measure_request asked;
    std::optional<measurement> measured;
  };
  mutable std::mutex guard_;
  std::map<uint64_t, entry> entries_;
};

/// The steps of an executor whose device is on another machine: its children have no folder here,
/// and `end` takes the measurement that came with the answer. `ids` numbers the children of this
/// process.
measure_steps remote_steps(
  std::shared_ptr<remote_book> book, std::shared_ptr<std::atomic<uint64_t>> ids);

/// A probe that knows the device by its name on its own machine: "cuda:0" where the run says
/// "n1/cuda:0".
std::shared_ptr<gpu_probe> remote_probe(std::unique_ptr<gpu_probe> there);

} // namespace gristmill
