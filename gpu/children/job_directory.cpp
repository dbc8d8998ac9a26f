#include "gpu/children/job_directory.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t small_file_bytes = 4096;
constexpr uint64_t command_line_bytes = uint64_t{4} << 20;

failure system_failure(const std::string& path) {
  return {errc::io_failed, fmt::format("{}: {}", path, std::strerror(errno))};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".."
    && std::all_of(name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string boot_id() {
  auto text = read_whole_file("/proc/sys/kernel/random/boot_id", small_file_bytes);
  return text ? text->substr(0, text->find('\n')) : "unknown";
}

/// Ticks since the boot at which a process started; empty when there is none.
std::string start_time(pid_t process) {
  auto text = read_whole_file(fmt::format("/proc/{}/stat", process), small_file_bytes);
  if (!text)
    return {};
  // The name of the program stands in parentheses and may hold anything; field 22 counts from it.
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos)
    return {};
  std::istringstream fields(text->substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i)
    fields >> field;
  return fields ? field : std::string{};
}

result<void> write_whole_file(const std::string& path, std::string_view content) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return tl::unexpected<failure>(system_failure(path));
  while (!content.empty()) {
    const ssize_t n = ::write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      auto why = system_failure(path);
      close(file);
      return tl::unexpected<failure>(std::move(why));
    }
    content.remove_prefix(static_cast<size_t>(n));
  }
  if (close(file) != 0)
    return tl::unexpected<failure>(system_failure(path));
  return {};
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// Kills the members of a group that has lost its leader, as far as their command line names the
/// folder. bubblewrap leaves one behind when it is killed before its first process has asked to die
/// with it; that one waits for ever.
void kill_stragglers(const std::string& folder, pid_t group) {
  std::error_code error;
  fs::directory_iterator entries("/proc", error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const auto name = entries->path().filename().string();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); }))
      continue;
    const auto process = static_cast<pid_t>(std::atoi(name.c_str()));
    if (process <= 1 || getpgid(process) != group)
      continue;
    const auto words = read_whole_file("/proc/" + name + "/cmdline", command_line_bytes);
    if (words && words->find(folder) != std::string::npos)
      kill(process, SIGKILL);
  }
}

/// Kills the group that the folder names, if it is still the one that was written down.
void kill_group_of(const std::string& folder) {
  auto text = read_whole_file(folder + "/pgid", small_file_bytes);
  if (!text)
    return;
  std::istringstream fields(*text);
  long group = 0;
  std::string started, boot;
  if (!(fields >> group >> started >> boot) || group <= 1 || boot != boot_id())
    return;
  const auto leader = start_time(static_cast<pid_t>(group));
  if (started == leader)
    kill(static_cast<pid_t>(-group), SIGKILL);
  else if (leader.empty())
    kill_stragglers(folder, static_cast<pid_t>(group));
}

} // namespace

result<std::string> read_whole_file(const std::string& path, uint64_t bytes_max) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return fail(errno == ENOENT ? errc::not_found : errc::io_failed,
      fmt::format("{}: {}", path, std::strerror(errno)));
  std::string content;
  // Files below /proc have no size, so read until the end.
  for (char buffer[16384];;) {
    const ssize_t n = ::read(file, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      auto why = system_failure(path);
      close(file);
      return tl::unexpected<failure>(std::move(why));
    }
    if (n == 0)
      break;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > bytes_max) {
      close(file);
      return fail(errc::invalid_input, fmt::format("{}: more than {} bytes", path, bytes_max));
    }
  }
  close(file);
  return content;
}

result<job_directory> job_directory::create(const std::string& jobs_folder, std::string_view name) {
  if (!is_plain_name(name))
    return fail(errc::invalid_input,
      fmt::format("job directory `{}`: only letters, digits, '-', '_' and '.'", name));
  std::error_code error;
  const auto base = fs::absolute(jobs_folder, error);
  if (!error)
    fs::create_directories(base, error);
  if (error)
    return fail(errc::io_failed, fmt::format("{}: {}", jobs_folder, error.message()));
  auto path = (base / std::string(name)).string();
  if (mkdir(path.c_str(), 0700) != 0)
    return fail(errno == EEXIST ? errc::refused : errc::io_failed,
      fmt::format("{}: {}", path, std::strerror(errno)));
  return job_directory(std::move(path));
}

job_directory::job_directory(job_directory&& other) noexcept
  : path_(std::exchange(other.path_, {})) {}

job_directory& job_directory::operator=(job_directory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

job_directory::~job_directory() {
  if (!path_.empty())
    remove_folder(path_);
}

std::string job_directory::file(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

result<void> job_directory::write(std::string_view name, std::string_view content) const {
  return write_whole_file(file(name), content);
}

std::string job_directory::keep() {
  return std::exchange(path_, {});
}

result<void> write_group_file(const std::string& job_folder, pid_t group) {
  return write_whole_file(
    job_folder + "/pgid", fmt::format("{} {} {}\n", group, start_time(group), boot_id()));
}

result<size_t> reap_job_directories(const std::string& jobs_folder) {
  std::error_code error;
  if (!fs::exists(jobs_folder, error))
    return size_t{0};
  fs::directory_iterator entries(jobs_folder, error);
  if (error)
    return fail(errc::io_failed, fmt::format("{}: {}", jobs_folder, error.message()));
  std::vector<std::string> folders;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error)
      return fail(errc::io_failed, fmt::format("{}: {}", jobs_folder, error.message()));
    // A link could lead out of the folder.
    if (entries->symlink_status().type() == fs::file_type::directory)
      folders.push_back(entries->path().string());
  }
  for (const auto& folder : folders) {
    kill_group_of(folder);
    remove_folder(folder);
  }
  return folders.size();
}

} // namespace gristmill
