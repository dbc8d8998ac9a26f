#include "gpu/children/private_view.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <string>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace gristmill {

namespace {

using what = view_entry::what;

/// While the view is made: it lies there, and what was the root beside it.
constexpr const char* new_root = "/new";
constexpr const char* old_root = "/old";

tl::unexpected<failure> refused(std::string_view step) {
  return fail(errc::unsupported, fmt::format("{}: {}", step, std::strerror(errno)));
}

bool write_once(const char* path, std::string_view text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  return written;
}

/// Makes the folder and those above it, as far as they are not there.
bool make_folders(const std::string& path) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    if (mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST && errno != EROFS)
      return false;
  }
  struct stat found {};
  return stat(path.c_str(), &found) == 0;
}

/// The place where something can be mounted: of the same kind as what comes there.
bool make_place(const std::string& path, bool folder) {
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0)
    return true;
  if (folder)
    return make_folders(path);
  if (!make_folders(path.substr(0, path.rfind('/'))))
    return false;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
  if (file < 0)
    return false;
  close(file);
  return true;
}

/// `from` and all below it once more at `to`, with these attributes added.
bool bind_tree(const std::string& from, const std::string& to, uint64_t attributes) {
  const int tree = open_tree(AT_FDCWD, from.c_str(),
    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | static_cast<unsigned>(AT_RECURSIVE));
  if (tree < 0)
    return false;
  mount_attr wanted{};
  wanted.attr_set = attributes;
  const bool done =
    mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted) == 0
    && move_mount(tree, "", AT_FDCWD, to.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
  const int why = errno;
  close(tree);
  errno = why;
  return done;
}

constexpr uint64_t plain = MOUNT_ATTR_NOSUID;
constexpr uint64_t without_devices = plain | MOUNT_ATTR_NODEV;

bool place_outside_thing(const view_entry& entry, const std::string& to) {
  const auto from = old_root + entry.path;
  struct stat found {};
  // Through links: the thing appears under the name that it is asked for by.
  if (stat(from.c_str(), &found) != 0)
    return entry.if_there;
  if (entry.path != "/" && !make_place(to, S_ISDIR(found.st_mode)))
    return false;
  switch (entry.kind) {
  case what::readable:
    return bind_tree(from, to, without_devices | MOUNT_ATTR_RDONLY);
  case what::writable:
    return bind_tree(from, to, without_devices);
  default:
    return bind_tree(from, to, plain | MOUNT_ATTR_NOEXEC);
  }
}

bool shield_processes(const std::string& to) {
  for (const char* part : shielded_parts_of_proc) {
    const auto path = to + part;
    if (access(path.c_str(), F_OK) == 0 && !bind_tree(path, path, plain | MOUNT_ATTR_RDONLY))
      return false;
  }
  return true;
}

/// Linux 6.14 and later keep the highest number of a process for each namespace. On an older kernel
/// the file is the machine's, and the super-user's number may write it.
bool counts_numbers_apart() {
  utsname system{};
  int major = 0, minor = 0;
  if (uname(&system) != 0 || std::sscanf(system.release, "%d.%d", &major, &minor) != 2)
    return false;
  return major > 6 || (major == 6 && minor >= 14);
}

bool place_processes(const confinement& wanted, const std::string& to, bool own) {
  if (!make_folders(to))
    return false;
  if (!own)
    // NVIDIA's driver does not start where it cannot name its threads, and does so by files there.
    return bind_tree(std::string(old_root) + "/proc", to, without_devices) && shield_processes(to);
  if (mount("proc", to.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return false;
  // Numbers below 300 are given out once only.
  if (counts_numbers_apart())
    write_once((to + "/sys/kernel/pid_max").c_str(), std::to_string(300 + wanted.tasks_max));
  return shield_processes(to);
}

bool place(const confinement& wanted, const view_entry& entry, bool own_processes) {
  const auto to = new_root + (entry.path == "/" ? "" : entry.path);
  switch (entry.kind) {
  case what::readable:
  case what::writable:
  case what::device:
    return place_outside_thing(entry, to);
  case what::link:
    return make_folders(to.substr(0, to.rfind('/')))
      && symlink(entry.target.c_str(), to.c_str()) == 0;
  case what::temporary:
    return make_folders(to)
      && mount("tmpfs", to.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
           fmt::format("mode=0755,size={}", entry.bytes).c_str())
      == 0;
  case what::processes:
    return place_processes(wanted, to, own_processes);
  }
  return false;
}

bool make_root_of(const char* path) {
  return chdir(path) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0
    && chdir("/") == 0;
}

} // namespace

result<void> keep_user(uid_t user, gid_t group) {
  // Without it an unprivileged process may not map a group.
  write_once("/proc/self/setgroups", "deny");
  if (!write_once("/proc/self/uid_map", fmt::format("{} {} 1", user, user))
    || !write_once("/proc/self/gid_map", fmt::format("{} {} 1", group, group)))
    return refused("user namespace: mapping the user");
  return {};
}

result<void> enter_view(const confinement& wanted, bool own_processes) {
  // Masks of folders that others are to enter must not depend on who started us.
  const mode_t mask = umask(022);
  if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return refused("mount namespace: the root");
  // Any folder that surely exists will do; what lies below it is still reached through the old
  // root.
  const char* base = "/tmp";
  if (mount("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0)
    return refused("mount namespace: a file system in memory");
  const auto in_base = [&](const char* name) { return std::string(base) + name; };
  if (mkdir(in_base(new_root).c_str(), 0755) != 0 || mkdir(in_base(old_root).c_str(), 0755) != 0
    || syscall(SYS_pivot_root, base, in_base(old_root).c_str()) != 0 || chdir("/") != 0)
    return refused("mount namespace: a new root");
  if (mount("tmpfs", new_root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") != 0)
    return refused("mount namespace: a new root in memory");
  for (const auto& entry : wanted.view) {
    errno = 0;
    if (!place(wanted, entry, own_processes))
      return refused(fmt::format("mount namespace: {}", entry.path));
  }
  if (umount2(old_root, MNT_DETACH) != 0)
    return refused("mount namespace: leaving the old root");
  // The places between the mounts are not for writing either.
  mount_attr closed{};
  closed.attr_set = MOUNT_ATTR_RDONLY;
  if (mount_setattr(AT_FDCWD, new_root, 0, &closed, sizeof closed) != 0 || !make_root_of(new_root))
    return refused("mount namespace: closing the view");
  umask(mask);
  if (!wanted.directory.empty() && chdir(wanted.directory.c_str()) != 0)
    return refused(wanted.directory);
  return {};
}

result<void> drop_capabilities() {
  for (unsigned long one = 0; prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one)
    if (prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0)
      return refused("capabilities: the bounding set");
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  if (syscall(SYS_capset, &header, none.data()) != 0)
    return refused("capabilities");
  return {};
}

} // namespace gristmill
