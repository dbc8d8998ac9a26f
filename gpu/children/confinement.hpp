#pragma once

#include "gpu/children/jail.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// One thing that a child finds in its file system.
struct view_entry {
  enum class what : uint8_t {
    /// The file or folder of the same name outside, with all that is mounted below it.
    readable = 0,
    writable,
    /// A device node of the same name outside.
    device,
    /// A symbolic link to `target`.
    link,
    /// An empty folder in memory, gone with the child; at most `bytes`.
    temporary,
    /// The processes that the child may know of.
    processes,
  };
  what kind = what::readable;
  /// Absolute.
  std::string path;
  std::string target;
  uint64_t bytes = 0;
  /// Left out without a word where there is none outside.
  bool if_there = false;

  friend bool operator==(const view_entry&, const view_entry&) = default;
};

/// What a child may see, reach and use up. The same for bubblewrap and for our own namespaces.
struct confinement {
  /// Later entries lie over earlier ones.
  std::vector<view_entry> view;
  /// Where the child works; inside as outside.
  std::string directory;
  bool own_network = true;
  /// A child with a CUDA context is known to the driver by its number outside.
  bool own_processes = true;
  /// Processes and threads together.
  uint32_t tasks_max = 0;
  /// What lies in the directory; 0: not watched.
  uint64_t directory_bytes_max = 0;
};

/// What the decision depends on, read before by the caller.
struct jail_surroundings {
  /// Files that the jail and the command are started from, absolute.
  std::vector<std::string> programs;
  /// `job.json` of the directory; empty when there is none.
  std::string job_text;
  /// Folders of people, such as "/home" and "/root".
  std::vector<std::string> homes;
  /// More paths that every child may read; the person's setting.
  std::vector<std::string> readable;
  /// NVIDIA's device nodes.
  std::vector<std::string> gpu_nodes;
};

/// Parts of /proc that the super-user's number may write even without capabilities: a child reads
/// them at most.
constexpr std::array<const char*, 6> shielded_parts_of_proc{
  "/sys", "/sysrq-trigger", "/irq", "/bus", "/acpi", "/fs"};

/// Whether the device is a real one: "cuda:0".
bool is_cuda(std::string_view device);

/// `invalid_input` for a job that cannot be read. The profile must not be `command`.
result<confinement> confinement_of(
  const jail_command& command, const jail_surroundings& surroundings);

/// The arguments of bubblewrap for it, up to and without the command.
std::vector<std::string> bubblewrap_arguments(const confinement& wanted);

} // namespace gristmill
