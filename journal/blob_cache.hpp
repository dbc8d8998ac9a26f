#pragma once

#include "journal/blob_store.hpp"
#include "messages/blob.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace gristmill {

class blob_cache;

/// Blobs that stay where they are for as long as this lives. Movable. May outlive everything but
/// the store.
class blob_pins {
public:
  blob_pins() = default;
  ~blob_pins() { release(); }
  blob_pins(blob_pins&& other) noexcept
    : cache_(std::move(other.cache_)), names_(std::move(other.names_)) {}
  blob_pins& operator=(blob_pins&& other) noexcept;

  /// Now instead of at the end.
  void release();

private:
  friend class blob_cache;
  blob_pins(std::shared_ptr<blob_cache> cache, std::vector<std::string> names)
    : cache_(std::move(cache)), names_(std::move(names)) {}

  std::shared_ptr<blob_cache> cache_;
  std::vector<std::string> names_;
};

struct blob_cache_counters {
  uint64_t blobs = 0;
  uint64_t bytes = 0;
  /// Bytes of blobs that are in use.
  uint64_t pinned_bytes = 0;
  uint64_t evictions = 0;
  uint64_t evicted_bytes = 0;
};

/// Keeps a blob store below a number of bytes: what was used least recently is deleted first, what
/// is pinned never. When a blob was last used is kept as the time of its file, so the order
/// survives restarts. May be called from any thread. Nobody but this process may use the store.
class blob_cache : public std::enable_shared_from_this<blob_cache> {
public:
  static constexpr uint64_t default_bytes_max = uint64_t{8} << 30;

  /// Looks through the store, deletes what dead processes left unfinished and what is above the
  /// cap. Errors: `invalid_input` for a cap of 0; `io_failed`.
  static result<std::shared_ptr<blob_cache>> open(
    std::shared_ptr<blob_store> store, uint64_t bytes_max);

  /// The blobs are in use from now on, whether they are here yet or not: pin what a task needs
  /// before fetching it, and until the task is over.
  blob_pins pin(std::span<const blob_ref> blobs);

  /// Deletes until `bytes` more fit and keeps them free until `arrived` or `cancelled` with the
  /// same number. `io_failed` when what is in use leaves no room; nothing is deleted then.
  result<void> make_room(uint64_t bytes);
  void arrived(const blob_ref& what, uint64_t room);
  void cancelled(uint64_t room);

  /// It was read or asked for: the last to be deleted now. Unknown ones are ignored.
  void used(const blob_ref& what);

  /// Takes in what was put into the store past this class and deletes what is above the cap.
  void refresh();

  blob_cache_counters counters() const;
  uint64_t bytes_max() const { return bytes_max_; }

private:
  friend class blob_pins;

  struct entry {
    uint64_t bytes = 0;
    std::list<std::string>::iterator place;
  };

  /// When a folder of the store had last been changed as it was looked through, and whether that
  /// was so twice in a row.
  struct seen_folder {
    std::filesystem::file_time_type changed;
    bool twice = false;
  };

  blob_cache(std::shared_ptr<blob_store> store, uint64_t bytes_max)
    : store_(std::move(store)), bytes_max_(bytes_max) {}

  // All with the mutex held.
  void scan();
  void take_in(const std::string& name, uint64_t bytes);
  void touch(const std::string& name, entry& what);
  uint64_t evictable() const;
  void evict_down_to(uint64_t bytes);
  void unpin(const std::vector<std::string>& names);

  const std::shared_ptr<blob_store> store_;
  const uint64_t bytes_max_;
  mutable std::mutex mutex_;
  /// Names, least recently used first.
  std::list<std::string> order_;
  std::unordered_map<std::string, entry> entries_;
  std::unordered_map<std::string, uint32_t> pins_;
  std::map<std::string, seen_folder> seen_;
  uint64_t bytes_ = 0;
  uint64_t reserved_ = 0;
  uint64_t evictions_ = 0;
  uint64_t evicted_bytes_ = 0;
};

} // namespace gristmill
