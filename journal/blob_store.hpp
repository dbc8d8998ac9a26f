#pragma once

#include "messages/blob.hpp"
#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace gristmill {

/// Files named by their content: `<root>/ab/cdef…`, where `abcdef…` is the SHA-256. Putting the
/// same text twice stores it once. A file appears complete or not at all, also after a crash.
class blob_store {
public:
  /// Makes the folder if it is missing. Errors: `io_failed`.
  static result<blob_store> open(std::filesystem::path root);

  /// Stores the text; no effect when it is stored already. Errors: `io_failed`.
  result<blob_ref> put(std::string_view text);

  /// The text, with its size and hash checked. Errors: `invalid_input` for a malformed reference,
  /// `not_found`, `io_failed` for a file that cannot be read or whose size or hash does not fit.
  result<std::string> get(const blob_ref& ref) const;

  /// Where the content lies, whether stored or not. Errors: `invalid_input` for a reference whose
  /// hash is not 64 lower-case hexadecimal characters.
  result<std::filesystem::path> path(const blob_ref& ref) const;

  bool has(const blob_ref& ref) const;

  /// Deletes what processes that are no more left unfinished. Nobody else may write meanwhile.
  void remove_unfinished();

  const std::filesystem::path& root() const { return root_; }

private:
  explicit blob_store(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path root_;
  /// Makes the names of unfinished files distinct within the process.
  uint64_t unfinished_ = 0;
};

} // namespace gristmill
