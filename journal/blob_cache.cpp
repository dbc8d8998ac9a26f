#include "journal/blob_cache.hpp"

#include "journal/hash.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <tuple>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

struct found_blob {
  fs::file_time_type used;
  std::string name;
  uint64_t bytes = 0;

  bool operator<(const found_blob& other) const {
    return std::tie(used, name) < std::tie(other.used, other.name);
  }
};

bool is_folder_of_store(const std::string& name) {
  return name.size() == 2 && is_sha256_hex(name + std::string(62, '0'));
}

/// Every name that is kept is a SHA-256.
fs::path file_of(const blob_store& store, const std::string& name) {
  return *store.path({name, 0});
}

} // namespace

blob_pins& blob_pins::operator=(blob_pins&& other) noexcept {
  if (this != &other) {
    release();
    cache_ = std::move(other.cache_);
    names_ = std::move(other.names_);
  }
  return *this;
}

void blob_pins::release() {
  if (!cache_)
    return;
  {
    std::lock_guard lock(cache_->mutex_);
    cache_->unpin(names_);
  }
  cache_.reset();
  names_.clear();
}

result<std::shared_ptr<blob_cache>> blob_cache::open(
  std::shared_ptr<blob_store> store, uint64_t bytes_max) {
  if (bytes_max == 0)
    return fail(errc::invalid_input, "a cache of 0 bytes holds nothing");
  store->remove_unfinished();
  std::error_code error;
  if (fs::directory_iterator{store->root(), error}; error)
    return fail(errc::io_failed,
      fmt::format("cannot read the blob folder '{}': {}", store->root().string(), error.message()));
  std::shared_ptr<blob_cache> cache{new blob_cache{std::move(store), bytes_max}};
  cache->refresh();
  return cache;
}

blob_pins blob_cache::pin(std::span<const blob_ref> blobs) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& blob : blobs) {
    if (!is_sha256_hex(blob.sha256)) // "No blob", or nothing that could ever be here.
      continue;
    ++pins_[blob.sha256];
    names.push_back(blob.sha256);
    if (auto known = entries_.find(blob.sha256); known != entries_.end())
      touch(known->first, known->second);
  }
  return {shared_from_this(), std::move(names)};
}

void blob_cache::unpin(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    auto pinned = pins_.find(name);
    if (pinned != pins_.end() && --pinned->second == 0)
      pins_.erase(pinned);
  }
}

result<void> blob_cache::make_room(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  const uint64_t in_use = bytes_ - evictable() + reserved_;
  if (bytes > bytes_max_ || in_use > bytes_max_ - bytes)
    return fail(errc::io_failed,
      fmt::format("no room for {} bytes in the blob cache '{}': {} of {} bytes are in use; "
                  "--cache-max makes it larger",
        bytes, store_->root().string(), in_use, bytes_max_));
  reserved_ += bytes;
  evict_down_to(bytes_max_ - reserved_);
  return {};
}

void blob_cache::arrived(const blob_ref& what, uint64_t room) {
  std::lock_guard lock(mutex_);
  reserved_ -= std::min(room, reserved_);
  take_in(what.sha256, what.bytes);
}

void blob_cache::cancelled(uint64_t room) {
  std::lock_guard lock(mutex_);
  reserved_ -= std::min(room, reserved_);
}

void blob_cache::used(const blob_ref& what) {
  std::lock_guard lock(mutex_);
  if (auto known = entries_.find(what.sha256); known != entries_.end())
    touch(known->first, known->second);
}

void blob_cache::refresh() {
  std::lock_guard lock(mutex_);
  scan();
  evict_down_to(bytes_max_ - std::min(bytes_max_, reserved_));
}

blob_cache_counters blob_cache::counters() const {
  std::lock_guard lock(mutex_);
  return {entries_.size(), bytes_, bytes_ - evictable(), evictions_, evicted_bytes_};
}

void blob_cache::scan() {
  std::vector<found_blob> found;
  std::error_code error;
  for (fs::directory_iterator folder(store_->root(), error), end; !error && folder != end;
       folder.increment(error)) {
    std::error_code ignored;
    const auto prefix = folder->path().filename().string();
    if (!is_folder_of_store(prefix) || folder->is_symlink(ignored))
      continue;
    // Names come and go only with the time of the folder. That time is coarse, so a folder that
    // has just been changed is looked through once more.
    const auto changed = folder->last_write_time(ignored);
    if (ignored)
      continue;
    auto& seen = seen_[prefix];
    if (seen.twice && seen.changed == changed)
      continue;
    seen.twice = seen.changed == changed;
    seen.changed = changed;
    std::error_code lost;
    for (fs::directory_iterator file(folder->path(), lost), last; !lost && file != last;
         file.increment(lost)) {
      auto name = prefix + file->path().filename().string();
      if (!is_sha256_hex(name) || entries_.contains(name) || !file->is_regular_file(ignored))
        continue;
      const auto bytes = file->file_size(ignored);
      const auto used = ignored ? fs::file_time_type{} : file->last_write_time(ignored);
      if (!ignored)
        found.push_back({used, std::move(name), bytes});
    }
  }
  std::sort(found.begin(), found.end());
  for (const auto& blob : found)
    take_in(blob.name, blob.bytes);
}

void blob_cache::take_in(const std::string& name, uint64_t bytes) {
  auto [known, fresh] = entries_.try_emplace(name);
  if (fresh)
    known->second.place = order_.insert(order_.end(), name);
  else
    bytes_ -= known->second.bytes;
  known->second.bytes = bytes;
  bytes_ += bytes;
}

void blob_cache::touch(const std::string& name, entry& what) {
  order_.splice(order_.end(), order_, what.place);
  // The kernel's own clock. A file that has gone is noticed when somebody wants to read it.
  (void)::utimensat(AT_FDCWD, file_of(*store_, name).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

uint64_t blob_cache::evictable() const {
  uint64_t pinned = 0;
  for (const auto& [name, count] : pins_)
    if (auto known = entries_.find(name); known != entries_.end())
      pinned += known->second.bytes;
  return bytes_ - pinned;
}

void blob_cache::evict_down_to(uint64_t bytes) {
  for (auto at = order_.begin(); bytes_ > bytes && at != order_.end();) {
    if (pins_.contains(*at)) {
      ++at;
      continue;
    }
    auto known = entries_.find(*at);
    std::error_code error;
    fs::remove(file_of(*store_, *at), error);
    if (error) { // Not ours to delete; it counts as long as it is there.
      ++at;
      continue;
    }
    bytes_ -= known->second.bytes;
    ++evictions_;
    evicted_bytes_ += known->second.bytes;
    entries_.erase(known);
    at = order_.erase(at);
  }
}

} // namespace gristmill
