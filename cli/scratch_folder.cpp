#include "cli/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// The lock of a folder, or -1 while somebody else has it. It is let go when its process ends, in
/// whatever way, and no child inherits it.
int lock_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0)
    return -1;
  struct stat seen {};
  if (fstat(descriptor, &seen) == 0 && seen.st_uid == geteuid()
    && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

/// What `mkdtemp` replaces.
constexpr std::string_view drawn = "XXXXXX";

/// Removes what commands left behind that were killed. A longer name is somebody else's.
void reap(const fs::path& parent, std::string_view prefix) {
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error))
    if (const auto name = it->path().filename().string();
        name.starts_with(prefix) && name.size() == prefix.size() + drawn.size())
      old.push_back(it->path());
  for (const auto& folder : old)
    if (const int lock = lock_folder(folder); lock >= 0) {
      fs::remove_all(folder, error); // What cannot be removed stays for the next one.
      close(lock);
    }
}

} // namespace

result<scratch_folder> scratch_folder::create(std::string_view prefix) {
  std::error_code error;
  const auto parent = fs::temp_directory_path(error);
  if (error)
    return fail(errc::io_failed, "no folder for temporary files: " + error.message());
  reap(parent, prefix);
  // Another command may take a new folder for an old one before it is locked.
  for (int attempt = 0; attempt < 10; ++attempt) {
    auto name = (parent / fmt::format("{}{}", prefix, drawn)).string();
    if (mkdtemp(name.data()) == nullptr)
      return fail(errc::io_failed, fmt::format("{}: {}", name, std::strerror(errno)));
    const int lock = lock_folder(name);
    if (lock >= 0 && fs::exists(name, error))
      return scratch_folder{name, lock};
    if (lock >= 0)
      close(lock);
  }
  return fail(errc::io_failed, parent.string() + ": no folder in it could be kept");
}

scratch_folder::scratch_folder(scratch_folder&& other) noexcept
  : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

scratch_folder::~scratch_folder() {
  std::error_code error;
  if (!path_.empty())
    fs::remove_all(path_, error);
  if (lock_ >= 0)
    close(lock_);
}

} // namespace gristmill
