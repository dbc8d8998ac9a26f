#include "gpu/toolchain/compile_steps.hpp"

#include <doctest/doctest.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

result<std::optional<compile_output>> ended(int status, std::string output) {
  compiler_run run;
  run.status = status;
  run.output = std::move(output);
  return failed_run(run, compile_input{}, "/job/7", 1000ms);
}

} // namespace

TEST_CASE("a compiler that ended well has not failed") {
  auto answer = ended(0, "warning: No space left on device\n");
  REQUIRE(answer);
  CHECK_FALSE(answer->has_value());
}

TEST_CASE("what the candidate did wrong is its compile error, whatever words it uses") {
  for (const char* log :
    {"kernel.cu:3:10: error: use of undeclared identifier 'x'\n",
      "kernel.cu:1:2: error: No space left on device\n    1 | #error No space left on device\n"}) {
    auto answer = ended(1, log);
    REQUIRE(answer);
    REQUIRE(answer->has_value());
    CHECK((*answer)->status == verdict_status::compile_error);
  }
}

TEST_CASE("a full disk is nobody's compile error") {
  for (const char* log :
    {"fatal error: error in backend: IO failure on output stream: No space left on device\n",
      "kernel.cu:1:2: warning: x\nerror: unable to open output file 'unit.ll': 'Read-only file "
      "system'\n1 error generated.\n"}) {
    auto answer = ended(70, log);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == errc::io_failed);
  }
}

TEST_CASE("a compiler that could not be executed is nobody's compile error") {
  for (int status : {126, 127}) {
    auto answer = ended(status, "compiler-helper: 2: exec: gristmill-jail: not found\n");
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == errc::io_failed);
    CHECK(answer.error().what.find("gristmill-jail: not found") != std::string::npos);
  }
}
