#include "journal/hash.hpp"

#include <algorithm>
#include <new>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace gristmill {

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

std::string hex_of(const uint8_t* bytes, size_t count) {
  std::string out;
  out.reserve(2 * count);
  for (size_t i = 0; i < count; ++i) {
    out += hex_digits[bytes[i] >> 4];
    out += hex_digits[bytes[i] & 15];
  }
  return out;
}

// OpenSSL fails here only when it has no memory left or is broken; nothing sensible goes on then.
void require(bool ok) {
  if (!ok)
    throw std::bad_alloc{};
}

} // namespace

std::string to_hex(std::string_view bytes) {
  return hex_of(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string to_hex(const sha256_digest& digest) {
  return hex_of(digest.data(), digest.size());
}

bool is_sha256_hex(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

struct sha256_stream::context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();

  context() {
    require(evp != nullptr);
    start();
  }
  ~context() { EVP_MD_CTX_free(evp); }
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  void start() { require(EVP_DigestInit_ex(evp, EVP_sha256(), nullptr) == 1); }
};

sha256_stream::sha256_stream() : context_(std::make_unique<context>()) {}
sha256_stream::~sha256_stream() = default;
sha256_stream::sha256_stream(sha256_stream&&) noexcept = default;
sha256_stream& sha256_stream::operator=(sha256_stream&&) noexcept = default;

void sha256_stream::update(std::string_view piece) {
  require(EVP_DigestUpdate(context_->evp, piece.data(), piece.size()) == 1);
}

sha256_digest sha256_stream::finish() {
  sha256_digest out{};
  require(EVP_DigestFinal_ex(context_->evp, out.data(), nullptr) == 1);
  context_->start();
  return out;
}

std::string sha256_stream::finish_hex() {
  return to_hex(finish());
}

std::string sha256_hex(std::string_view text) {
  sha256_stream stream;
  stream.update(text);
  return stream.finish_hex();
}

sha256_digest hmac_sha256(std::string_view key, std::string_view message) {
  // HMAC() takes the key's length as an int and reads a null key as "the one before"; a key longer
  // than a block is by definition replaced by its hash, which avoids both.
  sha256_digest short_key{};
  size_t key_size = key.size();
  if (key.size() > 64) {
    sha256_stream stream;
    stream.update(key);
    short_key = stream.finish();
    key_size = short_key.size();
  }
  const void* key_data = key.size() > 64 ? static_cast<const void*>(short_key.data())
                                         : static_cast<const void*>(key.data());
  sha256_digest out{};
  unsigned size = 0;
  const char* nothing = "";
  require(HMAC(EVP_sha256(), key_size == 0 ? nothing : key_data, static_cast<int>(key_size),
            reinterpret_cast<const uint8_t*>(message.empty() ? nothing : message.data()),
            message.size(), out.data(), &size)
    != nullptr);
  return out;
}

} // namespace gristmill
