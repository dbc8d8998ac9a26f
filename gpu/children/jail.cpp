#include "gpu/children/jail.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
constexpr int lowest_free_descriptor = 4;

failure system_failure(std::string_view what) {
  return {errc::io_failed, fmt::format("gristmill-jail: {}: {}", what, std::strerror(errno))};
}

result<uint64_t> number(std::string_view option, const std::string& text) {
  uint64_t value = 0;
  const auto* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty() || value > INT32_MAX)
    return fail(errc::invalid_input, fmt::format("gristmill-jail: {} {}: no number", option, text));
  return value;
}

bool limit(int resource, uint64_t value) {
  if (value == 0)
    return true;
  rlimit now{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0)
    return false;
  // Whoever started us may have been stricter.
  const rlim_t wanted = std::min<rlim_t>(value, now.rlim_max);
  const rlimit next{wanted, wanted};
  return setrlimit(static_cast<__rlimit_resource_t>(resource), &next) == 0;
}

bool write_once(const char* path, std::string_view text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written;
}

/// A network namespace holds nothing but a loopback interface that is down. Containers may refuse
/// it; the child then says so in its hello. The user namespace makes it possible without being
/// root.
bool leave_the_network() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return false;
  // The same numbers inside as outside, so that the job's files stay the child's own.
  write_once("/proc/self/setgroups", "deny");
  write_once("/proc/self/uid_map", fmt::format("{} {} 1", user, user));
  write_once("/proc/self/gid_map", fmt::format("{} {} 1", group, group));
  return true;
}

/// What a child may know of its surroundings. The OpenBLAS variables choose code paths that compute
/// right on this machine; without them a torch reference could be wrong.
std::vector<std::string> clean_environment(const std::string& directory, std::string_view network) {
  std::vector<std::string> all{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C",
    fmt::format("TMPDIR={}", directory), fmt::format("HOME={}", directory),
    fmt::format("GRISTMILL_NETWORK={}", network)};
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"})
    if (const char* value = std::getenv(name))
      all.push_back(fmt::format("{}={}", name, value));
  return all;
}

/// An agent needs what its user has set: keys, proxies, a home. It learns nothing of the run, least
/// of all a lease: it never works under one.
std::vector<std::string> users_environment(const std::string& directory) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) {
    std::string_view entry(*each);
    if (!entry.starts_with("GRISTMILL_") && !entry.starts_with("TMPDIR=")
      && !entry.starts_with("PWD=") && !entry.starts_with("OLDPWD="))
      all.emplace_back(entry);
  }
  all.push_back(fmt::format("TMPDIR={}", directory));
  all.push_back(fmt::format("PWD={}", directory));
  return all;
}

std::string working_directory() {
  std::array<char, 4096> buffer{};
  return getcwd(buffer.data(), buffer.size()) ? buffer.data() : "/";
}

bool apply_limits(const jail_command& command) {
  auto limits = limits_of(command.profile);
  if (command.cpu_seconds != 0)
    limits.cpu_seconds = command.cpu_seconds;
#ifdef __SANITIZE_ADDRESS__
  limits.address_space = 0; // The sanitizer reserves terabytes of address space.
#endif
  const rlimit no_core{0, 0};
  return setrlimit(RLIMIT_CORE, &no_core) == 0 && limit(RLIMIT_AS, limits.address_space)
    && limit(RLIMIT_FSIZE, limits.file_size) && limit(RLIMIT_NOFILE, limits.open_files)
    && limit(RLIMIT_CPU, limits.cpu_seconds);
}

} // namespace

jail_limits limits_of(child_profile profile) {
  // No limit on processes: it counts all processes of the user, so it would fail by what else the
  // person runs. CPU time is a backstop behind the parent's deadline.
  switch (profile) {
  case child_profile::compiler:
    return {4 * gib, gib / 4, 256, 600, true};
  case child_profile::oracle:
    return {64 * gib, 16 * gib, 1024, 7200, false};
  case child_profile::runner:
    return {256 * gib, 16 * gib, 1024, 7200, true};
  case child_profile::judge:
    return {64 * gib, gib / 4, 1024, 7200, true};
  case child_profile::command:
    // Runtimes of agents reserve address space as they like; the parent's deadline is the limit.
    return {0, gib / 16, 4096, 0, false};
  }
  return {};
}

