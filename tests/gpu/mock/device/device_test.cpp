#include "tests/gpu/mock/device/device_fixture.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace gristmill;
using namespace gristmill::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A file with these floats over and over, removed afterwards.
class pattern_file {
public:
  explicit pattern_file(size_t bytes) {
    std::string name = (std::filesystem::temp_directory_path() / "gristmill-XXXXXX").string();
    const int fd = mkstemp(name.data());
    REQUIRE(fd >= 0);
    close(fd);
    path_ = name;
    std::vector<float> values(bytes / 4);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i);
    std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
  }
  pattern_file(const pattern_file&) = delete;
  pattern_file& operator=(const pattern_file&) = delete;
  ~pattern_file() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

} // namespace

TEST_CASE("a kernel reads a mapped input and writes an output, which comes back") {
  auto gpu = new_device();
  const std::vector<float> x{1, 2, 3, 4, 5};
  const auto in = good(gpu->map_input(bytes_of(x), "x"));
  const auto out = good(gpu->allocate(20, "y"));
  const auto module = good(gpu->load_module(doubling));
  const auto twice = good(gpu->find_function(module, "twice"));
  const auto report = good(gpu->launch(twice, line_of(2, 32), parameters(in, out, int32_t{5})));
  REQUIRE_MESSAGE(!report.fault, report.fault->what);
  REQUIRE(report.counts);
  CHECK(report.counts->blocks_run == 2);
  std::vector<float> y(5);
  REQUIRE(gpu->copy_out(std::as_writable_bytes(std::span(y)), out));
  CHECK(y == std::vector<float>{2, 4, 6, 8, 10});
  CHECK_FALSE(good(gpu->synchronise()).fault);
}

TEST_CASE("addresses are the same in each run, aligned and far from each other") {
  auto gpu = new_device();
  CHECK(good(gpu->allocate(1, "a")) == 0x700'0000'0000);
  CHECK(good(gpu->allocate(2 << 20, "b")) == 0x700'0040'0000);
  CHECK(good(gpu->allocate((2 << 20) + 1, "c")) == 0x700'0080'0000);
  CHECK(good(gpu->allocate(0, "d")) == 0x700'00e0'0000);
  // Not used again after a free, but after a reset.
  REQUIRE(gpu->free(0x700'0000'0000));
  CHECK(good(gpu->allocate(1, "e")) == 0x700'0100'0000);
  gpu->reset();
  CHECK(good(gpu->allocate(1, "f")) == 0x700'0000'0000);
}

TEST_CASE("out of bounds, writes to inputs and endless loops are the kernel's faults") {
  auto gpu = new_device();
  const std::vector<float> x(32);
  const auto in = good(gpu->map_input(bytes_of(x), "activations"));
  const auto out = good(gpu->allocate(64, "y"));
  const auto module = good(gpu->load_module(doubling));
  const auto twice = good(gpu->find_function(module, "twice"));

  const auto over = good(gpu->launch(twice, line_of(1, 32), parameters(in, out, int32_t{32})));
  REQUIRE(over.fault);
  CHECK(over.fault->kind == "out of bounds");
  CHECK_FALSE(over.fault->timeout);
  CHECK(over.fault->ptx_line > 0);

  const auto write = good(gpu->launch(twice, line_of(1, 32), parameters(out, in, int32_t{8})));
  REQUIRE(write.fault);
  CHECK(write.fault->kind == "write to read-only memory");
  CHECK(contains(write.fault->what, "activations"));
  CHECK(x == std::vector<float>(32));

  const auto forever = good(gpu->find_function(module, "forever"));
  const auto late = good(gpu->launch(forever, line_of(1, 32), {}));
  REQUIRE(late.fault);
  CHECK(late.fault->timeout);
}

TEST_CASE("memory is copied, set and cleared") {
  auto gpu = new_device();
  const auto a = good(gpu->allocate(20000, "a"));
  const auto b = good(gpu->allocate(20000, "b"));
  std::vector<uint8_t> bytes(20000, 7), back(20000);
  REQUIRE(gpu->copy_in(a, bytes_of(bytes)));
  REQUIRE(gpu->copy(b, a, 20000));
  // Clears whole pages and the rests at both ends.
  REQUIRE(gpu->memset(b + 100, 15000, 1, 0));
  REQUIRE(gpu->memset(b + 16000, 8, 4, 0x01020304));
  REQUIRE(gpu->memset(b + 17000, 4, 2, 0xffff0506));
  REQUIRE(gpu->copy_out(std::as_writable_bytes(std::span(back)), b));
  for (size_t i = 0; i < back.size(); ++i) {
    const uint8_t want = i >= 100 && i < 15100 ? 0
      : i >= 16000 && i < 16008                ? static_cast<uint8_t>(4 - i % 4)
      : i >= 17000 && i < 17004                ? static_cast<uint8_t>(6 - i % 2)
                                               : 7;
    REQUIRE(back[i] == want);
  }
  CHECK(gpu->memset(b, 0, 4, 1));
  CHECK(gpu->copy(b, a, 0));
}

