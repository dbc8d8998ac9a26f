#include "tests/kernels/families/contraction_cases.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>

using namespace gristmill;
using namespace gristmill::test;

// Kernels of the families "gemm" and "convolution", compiled and run on the mock GPU against what
// torch says.

namespace {

stage_space_ptr space_of(const contraction_case& one) {
  auto space = one.read(one.target, one.graph);
  REQUIRE_MESSAGE(space, one.name << ": " << (space ? std::string{} : space.error().what));
  return std::move(*space);
}

/// The way to compute in a key: "mma" of "gemm/mma/bm64".
std::string path_of(const std::string& key) {
  const size_t first = key.find('/') + 1;
  return key.substr(first, key.find('/', first) - first);
}

} // namespace

TEST_CASE("the first point of every case computes what torch says, at every workload") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const auto& one : contraction_cases()) {
    const auto space = space_of(one);
    for (size_t work = 0; work < one.target.workloads.size(); ++work)
      check_point(bench, one, *space, space->first(), work);
  }
}

TEST_CASE("a sample of every way to compute gives what torch says") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  std::map<std::string, int> seen;
  for (const auto& one : contraction_cases()) {
    const auto space = space_of(one);
    // The first of each way, and a few more, which differ from case to case.
    std::map<std::string, size_t> ways;
    for (size_t point = 0; point < space->size(); ++point)
      ways.try_emplace(path_of(space->key(point)), point);
    const size_t step = 29;
    for (size_t point = one.name.size() % step; point < space->size(); point += step)
      ways.try_emplace(space->key(point), point);
    for (const auto& [way, point] : ways) {
      ++seen[path_of(space->key(point))];
      check_point(bench, one, *space, point, point % one.target.workloads.size());
    }
  }
  if (seen.empty())
    return;
  for (const char* way : {"ffma", "mma", "dots", "strips", "direct"})
    CHECK_MESSAGE(seen[way] > 0, way << " was never tried");
}
