// The program gristmill-emulate: its exit status and what it prints.

#include "gpu/toolchain/compiler_process.hpp"
#include "protocol/json_document.hpp"
#include "tests/gpu/mock/emulate/compile.hpp"

#include <chrono>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace gristmill;

namespace {

struct answer {
  int status = -1;
  std::string text;
};

/// In a folder with a kernel that copies a vector, its plan and its problem.
class program_fixture {
public:
  program_fixture() {
    write("definition.json", R"({"name": "copy", "op_type": "copy", "axes": {"N": {"type": "var"}},
      "inputs": {"x": {"shape": ["N"], "dtype": "float32"}},
      "outputs": {"y": {"shape": ["N"], "dtype": "float32"}},
      "reference": "import torch\n\n\ndef run(x):\n    return x.clone()\n"})");
    write("workload.jsonl",
      R"({"axes": {"N": 64}, "inputs": {"x": {"type": "random"}}, "uuid": "small"})"
      "\n"
      R"({"axes": {"N": 128}, "inputs": {"x": {"type": "random"}}, "uuid": "large"})"
      "\n");
    write("plan.json", R"({"schema": "gristmill.plan/1", "variants": [{"steps": [{"op": "launch",
      "entry": "k", "grid": [1, 1, 1], "block": ["N", 1, 1], "args": ["x", "y"]}]}]})");
    write_kernel("st.global.f32 [%rd4], %f1;");
  }

  void write_kernel(const std::string& store) {
    write("kernel.ptx",
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"
      ".reg .b32 %r<2>; .reg .b64 %rd<6>; .reg .f32 %f<2>;\n"
      "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];\n"
      "mul.wide.u32 %rd5, %r1, 4; add.s64 %rd3, %rd1, %rd5; add.s64 %rd4, %rd2, %rd5;\n"
      "ld.global.f32 %f1, [%rd3];\n"
        + store + "\nret;\n}\n");
  }

  answer run(const std::string& flags) const {
    const char* programs = std::getenv("GRISTMILL_BIN");
    std::vector<std::string> words;
    std::istringstream in(flags);
    for (std::string word; in >> word;)
      words.push_back(word);
    const auto ran =
      run_compiler(std::string(programs != nullptr ? programs : ".") + "/gristmill-emulate", words,
        folder_.path(), std::chrono::seconds(60));
    REQUIRE_MESSAGE(ran, (ran ? std::string{} : ran.error().what));
    return {ran->status, ran->output};
  }

  const std::filesystem::path& folder() const { return folder_.path(); }

private:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }

  testing::scratch_folder folder_;
};

} // namespace

TEST_CASE_FIXTURE(
  program_fixture, "a clean kernel ends with 0, a faulty one with 1, one that is not run with 2") {
  const answer clean = run("kernel.ptx plan.json");
  CHECK_MESSAGE(clean.status == 0, clean.text);
  CHECK(clean.text.find("nothing found") == 0);
  write_kernel("st.global.f32 [%rd4+4], %f1;");
  const answer faulty = run("kernel.ptx plan.json");
  CHECK(faulty.status == 1);
  CHECK(faulty.text.find("FAULT: out of bounds") != std::string::npos);
  write_kernel("no.such.instruction %f1;");
  const answer refused = run("kernel.ptx plan.json");
  CHECK(refused.status == 2);
  CHECK(refused.text.find("PTX line") != std::string::npos);
}

TEST_CASE_FIXTURE(program_fixture, "with --json there is one document whatever happens") {
  for (const auto& [flags, verdict] : std::initializer_list<std::pair<std::string, std::string>>{
         {"kernel.ptx plan.json --json --orders 1", "clean"},
         {"kernel.ptx plan.json --json --orders 3 --jobs 2", "clean"},
         {"kernel.ptx plan.json --json --problem softmaxx", "refused"}}) {
    const answer got = run(flags);
    const auto document = parse_json(got.text, "answer");
    REQUIRE_MESSAGE(document, got.text);
    CHECK((*document)["verdict"] == verdict);
    CHECK((*document)["schema"] == "gristmill.emulate/1");
  }
}

TEST_CASE_FIXTURE(
  program_fixture, "the smallest workload is run, or the one that is named, with axes as given") {
  const auto axes_of = [&](const std::string& flags) {
    const answer got = run("kernel.ptx plan.json --json --no-time " + flags);
    const auto document = parse_json(got.text, "answer");
    REQUIRE_MESSAGE(document, got.text);
    return (*document)["axes"]["N"].get<int>();
  };
  CHECK(axes_of("") == 64);
  CHECK(axes_of("--workload la") == 128);
  CHECK(axes_of("--axis N=32") == 32);
}

TEST_CASE_FIXTURE(program_fixture, "outputs are written as raw bytes") {
  const answer got = run("kernel.ptx plan.json --outputs out --no-time");
  CHECK(got.status == 0);
  CHECK(std::filesystem::file_size(folder() / "out/y.bin") == 256);
}

TEST_CASE_FIXTURE(
  program_fixture, "a wrong flag, check, axis, workload or device names the nearest valid choice") {
  const auto refused = [&](const std::string& flags, const std::string& words) {
    const answer got = run("kernel.ptx plan.json " + flags);
    CHECK(got.status == 2);
    CHECK_MESSAGE(got.text.find(words) != std::string::npos, got.text);
  };
  refused("--check shared-race", "shared-races");
  refused("--axis M=3", "there is no axis");
  refused("--axis N", "NAME=NUMBER");
  refused("--workload smal2", "small");
  refused("--device h20", "h200");
  refused("--no-such-flag", "no-such-flag");
  CHECK(run("kernel.txt plan.json").status == 2);
  CHECK(run("").status == 2);
  CHECK(run("--help").status == 0);
}
