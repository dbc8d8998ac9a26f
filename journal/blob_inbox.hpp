#pragma once

#include "journal/blob_cache.hpp"
#include "journal/blob_store.hpp"
#include "journal/hash.hpp"
#include "messages/cluster.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace gristmill {

/// Where blobs go that come in pieces. Each is written from its start to its end; nobody sees it
/// before `finish`.
class blob_inbox {
public:
  virtual ~blob_inbox() = default;

  virtual bool has(const blob_ref& what) = 0;

  /// Errors: `io_failed`.
  virtual result<void> begin(const blob_ref& what) = 0;

  /// The next bytes of a blob that was begun. After an error it is as if it had never been begun.
  virtual result<void> append(const std::string& sha256, std::string_view data) = 0;

  /// True: it is in the store. False: the hash does not fit, and nothing is left of it.
  virtual result<bool> finish(const std::string& sha256) = 0;

  /// Nothing is left of it. Unknown ones are ignored.
  virtual void drop(const std::string& sha256) = 0;
};

/// Unfinished files in the store's folder, brought to the disk and renamed when the hash fits.
class store_inbox final : public blob_inbox {
public:
  /// `cache` may be null: then nothing is ever deleted to make room.
  store_inbox(std::shared_ptr<blob_store> store, std::shared_ptr<blob_cache> cache)
    : store_(std::move(store)), cache_(std::move(cache)) {}
  ~store_inbox() override;
  store_inbox(const store_inbox&) = delete;
  store_inbox& operator=(const store_inbox&) = delete;

  bool has(const blob_ref& what) override;
  result<void> begin(const blob_ref& what) override;
  result<void> append(const std::string& sha256, std::string_view data) override;
  result<bool> finish(const std::string& sha256) override;
  void drop(const std::string& sha256) override;

private:
  struct open_file {
    blob_ref what;
    int fd = -1;
    std::filesystem::path path;
    sha256_stream hash;
  };

  /// Ends it with this error.
  tl::unexpected<failure> give_up(const std::string& sha256, std::string_view doing, int error);

  std::shared_ptr<blob_store> store_;
  std::shared_ptr<blob_cache> cache_;
  std::map<std::string, open_file> open_;
  uint64_t files_ = 0;
};

/// The piece that was asked for, read from the disk now; nothing stays open. What cannot be given
/// is told in `failure_text`: a name that is no SHA-256, a blob that is not here, a piece of
/// another size than 1 byte to `blob_piece_max`, one beyond the end.
blob_piece read_piece(const blob_store& store, const blob_pull& asked);

} // namespace gristmill
