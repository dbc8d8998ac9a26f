#include "gpu/children/system_call_filter.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <initializer_list>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace gristmill {

namespace {

constexpr uint32_t refused = SCMP_ACT_ERRNO(EPERM);

/// Every call that reaches other processes, changes the system, opens a large part of the kernel to
/// attack, or makes namespaces in which the rest could be undone.
constexpr int refused_calls[] = {
  SCMP_SYS(ptrace),
  SCMP_SYS(process_vm_readv),
  SCMP_SYS(process_vm_writev),
  SCMP_SYS(pidfd_getfd),
  SCMP_SYS(kcmp),
  SCMP_SYS(mount),
  SCMP_SYS(umount2),
  SCMP_SYS(pivot_root),
  SCMP_SYS(chroot),
  SCMP_SYS(move_mount),
  SCMP_SYS(open_tree),
  SCMP_SYS(fsopen),
  SCMP_SYS(fsconfig),
  SCMP_SYS(fsmount),
  SCMP_SYS(fspick),
  SCMP_SYS(mount_setattr),
  SCMP_SYS(unshare),
  SCMP_SYS(setns),
  SCMP_SYS(bpf),
  SCMP_SYS(perf_event_open),
  SCMP_SYS(userfaultfd),
  SCMP_SYS(io_uring_setup),
  SCMP_SYS(io_uring_enter),
  SCMP_SYS(io_uring_register),
  SCMP_SYS(keyctl),
  SCMP_SYS(add_key),
  SCMP_SYS(request_key),
  SCMP_SYS(init_module),
  SCMP_SYS(finit_module),
  SCMP_SYS(delete_module),
  SCMP_SYS(kexec_load),
  SCMP_SYS(kexec_file_load),
  SCMP_SYS(reboot),
  SCMP_SYS(swapon),
  SCMP_SYS(swapoff),
  SCMP_SYS(acct),
  SCMP_SYS(quotactl),
  SCMP_SYS(nfsservctl),
  SCMP_SYS(vhangup),
  SCMP_SYS(syslog),
  SCMP_SYS(settimeofday),
  SCMP_SYS(clock_settime),
  SCMP_SYS(clock_adjtime),
  SCMP_SYS(adjtimex),
  SCMP_SYS(sethostname),
  SCMP_SYS(setdomainname),
  SCMP_SYS(iopl),
  SCMP_SYS(ioperm),
  SCMP_SYS(lookup_dcookie),
  SCMP_SYS(open_by_handle_at),
  SCMP_SYS(fanotify_init),
  SCMP_SYS(modify_ldt),
  SCMP_SYS(uselib),
  SCMP_SYS(ustat),
  SCMP_SYS(sysfs),
  SCMP_SYS(_sysctl),
};

constexpr unsigned long namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS
  | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

int add_rules(scmp_filter_ctx filter, bool network) {
  for (const int call : refused_calls)
    // A call that this processor family does not have needs no rule.
    if (const int error = seccomp_rule_add(filter, refused, call, 0); error != 0 && error != -EDOM)
      return error;
  for (unsigned long bit = 1; bit <= namespace_flags && bit != 0; bit <<= 1)
    if ((namespace_flags & bit) != 0)
      if (const int error = seccomp_rule_add(
            filter, refused, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit)))
        return error;
  // Its flags lie in memory, where a filter does not see them; libraries then take clone.
  if (const int error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0))
    return error;
  // Input into the terminal of whoever started us.
  for (const uint32_t request : {uint32_t{TIOCSTI}, uint32_t{TIOCLINUX}})
    if (const int error = seccomp_rule_add(
          filter, refused, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, request)))
      return error;
  if (network)
    return 0;
  // Sockets of files stay: the driver pairs them, and there is no file to meet anybody at.
  for (const int call : {SCMP_SYS(socket), SCMP_SYS(socketpair)})
    if (const int error = seccomp_rule_add(filter, refused, call, 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX)))
      return error;
  return 0;
}

} // namespace

result<void> filter_system_calls(bool network) {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (filter == nullptr)
    return fail(errc::unsupported, "system-call filter: cannot be made");
  // The calls of another processor mode, which no program of ours uses, are refused altogether.
  int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, refused);
  if (error == 0)
    error = add_rules(filter, network);
  if (error == 0)
    error = seccomp_load(filter);
  seccomp_release(filter);
  if (error != 0)
    return fail(errc::unsupported, fmt::format("system-call filter: {}", std::strerror(-error)));
  return {};
}

} // namespace gristmill
