#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gristmill {

/// A SHA-256 value, most significant byte first.
using sha256_digest = std::array<uint8_t, 32>;

/// Lower-case hexadecimal of any bytes.
std::string to_hex(std::string_view bytes);
std::string to_hex(const sha256_digest& digest);

/// True for exactly 64 characters of `0-9a-f`: what a content address looks like. Checked before
/// such a text becomes part of a path.
bool is_sha256_hex(std::string_view text);

/// SHA-256 of the text, as 64 lower-case hexadecimal characters.
std::string sha256_hex(std::string_view text);

/// SHA-256 of a text that comes in pieces. Not copyable; movable.
class sha256_stream {
public:
  sha256_stream();
  ~sha256_stream();
  sha256_stream(sha256_stream&&) noexcept;
  sha256_stream& operator=(sha256_stream&&) noexcept;

  void update(std::string_view piece);

  /// The digest of all pieces so far; the stream then starts again with nothing in it.
  sha256_digest finish();
  std::string finish_hex();

private:
  struct context;
  std::unique_ptr<context> context_;
};

/// HMAC-SHA-256 (RFC 2104). Both arguments may hold any bytes and may be empty.
sha256_digest hmac_sha256(std::string_view key, std::string_view message);

} // namespace gristmill
