#include "gpu/mock/host_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gristmill {

namespace {

// The kernel's own limit is 65,530 mappings a process; a device may hold several such buffers.
constexpr uint64_t pieces_max = 16384;

uint64_t page_bytes() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

uint64_t whole_pages(uint64_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

tl::unexpected<failure> system_failure(const std::string& doing) {
  return fail(errc::io_failed, fmt::format("{}: {}", doing, std::strerror(errno)));
}

struct open_file {
  int fd;
  ~open_file() {
    if (fd >= 0)
      close(fd);
  }
};

} // namespace

host_memory::host_memory(host_memory&& other) noexcept
  : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

host_memory& host_memory::operator=(host_memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

host_memory::~host_memory() {
  if (mapped_ != 0)
    munmap(data_, mapped_);
}

result<host_memory> host_memory::anonymous(uint64_t bytes) {
  const uint64_t mapped = whole_pages(std::max<uint64_t>(bytes, 1));
  void* at = mmap(
    nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return system_failure(fmt::format("reserving {} bytes of host memory", mapped));
  return host_memory(static_cast<uint8_t*>(at), mapped);
}

result<host_memory> host_memory::repeated(
  const std::string& path, uint64_t pattern_bytes, uint64_t total_bytes) {
  const bool once = pattern_bytes >= total_bytes;
  if (pattern_bytes == 0 || (!once && pattern_bytes % page_bytes() != 0))
    return fail(errc::invalid_input,
      fmt::format("{}: a pattern of {} bytes cannot be repeated; it must be a multiple of {}", path,
        pattern_bytes, page_bytes()));
  const uint64_t total = whole_pages(std::max<uint64_t>(total_bytes, 1));
  if (!once && total / pattern_bytes >= pieces_max)
    return fail(errc::invalid_input,
      fmt::format("{}: a pattern of {} bytes is too short for a buffer of {}", path, pattern_bytes,
        total_bytes));
  const open_file file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0)
    return system_failure(fmt::format("opening {}", path));
  struct stat state {};
  if (fstat(file.fd, &state) != 0)
    return system_failure(fmt::format("reading the size of {}", path));
  const uint64_t used = std::min(pattern_bytes, total_bytes);
  // Past the end of a file a mapping has no pages, and touching it would kill us.
  if (!S_ISREG(state.st_mode) || static_cast<uint64_t>(state.st_size) < used)
    return fail(errc::invalid_input,
      fmt::format("{}: the file has {} bytes, the pattern {}", path, state.st_size, used));

  void* at = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return system_failure(fmt::format("reserving {} bytes of addresses", total));
  host_memory memory(static_cast<uint8_t*>(at), total);
  const uint64_t step = once ? total : pattern_bytes;
  for (uint64_t offset = 0; offset < total; offset += step) {
    void* piece = mmap(memory.data_ + offset, std::min(step, total - offset), PROT_READ,
      MAP_PRIVATE | MAP_FIXED, file.fd, 0);
    if (piece == MAP_FAILED)
      return system_failure(fmt::format("mapping {}", path));
  }
  return memory;
}

void host_memory::clear(uint64_t offset, uint64_t bytes) {
  const uint64_t first = whole_pages(offset);
  const uint64_t last = (offset + bytes) / page_bytes() * page_bytes();
  if (mapped_ == 0 || first >= last) {
    std::memset(data_ + offset, 0, bytes);
    return;
  }
  std::memset(data_ + offset, 0, first - offset);
  // Anonymous private pages read as zero after this.
  if (madvise(data_ + first, last - first, MADV_DONTNEED) != 0)
    std::memset(data_ + first, 0, last - first);
  std::memset(data_ + last, 0, offset + bytes - last);
}

} // namespace gristmill
