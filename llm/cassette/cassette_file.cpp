#include "llm/cassette/cassette_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace gristmill {

namespace {

tl::unexpected<failure> io_failure(const std::filesystem::path& path) {
  return fail(errc::io_failed, fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

} // namespace

result<cassette_file> cassette_file::open(const std::filesystem::path& path) {
  // Prompts and answers are nobody else's business.
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return io_failure(path);
  cassette_file out(path, file, 0);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0)
    return fail(
      errc::refused, fmt::format("{}: another program is recording to it", path.string()));
  const auto size = ::lseek(file, 0, SEEK_END);
  if (size < 0)
    return io_failure(path);
  out.size_ = static_cast<uint64_t>(size);
  return out;
}

result<cassette_file> cassette_file::create(const std::filesystem::path& path) {
  auto out = open(path);
  if (out && out->size_ > 0)
    return fail(errc::invalid_input,
      fmt::format("{}: is there already and holds something; name another file", path.string()));
  return out;
}

result<cassette_file> cassette_file::append(const std::filesystem::path& path, size_t whole_bytes) {
  auto out = open(path);
  if (!out || out->size_ <= whole_bytes)
    return out;
  if (::ftruncate(out->file_, static_cast<off_t>(whole_bytes)) != 0)
    return io_failure(path);
  out->size_ = whole_bytes;
  return out;
}

cassette_file::cassette_file(cassette_file&& other) noexcept
  : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

cassette_file& cassette_file::operator=(cassette_file&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

cassette_file::~cassette_file() {
  if (file_ < 0)
    return;
  ::fsync(file_);
  ::close(file_);
}

result<void> cassette_file::write(std::string_view line) {
  for (auto left = line; !left.empty();) {
    const auto written = ::write(file_, left.data(), left.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      auto failed = io_failure(path_);
      if (::ftruncate(file_, static_cast<off_t>(size_)) != 0)
        failed.value().what += "; its last line is torn";
      return failed;
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  size_ += line.size();
  return {};
}

} // namespace gristmill
