#pragma once

#include "messages/result.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Which process a job folder belongs to. A process ID alone is used again by the system; with the
/// start time (field 22 of `/proc/<pid>/stat`, clock ticks after boot) and the boot it is unique.
struct process_identity {
  int64_t pid = 0;
  uint64_t start_ticks = 0;
  std::string boot_id;

  friend bool operator==(const process_identity&, const process_identity&) = default;
};

/// The identity of a living process; of this one by default. Errors: `not_found`.
result<process_identity> identity_of(int64_t pid);
result<process_identity> own_identity();

/// One run on the disk: `<runs>/<utc>-<slug>/` with
/// `run.toml`, `secret` (keys the inputs, for this user alone), `lock`, `program.md` (optional),
/// `run.db`, `blobs/`, `candidates/`, `jobs/` (job folders of
/// children, private to this user), `data/` (tensor files, gone when the run ends).
class run_directory {
public:
  /// `utc` is the wall-clock time of the start, from the caller. The slug is made of what is in
  /// `name` (letters, digits and dashes; "run" when nothing is left). When the name is taken a
  /// number is appended. Writes the `owner` file of `jobs/`. Errors: `io_failed`.
  static result<run_directory> create(const std::filesystem::path& runs,
    std::chrono::sys_seconds utc, std::string_view name, const process_identity& owner);

  /// A run in exactly this folder. Errors: `invalid_input` when it exists, `io_failed`.
  static result<run_directory> create_at(
    const std::filesystem::path& folder, const process_identity& owner);

  /// An existing run, for looking back. Errors: `not_found` when there is no `run.db` in it.
  static result<run_directory> open(const std::filesystem::path& folder);

  const std::filesystem::path& root() const { return root_; }
  /// The last component of `root()`.
  std::string name() const { return root_.filename().string(); }
  std::filesystem::path config_file() const { return root_ / "run.toml"; }
  std::filesystem::path program_file() const { return root_ / "program.md"; }
  std::filesystem::path secret_file() const { return root_ / "secret"; }
  std::filesystem::path database_file() const { return root_ / "run.db"; }
  std::filesystem::path report_file() const { return root_ / "report.html"; }
  std::filesystem::path blobs() const { return root_ / "blobs"; }
  std::filesystem::path candidates() const { return root_ / "candidates"; }
  std::filesystem::path jobs() const { return root_ / "jobs"; }
  std::filesystem::path data() const { return root_ / "data"; }

  /// Writes the resolved configuration (`run.toml`). Errors: `io_failed`.
  result<void> write_config(std::string_view toml) const;
  /// Keeps the secret of the run, readable for this user alone. Errors: `io_failed`.
  result<void> write_secret(const std::array<uint8_t, 32>& secret) const;
  /// Errors: `not_found`; `invalid_input` for a file of another size.
  result<std::array<uint8_t, 32>> read_secret() const;
  /// Keeps a copy of the protocol file (`program.md`). Errors: `io_failed`.
  result<void> write_program(std::string_view markdown) const;

  /// Makes `jobs/` and `data/` where they are missing and writes the `owner` file: from now on the
  /// scratch belongs to this process. `create` does it. Errors: `io_failed`.
  result<void> take(const process_identity& owner) const;

  /// Deletes `jobs/` and `data/`: at the clean end of a run. Errors: `io_failed`.
  result<void> remove_scratch() const;

private:
  static result<run_directory> furnish(
    const std::filesystem::path& root, const process_identity& owner);

  explicit run_directory(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
};

/// The part of a run's name that a person chose: lower case letters, digits, single dashes; at most
/// 48 characters; "run" when nothing is left.
std::string slug(std::string_view text);

/// What `reap_dead_jobs` found and did.
struct reaped {
  /// Folders of runs whose scratch was deleted.
  std::vector<std::filesystem::path> runs;
  uint32_t jobs_deleted = 0;
  uint32_t process_groups_killed = 0;
  /// What could not be done, as whole sentences; the rest was done all the same.
  std::vector<std::string> problems;
};

/// At start: for each run under `runs` whose `jobs/owner` names a process that is no more (no such
/// process, another start time, another boot), kills the process groups of its jobs that still
/// live, then deletes its `jobs/` and `data/`. `jobs/<job>/pgid` holds the number of a process
/// group, alone or as the `owner_text` of its leader. A number may have been given to strangers
/// since, so a group is killed only if its leader is the very process that the file names, or one
/// of its processes works in the job's folder. Runs of living processes, folders without an `owner`
/// and symbolic links are left alone. A missing `runs` is no error.
reaped reap_dead_jobs(const std::filesystem::path& runs);

/// The contents of the `owner` and `pgid` files: `<pid> <start_ticks> <boot_id>` and a line feed.
std::string owner_text(const process_identity& owner);
result<process_identity> parse_owner(std::string_view text);

} // namespace gristmill
