#pragma once

#include "messages/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gristmill {

/// Sums of nanoseconds of GPU: 63 bits would overflow after some months of a large cluster.
using wide = __int128;

/// Writes the saved state of a policy: words with spaces between, one record a line, and texts of
/// strangers in hexadecimal digits.
std::string state_hex(std::string_view text);
std::string state_number(wide value);

/// Reads it back. It may have been damaged: nothing is believed.
class state_reader {
public:
  /// `policy` stands in messages.
  state_reader(std::string_view text, std::string policy)
    : text_(text), policy_(std::move(policy)) {}

  /// Starts the next line; false when there is none or the last one was not read to its end.
  bool next_line();
  bool at_end() const { return text_.empty(); }

  /// The next word is this one.
  bool word(std::string_view expected);
  /// Nothing where the next word is not of the kind.
  std::optional<std::string> hex();
  /// At most 36 digits, so that sums of two never overflow.
  std::optional<wide> number();
  std::optional<uint64_t> natural(uint64_t max = UINT64_MAX);
  /// The bytes after this line, as they are, and the line feed that ends them.
  std::optional<std::string_view> block(size_t bytes);
  bool line_done() const { return line_.empty(); }

  /// "this is not the saved state of lease policy '…': …" with the line that was read last.
  failure damaged() const;

private:
  std::string_view take_word();

  std::string_view text_;
  std::string policy_;
  std::string_view whole_line_;
  std::string_view line_;
};

} // namespace gristmill
