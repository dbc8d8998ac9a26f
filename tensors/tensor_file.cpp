#include "tensors/tensor_file.hpp"

#include <algorithm>
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

constexpr int new_file_flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
constexpr mode_t new_file_mode = 0644;
/// What processes that were killed may have left of one tensor.
constexpr int leftovers_max = 4096;

struct partial_file {
  std::filesystem::path name;
  /// -1 with errno where there is none.
  int opened = -1;
};

/// A new file beside the tensor's. Its name is unique among the processes and threads that write
/// the same tensor at once; whoever renames last wins, with equal content. Process numbers come
/// again, and in a jail at once, so a name may belong to one that was killed: then it is the next.
partial_file open_partial(const std::filesystem::path& path) {
  static std::atomic<uint64_t> serial{0};
  partial_file made;
  for (int tries = 0; tries < leftovers_max; ++tries) {
    made.name = path;
    made.name += fmt::format(".partial-{}-{}", ::getpid(), serial++);
    made.opened = ::open(made.name.c_str(), new_file_flags, new_file_mode);
    if (made.opened >= 0 || errno != EEXIST)
      break;
  }
  return made;
}

} // namespace

result<void> write_tensor_file(
  const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const auto [partial, opened] = open_partial(path);
  {
    descriptor file{opened};
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

result<new_tensor_file> new_tensor_file::create(const std::filesystem::path& path, uint64_t bytes) {
  new_tensor_file made;
  made.path_ = path;
  const auto [partial, opened] = open_partial(path);
  descriptor file{opened};
  if (file.get() < 0)
    return system_failure("cannot create the tensor file", partial);
  made.partial_ = partial;
  // Reserved now: a disk that is full later would be a signal instead of an error.
  if (bytes > 0) {
    if (const int code = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); code != 0) {
      errno = code;
      return system_failure("cannot reserve the room of the tensor file", partial);
    }
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED)
      return system_failure("cannot map the tensor file", partial);
    made.data_ = static_cast<std::byte*>(data);
    made.size_ = bytes;
  }
  return made;
}

result<void> new_tensor_file::commit() {
  if (::rename(partial_.c_str(), path_.c_str()) != 0)
    return system_failure("cannot move the tensor file into place", path_);
  partial_.clear();
  return {};
}

new_tensor_file::new_tensor_file(new_tensor_file&& other) noexcept
  : path_(std::move(other.path_)), partial_(std::exchange(other.partial_, {})),
    data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

new_tensor_file& new_tensor_file::operator=(new_tensor_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(partial_, other.partial_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

new_tensor_file::~new_tensor_file() {
  if (data_ != nullptr)
    ::munmap(data_, size_);
  if (!partial_.empty())
    ::unlink(partial_.c_str());
}

result<mapped_file> mapped_file::open(const std::filesystem::path& path, uint64_t expected_bytes) {
  return open_sized(path, &expected_bytes);
}

result<mapped_file> mapped_file::open(const std::filesystem::path& path) {
  return open_sized(path, nullptr);
}

result<mapped_file> mapped_file::open_sized(
  const std::filesystem::path& path, const uint64_t* expected) {
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.get() < 0)
    return system_failure("cannot open the tensor file", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    return system_failure("cannot read the size of the tensor file", path);
  if (!S_ISREG(status.st_mode))
    return fail(errc::invalid_input, fmt::format("{}: not a regular file", path.string()));
  const auto size = static_cast<uint64_t>(status.st_size);
  if (expected && size != *expected)
    return fail(errc::invalid_input,
      fmt::format("{}: {} bytes, but the tensor has {}", path.string(), size, *expected));
  if (size == 0)
    return mapped_file{nullptr, 0}; // mmap refuses an empty range.
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return system_failure("cannot map the tensor file", path);
  return mapped_file{static_cast<const std::byte*>(data), size};
}

void mapped_file::release(uint64_t count) const {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto whole = std::min<uint64_t>(count, size_) / page * page;
  // Advice: where the system does not take it, only memory is lost.
  if (whole > 0)
    ::madvise(const_cast<std::byte*>(data_), whole, MADV_DONTNEED);
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
