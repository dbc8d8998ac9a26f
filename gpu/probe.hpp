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

/// Why a device is looked at.
enum class probe_occasion : uint8_t {
  /// A lease is over and nothing in it went wrong.
  after_lease = 0,
  /// What ran has faulted or hung, or the lease table wants to know how the device is.
  suspicion,
};

/// How to look at a GPU. It names commands and reads their answers, and does nothing else: whoever
/// asks runs them as children with a deadline, so that a probe that hangs (a driver in trouble does
/// that) hangs nobody. "Could not probe" is its own outcome and never means "faulty".
class gpu_probe {
public:
  virtual ~gpu_probe() = default;

  /// Commands to run one after another; none where there is nothing to see on such an occasion,
  /// and the device then passes without `judge`. The stand-alone broker looks a program up in PATH,
  /// an executor among our own programs unless its name has a slash.
  virtual std::vector<std::vector<std::string>> commands(
    const std::string& device, probe_occasion why) const = 0;

  /// Reads the answers, in the order of the commands. The first one for a device that passes sets
  /// what is normal there (memory that is used while nobody works).
  virtual probe_report judge(
    const std::string& device, const std::vector<probe_answer>& answers) = 0;

  /// For all commands together.
  virtual std::chrono::nanoseconds limit() const { return std::chrono::seconds{10}; }
};

/// Of devices that are none: there is nothing that could go wrong.
std::unique_ptr<gpu_probe> make_trivial_probe();

/// Of the mock in a run; the device is a name such as "mock:h200#0". After a lease that went well
/// nothing but its process group could be left, and the executor has seen that go. On suspicion a
/// canary must come up and compute right: `runner --canary mock:h200`, where `runner` is our
/// gristmill-runner. Only what the canary itself finds wrong fails the device.
std::unique_ptr<gpu_probe> make_mock_probe(std::string runner);

/// Of a GPU in a run; the device is a name such as "cuda:0". After every lease it is looked at from
/// outside, without a context (`runner --health cuda:0`): no process may have one, memory must be
/// what it was at first within 512 MiB, and no error of memory may have come. On suspicion a canary
/// must come up and compute right, too. Driver and context need their time, hence the larger limit.
std::unique_ptr<gpu_probe> make_cuda_probe(std::string runner);

/// Asks `nvidia-smi`; the device is the GPU's UUID. Fails on a compute process that is still there
/// and on memory that is more than 512 MiB above what was used at first.
std::unique_ptr<gpu_probe> make_smi_probe();

} // namespace gristmill
