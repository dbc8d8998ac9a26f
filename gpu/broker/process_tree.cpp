#include "gpu/broker/process_tree.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gristmill {

namespace {

/// Longer environments are read up to here; the variables of a lease are set by its guard, which
/// puts them first.
constexpr size_t environment_bytes_max = size_t{1} << 20;

std::optional<std::string> small_file(const std::string& path, size_t bytes_max) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  std::string out;
  std::array<char, 8192> part{};
  ssize_t got = 0;
  while (out.size() < bytes_max && (got = read(file, part.data(), part.size())) > 0)
    out.append(part.data(), static_cast<size_t>(got));
  close(file);
  if (got < 0)
    return std::nullopt;
  return out;
}

/// The n-th word (from 0) of a text with single blanks between words.
template <class Number>
bool word(std::string_view text, size_t n, Number& out) {
  for (; n > 0; --n) {
    auto blank = text.find(' ');
    if (blank == std::string_view::npos)
      return false;
    text.remove_prefix(blank + 1);
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{};
}

std::vector<pid_t> all_numbers() {
  std::vector<pid_t> out;
  DIR* folder = opendir("/proc");
  if (!folder)
    return out;
  while (const dirent* entry = readdir(folder)) {
    std::string_view name = entry->d_name;
    pid_t pid = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc{} && end == name.data() + name.size())
      out.push_back(pid);
  }
  closedir(folder);
  return out;
}

} // namespace

std::optional<process_entry> parse_process_stat(std::string_view text) {
  process_entry out;
  auto open_at = text.find(" (");
  // The last one: the name may hold brackets.
  auto close_at = text.rfind(") ");
  if (open_at == std::string_view::npos || close_at == std::string_view::npos || close_at < open_at)
    return std::nullopt;
  if (!word(text, 0, out.pid))
    return std::nullopt;
  text.remove_prefix(close_at + 2);
  if (text.empty())
    return std::nullopt;
  out.zombie = text[0] == 'Z' || text[0] == 'X';
  // Fields 4, 6 and 22 of the whole line; the state, field 3, is word 0 here.
  if (!word(text, 1, out.parent) || !word(text, 3, out.session) || !word(text, 19, out.started))
    return std::nullopt;
  return out;
}

std::optional<process_entry> process_of(pid_t pid) {
  auto text = small_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text)
    return std::nullopt;
  return parse_process_stat(*text);
}

std::optional<uid_t> owner_of(pid_t pid) {
  struct stat owner {};
  if (stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0)
    return std::nullopt;
  return owner.st_uid;
}

bool lives(pid_t pid, uint64_t started) {
  auto seen = process_of(pid);
  return seen && !seen->zombie && seen->started == started;
}

std::vector<process_entry> all_processes() {
  std::vector<process_entry> out;
  for (auto pid : all_numbers())
    if (auto seen = process_of(pid); seen && !seen->zombie)
      out.push_back(*seen);
  return out;
}

std::vector<process_entry> descendants_of(pid_t root, const std::vector<process_entry>& all) {
  std::multimap<pid_t, const process_entry*> by_parent;
  for (const auto& p : all)
    by_parent.emplace(p.parent, &p);
  std::vector<process_entry> out;
  std::set<pid_t> seen{root};
  std::vector<pid_t> open_list{root};
  while (!open_list.empty()) {
    auto parent = open_list.back();
    open_list.pop_back();
    auto [from, to] = by_parent.equal_range(parent);
    for (; from != to; ++from)
      if (seen.insert(from->second->pid).second) {
        out.push_back(*from->second);
        open_list.push_back(from->second->pid);
      }
  }
  return out;
}

lease_members members_of(std::string_view lease, pid_t session, uid_t user) {
  lease_members out;
  const auto wanted = fmt::format("GRISTMILL_LEASE_ID={}", lease);
  const auto self = getpid();
  for (const auto& p : all_processes()) {
    if (p.pid == self)
      continue;
    if (session != 0 && p.session == session) {
      out.found.push_back(p);
      continue;
    }
    if (owner_of(p.pid) != std::optional(user))
      continue;
    auto environment = small_file(fmt::format("/proc/{}/environ", p.pid), environment_bytes_max);
    if (!environment) {
      // A process that ended meanwhile cannot be read either.
      out.hidden += lives(p.pid, p.started) ? 1 : 0;
      continue;
    }
    // Between zero bytes, so that a value that merely holds the text does not count.
    auto at = environment->find(wanted);
    while (at != std::string::npos) {
      const auto end = at + wanted.size();
      if ((at == 0 || (*environment)[at - 1] == '\0')
        && (end == environment->size() || (*environment)[end] == '\0')) {
        out.found.push_back(p);
        break;
      }
      at = environment->find(wanted, at + 1);
    }
  }
  return out;
}

bool signal_process(const process_entry& process, int number) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  if (handle < 0)
    return false;
  // The handle stays with one process, so it is the right one if its start time is right now.
  auto seen = process_of(process.pid);
  bool sent = seen && seen->started == process.started
    && syscall(SYS_pidfd_send_signal, handle, number, nullptr, 0) == 0;
  close(handle);
  return sent;
}

std::string boot_identity() {
  auto text = small_file("/proc/sys/kernel/random/boot_id", 128).value_or("");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.pop_back();
  return text;
}

} // namespace gristmill
