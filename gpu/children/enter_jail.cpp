#include "gpu/children/confined_start.hpp"
#include "gpu/children/jail.hpp"
#include "gpu/children/private_view.hpp"
#include "gpu/children/surroundings.hpp"
#include "gpu/children/system_call_filter.hpp"
#include "protocol/child_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr int lowest_free_descriptor = 4;

failure system_failure(std::string_view what) {
  return {errc::io_failed, fmt::format("gristmill-jail: {}: {}", what, std::strerror(errno))};
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

/// What a child may know of its surroundings. The OpenBLAS variables choose code paths that compute
/// right on this machine; without them a torch reference could be wrong.
std::vector<std::string> clean_environment(
  const std::string& directory, std::string_view network, std::string_view protections) {
  std::vector<std::string> all{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C",
    fmt::format("TMPDIR={}", directory), fmt::format("HOME={}", directory),
    fmt::format("GRISTMILL_NETWORK={}", network),
    fmt::format("GRISTMILL_PROTECTIONS={}", protections)};
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"})
    if (const char* value = std::getenv(name))
      all.push_back(fmt::format("{}={}", name, value));
#ifdef __SANITIZE_ADDRESS__
  all.emplace_back(
    "ASAN_OPTIONS=detect_leaks=0"); // It would have to trace the child, which is refused here.
#endif
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

std::string_view variable(const char* name, std::string_view otherwise) {
  const char* set = std::getenv(name);
  return set != nullptr ? set : otherwise;
}

std::string working_directory() {
  std::array<char, 4096> buffer{};
  return getcwd(buffer.data(), buffer.size()) ? buffer.data() : "/";
}

bool apply_limits(const jail_command& command) {
  auto limits = limits_of(command.profile);
  if (command.cpu_seconds != 0)
    limits.cpu_seconds = command.cpu_seconds;
  if (command.profile == child_profile::runner && is_cuda(command.device))
    limits.address_space = 0; // The driver reserves as much as all devices and the host hold.
#ifdef __SANITIZE_ADDRESS__
  limits.address_space = 0; // The sanitizer reserves terabytes of address space.
#endif
  const rlimit no_core{0, 0};
  return setrlimit(RLIMIT_CORE, &no_core) == 0 && limit(RLIMIT_AS, limits.address_space)
    && limit(RLIMIT_FSIZE, limits.file_size) && limit(RLIMIT_NOFILE, limits.open_files)
    && limit(RLIMIT_CPU, limits.cpu_seconds);
}

failure run_program(const jail_command& command, const std::vector<std::string>& environment) {
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

/// What is ours alone and last in line for a processor.
bool be_modest() {
  umask(077);
  errno = 0;
  return nice(10) != -1 || errno == 0;
}

/// From here on the death of the parent kills us; one that died earlier would not have.
result<void> die_with(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return tl::unexpected<failure>(system_failure("parent-death signal"));
  if (parent != 0 && getppid() != parent)
    _exit(jail_exit_failed);
  return {};
}

/// What a user namespace of ours or of bubblewrap shares with the rest: nothing of this.
std::string protections_of(const confinement& wanted, std::string_view by) {
  return fmt::format("user,mount,ipc,uts{}{},capabilities,system-calls,tasks; by {}",
    wanted.own_processes ? ",pid" : "", wanted.own_network ? ",net" : "", by);
}

/// In the namespaces: gives up what is left and becomes the command.
failure become_confined(
  const jail_command& command, int ready, bool own_network, std::string_view protections) {
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return system_failure("parent-death signal");
  if (!be_modest())
    return system_failure("nice");
  const auto limits = limits_of(command.profile);
  // Counted within this user namespace. The super-user is never counted: the watch does that.
  if (!limit(RLIMIT_NPROC, limits.tasks))
    return system_failure("limit on processes");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return system_failure("no new privileges");
  const auto environment =
    clean_environment(working_directory(), own_network ? "none" : "shared", protections);
  if (command.inside == 0)
    if (auto dropped = drop_capabilities(); !dropped)
      return dropped.error();
  if (auto filtered = filter_system_calls(!own_network); !filtered)
    return filtered.error();
  say_ready(ready);
  auto why = run_program(command, environment);
  fmt::print(stderr, "{}\n", why.what);
  _exit(jail_exit_failed);
}

/// A helper of a child: within its namespaces and limits already.
failure enter_as_helper(const jail_command& command) {
  if (auto bound = die_with(command.parent); !bound)
    return bound.error();
  // Whoever starts a helper may have given it a group of its own, but it goes when its child goes.
  // A group whose leader is outside our namespace has no number; the namespace ends with the child.
  if (const pid_t group = getpgid(getppid()); group > 0 && setpgid(0, group) != 0)
    return system_failure("joining the group of the child");
  if (!command.directory.empty() && chdir(command.directory.c_str()) != 0)
    return system_failure(command.directory);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return system_failure("no new privileges");
  umask(077);
  if (close_range(3, ~0U, 0) != 0)
    return system_failure("closing descriptors");
  return run_program(command,
    clean_environment(working_directory(), variable("GRISTMILL_NETWORK", "shared"),
      variable("GRISTMILL_PROTECTIONS", "none")));
}

/// Without namespaces but for the network's, where that can be had: what is left is the limits.
failure enter_with_limits(const jail_command& command, bool try_network, std::string_view reason) {
  const bool agent = command.profile == child_profile::command;
  // Before the parent-death signal: a change of credentials takes that back.
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const bool own_network = try_network && limits_of(command.profile).own_network
    && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
  if (own_network)
    (void)keep_user(user, group);
  if (auto bound = die_with(command.parent); !bound)
    return bound.error();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return system_failure("no new privileges");
  if (!be_modest())
    return system_failure("nice");
  bool filtered = false;
  if (!agent && try_network)
    filtered = filter_system_calls(!own_network).has_value();
  if (agent)
    return run_program(command, users_environment(working_directory()));
  const auto protections = fmt::format(
    "limits{}{}; {}", own_network ? ",net" : "", filtered ? ",system-calls" : "", reason);
  return run_program(
    command, clean_environment(working_directory(), own_network ? "none" : "shared", protections));
}

/// Tries what the setting allows, best first. Returns only when nothing worked, with the reasons.
std::string enter_namespaces(
  const jail_command& command, const confinement& wanted, std::string_view setting) {
  std::string reasons;
  auto stood = [&](const result<pid_t>& started) {
    if (started)
      _exit(stand_by(*started, wanted));
    reasons += (reasons.empty() ? "" : "; ") + started.error().what;
  };
  const std::string bubblewrap = "/usr/bin/bwrap";
  if (setting == "bubblewrap" || (setting == "auto" && access(bubblewrap.c_str(), X_OK) == 0)) {
    const auto protections = protections_of(wanted, "bubblewrap");
    setenv("GRISTMILL_PROTECTIONS", protections.c_str(), 1);
    auto within = command;
    within.parent = 0;
    std::vector<std::string> words{own_program().value_or(""), "--inside", "FD"};
    const auto rest = jail_arguments(within);
    words.insert(words.end(), rest.begin(), rest.end());
    stood(start_in_bubblewrap(bubblewrap, wanted, std::move(words)));
  }
  if (setting != "bubblewrap")
    stood(start_in_own_namespaces(wanted, [&](int ready) {
      return become_confined(
        command, ready, wanted.own_network, protections_of(wanted, "gristmill-jail"));
    }));
  return reasons;
}

failure enter_confined(const jail_command& command) {
  const char* set = std::getenv("GRISTMILL_SANDBOX");
  const std::string setting = set != nullptr && *set != 0 ? set : "auto";
  if (setting != "auto" && setting != "bubblewrap" && setting != "own" && setting != "limits")
    return {errc::invalid_input,
      fmt::format("gristmill-jail: GRISTMILL_SANDBOX={}: unknown; known: auto, bubblewrap, own, "
                  "limits",
        setting)};
  if (setting == "limits")
    return enter_with_limits(command, false, "GRISTMILL_SANDBOX=limits");
  auto around = read_surroundings(command);
  if (!around)
    return around.error();
  auto wanted = confinement_of(command, *around);
  if (!wanted)
    return wanted.error();
  const auto reasons = enter_namespaces(command, *wanted, setting);
  // Asked for by name, it is not replaced by less.
  if (setting != "auto")
    return {errc::unsupported, "gristmill-jail: " + reasons};
  return enter_with_limits(command, true, reasons);
}

} // namespace

failure enter_jail(const jail_command& command) {
  if (command.nested)
    return enter_as_helper(command);
  if (command.inside != 0)
    return become_confined(command, command.inside, limits_of(command.profile).own_network,
      variable("GRISTMILL_PROTECTIONS", "none"));
  setpgid(0, 0); // Fails harmlessly where the starter has done it already.
  if (auto bound = die_with(command.parent); !bound)
    return bound.error();
  if (!command.directory.empty() && chdir(command.directory.c_str()) != 0)
    return system_failure(command.directory);
  // An agent may not write to the parent, nor hold the pipe open.
  const bool agent = command.profile == child_profile::command;
  if (close_range(agent ? 3 : lowest_free_descriptor, ~0U, 0) != 0)
    return system_failure("closing descriptors");
  if (!apply_limits(command))
    return system_failure("limits");
  if (agent)
    return enter_with_limits(command, false, "");
  return enter_confined(command);
}

} // namespace gristmill
