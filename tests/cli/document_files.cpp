#include "tests/cli/document_files.hpp"

#include <doctest/doctest.h>
#include <fstream>

namespace gristmill::test {

const std::string good_definition = R"({
  "name": "twice",
  "axes": {"N": {"type": "var"}, "half": {"type": "expr", "expression": "N // 2"}},
  "inputs": {"x": {"shape": ["N"], "dtype": "float32"}, "eps": {"shape": null, "dtype": "float32"},
             "norm_weight": {"shape": ["half"], "dtype": "bfloat16"}},
  "outputs": {"y": {"shape": ["N"], "dtype": "float32"}},
  "reference": "def run(x, eps, norm_weight):\n    return x * 2\n"
}
)";

const std::string good_workloads =
  R"({"uuid": "w0", "axes": {"N": 64}, "inputs": {"x": {"type": "random"}, "eps": {"type": "scalar", "value": 0.5}}})"
  "\n\n"
  R"({"uuid": "w1", "axes": {"N": 6}, "inputs": {"eps": {"type": "scalar", "value": 1}}, "tolerance": {"max_atol": 0.25}})"
  "\n";

const std::string good_solution = R"({
  "name": "mine", "definition": "twice", "author": "somebody",
  "spec": {"languages": ["cuda_cpp"], "target_hardware": ["LOCAL"], "entry_point": "k.cu::run"},
  "sources": [{"path": "k.cu", "content": "// nothing"}]
}
)";

const std::string good_traces =
  R"({"definition": "twice", "workload": {"axes": {"N": 64}, "inputs": {}, "uuid": "w0"}, "solution": "mine", "evaluation": {"status": "PASSED", "environment": {"hardware": "NVIDIA H200", "libs": {}}, "timestamp": "2026-01-02T03:04:05", "log": "", "correctness": {"max_relative_error": 0.0, "max_absolute_error": 0.0}, "performance": {"latency_ms": 0.5, "reference_latency_ms": 1.0, "speedup_factor": 2.0}}})"
  "\n"
  R"({"definition": "twice", "workload": {"axes": {"N": 6}, "inputs": {}, "uuid": "w1"}, "solution": "mine", "evaluation": {"status": "RUNTIME_ERROR", "environment": {"hardware": "NVIDIA H200", "libs": {}}, "timestamp": "2026-01-02T03:04:06", "log": "lost"}})"
  "\n";

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

bool outcome::says(const std::vector<std::string>& texts) const {
  INFO("stderr: ", err);
  bool all = true;
  for (const auto& text : texts) {
    const bool found = err.find(text) != std::string::npos;
    INFO("wanted: ", text);
    CHECK(found);
    all = all && found;
  }
  return all;
}

nlohmann::json outcome::json() const {
  INFO("stdout: ", out, " stderr: ", err);
  auto parsed = nlohmann::json::parse(out, nullptr, false);
  REQUIRE_FALSE(parsed.is_discarded());
  return parsed;
}

outcome ended(const std::vector<std::string>& arguments, const variables& environment) {
  program running(arguments, environment);
  outcome out;
  out.code = running.wait(std::chrono::seconds{60});
  out.out = running.out();
  out.err = running.err();
  return out;
}

} // namespace gristmill::test
