// How fast the judge's comparison goes over large outputs, and how much memory it takes: for each
// dtype, two files of one gigabyte are mapped and compared as gristmill-judge does, in a process of
// its own. The files are read once before, so that the figure is not the disk's.
//
// usage: gristmill-bench-compare [FOLDER] [MEBIBYTES]

#include "tensors/compare.hpp"
#include "tensors/generate.hpp"
#include "tensors/tensor_file.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;

namespace {

constexpr int64_t columns = 4096;
constexpr uint64_t pattern_bytes = uint64_t{4} << 20;

/// A tensor that repeats one pattern; `spoil` flips a high bit of one byte in `every`.
bool fill(const std::filesystem::path& path, dtype type, uint64_t bytes, uint64_t spoil_every) {
  std::vector<std::byte> pattern(pattern_bytes);
  const std::vector<int64_t> shape{
    static_cast<int64_t>(pattern_bytes * 8 / element_bits(type)) / columns, columns};
  generate(choose_distribution("x", "", type, shape, ""), type, shape, {}, 0, pattern);
  if (spoil_every != 0)
    for (size_t i = 1; i < pattern.size(); i += spoil_every)
      pattern[i] ^= std::byte{0x20};
  auto file = new_tensor_file::create(path, bytes);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().what);
    return false;
  }
  for (uint64_t at = 0; at < bytes; at += pattern_bytes)
    std::memcpy(file->bytes().data() + at, pattern.data(), pattern_bytes);
  return file->commit().has_value();
}

/// In a process of its own: its peak memory is this comparison's.
int compare_files(
  const std::filesystem::path& x, const std::filesystem::path& y, dtype type, uint64_t bytes) {
  auto solution = mapped_file::open(x, bytes);
  auto reference = mapped_file::open(y, bytes);
  if (!solution || !reference)
    return 1;
  const std::vector<int64_t> shape{
    static_cast<int64_t>(bytes * 8 / element_bits(type)) / columns, columns};
  const auto begin = std::chrono::steady_clock::now();
  const auto found =
    compare(type, shape, solution->bytes(), reference->bytes(), {}, [&](uint64_t done) {
      solution->release(done);
      reference->release(done);
    });
  const auto end = std::chrono::steady_clock::now();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double seconds = std::chrono::duration<double>(end - begin).count();
  const auto processor = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double ours = processor(used.ru_utime) + processor(used.ru_stime);
  const double giga = static_cast<double>(bytes) / 1e9;
  fmt::print("{:<16} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>12} {:>10} {:>9.1f}\n", name(type),
    seconds, giga / seconds, ours, giga / ours, found.elements, found.mismatches,
    static_cast<double>(used.ru_maxrss) / 1024);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder =
    argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  const uint64_t bytes =
    (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1024) / 4 * pattern_bytes;
  const auto x = folder / fmt::format("gristmill-bench-{}.x.bin", getpid());
  const auto y = folder / fmt::format("gristmill-bench-{}.y.bin", getpid());
  // Processor time beside the wall's: the machine may have other things to do.
  fmt::print("{} MiB of each output\n{:<16} {:>8} {:>8} {:>8} {:>8} {:>12} {:>10} {:>9}\n",
    bytes >> 20, "dtype", "wall s", "GB/s", "cpu s", "GB/cpu s", "elements", "misses", "RSS MiB");
  for (const auto& type_name : dtype_names()) {
    const auto type = *parse_dtype(type_name);
    if (!fill(x, type, bytes, 4099) || !fill(y, type, bytes, 0))
      return 1;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const int status = compare_files(x, y, type, bytes);
      std::fflush(stdout);
      _exit(status);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
      fmt::print(stderr, "{}: failed\n", type_name);
  }
  std::filesystem::remove(x);
  std::filesystem::remove(y);
  return 0;
}
