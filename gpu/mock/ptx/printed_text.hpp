#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill::ptx {

/// What the printf of device code prints, up to a limit.
class printed_text {
public:
  explicit printed_text(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void add(std::string_view text);
  std::string take() { return std::move(text_); }
  /// Bytes beyond the limit.
  uint64_t left_out() const { return left_out_; }

private:
  uint64_t bytes_max_;
  std::string text_;
  uint64_t left_out_ = 0;
};

/// Reads `count` bytes behind a generic address; false where there are none.
class memory_reader {
public:
  virtual ~memory_reader() = default;
  virtual bool read(uint64_t address, void* to, uint64_t count) = 0;
};

/// The text of one call: `arguments` is the address of the buffer in which a front end laid the
/// variable arguments, each at a multiple of its size. Conversions d i u o x X c s p e E f F g G a
/// A with flags, width, precision and h, l, ll; what is none of them is printed as it stands. At
/// most 4096 bytes.
std::string format_printed(memory_reader& memory, uint64_t format, uint64_t arguments);

} // namespace gristmill::ptx
