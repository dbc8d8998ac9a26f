#include "journal/run_lock.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gristmill {

result<run_lock> run_lock::take(const std::filesystem::path& run) {
  auto file = run / "lock";
  int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0)
    return fail(errc::io_failed,
      fmt::format("cannot open '{}': {}", file.string(), std::generic_category().message(errno)));
  run_lock out{descriptor};
  // Of this process alone: a child between fork and exec does not have it, so it is free as soon as
  // a killed process is gone.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_SETLK, &whole) == 0)
    return out;
  if (errno != EACCES && errno != EAGAIN)
    return fail(errc::io_failed,
      fmt::format("cannot lock '{}': {}", file.string(), std::generic_category().message(errno)));
  return fail(errc::refused,
    fmt::format("another process works on the run '{}'; two at once would spoil it", run.string()));
}

run_lock::run_lock(run_lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

run_lock& run_lock::operator=(run_lock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

run_lock::~run_lock() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

} // namespace gristmill
