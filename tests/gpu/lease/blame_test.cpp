#include "gpu/lease/blame.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

using standing = blame_matrix::standing;

blame_failure failure_on(
  uint32_t gpu, std::chrono::nanoseconds at, lease_outcome how = lease_outcome::fault) {
  return {gpu, how, at, fmt::format("g{}", gpu), "p", "p/cuda/1"};
}

} // namespace

TEST_CASE("one failure leaves a candidate one more try, elsewhere") {
  blame_matrix m;
  CHECK(m.of("a") == standing::clean);
  auto effect = m.on_failure("a", failure_on(0, 1s));
  CHECK_FALSE(effect.poisoned);
  CHECK_FALSE(effect.gpu_suspect);
  CHECK(m.of("a") == standing::retry_elsewhere);
  REQUIRE(m.failures("a").size() == 1);
  CHECK(m.failures("a")[0].gpu_name == "g0");
}

TEST_CASE("a candidate that fails on two GPUs is poison, and is called so once") {
  blame_matrix m;
  m.on_failure("a", failure_on(0, 1s));
  // The same GPU again proves nothing more.
  CHECK_FALSE(m.on_failure("a", failure_on(0, 2s)).poisoned);
  CHECK(m.of("a") == standing::retry_elsewhere);
  CHECK(m.on_failure("a", failure_on(1, 3s, lease_outcome::hang)).poisoned);
  CHECK(m.of("a") == standing::poison);
  CHECK_FALSE(m.on_failure("a", failure_on(2, 4s)).poisoned);
  CHECK(m.failures("a").size() == 2);
}

TEST_CASE("two different candidates within an hour make a GPU suspect") {
  blame_matrix m;
  CHECK_FALSE(m.on_failure("a", failure_on(0, 0s)).gpu_suspect);
  CHECK_FALSE(m.on_failure("a", failure_on(0, 1s)).gpu_suspect);
  CHECK_FALSE(m.on_failure("b", failure_on(1, 1s)).gpu_suspect);
  CHECK(m.on_failure("c", failure_on(0, 59min)).gpu_suspect);
}

TEST_CASE("failures an hour apart do not speak against a GPU together") {
  blame_matrix m;
  m.on_failure("a", failure_on(0, 0s));
  CHECK_FALSE(m.on_failure("b", failure_on(0, 60min)).gpu_suspect);
  CHECK(m.on_failure("c", failure_on(0, 61min)).gpu_suspect);
}

TEST_CASE("poison says nothing about the GPU that it fails on") {
  blame_matrix m;
  m.on_failure("a", failure_on(0, 1s));
  m.on_failure("a", failure_on(1, 2s));
  CHECK_FALSE(m.on_failure("b", failure_on(0, 3s)).gpu_suspect);
  CHECK_FALSE(m.on_failure("a", failure_on(0, 4s)).gpu_suspect);
  CHECK(m.on_failure("c", failure_on(0, 5s)).gpu_suspect);
}

TEST_CASE("what the house broke, and what went well, blames nobody") {
  blame_matrix m;
  for (uint32_t gpu : {0u, 1u, 2u}) {
    m.on_failure("a", failure_on(gpu, 1s, lease_outcome::infrastructure));
    m.on_failure("a", failure_on(gpu, 1s, lease_outcome::fine));
    m.on_failure("", failure_on(gpu, 1s));
  }
  CHECK(m.of("a") == standing::clean);
  CHECK(m.of("") == standing::clean);
  CHECK(m.size() == 0);
}

TEST_CASE("a GPU that has passed a probe starts with a clean record") {
  blame_matrix m;
  m.on_failure("a", failure_on(0, 1s));
  m.absolve_gpu(0, 2s);
  CHECK_FALSE(m.on_failure("b", failure_on(0, 3s)).gpu_suspect);
  CHECK(m.on_failure("c", failure_on(0, 4s)).gpu_suspect);
  // That does not make the candidate better.
  CHECK(m.of("a") == standing::retry_elsewhere);
}

TEST_CASE("victims of a bad GPU are forgiven; who failed elsewhere too is not") {
  blame_matrix m;
  m.on_failure("b", failure_on(0, 1s));
  m.on_failure("a", failure_on(0, 2s));
  m.on_failure("c", failure_on(0, 3s));
  m.on_failure("c", failure_on(1, 4s));
  auto victims = m.condemn_gpu(0);
  REQUIRE(victims.size() == 2);
  CHECK(victims[0].candidate == "a");
  CHECK(victims[1].candidate == "b");
  CHECK(victims[1].failure.attempt == "p/cuda/1");
  CHECK(m.of("a") == standing::clean);
  CHECK(m.of("c") == standing::retry_elsewhere);
  CHECK(m.condemn_gpu(0).empty());
  CHECK(m.condemn_gpu(7).empty());
  CHECK(m.condemn_gpu(1).size() == 1);
}

TEST_CASE("the matrix is bounded, and poison is forgotten last") {
  blame_config c;
  c.candidates_max = 100;
  blame_matrix m(c);
  m.on_failure("poison", failure_on(0, 1ns));
  m.on_failure("poison", failure_on(1, 1ns));
  for (int i = 0; i < 10'000; ++i)
    m.on_failure(fmt::format("c{}", i), failure_on(static_cast<uint32_t>(i % 5), 2ns * i));
  CHECK(m.size() == 100);
  CHECK(m.of("poison") == standing::poison);
  CHECK(m.of("c0") == standing::clean);
  CHECK(m.of("c9999") == standing::retry_elsewhere);
}