TEST_CASE("ranges that do not lie in one buffer are refused") {
  auto gpu = new_device();
  const auto a = good(gpu->allocate(100, "a"));
  const std::vector<float> x(4);
  const auto in = good(gpu->map_input(bytes_of(x), "x"));
  std::vector<uint8_t> bytes(101);
  CHECK_FALSE(gpu->copy_in(a, bytes_of(bytes)));
  CHECK_FALSE(gpu->copy_out(std::as_writable_bytes(std::span(bytes)), a));
  CHECK_FALSE(gpu->copy_out(std::as_writable_bytes(std::span(bytes)), 0));
  CHECK_FALSE(gpu->copy_out(std::as_writable_bytes(std::span(bytes)), a - 1));
  CHECK_FALSE(gpu->copy_out(std::as_writable_bytes(std::span(bytes)), UINT64_MAX - 3));
  CHECK_FALSE(gpu->copy(a, in, 17));
  CHECK_FALSE(gpu->memset(a, 3, 2, 0));
  CHECK_FALSE(gpu->memset(a + 1, 4, 4, 0));
  CHECK_FALSE(gpu->memset(a, 4, 3, 0));
  const auto written = gpu->copy_in(in, bytes_of(x));
  REQUIRE_FALSE(written);
  CHECK(contains(written.error().what, "x is read-only"));
  CHECK_FALSE(gpu->memset(in, 4, 4, 0));
  CHECK_FALSE(gpu->free(a + 4));
  REQUIRE(gpu->free(a));
  CHECK_FALSE(gpu->free(a));
  CHECK_FALSE(gpu->copy_in(a, bytes_of(x)));
}

TEST_CASE("the device has the memory of its model and no more") {
  auto gpu = new_device();
  const auto most = gpu->properties().memory_bytes;
  CHECK(most == 141'000'000'000);
  const auto all = good(gpu->allocate(most - 10, "all"));
  const auto more = gpu->allocate(11, "more");
  REQUIRE_FALSE(more);
  CHECK(more.error().code == errc::refused);
  CHECK(contains(more.error().what, "10 of"));
  REQUIRE(gpu->free(all));
  CHECK(gpu->allocate(11, "more"));
  CHECK_FALSE(gpu->allocate(UINT64_MAX, "absurd"));
}

TEST_CASE("a short pattern stands for a long input") {
  auto gpu = new_device();
  const pattern_file file(1 << 20);
  const auto in = good(gpu->map_repeated(file.path(), 1 << 20, (5ULL << 30) + 8, "x"));
  std::vector<float> seen(4);
  const auto at = [&](uint64_t offset) {
    REQUIRE(gpu->copy_out(std::as_writable_bytes(std::span(seen)), in + offset));
    return seen;
  };
  CHECK(at(0) == std::vector<float>{0, 1, 2, 3});
  CHECK(at((3ULL << 30) + 16) == std::vector<float>{4, 5, 6, 7});
  CHECK(at((1 << 20) - 8) == std::vector<float>{262142, 262143, 0, 1});
  CHECK(at((5ULL << 30) - 8)[3] == 1);
  CHECK_FALSE(gpu->copy_out(std::as_writable_bytes(std::span(seen)), in + (5ULL << 30)));

  // A buffer shorter than its pattern, and one of a page's fraction.
  const auto small = good(gpu->map_repeated(file.path(), 1 << 20, 10, "small"));
  CHECK(small > in);
}

TEST_CASE("patterns that cannot be mapped are refused before anything touches them") {
  auto gpu = new_device();
  const pattern_file file(8192);
  CHECK_FALSE(gpu->map_repeated(file.path(), 100, 10000, "x"));
  CHECK_FALSE(gpu->map_repeated(file.path(), 0, 10, "x"));
  const auto beyond = gpu->map_repeated(file.path(), 1 << 20, 1 << 21, "x");
  REQUIRE_FALSE(beyond);
  CHECK(contains(beyond.error().what, "8192 bytes"));
  CHECK_FALSE(gpu->map_repeated(file.path(), 8192, 1ULL << 30, "x"));
  const auto missing = gpu->map_repeated("/nonexistent/file", 4096, 8192, "x");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::io_failed);
  CHECK_FALSE(gpu->map_repeated("/", 4096, 8192, "x"));
  CHECK_FALSE(gpu->map_repeated(file.path(), 8192, UINT64_MAX, "x"));
}

