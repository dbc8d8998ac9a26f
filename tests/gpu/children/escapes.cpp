#include "tests/gpu/children/escapes.hpp"

#include <arpa/inet.h>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

namespace {

bool can_read(const std::string& path) {
  std::ifstream file(path);
  char one = 0;
  return static_cast<bool>(file.get(one));
}

/// Opens, and writes nothing: a hole must not become a wound.
bool can_write(const std::string& path) {
  const bool there = access(path.c_str(), F_OK) == 0;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  if (file < 0)
    return false;
  close(file);
  if (!there)
    unlink(path.c_str());
  return true;
}

bool can_connect(int port) {
  const int plug = socket(AF_INET, SOCK_STREAM, 0);
  if (plug < 0)
    return false;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool done = connect(plug, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  close(plug);
  return done;
}

/// In a process of its own: some of these would change this one if they worked.
template <class Try>
bool works_apart(Try attempt) {
  const pid_t pid = fork();
  if (pid == 0)
    _exit(attempt() ? 0 : 1);
  int state = 0;
  waitpid(pid, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

bool can_trace(pid_t process) {
  if (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0)
    return false;
  ptrace(PTRACE_DETACH, process, nullptr, nullptr);
  return true;
}

bool can_read_memory(pid_t process, uint64_t address) {
  char byte = 0;
  iovec to{&byte, 1}, from{reinterpret_cast<void*>(address), 1};
  return process_vm_readv(process, &to, 1, &from, 1, 0) == 1;
}

int processes_in_sight() {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    found += std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0])) != 0;
  return found;
}

} // namespace

ordered_json try_escapes(const ordered_json& targets) {
  const auto secret = targets.at("secret").get<std::string>();
  const auto outside = targets.at("outside").get<std::string>();
  const auto stranger = targets.at("stranger").get<pid_t>();
  ordered_json found;
  found["reads the secret"] = can_read(secret);
  found["reads through the root of another process"] =
    can_read(fmt::format("/proc/{}/root{}", stranger, secret)) || can_read("/proc/1/root" + secret);
  // The test looks whether it came there: a folder of the same name may be the child's own.
  std::ofstream(outside, std::ios::trunc) << "changed";
  found["reaches a server"] = can_connect(targets.at("port").get<int>());
  found["opens a raw socket"] = socket(AF_PACKET, SOCK_RAW, 0) >= 0;
  found["sees a stranger"] =
    kill(stranger, 0) == 0 || can_read(fmt::format("/proc/{}/cmdline", stranger));
  found["traces another process"] = can_trace(stranger) || can_trace(getppid());
  found["reads memory of another process"] =
    can_read_memory(stranger, targets.at("address").get<uint64_t>());
  // The super-user outside a jail would succeed, and nobody wants that.
  if (targets.at("jailed").get<bool>()) {
    found["makes a user namespace"] = works_apart([] { return unshare(CLONE_NEWUSER) == 0; });
    found["mounts"] = works_apart([] { return mount("tmpfs", ".", "tmpfs", 0, nullptr) == 0; });
    found["becomes another user"] = works_apart([] { return setuid(12345) == 0; });
    found["writes to the system"] = can_write("/usr/gristmill-escape");
    found["changes the kernel"] = can_write("/proc/sys/kernel/core_pattern");
    found["moves interrupts"] = can_write("/proc/irq/default_smp_affinity");
  }
  found["sees a disk"] = std::filesystem::exists("/dev/vda") || std::filesystem::exists("/dev/sda")
    || std::filesystem::exists("/dev/nvidiactl");
  found["processes in sight"] = processes_in_sight();
  found["reads its input"] = can_read(targets.at("input").get<std::string>());
  found["writes into its folder"] = can_write("own-file");
  return found;
}

int fill_with_processes(int wanted) {
  int made = 0;
  for (; made < wanted; ++made) {
    const pid_t pid = fork();
    if (pid < 0)
      break;
    if (pid == 0)
      for (;;)
        pause();
  }
  return made;
}

bool fill_with_files(uint64_t bytes) {
  constexpr off_t each = off_t{200} << 20;
  uint64_t taken = 0;
  for (int i = 0; taken < bytes; ++i, taken += static_cast<uint64_t>(each)) {
    const int file = open(fmt::format("filler-{}", i).c_str(), O_WRONLY | O_CREAT, 0600);
    if (file < 0)
      return true;
    const bool reserved = fallocate(file, 0, 0, each) == 0;
    const int why = errno;
    close(file);
    if (!reserved)
      return i > 0 || why != EOPNOTSUPP;
  }
  return true;
}

void leave_daemon() {
  if (fork() != 0)
    return;
  setsid();
  if (fork() != 0)
    _exit(0);
  for (;;)
    pause();
}

} // namespace gristmill
