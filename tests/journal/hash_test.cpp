#include "journal/hash.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("SHA-256 gives the values of FIPS 180") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string(1'000'000, 'a'))
    == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a stream hashes its pieces as one text and starts again after it is finished") {
  sha256_stream s;
  s.update("a");
  s.update("");
  s.update("bc");
  CHECK(s.finish_hex() == sha256_hex("abc"));
  s.update("abc");
  auto moved = std::move(s);
  CHECK(moved.finish_hex() == sha256_hex("abc"));
}

TEST_CASE("HMAC-SHA-256 gives the values of RFC 4231") {
  CHECK(to_hex(hmac_sha256(std::string(20, '\x0b'), "Hi There"))
    == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?"))
    == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(to_hex(hmac_sha256(
          std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"))
    == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("HMAC accepts an empty key and an empty message") {
  CHECK(to_hex(hmac_sha256("", ""))
    == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
  CHECK(hmac_sha256(std::string_view{}, "x") == hmac_sha256("", "x"));
}

TEST_CASE("only 64 lower-case hexadecimal characters are a content address") {
  CHECK(is_sha256_hex(sha256_hex("x")));
  CHECK_FALSE(is_sha256_hex(""));
  CHECK_FALSE(is_sha256_hex(sha256_hex("x").substr(1)));
  CHECK_FALSE(is_sha256_hex(std::string(64, 'A')));
  CHECK_FALSE(is_sha256_hex("../" + std::string(61, 'a')));
}