result<jail_command> parse_jail_command(std::span<const std::string> arguments) {
  jail_command command;
  size_t at = 0;
  auto operand = [&](std::string_view option) -> result<std::string> {
    if (at + 1 >= arguments.size())
      return fail(errc::invalid_input, fmt::format("gristmill-jail: {} needs a value", option));
    return arguments[++at];
  };
  for (; at < arguments.size() && arguments[at].starts_with("--"); ++at) {
    const auto& option = arguments[at];
    if (option == "--nested") {
      command.nested = true;
      continue;
    }
    if (option != "--directory" && option != "--parent" && option != "--cpu-seconds")
      return fail(errc::invalid_input,
        fmt::format("gristmill-jail: unknown option {}; known: --nested, --directory, --parent, "
                    "--cpu-seconds",
          option));
    auto value = operand(option);
    if (!value)
      return pass(value);
    if (option == "--directory") {
      command.directory = *value;
      continue;
    }
    auto read = number(option, *value);
    if (!read)
      return pass(read);
    if (option == "--parent")
      command.parent = static_cast<pid_t>(*read);
    else
      command.cpu_seconds = *read;
  }
  if (at >= arguments.size())
    return fail(errc::invalid_input, "gristmill-jail: no profile");
  const auto& name = arguments[at++];
  bool known = false;
  for (auto profile : {child_profile::compiler, child_profile::oracle, child_profile::runner,
         child_profile::judge, child_profile::command})
    if (to_string(profile) == name) {
      command.profile = profile;
      known = true;
    }
  if (!known)
    return fail(errc::invalid_input,
      fmt::format(
        "gristmill-jail: unknown profile {}; known: compiler, oracle, runner, judge, command",
        name));
  if (at >= arguments.size() || arguments[at++] != "--")
    return fail(errc::invalid_input, "gristmill-jail: -- must follow the profile");
  command.command.assign(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  if (command.command.empty())
    return fail(errc::invalid_input, "gristmill-jail: no command");
  return command;
}

std::vector<std::string> jail_arguments(const jail_command& command) {
  std::vector<std::string> all;
  if (command.nested)
    all.emplace_back("--nested");
  if (command.parent != 0)
    all.insert(all.end(), {"--parent", std::to_string(command.parent)});
  if (!command.directory.empty())
    all.insert(all.end(), {"--directory", command.directory});
  if (command.cpu_seconds != 0)
    all.insert(all.end(), {"--cpu-seconds", std::to_string(command.cpu_seconds)});
  all.insert(all.end(), {to_string(command.profile), "--"});
  all.insert(all.end(), command.command.begin(), command.command.end());
  return all;
}

failure enter_jail(const jail_command& command) {
  if (!command.nested)
    setpgid(0, 0); // Fails harmlessly where the starter has done it already.
  // Before the parent-death signal: a change of credentials takes that back.
  bool own_network = false;
  if (!command.nested && limits_of(command.profile).own_network)
    own_network = leave_the_network();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return system_failure("parent-death signal");
  // From here on its death kills us; one that died earlier would not have.
  if (command.parent != 0 && getppid() != command.parent)
    _exit(jail_exit_failed);
  // Whoever starts a helper may have given it a group of its own, but it goes when its child goes.
  if (command.nested && setpgid(0, getpgid(getppid())) != 0)
    return system_failure("joining the group of the child");
  if (!command.directory.empty() && chdir(command.directory.c_str()) != 0)
    return system_failure(command.directory);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return system_failure("no new privileges");
  umask(077);
  // A helper of a child and an agent may not write to the parent, nor hold the pipe open.
  const bool silent = command.nested || command.profile == child_profile::command;
  const int keep = silent ? 3 : lowest_free_descriptor;
  if (close_range(static_cast<unsigned>(keep), ~0U, 0) != 0)
    return system_failure("closing descriptors");
  if (!command.nested) {
    errno = 0;
    if (nice(10) == -1 && errno != 0)
      return system_failure("nice");
  }
  if (!command.nested && !apply_limits(command))
    return system_failure("limits");

  std::vector<std::string> environment;
  if (command.nested) {
    const char* network = std::getenv("GRISTMILL_NETWORK");
    environment = clean_environment(working_directory(), network ? network : "shared");
  } else if (command.profile == child_profile::command) {
    environment = users_environment(working_directory());
  } else {
    environment = clean_environment(working_directory(), own_network ? "none" : "shared");
  }
  auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (const auto& text : texts)
      all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  };
  auto argv = pointers(command.command);
  auto envp = pointers(environment);
  execve(argv[0], argv.data(), envp.data());
  return system_failure(command.command[0]);
}

} // namespace gristmill
