#pragma once

#include "messages/lease.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gristmill {

/// One command that a probe wants to be run, and what came of it.
struct probe_answer {
  /// Exit status, 128 + signal; nothing when it did not start or did not end in time.
  std::optional<int> status;
  /// What it wrote to its standard output, bounded.
  std::string output;
};

/// How to look at a GPU after a lease. It names commands and reads their answers, and does nothing
/// else: whoever asks runs them as children with a deadline, so that a probe that hangs (a driver
/// in trouble does that) hangs nobody. "Could not probe" is its own outcome and never means
/// "faulty".
class gpu_probe {
public:
  virtual ~gpu_probe() = default;

  /// Commands to run one after another, each looked up in PATH; none where there is nothing to see.
  virtual std::vector<std::vector<std::string>> commands(const std::string& device) const = 0;

  /// Reads the answers, in the order of the commands. The first one for a device that passes sets
  /// what is normal there (memory that is used while nobody works).
  virtual probe_report judge(
    const std::string& device, const std::vector<probe_answer>& answers) = 0;

  /// For all commands together.
  virtual std::chrono::nanoseconds limit() const { return std::chrono::seconds{10}; }
};

/// Of the mock and of sleep devices: there is nothing that could go wrong.
std::unique_ptr<gpu_probe> make_trivial_probe();

/// Asks `nvidia-smi`; the device is the GPU's UUID. Fails on a compute process that is still there
/// and on memory that is more than 512 MiB above what was used at first.
std::unique_ptr<gpu_probe> make_smi_probe();

} // namespace gristmill
