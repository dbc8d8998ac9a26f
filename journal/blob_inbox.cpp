#include "journal/blob_inbox.hpp"

#include "journal/write_all.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

std::string text_of(int error) {
  return std::generic_category().message(error);
}

/// Closed when it goes out of scope.
struct file_for_reading {
  explicit file_for_reading(const fs::path& path)
    : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~file_for_reading() {
    if (fd >= 0)
      ::close(fd);
  }
  file_for_reading(const file_for_reading&) = delete;
  file_for_reading& operator=(const file_for_reading&) = delete;
  int fd;
};

} // namespace

store_inbox::~store_inbox() {
  while (!open_.empty())
    drop(std::string{open_.begin()->first});
}

bool store_inbox::has(const blob_ref& what) {
  if (!store_->has(what))
    return false;
  if (cache_)
    cache_->used(what);
  return true;
}

result<void> store_inbox::begin(const blob_ref& what) {
  drop(what.sha256);
  auto final_path = store_->path(what);
  if (!final_path)
    return pass(final_path);
  if (cache_)
    if (auto room = cache_->make_room(what.bytes); !room)
      return room;
  open_file file;
  file.what = what;
  // Named so that `blob_store::remove_unfinished` knows it after a crash.
  file.path = store_->root()
    / fmt::format("{}.{}.in{}.new", what.sha256, static_cast<int64_t>(::getpid()), ++files_);
  file.fd = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  const int error = errno;
  const bool opened = file.fd >= 0;
  open_.emplace(what.sha256, std::move(file));
  if (!opened)
    return give_up(what.sha256, "create", error);
  return {};
}

result<void> store_inbox::append(const std::string& sha256, std::string_view data) {
  auto found = open_.find(sha256);
  if (found == open_.end())
    return fail(errc::io_failed, fmt::format("blob {} is not being received", sha256));
  if (const int error = write_all(found->second.fd, data); error != 0)
    return give_up(sha256, "write", error);
  found->second.hash.update(data);
  return {};
}

result<bool> store_inbox::finish(const std::string& sha256) {
  auto found = open_.find(sha256);
  if (found == open_.end())
    return fail(errc::io_failed, fmt::format("blob {} is not being received", sha256));
  auto& file = found->second;
  if (file.hash.finish_hex() != sha256) {
    drop(sha256);
    return false;
  }
  // The name must never stand for half a file, also after a crash.
  if (::fsync(file.fd) != 0)
    return give_up(sha256, "write", errno);
  if (::close(std::exchange(file.fd, -1)) != 0)
    return give_up(sha256, "write", errno);
  const auto final_path = *store_->path(file.what);
  std::error_code error;
  fs::create_directories(final_path.parent_path(), error);
  if (!error)
    fs::rename(file.path, final_path, error);
  if (error)
    return give_up(sha256, "name", error.value());
  const auto what = file.what;
  open_.erase(found);
  if (cache_)
    cache_->arrived(what, what.bytes);
  return true;
}

void store_inbox::drop(const std::string& sha256) {
  auto found = open_.find(sha256);
  if (found == open_.end())
    return;
  if (found->second.fd >= 0)
    ::close(found->second.fd);
  ::unlink(found->second.path.c_str());
  if (cache_)
    cache_->cancelled(found->second.what.bytes);
  open_.erase(found);
}

tl::unexpected<failure> store_inbox::give_up(
  const std::string& sha256, std::string_view doing, int error) {
  auto text = fmt::format(
    "cannot {} the blob '{}': {}", doing, open_.at(sha256).path.string(), text_of(error));
  drop(sha256);
  return fail(errc::io_failed, std::move(text));
}

blob_piece read_piece(const blob_store& store, const blob_pull& asked) {
  blob_piece out;
  out.sha256 = asked.sha256.substr(0, 64);
  out.offset = asked.offset;
  const auto refuse = [&](std::string why) {
    out.failure_text = std::move(why);
    out.data.clear();
    return std::move(out);
  };
  // The name becomes a path, and it came from another machine.
  const auto path = store.path({asked.sha256, 0});
  if (!path)
    return refuse(path.error().what);
  if (asked.bytes == 0 || asked.bytes > blob_piece_max)
    return refuse(fmt::format(
      "a piece of {} bytes was asked for; 1 to {} are given", asked.bytes, blob_piece_max));
  const file_for_reading file{*path};
  struct stat about {};
  if (file.fd < 0 || ::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode))
    return refuse(fmt::format("blob {} is not here", asked.sha256));
  out.total = static_cast<uint64_t>(about.st_size);
  if (asked.offset >= out.total)
    return refuse(fmt::format(
      "blob {} has {} bytes: there is nothing at {}", asked.sha256, out.total, asked.offset));
  out.data.resize(std::min<uint64_t>(asked.bytes, out.total - asked.offset));
  size_t done = 0;
  while (done < out.data.size()) {
    const ssize_t count = ::pread(file.fd, out.data.data() + done, out.data.size() - done,
      static_cast<off_t>(asked.offset + done));
    if (count > 0)
      done += static_cast<size_t>(count);
    else if (count == 0 || errno != EINTR)
      return refuse(fmt::format("blob {} cannot be read: {}", asked.sha256,
        count == 0 ? "it became shorter" : text_of(errno)));
  }
  return out;
}

} // namespace gristmill
