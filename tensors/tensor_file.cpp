#include "tensors/tensor_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gristmill {

namespace {

/// Closes with the scope.
class descriptor {
public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const { return fd_; }

private:
  int fd_;
};

tl::unexpected<failure> system_failure(std::string_view what, const std::filesystem::path& path) {
  const int code = errno;
  return fail(code == ENOENT ? errc::not_found : errc::io_failed,
    fmt::format("{}: {}: {}", path.string(), what, std::strerror(code)));
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

} // namespace

result<void> write_tensor_file(
  const std::filesystem::path& path, std::span<const std::byte> bytes) {
  // Unique among the processes and threads that may write the same tensor at once; whoever renames
  // last wins, with equal content.
  static std::atomic<uint64_t> serial{0};
  auto partial = path;
  partial += fmt::format(".partial-{}-{}", ::getpid(), serial++);
  {
    descriptor file{::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    if (file.get() < 0)
      return system_failure("cannot create the tensor file", partial);
    if (!write_all(file.get(), bytes)) {
      auto failed = system_failure("cannot write the tensor file", partial);
      ::unlink(partial.c_str());
      return failed;
    }
  }
  if (::rename(partial.c_str(), path.c_str()) != 0) {
    auto failed = system_failure("cannot move the tensor file into place", path);
    ::unlink(partial.c_str());
    return failed;
  }
  return {};
}

result<mapped_file> mapped_file::open(const std::filesystem::path& path, uint64_t expected_bytes) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.get() < 0)
    return system_failure("cannot open the tensor file", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return system_failure("cannot read the size of the tensor file", path);
  if (!S_ISREG(status.st_mode))
    return fail(errc::invalid_input, fmt::format("{}: not a regular file", path.string()));
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size != expected_bytes)
    return fail(errc::invalid_input,
      fmt::format("{}: {} bytes, but the tensor has {}", path.string(), size, expected_bytes));
  if (size == 0)
    return mapped_file{nullptr, 0}; // mmap refuses an empty range.
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return system_failure("cannot map the tensor file", path);
  return mapped_file{static_cast<const std::byte*>(data), size};
}

mapped_file::mapped_file(mapped_file&& other) noexcept
  : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

mapped_file::~mapped_file() {
  if (data_ != nullptr)
    ::munmap(const_cast<std::byte*>(data_), size_);
}

} // namespace gristmill
