// Models the ten kernels of the test corpus at the sizes at which kernels of the same design,
// compiled by nvcc, were timed on a real H200, and prints both times. No constant of the model was
// fitted to them; what else the comparison is worth is in
// docs/decisions/0005-clang-toolchain-and-clock.md.
//
//   clock_blind [GPU [INSTRUCTIONS]]   (GRISTMILL_SOURCE names the root of the source tree)

#include "gpu/mock/mock_device.hpp"
#include "gpu/mock/ptx/ptx.hpp"
#include "gpu/toolchain/clang_toolchain.hpp"
#include "tests/gpu/toolchain/kernel_cases.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <type_traits>

namespace {

using namespace gristmill;

/// Median of 30 runs of those kernels with events and a flushed L2, driver 580, in microseconds.
const std::map<std::string, double> measured_on_h200{{"vadd", 243.6}, {"transpose", 219.0},
  {"block_reduce", 117.6}, {"softmax_row", 128.0}, {"rmsnorm", 74.0}, {"sgemm", 6321},
  {"flash", 6051}, {"histogram", 204.9}, {"mma_gemm", 883}, {"bulk_scale", 172.2}};

template <class T>
T must(result<T> r) {
  if (!r) {
    fmt::print(stderr, "clock_blind: {}\n", r.error().what);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>)
    return std::move(*r);
}

std::string read_source(const std::string& name) {
  const char* root = std::getenv("GRISTMILL_SOURCE");
  const auto path =
    std::filesystem::path(root == nullptr ? "." : root) / "tests/corpus/kernels" / (name + ".cu");
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    fmt::print(stderr, "clock_blind: {} cannot be read; set GRISTMILL_SOURCE\n", path.string());
    std::exit(1);
  }
  return std::string(std::istreambuf_iterator<char>(in), {});
}

double run(const std::string& name, const gpu_profile& gpu, const clang_command& clang,
  const std::filesystem::path& folder, const sampling& how) {
  test::kernel_case kernel = test::make_case(name, true);
  compile_input input;
  input.source = read_source(name);
  input.unit = kernel.unit;
  input.arch = gpu.arch;
  const compile_output code = must(compile_with_clang(input, folder, clang));
  if (code.status != verdict_status::passed) {
    fmt::print(stderr, "{}: {}\n", name, code.log);
    std::exit(1);
  }
  auto device = make_mock_device({gpu, 4'000'000'000, how});
  std::vector<device_pointer> addresses;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const test::case_buffer& buffer = kernel.buffers[i];
    if (!buffer.input) {
      addresses.push_back(must(device->allocate(buffer.bytes, buffer.name)));
      continue;
    }
    const std::string path = (folder / fmt::format("pattern{}", i)).string();
    std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(buffer.content.data()),
        static_cast<std::streamsize>(buffer.content.size()));
    addresses.push_back(
      must(device->map_repeated(path, buffer.content.size(), buffer.bytes, buffer.name)));
  }
  const auto module = must(device->load_module(code.ptx));
  const auto function = must(device->find_function(module, code.entries[0].symbol));
  launch_shape shape;
  shape.grid = kernel.grid;
  shape.block = kernel.block;
  shape.dynamic_shared = kernel.dynamic_shared;
  const std::clock_t start = std::clock();
  must(device->begin_timing());
  const auto report = must(device->launch(function, shape, kernel.parameters(addresses)));
  const call_time time = must(device->end_timing());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;

  const double modelled = static_cast<double>(time.ns) / 1e3;
  fmt::print("{:<13} modelled {:>8.1f} us", name, modelled);
  double error = 0;
  if (gpu.name == "h200") {
    const double measured = measured_on_h200.at(name);
    error = modelled / measured - 1;
    fmt::print("  measured {:>8.1f} us  {:>+5.0f} %", measured, error * 100);
  }
  fmt::print("  bound {:<10} |", time.bound);
  for (const time_term& term : time.terms)
    fmt::print(" {} {:.1f}", term.name, term.ns / 1e3);
  fmt::print(" | {} registers, {} blocks in {:.2f} s of CPU\n",
    must(device->describe(function)).registers, report.counts->blocks_run, seconds);
  return std::fabs(error);
}

} // namespace

int main(int argc, char** argv) {
  const gpu_profile gpu = must(profile(argc > 1 ? argv[1] : "h200"));
  sampling how;
  if (argc > 2)
    how.instructions = std::strtoull(argv[2], nullptr, 10);
  const char* path = std::getenv("PATH");
  const clang_command clang = must(find_clang(path == nullptr ? "" : path));
  std::string name = (std::filesystem::temp_directory_path() / "gristmill-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    return 1;
  fmt::print("{}\n", properties_of(gpu).time_label);
  double sum = 0, worst = 0;
  for (const std::string& kernel : test::case_names()) {
    const double error = run(kernel, gpu, clang, name, how);
    sum += error;
    worst = std::max(worst, error);
  }
  if (gpu.name == "h200")
    fmt::print("mean absolute error {:.0f} %, worst {:.0f} %\n", sum * 10, worst * 100);
  std::filesystem::remove_all(name);
  return 0;
}
