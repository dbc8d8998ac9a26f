#include "gpu/cuda/measuring_ptx.hpp"
#include "gpu/mock/mock_device.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <span>

using namespace gristmill;

namespace {

/// Our kernels on the mock GPU.
struct kernels {
  std::unique_ptr<device> gpu;
  module_handle module;
  device_pointer words = 0;

  kernels() {
    mock_device_config config;
    config.profile = *profile("h200");
    gpu = make_mock_device(config);
    auto loaded = gpu->load_module(cuda::measuring_ptx());
    REQUIRE_MESSAGE(loaded, loaded.error().what);
    module = *loaded;
    words = *gpu->allocate(16, "words");
  }

  template <size_t N>
  void run(const char* name, const std::array<uint64_t, N>& parameters) {
    auto function = gpu->find_function(module, name);
    REQUIRE(function);
    launch_shape shape;
    shape.grid = {3, 1, 1};
    shape.block = {64, 1, 1};
    const auto bytes = std::as_bytes(std::span(parameters));
    auto report =
      gpu->launch(*function, shape, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    REQUIRE_MESSAGE(report, report.error().what);
    REQUIRE_MESSAGE(!report->fault, report->fault->what);
  }

  void set_words(uint64_t first, uint64_t second) {
    const std::array<uint64_t, 2> both{first, second};
    REQUIRE(gpu->copy_in(words, std::as_bytes(std::span(both))));
  }

  std::array<uint64_t, 2> read_words() {
    std::array<uint64_t, 2> both{};
    REQUIRE(gpu->copy_out(std::as_writable_bytes(std::span(both)), words));
    return both;
  }

  uint64_t digest(device_pointer from, uint64_t bytes, uint64_t seed) {
    set_words(bytes, 0);
    run<4>("gm_digest", {from, bytes, seed, words});
    return read_words()[0];
  }
};

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::byte>(i * 37 + i / 256);
  return out;
}

uint64_t digest_of(std::span<const std::byte> bytes, uint64_t seed) {
  uint64_t sum = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    sum += cuda::digest_word(word, at / 8, seed);
  }
  return sum;
}

} // namespace

TEST_CASE("the device's digest is the host's, for every length of the last word") {
  kernels on;
  for (const size_t bytes : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{4101}}) {
    CAPTURE(bytes);
    const auto host = some_bytes(bytes);
    auto at = *on.gpu->allocate(bytes, "data");
    REQUIRE(on.gpu->copy_in(at, host));
    CHECK(on.digest(at, bytes, 5) == digest_of(host, 5));
    CHECK(on.digest(at, bytes, 6) != digest_of(host, 5));
  }
}

TEST_CASE("any flipped bit changes the digest, and so do words that change places") {
  const auto host = some_bytes(67);
  const auto right = digest_of(host, 9);
  for (size_t bit = 0; bit < host.size() * 8; ++bit) {
    auto flipped = host;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_MESSAGE(digest_of(flipped, 9) != right, "bit ", bit);
  }
  auto swapped = host;
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  CHECK(digest_of(swapped, 9) != right);
  // A shorter buffer is no other one filled up with zeros.
  CHECK(digest_of(std::span(host).first(8), 9)
    != digest_of(std::vector<std::byte>(host.begin(), host.begin() + 7), 9));
}

TEST_CASE("the device fills as the host says, to the last byte and no further") {
  kernels on;
  constexpr size_t bytes = 1003;
  auto at = *on.gpu->allocate(bytes + 5, "data");
  REQUIRE(on.gpu->memset(at, bytes + 5, 1, 0xee));
  on.run<3>("gm_fill", {at, bytes, 11});
  std::vector<std::byte> out(bytes + 5);
  REQUIRE(on.gpu->copy_out(out, at));
  for (size_t i = 0; i < bytes; ++i)
    REQUIRE(out[i] == static_cast<std::byte>(cuda::fill_word(i / 8, 11) >> i % 8 * 8));
  for (size_t i = bytes; i < out.size(); ++i)
    CHECK(out[i] == std::byte{0xee});
}

TEST_CASE("a comparison counts the words that differ and names the first") {
  kernels on;
  const auto host = some_bytes(2005);
  auto a = *on.gpu->allocate(host.size(), "a"), b = *on.gpu->allocate(host.size(), "b");
  REQUIRE(on.gpu->copy_in(a, host));
  auto other = host;
  REQUIRE(on.gpu->copy_in(b, other));
  on.set_words(0, UINT64_MAX);
  on.run<4>("gm_differ", {a, b, host.size(), on.words});
  CHECK(on.read_words()[0] == 0);
  other[2004] ^= std::byte{1};
  other[801] ^= std::byte{1};
  other[802] ^= std::byte{1};
  REQUIRE(on.gpu->copy_in(b, other));
  on.set_words(0, UINT64_MAX);
  on.run<4>("gm_differ", {a, b, host.size(), on.words});
  CHECK(on.read_words() == std::array<uint64_t, 2>{2, 100});
}
