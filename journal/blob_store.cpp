#include "journal/blob_store.hpp"

#include "journal/hash.hpp"
#include "journal/write_all.hpp"

#include <atomic>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unistd.h>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

std::string text_of(int error) {
  return std::generic_category().message(error);
}

// Writes the whole text to a new file and brings it to the disk, so that the rename that follows
// never makes a name for half a file.
result<void> write_new_file(const fs::path& file, std::string_view text) {
  int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0)
    return fail(
      errc::io_failed, fmt::format("cannot create '{}': {}", file.string(), text_of(errno)));
  int error = write_all(fd, text);
  if (error == 0 && ::fsync(fd) != 0)
    error = errno;
  if (::close(fd) != 0 && error == 0)
    error = errno;
  if (error == 0)
    return {};
  ::unlink(file.c_str());
  return fail(errc::io_failed, fmt::format("cannot write '{}': {}", file.string(), text_of(error)));
}

} // namespace

result<blob_store> blob_store::open(fs::path root) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error)
    return fail(errc::io_failed,
      fmt::format("cannot make the blob folder '{}': {}", root.string(), error.message()));
  return blob_store{std::move(root)};
}

result<fs::path> blob_store::path(const blob_ref& ref) const {
  // Checked because references come in messages and files, and the text becomes a path.
  if (!is_sha256_hex(ref.sha256))
    return fail(errc::invalid_input,
      fmt::format("'{}' does not name a blob: 64 lower-case hexadecimal characters are expected",
        ref.sha256.substr(0, 80)));
  return root_ / ref.sha256.substr(0, 2) / ref.sha256.substr(2);
}

bool blob_store::has(const blob_ref& ref) const {
  auto file = path(ref);
  std::error_code error;
  return file && fs::is_regular_file(*file, error) && fs::file_size(*file, error) == ref.bytes
    && !error;
}

result<blob_ref> blob_store::put(std::string_view text) {
  blob_ref ref{sha256_hex(text), text.size()};
  if (has(ref))
    return ref;
  auto file = *path(ref);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    return fail(errc::io_failed,
      fmt::format("cannot make '{}': {}", file.parent_path().string(), error.message()));
  // Actors on several threads share a store.
  auto number = std::atomic_ref<uint64_t>{unfinished_}.fetch_add(1);
  auto unfinished =
    root_ / fmt::format("{}.{}.{}.new", ref.sha256, static_cast<int64_t>(::getpid()), number);
  // The leftover of a dead process that had this process's number.
  fs::remove(unfinished, error);
  if (auto written = write_new_file(unfinished, text); !written)
    return pass(written);
  fs::rename(unfinished, file, error);
  if (!error)
    return ref;
  auto message = error.message();
  fs::remove(unfinished, error);
  return fail(
    errc::io_failed, fmt::format("cannot name the blob '{}': {}", file.string(), message));
}

void blob_store::remove_unfinished() {
  std::error_code error;
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() == ".new" && it->is_regular_file(ignored))
      fs::remove(it->path(), ignored);
  }
}

result<std::string> blob_store::get(const blob_ref& ref) const {
  auto file = path(ref);
  if (!file)
    return pass(file);
  std::error_code error;
  auto size = fs::file_size(*file, error);
  if (error)
    return fail(errc::not_found, fmt::format("blob {} is not in '{}'", ref.sha256, root_.string()));
  // Before reading: a file of another size is not worth the memory.
  if (size != ref.bytes)
    return fail(errc::io_failed,
      fmt::format(
        "blob '{}' has {} bytes, but its reference says {}", file->string(), size, ref.bytes));
  std::ifstream in(*file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (in.bad() || text.size() != ref.bytes)
    return fail(errc::io_failed, fmt::format("cannot read the blob '{}'", file->string()));
  if (sha256_hex(text) != ref.sha256)
    return fail(errc::io_failed,
      fmt::format("blob '{}' is damaged: its SHA-256 is {}", file->string(), sha256_hex(text)));
  return text;
}

} // namespace gristmill
