#include "journal/run_directory.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <unistd.h>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

// Small kernel and owner files; a hostile job folder must not cost memory.
constexpr size_t small_file_bytes_max = 4096;

std::optional<std::string> read_small(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return std::nullopt;
  std::string text(small_file_bytes_max, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

result<void> write_file(const fs::path& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (!out)
    return fail(errc::io_failed, fmt::format("cannot write '{}'", file.string()));
  return {};
}

result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(errc::io_failed,
      fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
  return {};
}

template <class T>
bool read_number(const std::string& text, T& to) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc{} && end == text.data() + text.size();
}

// What `/proc/<pid>/stat` says after the program's name, which may itself hold spaces and brackets.
struct stat_fields {
  std::string state;
  int64_t group = 0;
  uint64_t start_ticks = 0;
};

std::optional<stat_fields> stat_of(int64_t pid) {
  auto text = read_small(fmt::format("/proc/{}/stat", pid));
  if (!text)
    return std::nullopt;
  auto name_end = text->rfind(')');
  if (name_end == std::string::npos)
    return std::nullopt;
  std::istringstream in(text->substr(name_end + 1));
  std::vector<std::string> fields{std::istream_iterator<std::string>{in}, {}};
  // Field 3 of the manual (state) is the first here: the group is field 5, the start field 22.
  stat_fields out;
  if (fields.size() < 20 || !read_number(fields[2], out.group)
    || !read_number(fields[19], out.start_ticks))
    return std::nullopt;
  out.state = fields[0];
  return out;
}

std::string boot_id() {
  auto text = read_small("/proc/sys/kernel/random/boot_id").value_or("");
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return text.empty() ? "unknown" : text;
}

bool lives(const process_identity& who) {
  auto now = identity_of(who.pid);
  return now && *now == who;
}

// Whether a living process of the group works inside `folder`.
bool works_in(int64_t group, const fs::path& folder) {
  std::error_code error;
  auto wanted = fs::canonical(folder, error).string();
  if (error)
    return false;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    int64_t pid = 0;
    if (!read_number(it->path().filename().string(), pid))
      continue;
    auto stat = stat_of(pid);
    if (!stat || stat->group != group)
      continue;
    std::error_code ignored;
    auto where = fs::read_symlink(it->path() / "cwd", ignored).string();
    if (where == wanted || where.starts_with(wanted + "/"))
      return true;
  }
  return false;
}

// The group that a job's `pgid` file names, if it is certainly the job's.
std::optional<int64_t> group_of_job(const fs::path& job) {
  auto text = read_small(job / "pgid");
  if (!text)
    return std::nullopt;
  std::istringstream in(*text);
  std::string first;
  int64_t group = 0;
  in >> first;
  // 0 and 1 would mean our own group and everybody.
  if (!read_number(first, group) || group <= 1 || group == ::getpgrp())
    return std::nullopt;
  auto leader = parse_owner(*text);
  if ((leader && lives(*leader)) || works_in(group, job))
    return group;
  return std::nullopt;
}

void reap_run(const fs::path& run, reaped& out) {
  std::error_code error;
  for (fs::directory_iterator it(run / "jobs", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_symlink(ignored) || !it->is_directory(ignored))
      continue;
    ++out.jobs_deleted;
    auto group = group_of_job(it->path());
    if (!group)
      continue;
    if (::kill(static_cast<pid_t>(-*group), SIGKILL) == 0)
      ++out.process_groups_killed;
    else if (errno != ESRCH)
      out.problems.push_back(fmt::format("cannot kill process group {} of '{}': {}", *group,
        it->path().string(), std::generic_category().message(errno)));
  }
  // The owner goes last: until then an interrupted clean-up is found and finished at the next
  // start.
  std::vector<fs::path> doomed{run / "data"};
  for (fs::directory_iterator it(run / "jobs", error), end; !error && it != end;
       it.increment(error))
    if (it->path().filename() != "owner")
      doomed.push_back(it->path());
  doomed.push_back(run / "jobs");
  for (const auto& folder : doomed) {
    fs::remove_all(folder, error);
    if (error) {
      out.problems.push_back(
        fmt::format("cannot delete '{}': {}", folder.string(), error.message()));
      break;
    }
  }
  out.runs.push_back(run);
}

std::string utc_text(std::chrono::sys_seconds utc) {
  auto day = std::chrono::floor<std::chrono::days>(utc);
  std::chrono::year_month_day date{day};
  std::chrono::hh_mm_ss time{utc - day};
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
    time.minutes().count(), time.seconds().count());
}

} // namespace

result<process_identity> identity_of(int64_t pid) {
  auto stat = stat_of(pid);
  // A zombie has ended; only its parent has not looked yet.
  if (!stat || stat->state == "Z" || stat->state == "X")
    return fail(errc::not_found, fmt::format("there is no living process {}", pid));
  return process_identity{pid, stat->start_ticks, boot_id()};
}

result<process_identity> own_identity() {
  return identity_of(::getpid());
}

std::string owner_text(const process_identity& owner) {
  return fmt::format("{} {} {}\n", owner.pid, owner.start_ticks, owner.boot_id);
}

result<process_identity> parse_owner(std::string_view text) {
  std::istringstream in(std::string{text.substr(0, small_file_bytes_max)});
  std::vector<std::string> fields{std::istream_iterator<std::string>{in}, {}};
  process_identity out;
  if (fields.size() != 3 || !read_number(fields[0], out.pid)
    || !read_number(fields[1], out.start_ticks) || out.pid <= 0)
    return fail(errc::invalid_input,
      "an owner file holds a process ID, its start time in clock ticks and the boot ID");
  out.boot_id = fields[2];
  return out;
}

