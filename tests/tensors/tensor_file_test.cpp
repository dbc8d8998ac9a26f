#include "tensors/tensor_file.hpp"

#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

using namespace gristmill;

namespace {

struct temporary_folder {
  std::filesystem::path path =
    std::filesystem::temp_directory_path() / ("gristmill-tensors-" + std::to_string(::getpid()));
  temporary_folder() { std::filesystem::create_directories(path); }
  ~temporary_folder() { std::filesystem::remove_all(path); }
};

} // namespace

TEST_CASE_FIXTURE(temporary_folder, "a tensor file reads back byte for byte") {
  std::vector<std::byte> bytes(10000);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 7);
  const auto file = path / "x.bin";
  REQUIRE(write_tensor_file(file, bytes));
  auto mapped = mapped_file::open(file, bytes.size());
  REQUIRE(mapped);
  CHECK(std::memcmp(mapped->bytes().data(), bytes.data(), bytes.size()) == 0);
  // Nothing but the file itself is left behind.
  CHECK(std::distance(std::filesystem::directory_iterator{path}, {}) == 1);
}

TEST_CASE_FIXTURE(
  temporary_folder, "writing again replaces the file, and an open map keeps the old") {
  const auto file = path / "x.bin";
  REQUIRE(write_tensor_file(file, std::vector<std::byte>(8, std::byte{1})));
  auto old = mapped_file::open(file, 8);
  REQUIRE(old);
  REQUIRE(write_tensor_file(file, std::vector<std::byte>(8, std::byte{2})));
  CHECK(old->bytes()[0] == std::byte{1});
  CHECK(mapped_file::open(file, 8)->bytes()[0] == std::byte{2});
}

TEST_CASE_FIXTURE(temporary_folder,
  "what a killed process left of a tensor stops no later one of the same number") {
  const auto file = path / "x.bin";
  for (int serial = 0; serial < 64; ++serial) {
    std::filesystem::path left = file;
    left += ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(serial);
    REQUIRE(write_tensor_file(left, {}));
  }
  const std::vector<std::byte> bytes(16, std::byte{7});
  REQUIRE(write_tensor_file(file, bytes));
  CHECK(std::filesystem::file_size(file) == 16);
  auto in_place = new_tensor_file::create(file, 8);
  REQUIRE(in_place);
  REQUIRE(in_place->commit());
  CHECK(std::filesystem::file_size(file) == 8);
}

TEST_CASE_FIXTURE(temporary_folder, "a file of another size, none and a folder are told apart") {
  const auto file = path / "x.bin";
  REQUIRE(write_tensor_file(file, std::vector<std::byte>(8)));
  CHECK(mapped_file::open(file, 9).error().code == errc::invalid_input);
  CHECK(mapped_file::open(path / "y.bin", 8).error().code == errc::not_found);
  CHECK(mapped_file::open(path, 8).error().code == errc::invalid_input);
  CHECK_FALSE(write_tensor_file(path / "no" / "x.bin", std::vector<std::byte>(8)));
}

TEST_CASE_FIXTURE(temporary_folder, "an empty tensor has a file, and a map can be moved") {
  const auto file = path / "x.bin";
  REQUIRE(write_tensor_file(file, {}));
  auto empty = mapped_file::open(file, 0);
  REQUIRE(empty);
  CHECK(empty->bytes().empty());
  REQUIRE(write_tensor_file(file, std::vector<std::byte>(8, std::byte{3})));
  auto full = mapped_file::open(file, 8);
  REQUIRE(full);
  mapped_file moved = std::move(*full);
  mapped_file target;
  target = std::move(moved);
  CHECK(target.bytes().size() == 8);
  CHECK(target.bytes()[7] == std::byte{3});
}

TEST_CASE_FIXTURE(temporary_folder, "a file that is filled in place appears when it is committed") {
  const auto file = path / "x.bin";
  {
    auto made = new_tensor_file::create(file, 10000);
    REQUIRE_MESSAGE(made, made.error().what);
    REQUIRE(made->bytes().size() == 10000);
    for (size_t i = 0; i < 10000; ++i)
      made->bytes()[i] = static_cast<std::byte>(i * 7);
    CHECK_FALSE(std::filesystem::exists(file));
    auto moved = std::move(*made);
    REQUIRE(moved.commit());
  }
  auto mapped = mapped_file::open(file);
  REQUIRE(mapped);
  REQUIRE(mapped->bytes().size() == 10000);
  CHECK(mapped->bytes()[9999] == static_cast<std::byte>(9999 * 7 % 256));
  auto empty = new_tensor_file::create(path / "empty.bin", 0);
  REQUIRE(empty);
  CHECK(empty->commit());
  CHECK(mapped_file::open(path / "empty.bin", 0));
}

TEST_CASE_FIXTURE(temporary_folder, "a file that is not committed leaves nothing") {
  {
    auto made = new_tensor_file::create(path / "x.bin", 100);
    REQUIRE(made);
  }
  CHECK(std::filesystem::is_empty(path));
  CHECK(new_tensor_file::create(path / "no" / "x.bin", 1).error().code == errc::not_found);
  // More than any disk has: an error now, not a signal later.
  CHECK(new_tensor_file::create(path / "x.bin", uint64_t{1} << 60).error().code == errc::io_failed);
  CHECK(std::filesystem::is_empty(path));
}

TEST_CASE_FIXTURE(temporary_folder, "bytes that were let go read the same again") {
  const auto file = path / "x.bin";
  REQUIRE(write_tensor_file(file, std::vector<std::byte>(100000, std::byte{5})));
  auto mapped = mapped_file::open(file, 100000);
  REQUIRE(mapped);
  mapped->release(50000);
  mapped->release(uint64_t{1} << 40);
  for (std::byte each : mapped->bytes())
    REQUIRE(each == std::byte{5});
}
