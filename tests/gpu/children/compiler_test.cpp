#include "gpu/toolchain/device_compiler.hpp"
#include "protocol/child_answers.hpp"
#include "tests/gpu/children/child_fixture.hpp"

#include <cstdlib>
#include <doctest/doctest.h>

using namespace gristmill;

namespace {

struct compiler_fixture : child_fixture {
  job_directory& folder = new_job();
  job what;
  bool skipped = false;

  compiler_fixture() {
    const char* path = std::getenv("PATH");
    auto clang = find_clang(path ? path : "/usr/bin:/bin");
    skipped = !clang;
    if (skipped) {
      MESSAGE("SKIPPED: ", clang.error().what);
      return;
    }
    what.kind = job_kind::compile;
    what.nonce = nonce;
    what.compile.source_file = "kernel.cu";
    what.compile.arch = "sm_90a";
    what.compile.compiler = clang->program;
    what.compile.compiler_version = clang->version;
    REQUIRE(folder.write(
      "kernel.cu", "template <int N> __global__ void fill(float* y) { y[threadIdx.x] = N; }\n"));
    compile_unit unit;
    unit.key = "main{N=3}";
    unit.defines = {{"N", "3"}};
    unit.entries = {{"fill<N>", {"float*"}, {"y"}, {false}}};
    what.compile.units = {unit};
  }

  std::vector<compile_answer> compile() {
    const auto answer = run_job(child_profile::compiler, "gristmill-compiler", what, folder);
    REQUIRE_MESSAGE(answer.end == child_end::done, answer.log);
    auto read = read_compile_answers(answer.lines, nonce);
    REQUIRE_MESSAGE(read, read.error().what);
    return *read;
  }
};

} // namespace

TEST_CASE_FIXTURE(compiler_fixture, "a unit that compiles gives PTX and the symbol of its entry") {
  if (skipped)
    return;
  // The define would also replace the template's parameter.
  REQUIRE(folder.write(
    "kernel.cu", "template <int M> __global__ void fill(float* y) { y[threadIdx.x] = M; }\n"));
  const auto answers = compile();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].unit == "main{N=3}");
  REQUIRE_MESSAGE(answers[0].status == verdict_status::passed, answers[0].log);
  CHECK(answers[0].toolchain == what.compile.compiler_version);
  REQUIRE(answers[0].entries.size() == 1);
  auto ptx = read_whole_file(folder.file(answers[0].file), 1 << 20);
  REQUIRE(ptx);
  CHECK(ptx->find(".entry " + answers[0].entries[0].symbol) != std::string::npos);
}

TEST_CASE_FIXTURE(compiler_fixture, "a source with an error is an answer, not a failure") {
  if (skipped)
    return;
  REQUIRE(folder.write("kernel.cu", "__global__ void fill(float* y) { nonsense; }\n"));
  const auto answers = compile();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].status == verdict_status::compile_error);
  CHECK(answers[0].file.empty());
  CHECK(answers[0].log.find("nonsense") != std::string::npos);
  CHECK(answers[0].log.find(folder.path()) == std::string::npos);
}

TEST_CASE_FIXTURE(
  compiler_fixture, "a source file that is missing ends the compiler without done") {
  if (skipped)
    return;
  what.compile.source_file = "nowhere.cu";
  CHECK(
    run_job(child_profile::compiler, "gristmill-compiler", what, folder).end == child_end::no_done);
}

TEST_CASE_FIXTURE(compiler_fixture, "a compiler past its deadline leaves no clang behind") {
  if (skipped)
    return;
  REQUIRE(folder.write("kernel.cu",
    "template <int N> struct deep { static constexpr long v = deep<N - 1>::v + deep<N - 2>::v; };\n"
    "template <> struct deep<0> { static constexpr long v = 1; };\n"
    "template <> struct deep<1> { static constexpr long v = 1; };\n"
    "constexpr long slow(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i % 7; return s; "
    "}\n"
    "__global__ void fill(float* y) { constexpr long a = slow(900000); y[0] = a; }\n"));
  what.compile.units[0].entries[0].expression = "fill";
  REQUIRE(folder.write("job.json", to_json(what)));
  child_request request;
  request.id = 1000;
  request.profile = child_profile::compiler;
  request.argv = {"gristmill-compiler", folder.path()};
  request.job_directory = folder.path();
  request.nonce = nonce;
  request.deadline = std::chrono::milliseconds{60};
  // The loop answers when the group is gone, and the compiler is in the group.
  CHECK(run(request).end == child_end::deadline);
}

TEST_CASE_FIXTURE(compiler_fixture, "NVRTC works within the limits of the jail, as clang does") {
  const char* programs = std::getenv("GRISTMILL_BIN");
  const auto nvrtc = find_device_compiler(
    "nvrtc", programs ? programs : "", [](const char* name) { return std::getenv(name); });
  if (!nvrtc) {
    MESSAGE("SKIPPED: ", nvrtc.error().what);
    return;
  }
  // Without clang the fixture has made nothing.
  if (skipped)
    return;
  // The define would also replace the template's parameter.
  REQUIRE(folder.write(
    "kernel.cu", "template <int M> __global__ void fill(float* y) { y[threadIdx.x] = M; }\n"));
  what.compile.compiler = nvrtc->path;
  what.compile.compiler_version = nvrtc->version;
  const auto answers = compile();
  REQUIRE(answers.size() == 1);
  REQUIRE_MESSAGE(answers[0].status == verdict_status::passed, answers[0].log);
  CHECK(answers[0].toolchain == nvrtc->version);
  REQUIRE(answers[0].entries.size() == 1);
  auto ptx = read_whole_file(folder.file(answers[0].file), 1 << 20);
  REQUIRE(ptx);
  CHECK(ptx->find(".entry " + answers[0].entries[0].symbol) != std::string::npos);

  REQUIRE(folder.write("kernel.cu", "__global__ void fill(float* y) { nonsense; }\n"));
  const auto refused = compile();
  CHECK(refused[0].status == verdict_status::compile_error);
  CHECK(refused[0].log.find("nonsense") != std::string::npos);
  CHECK(refused[0].log.find(folder.path()) == std::string::npos);
}
