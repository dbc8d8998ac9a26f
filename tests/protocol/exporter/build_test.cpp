#include "gpu/toolchain/compiler_process.hpp"
#include "kernels/builtin.hpp"
#include "protocol/exporter/export_plan.hpp"
#include "protocol/json_document.hpp"
#include "tests/journal/temporary_folder.hpp"
#include "tests/protocol/resolve_fixture.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

fs::path corpus() {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  REQUIRE(source != nullptr);
  return fs::path(source) / "tests" / "corpus";
}

std::string text_of(const fs::path& file) {
  auto text = read_text_file(file, 1 << 20);
  REQUIRE_MESSAGE(text, (text ? "" : text.error().what));
  return *text;
}

/// The program of that name in the toolkit's usual place or along PATH; empty when there is none.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string all = std::string("/usr/local/cuda/bin:") + (path != nullptr ? path : "");
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find(':', begin), all.size());
    const auto file = all.substr(begin, end - begin) + "/" + name;
    if (access(file.c_str(), X_OK) == 0)
      return file;
    begin = end + 1;
  }
  return {};
}

/// Compiles every source with the exported flags, against the stand-in of torch's headers.
void compile_all(const exported_plan& built, const std::string& nvcc) {
  temporary_folder folder;
  for (const auto& file : built.sources)
    std::ofstream(fs::path(folder.path) / file.path, std::ios::binary) << file.content;
  for (const auto& file : built.sources) {
    if (!file.path.ends_with(".cu") && !file.path.ends_with(".cpp"))
      continue;
    const bool is_cuda = file.path.ends_with(".cu");
    std::vector<std::string> command{"PATH=/usr/bin:/bin"};
    if (is_cuda)
      // As torch calls nvcc.
      command.insert(command.end(),
        {nvcc, "-ccbin", "/usr/bin/g++", "-D__CUDA_NO_HALF_OPERATORS__",
          "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
          "-D__CUDA_NO_HALF2_OPERATORS__"});
    else
      command.insert(command.end(),
        {"/usr/bin/g++", "-Wall", "-Wextra", "-Wno-unused-variable", "-isystem",
          (fs::path(nvcc).parent_path().parent_path() / "include").string()});
    command.insert(command.end(),
      {"-c", "-I", ".", "-I", (corpus() / "torch_stand_in").string(),
        "-DTORCH_EXTENSION_NAME=benchmark_kernel"});
    const auto& flags = is_cuda ? built.options.cuda_cflags : built.options.cflags;
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"-o", file.path + ".o", file.path});
    const auto ran = run_compiler("/usr/bin/env", command, folder.path, std::chrono::minutes(4));
    REQUIRE(ran);
    CHECK_MESSAGE(ran->status == 0, file.path << ": " << ran->output << "\n" << file.content);
  }
}

} // namespace

TEST_CASE("what is exported compiles with nvcc against torch's interface") {
  const auto nvcc = find_program("nvcc");
  if (nvcc.empty()) {
    MESSAGE("SKIPPED: no nvcc in /usr/local/cuda/bin or along PATH");
    return;
  }
  SUBCASE("a plain kernel of a built-in problem") {
    const auto target = builtin_problem("softmax");
    REQUIRE(target);
    const auto parsed = parse_plan(text_of(corpus() / "candidates" / "right.plan.json"));
    REQUIRE(parsed);
    const auto built = export_plan({text_of(corpus() / "candidates" / "right.cu"), *parsed,
      target->def, target->workloads, {132, 232448, 233472, 50u << 20, 90}});
    REQUIRE_MESSAGE(built, (built ? "" : built.error().what));
    compile_all(*built, nvcc);
  }
  SUBCASE("one of everything, in two units and two variants") {
    resolve_fixture f;
    std::vector<workload> workloads;
    for (int64_t m : {100, 32, 4}) {
      workload w;
      w.uuid = std::to_string(m);
      w.axes = {{"M", m}};
      w.inputs = {{"eps", input_kind::scalar, 0.5, "", ""},
        {"count", input_kind::scalar, int64_t{7}, "", ""},
        {"flag", input_kind::scalar, true, "", ""}, {"wide", input_kind::scalar, 0.1, "", ""}};
      workloads.push_back(std::move(w));
    }
    const auto parsed = parse_plan(text_of(corpus() / "candidates" / "everything.plan.json"));
    REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().what));
    const auto built = export_plan(
      {text_of(corpus() / "candidates" / "everything.cu"), *parsed, f.def, workloads, f.device});
    REQUIRE_MESSAGE(built, (built ? "" : built.error().what));
    CHECK(built->sources.size() == 1 + 3 + 3);
    compile_all(*built, nvcc);
  }
}