TEST_CASE("modules come and go, and stale handles are errors") {
  auto gpu = new_device();
  const auto broken = gpu->load_module("not PTX");
  REQUIRE_FALSE(broken);
  const auto module = good(gpu->load_module(doubling));
  const auto missing = gpu->find_function(module, "twise");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(contains(missing.error().what, "twice"));
  const auto twice = good(gpu->find_function(module, "twice"));
  const auto seen = good(gpu->describe(twice));
  CHECK(seen.name == "twice");
  CHECK(seen.parameter_bytes == 20);
  CHECK(seen.max_threads == 1024);
  CHECK(seen.registers > 0);
  CHECK(good(gpu->describe(good(gpu->find_function(module, "few")))).max_threads == 64);
  CHECK(good(gpu->occupancy(twice, 256, 0)) == 8);
  REQUIRE(gpu->unload_module(module));
  CHECK_FALSE(gpu->unload_module(module));
  CHECK_FALSE(gpu->describe(twice));
  CHECK_FALSE(gpu->launch(twice, line_of(1, 1), parameters(uint64_t{0}, uint64_t{0}, 0)));
  CHECK_FALSE(gpu->describe({0, 0}));
  CHECK(good(gpu->load_module(doubling)).id != module.id);
}

TEST_CASE("variables of a module live from launch to launch and can be put back") {
  auto gpu = new_device();
  const auto module = good(gpu->load_module(doubling));
  const auto count = good(gpu->find_function(module, "count"));
  const auto before = good(gpu->globals(module));
  REQUIRE_FALSE(good(gpu->launch(count, line_of(3, 1), {})).fault);
  const auto after = good(gpu->globals(module));
  CHECK(before != after);
  REQUIRE(gpu->restore_globals(module, before));
  CHECK(good(gpu->globals(module)) == before);
  CHECK_FALSE(gpu->restore_globals(module, std::vector<uint8_t>(before.size() + 1)));
  CHECK_FALSE(gpu->globals({99}));
}

TEST_CASE("launches that a GPU refuses are refused") {
  auto gpu = new_device();
  const auto module = good(gpu->load_module(doubling));
  const auto few = good(gpu->find_function(module, "few"));
  const auto twice = good(gpu->find_function(module, "twice"));
  const auto refusal = [&](function_handle f, launch_shape shape) {
    const auto report = gpu->launch(f, shape, std::vector<uint8_t>(20));
    REQUIRE_FALSE(report);
    return report.error();
  };
  CHECK(contains(refusal(few, line_of(0, 1)).what, "grid"));
  CHECK(refusal(few, line_of(1, 0)).code == errc::refused);
  CHECK(contains(refusal(few, line_of(1, 65)).what, "at most 64"));
  CHECK(contains(refusal(twice, line_of(1, 1025)).what, "at most 1024"));
  launch_shape shape = line_of(1, 1);
  shape.grid[1] = 65536;
  CHECK(contains(refusal(few, shape).what, "too large"));
  shape = line_of(1, 1);
  shape.block[2] = 65;
  refusal(twice, shape);
  shape = line_of(1, 1);
  shape.dynamic_shared = (227 << 10) + 1;
  CHECK(contains(refusal(few, shape).what, "shared memory"));
  shape = line_of(1, 1);
  shape.cluster[0] = 2;
  CHECK(contains(refusal(few, shape).what, "no multiple of the cluster's 2"));
  shape = line_of(132 * 32 + 1, 32);
  shape.cooperative = true;
  CHECK(contains(refusal(few, shape).what, "cooperative"));
  const auto short_of = gpu->launch(twice, line_of(1, 1), std::vector<uint8_t>(19));
  REQUIRE_FALSE(short_of);
  CHECK(contains(short_of.error().what, "`n` ends at 20"));
}
