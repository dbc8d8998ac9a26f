// Inputs that no generator draws, through the whole path: oracle, compiler, runner, judge.

#include "tensors/safetensors.hpp"
#include "tests/cli/program.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace gristmill;
using namespace gristmill::test;
using nlohmann::ordered_json;

namespace {

constexpr int64_t places = 512;
constexpr int32_t values = 256;

std::string python() {
  const char* given = std::getenv("GRISTMILL_PYTHON");
  return given ? given : "/usr/bin/python3";
}

bool has_torch() {
  auto interpreter = python();
  std::string flag = "-c";
  std::string code = "import torch";
  char* argv[] = {interpreter.data(), flag.data(), code.data(), nullptr};
  pid_t child = 0;
  int status = 1;
  const bool started =
    posix_spawn(&child, interpreter.c_str(), nullptr, nullptr, argv, environ) == 0;
  const bool found = started && waitpid(child, &status, 0) == child && status == 0;
  if (!found)
    MESSAGE("SKIPPED: no Python with torch (python3-torch; GRISTMILL_PYTHON names another)");
  return found;
}

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream{file, std::ios::binary} << text;
}

/// y[i] = x[idx[i]] * k, where an index outside x would be out of bounds.
void write_problem(
  const std::filesystem::path& folder, const ordered_json& inputs, const std::string& entry) {
  auto def = ordered_json::parse(R"({"name": "gather",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 256}},
    "inputs": {"x": {"shape": ["N"], "dtype": "float32"},
               "idx": {"shape": ["M"], "dtype": "int32"},
               "k": {"shape": null, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M"], "dtype": "float32"}}})");
  if (!entry.empty())
    def["custom_inputs_entrypoint"] = entry;
  def["reference"] =
    "import torch\n"
    "def make(axes_and_scalars, device):\n"
    "    m, n = axes_and_scalars['M'], axes_and_scalars['N']\n"
    "    return {'x': torch.randn(n, device=device), 'k': 2.5,\n"
    "            'idx': torch.randint(0, n, (m,), dtype=torch.int32, device=device)}\n"
    "def run(x, idx, k):\n    return x[idx.long()] * k\n";
  write(folder / "definition.json", def.dump());
  write(folder / "workload.jsonl",
    ordered_json{{"uuid", "w"}, {"axes", {{"M", places}}}, {"inputs", inputs}}.dump() + "\n");
}

void write_candidate(const std::filesystem::path& file, const std::string& value) {
  write(file,
    "extern \"C\" __global__ void gather(const float* x, const int* idx, float k, float* y, int m) "
    "{\n  int i = blockIdx.x * 128 + threadIdx.x;\n  if (i < m)\n    y[i] = "
      + value + ";\n}\n");
  auto plan = file;
  write(plan.replace_extension(".plan.json"),
    R"json({"schema":"gristmill.plan/1","variants":[{"steps":[{"op":"launch","entry":"gather",
       "grid":["ceil_div(M,128)",1,1],"block":[128,1,1],"args":["x","idx","k","y","M"]}]}]})json");
}

/// Judges a right and a wrong candidate; statuses by name.
std::map<std::string, std::string> judge(const scratch& folder, const variables& environment = {}) {
  write_candidate(folder / "right.cu", "x[idx[i]] * k");
  write_candidate(folder / "forgets.cu", "x[idx[i]]");
  program run({"run", (folder / "gather").string(), "--proposer", "scripted", "--seed", "1",
                "--gpus", "mock:h200:1", "--out", (folder / "run").string(), "--python", python(),
                "--json", "--candidate", (folder / "right.cu").string(), "--candidate",
                (folder / "forgets.cu").string()},
    environment);
  const int status = run.wait();
  INFO("stdout: ", run.out());
  INFO("stderr: ", run.err());
  CHECK((status == 0 || status == 3));
  const auto table = nlohmann::json::parse(run.out(), nullptr, false);
  REQUIRE_FALSE(table.is_discarded());
  std::map<std::string, std::string> out;
  for (const auto& row : table["planted"])
    out[row["key"].get<std::string>()] = row["status"].get<std::string>();
  return out;
}

} // namespace

TEST_CASE("tensors and numbers of a custom entry point reach the kernel and its reference alike") {
  if (!has_torch())
    return;
  scratch folder;
  write_problem(folder / "gather",
    {{"x", {{"type", "custom"}}}, {"idx", {{"type", "custom"}}}, {"k", {{"type", "custom"}}}},
    "make");
  auto verdicts = judge(folder);
  CHECK(verdicts["file/right"] == "PASSED");
  CHECK(verdicts["file/forgets"] == "INCORRECT_NUMERICAL");
}

TEST_CASE("a safetensors input reaches the kernel beside drawn ones, wherever its folder is") {
  if (!has_torch())
    return;
  scratch folder;
  write_problem(folder / "gather",
    {{"idx", {{"type", "safetensors"}, {"path", "lost/blobs/i.safetensors"}, {"tensor_key", "i"}}},
      {"k", {{"type", "scalar"}, {"value", 1.5}}}},
    "");
  std::vector<int32_t> indices(static_cast<size_t>(places));
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<int32_t>(i * 97 % values);
  const std::vector<safetensor_source> tensors{
    {"i", dtype::int32, {places}, std::as_bytes(std::span(indices))}};
  const auto file = make_safetensors(tensors);
  REQUIRE(file);
  write(folder / "trace/blobs/i.safetensors",
    {reinterpret_cast<const char*>(file->data()), file->size()});
  auto verdicts = judge(folder, {{"FLASHINFER_TRACE_DIR", (folder / "trace").string()}});
  CHECK(verdicts["file/right"] == "PASSED");
  CHECK(verdicts["file/forgets"] == "INCORRECT_NUMERICAL");
}
