#include "gpu/cuda/measuring_ptx.hpp"
#include "gpu/toolchain/resource_lines.hpp"
#include "tests/gpu/cuda/assembler.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("our own kernels assemble for every architecture") {
  auto with = cuda::assembler::load({});
  if (!with) {
    MESSAGE("SKIPPED: " << with.error().what);
    return;
  }
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    CAPTURE(arch);
    auto all = with->assemble(cuda::measuring_ptx(), arch);
    REQUIRE_MESSAGE(all, all.error().what);
    for (const char* name :
      {"gm_read", "gm_digest", "gm_fill", "gm_differ", "gm_touch", "gm_canary"})
      CHECK(all->log.find(name) != std::string::npos);
    CHECK(all->log.find("registers") != std::string::npos);
  }
  auto scrub = with->assemble(cuda::scrub_ptx(512, 232448), "sm_90a");
  REQUIRE_MESSAGE(scrub, scrub.error().what);
  // What is written to local memory must not be optimised away.
  CHECK(scrub->log.find("512 bytes stack frame") != std::string::npos);
}

TEST_CASE("code that does not assemble is refused with the assembler's words") {
  auto with = cuda::assembler::load({});
  if (!with) {
    MESSAGE("SKIPPED: " << with.error().what);
    return;
  }
  auto bad = with->assemble(
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { frobnicate; }\n",
    "sm_90a");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == errc::invalid_input);
  CHECK(bad.error().what.find("frobnicate") != std::string::npos);
}

TEST_CASE("the assembler says itself where it slows code down because that might be linked") {
  auto with = cuda::assembler::load({});
  if (!with) {
    MESSAGE("SKIPPED: " << with.error().what);
    return;
  }
  const std::string head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                           ".visible .entry k()\n.maxntid 128, 1, 1\n.minnctapersm 1\n{\n";
  auto plain = with->assemble(head + "  ret;\n}\n", "sm_90a");
  REQUIRE_MESSAGE(plain, plain.error().what);
  CHECK_FALSE(is_slowed_by_linking(plain->log));
  auto slowed =
    with->assemble(head + "  setmaxnreg.inc.sync.aligned.u32 240;\n  ret;\n}\n", "sm_90a");
  REQUIRE_MESSAGE(slowed, slowed.error().what);
  CHECK(is_slowed_by_linking(slowed->log));
}
