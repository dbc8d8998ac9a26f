#include "kernels/families/attention.hpp"
#include "kernels/families/fold.hpp"
#include "kernels/families/indexed_map.hpp"
#include "kernels/families/parts_map.hpp"
#include "kernels/families/scan.hpp"
#include "kernels/families/top_values.hpp"
#include "kernels/families/transpose.hpp"
#include "kernels/lowering/sweep_stage.hpp"

#include "tests/kernels/mock_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

using namespace gristmill;
using namespace gristmill::test;
using json = nlohmann::ordered_json;

// The cases of tests/corpus/families: a graph, inputs, and the outputs that torch gives for them.

namespace {

struct family_case {
  std::string name;
  std::string family;
  problem target;
  op_graph graph;
  json data;
};

const std::map<std::string, stage_reader>& readers() {
  static const std::map<std::string, stage_reader> table = {{"attention", read_attention_stage},
    {"fold", read_fold_stage}, {"index", read_indexed_map_stage}, {"parts", read_parts_map_stage},
    {"scan", read_scan_stage}, {"sweep", read_sweep_stage}, {"topk", read_top_values_stage},
    {"transpose", read_transpose_stage}};
  return table;
}

tensor numbers_of(const json& list) {
  tensor values;
  for (const auto& one : list)
    values.push_back(one.is_string() ? (one == "inf" ? std::numeric_limits<float>::infinity()
                         : one == "-inf"             ? -std::numeric_limits<float>::infinity()
                                                     : std::numeric_limits<float>::quiet_NaN())
                                     : one.get<float>());
  return values;
}

std::vector<family_case> all_cases() {
  const char* source = std::getenv("GRISTMILL_SOURCE");
  if (source == nullptr) {
    MESSAGE("SKIPPED: GRISTMILL_SOURCE is not set");
    return {};
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
         std::filesystem::path(source) / "tests" / "corpus" / "families"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const char* only = std::getenv("GRISTMILL_CASE");
  std::vector<family_case> cases;
  for (const auto& file : files) {
    if (only != nullptr && file.stem() != only)
      continue;
    std::ifstream in(file, std::ios::binary);
    const json document = json::parse(in);
    std::string lines;
    for (const auto& one : document.at("workloads"))
      lines += one.dump() + "\n";
    auto target = problem_from_texts(
      file.stem().string(), document.at("definition").dump(), lines, document.at("graph").dump());
    REQUIRE_MESSAGE(target, (target ? std::string{} : target.error().what));
    auto graph = parse_op_graph(target->graph_json);
    REQUIRE_MESSAGE(graph, (graph ? std::string{} : graph.error().what));
    cases.push_back({file.stem().string(), document.at("family").get<std::string>(),
      std::move(*target), std::move(*graph), document.at("data")});
  }
  return cases;
}

/// Largest error in units of what the dtype allows.
double worst_error(const tensor& got, const tensor& wanted, dtype type) {
  const double allowed = type == dtype::float32 ? 2e-5 : is_float(type) ? 0.02 : 1e-6;
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double x = got[i];
    const double y = wanted[i];
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    const double ratio = std::abs(x - y) / (allowed + allowed * std::abs(y));
    worst = std::isfinite(ratio) ? std::max(worst, ratio) : INFINITY;
  }
  return worst;
}

void check_point(
  mock_bench& bench, const family_case& one, const stage_space& space, size_t point, size_t work) {
  CAPTURE(space.key(point));
  const auto kernel = space.generate(point);
  CAPTURE(kernel.source);
  CAPTURE(kernel.plan);
  std::vector<tensor> inputs;
  for (const auto& list : one.data[work].at("inputs"))
    inputs.push_back(numbers_of(list));
  const auto got = bench.outputs(kernel, one.target, one.target.workloads[work], inputs);
  const auto& wanted = one.data[work].at("outputs");
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const tensor expected = numbers_of(wanted[i]);
    REQUIRE(got[i].size() == expected.size());
    CHECK(worst_error(got[i], expected, one.target.def.outputs[i].type) <= 1);
  }
}

} // namespace

TEST_CASE("every case's family computes what torch says, at its first point and at others") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  for (const auto& one : all_cases()) {
    CAPTURE(one.name);
    const auto reader = readers().find(one.family);
    REQUIRE(reader != readers().end());
    const auto space = reader->second(one.target, one.graph);
    REQUIRE_MESSAGE(space, one.name << ": " << (space ? std::string{} : space.error().what));
    REQUIRE((*space)->size() > 0);
    for (size_t work = 0; work < one.target.workloads.size(); ++work)
      check_point(bench, one, **space, (*space)->first(), work);
    // A few others, spread over the space.
    const size_t step = std::max<size_t>(1, (*space)->size() / 3);
    for (size_t point = 0; point < (*space)->size(); point += step)
      check_point(bench, one, **space, point, 0);
  }
}

TEST_CASE(
  "rows are walked over in every way: alone, all by some blocks, with the next loaded ahead, "
  "by clusters, and through a ring by one group or two") {
  mock_bench bench;
  if (!bench.is_ready())
    return;
  std::set<std::string> seen;
  for (const auto& one : all_cases()) {
    if (one.family != "sweep")
      continue;
    const auto space = read_sweep_stage(one.target, one.graph);
    REQUIRE_MESSAGE(space, one.name << ": " << (space ? std::string{} : space.error().what));
    for (size_t point = 0; point < (*space)->size(); ++point) {
      const std::string key = (*space)->key(point);
      std::string way = one.name;
      for (const char* part : {"/c2", "/c4", "/w1", "/w2", "/w3", "/b2"})
        way += key.find(part) == std::string::npos ? "" : part;
      if (seen.insert(way).second)
        check_point(bench, one, **space, point, 0);
    }
  }
  // One case alone does not have all ways.
  const bool is_whole = std::getenv("GRISTMILL_CASE") == nullptr;
  CHECK((!is_whole || seen.empty() || seen.size() >= 8));
  for (const char* groups : {"/w3", "/w3/b2"})
    CHECK((!is_whole || seen.empty()
      || std::any_of(seen.begin(), seen.end(),
        [&](const std::string& way) { return way.find(groups) != std::string::npos; })));
}
