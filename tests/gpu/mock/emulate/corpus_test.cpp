// The kernels of tests/corpus/device_kernels are right: compute-sanitizer found nothing in any of
// them on an H200. So the checks of the mock must not find anything either.

#include "bench/calibration/mock_call.hpp"
#include "gpu/mock/emulate.hpp"
#include "tests/gpu/mock/emulate/compile.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <sstream>

namespace {

using namespace gristmill;
using namespace gristmill::calibration;

std::filesystem::path corpus_folder() {
  const char* root = std::getenv("GRISTMILL_SOURCE");
  return std::filesystem::path(root == nullptr ? "." : root) / "tests/corpus/device_kernels";
}

/// Kernels that clang cannot compile into what the mock runs; docs/calibration.md says why.
bool needs_nvrtc(const std::string& name) {
  std::ifstream in(corpus_folder() / "mock_cannot.txt");
  for (std::string line; std::getline(in, line);)
    if (line.substr(0, line.find(' ')) == name)
      return true;
  return false;
}

} // namespace

TEST_CASE("no check finds anything in a kernel of the corpus, in any order of its blocks") {
  const auto with = gristmill::testing::clang();
  if (!with) {
    MESSAGE("SKIPPED: the corpus is not checked: " << with.error().what);
    return;
  }
  const auto kernels = load_corpus(corpus_folder());
  REQUIRE(kernels);
  std::istringstream text(corpus_text(*kernels));
  const auto cases = parse_corpus(text);
  const char* only = std::getenv("GRISTMILL_ONLY_KERNEL");
  const auto other = gristmill::testing::nvrtc();
  if (!other)
    MESSAGE("SKIPPED: kernels with tensor maps are not checked: " << other.error().what);
  size_t ran = 0;
  for (size_t i = 0; i < kernels->size(); ++i) {
    const corpus_kernel& kernel = (*kernels)[i];
    if ((only != nullptr && kernel.name.find(only) != 0))
      continue;
    CAPTURE(kernel.name);
    REQUIRE(kernel.small);
    const bool by_nvrtc = needs_nvrtc(kernel.name);
    if (by_nvrtc && !other)
      continue;
    const auto code = by_nvrtc
      ? gristmill::testing::compile(kernel.source, kernel.small->unit, kernel.options, *other)
      : gristmill::testing::compile(kernel.source, kernel.small->unit, kernel.options, *with);
    REQUIRE(code);
    REQUIRE_MESSAGE(code->status == verdict_status::passed, code->log);
    std::vector<std::vector<std::byte>> inputs;
    for (const auto& bytes : small_inputs(cases[i])) {
      inputs.emplace_back(bytes.size());
      std::memcpy(inputs.back().data(), bytes.data(), bytes.size());
    }
    emulate_settings how;
    how.profile = *profile("h200");
    how.instruction_limit = 40'000'000;
    how.orders = 1;
    how.time = false;
    how.allowed.atol = cases[i].atol;
    how.allowed.rtol = cases[i].rtol;
    const auto seen = emulate(code->ptx, code->entries, *kernel.small, inputs, how);
    REQUIRE_MESSAGE(seen, (seen ? std::string{} : seen.error().what));
    for (const emulated_finding& found : seen->findings)
      CHECK_MESSAGE(!found.is_fault, found.what.what, " (", found.what.times, " times)");
    ++ran;
  }
  MESSAGE(ran << " kernels were checked");
  CHECK((only != nullptr || ran >= 80));
}
