#include "tests/kernels/families/contraction_cases.hpp"

#include "kernels/families/convolution.hpp"
#include "kernels/families/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gristmill::test {

namespace {

using json = nlohmann::ordered_json;

std::vector<tensor> tensors_of(const json& lists) {
  std::vector<tensor> tensors;
  for (const json& list : lists)
    tensors.push_back(list.get<tensor>());
  return tensors;
}

contraction_case read_case(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const json document = json::parse(in);
  std::string lines;
  for (const json& one : document.at("workloads"))
    lines += one.dump() + "\n";
  contraction_case one;
  one.name = file.stem().string();
  one.read = document.at("family") == "gemm" ? read_gemm_stage : read_convolution_stage;
  auto target = problem_from_texts(
    one.name, document.at("definition").dump(), lines, document.at("graph").dump());
  REQUIRE_MESSAGE(target, (target ? std::string{} : target.error().what));
  auto graph = parse_op_graph(target->graph_json);
  REQUIRE_MESSAGE(graph, (graph ? std::string{} : graph.error().what));
  one.target = std::move(*target);
  one.graph = std::move(*graph);
  for (const json& data : document.at("data")) {
    one.inputs.push_back(tensors_of(data.at("inputs")));
    one.outputs.push_back(tensors_of(data.at("outputs")));
  }
  return one;
}

} // namespace

std::vector<contraction_case> contraction_cases() {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  if (source == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SOURCE is not set");
    return {};
  }
  const char* only = std::getenv("GRISTMILL_CASE");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
         std::filesystem::path(source) / "tests" / "corpus" / "contractions")) {
    if (only == nullptr || entry.path().stem() == only)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<contraction_case> cases;
  for (const auto& file : files)
    cases.push_back(read_case(file));
  return cases;
}

double worst_error(const tensor& got, const tensor& wanted, dtype type) {
  const double allowed = type == dtype::float32 ? 1.25e-5 : 0.0125;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double x = static_cast<double>(got[i]);
    const double y = static_cast<double>(wanted[i]);
    const double ratio = std::abs(x - y) / (allowed + allowed * std::abs(y));
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  return worst;
}

void check_point(mock_bench& bench, const contraction_case& one, const stage_space& space,
  size_t point, size_t work) {
  CAPTURE(one.name);
  CAPTURE(space.key(point));
  CAPTURE(work);
  const generated_kernel kernel = space.generate(point);
  CAPTURE(kernel.plan);
  const auto got = bench.outputs(kernel, one.target, one.target.workloads[work], one.inputs[work]);
  REQUIRE(got.size() == one.outputs[work].size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].size() == one.outputs[work][i].size());
    CHECK(worst_error(got[i], one.outputs[work][i], one.target.def.outputs[i].type) <= 1.0);
  }
}

} // namespace gristmill::test
