// How long the PTX interpreter takes for the ten kernels of tests/corpus/ptx: nanoseconds a launch
// and a warp instruction, counts only and with the models of caches and time.
//
// Usage: gristmill-bench-ptx [SOURCE_FOLDER]

#include "gpu/mock/ptx/ptx.hpp"
#include "tests/gpu/mock/ptx/corpus_cases.hpp"

#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <iterator>

namespace {

using namespace gristmill::ptx;

/// Processor time of this thread: the machine may have other things to do.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
  const std::string folder = std::string(argc > 1 ? argv[1] : ".") + "/tests/corpus/ptx/";
  fmt::print("{:16} {:>6} {:>14} {:>12} {:>10} {:>14}\n", "kernel", "from", "ns", "ns/warp inst",
    "G lanes/s", "ns modelled");
  for (testing::corpus_case& c : testing::corpus_cases(20))
    for (const std::string compiler : {"clang", "nvcc"}) {
      std::ifstream in(folder + c.name + "." + compiler + ".ptx");
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      const auto m = parse(text);
      if (!m || text.empty()) {
        fmt::print(stderr, "{}{}: {}\n", folder, c.name, m ? "not found" : m.error().what);
        return 1;
      }
      double times[2];
      outcome result;
      for (const bool modelled : {true, false}) {
        c.reset();
        c.with.what.caches = c.with.what.timing = modelled;
        const double begin = seconds();
        result = c.with.run(*m);
        times[modelled ? 1 : 0] = seconds() - begin;
        if (result.failed || c.error() > 1) {
          fmt::print(stderr, "{}: {}\n", c.name, result.failed ? result.failed->what : "wrong");
          return 1;
        }
      }
      fmt::print("{:16} {:>6} {:>14.0f} {:>12.1f} {:>10.2f} {:>14.0f}\n", c.name, compiler,
        1e9 * times[0], 1e9 * times[0] / static_cast<double>(result.done.warp_instructions),
        static_cast<double>(result.done.lane_instructions) / times[0] / 1e9, 1e9 * times[1]);
    }
}