std::string slug(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool upper = c >= 'A' && c <= 'Z';
    bool kept = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept)
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
    if (out.size() == 48)
      break;
  }
  while (!out.empty() && out.back() == '-')
    out.pop_back();
  return out.empty() ? "run" : out;
}

result<run_directory> run_directory::create(const fs::path& runs, std::chrono::sys_seconds utc,
  std::string_view name, const process_identity& owner) {
  if (auto made = make_folder(runs); !made)
    return pass(made);
  auto base = utc_text(utc) + "-" + slug(name);
  for (int i = 1; i <= 1000; ++i) {
    auto root = runs / (i == 1 ? base : fmt::format("{}-{}", base, i));
    std::error_code error;
    // Exactly one of two processes that start in the same second makes the folder.
    if (!fs::create_directory(root, error)) {
      if (error)
        return fail(errc::io_failed,
          fmt::format("cannot make the run folder '{}': {}", root.string(), error.message()));
      continue;
    }
    return furnish(root, owner);
  }
  return fail(
    errc::io_failed, fmt::format("a thousand runs named '{}' exist in '{}'", base, runs.string()));
}

result<run_directory> run_directory::create_at(
  const fs::path& folder, const process_identity& owner) {
  if (folder.has_parent_path())
    if (auto made = make_folder(folder.parent_path()); !made)
      return pass(made);
  std::error_code error;
  if (!fs::create_directory(folder, error))
    return fail(error ? errc::io_failed : errc::invalid_input,
      fmt::format("run folder '{}': {}", folder.string(),
        error ? error.message() : "exists already; name one that does not"));
  return furnish(folder, owner);
}

result<run_directory> run_directory::furnish(const fs::path& root, const process_identity& owner) {
  run_directory out{root};
  for (const auto& folder : {out.blobs(), out.candidates()})
    if (auto made = make_folder(folder); !made)
      return pass(made);
  if (auto taken = out.take(owner); !taken)
    return pass(taken);
  return out;
}

result<run_directory> run_directory::open(const fs::path& folder) {
  run_directory out{fs::absolute(folder).lexically_normal()};
  std::error_code error;
  if (!out.root_.has_filename())
    out.root_ = out.root_.parent_path();
  if (!fs::exists(out.database_file(), error))
    return fail(
      errc::not_found, fmt::format("'{}' is not a run: there is no run.db in it", folder.string()));
  return out;
}

result<void> run_directory::take(const process_identity& owner) const {
  for (const auto& folder : {jobs(), data()}) {
    if (auto made = make_folder(folder); !made)
      return made;
    std::error_code error;
    fs::permissions(folder, fs::perms::owner_all, error);
    if (error)
      return fail(errc::io_failed,
        fmt::format("cannot make '{}' private: {}", folder.string(), error.message()));
  }
  return write_file(jobs() / "owner", owner_text(owner));
}

result<void> run_directory::write_config(std::string_view toml) const {
  return write_file(config_file(), toml);
}

result<void> run_directory::write_secret(const std::array<uint8_t, 32>& secret) const {
  // Private before there is anything in it.
  int descriptor =
    ::open(secret_file().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool written = descriptor >= 0
    && ::write(descriptor, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size())
    && ::fsync(descriptor) == 0;
  if (descriptor >= 0)
    written = ::close(descriptor) == 0 && written;
  if (!written)
    return fail(errc::io_failed, fmt::format("cannot write '{}'", secret_file().string()));
  return {};
}

result<std::array<uint8_t, 32>> run_directory::read_secret() const {
  auto text = read_small(secret_file());
  if (!text)
    return fail(errc::not_found,
      fmt::format("'{}' is missing: without it the inputs of the run cannot be made again",
        secret_file().string()));
  std::array<uint8_t, 32> out{};
  if (text->size() != out.size())
    return fail(errc::invalid_input,
      fmt::format(
        "'{}' has {} bytes instead of {}", secret_file().string(), text->size(), out.size()));
  std::copy(text->begin(), text->end(), out.begin());
  return out;
}

result<void> run_directory::write_program(std::string_view markdown) const {
  return write_file(program_file(), markdown);
}

result<void> run_directory::remove_scratch() const {
  for (const auto& folder : {data(), jobs()}) {
    std::error_code error;
    fs::remove_all(folder, error);
    if (error)
      return fail(
        errc::io_failed, fmt::format("cannot delete '{}': {}", folder.string(), error.message()));
  }
  return {};
}

reaped reap_dead_jobs(const fs::path& runs) {
  reaped out;
  std::error_code error;
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(runs, error), end; !error && it != end; it.increment(error))
    folders.push_back(it->path());
  std::sort(folders.begin(), folders.end());
  for (const auto& run : folders) {
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(run, ignored))
      || !fs::is_directory(fs::symlink_status(run / "jobs", ignored)))
      continue;
    auto text = read_small(run / "jobs" / "owner");
    if (!text)
      continue;
    auto owner = parse_owner(*text);
    if (!owner) {
      out.problems.push_back(
        fmt::format("'{}' is left alone: {}", (run / "jobs").string(), owner.error().what));
      continue;
    }
    if (!lives(*owner))
      reap_run(run, out);
  }
  return out;
}

} // namespace gristmill
