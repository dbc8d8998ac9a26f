#include "tests/kernels/oracle/oracle_fixture.hpp"

#include "kernels/builtin.hpp"
#include "tensors/compare.hpp"
#include "tensors/generate.hpp"
#include "tensors/tensor_file.hpp"

#include <cmath>
#include <cstring>

using namespace gristmill;

namespace {

std::string rmsnorm_text() {
  return builtin_problem("rmsnorm").value().definition_text;
}

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

} // namespace

TEST_CASE_FIXTURE(oracle_fixture, "inputs are what the generator makes of their keys") {
  what.prepare.definition_text = rmsnorm_text();
  add("w", {{"tokens", 3}, {"hidden", 64}});
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == 1);
  CHECK_MESSAGE(answers.workloads[0].status == verdict_status::passed, answers.workloads[0].reason);
  const auto& tensor = what.prepare.workloads[0].inputs[0];
  std::vector<std::byte> expected(tensor.bytes);
  generate(choose_distribution(tensor.name, "", tensor.type, tensor.shape, ""), tensor.type,
    tensor.shape, tensor.key, 0, expected);
  const auto found = content(tensor.file);
  CHECK(std::memcmp(found.data(), expected.data(), expected.size()) == 0);
}

TEST_CASE_FIXTURE(oracle_fixture, "a pattern file is the beginning of its tensor") {
  what.prepare.definition_text = rmsnorm_text();
  add("w", {{"tokens", 64}, {"hidden", 64}});
  auto& work = what.prepare.workloads[0];
  work.patterns = {work.inputs[0]};
  work.patterns[0].file = "pattern";
  work.patterns[0].file_bytes = 4096;
  prepare();
  CHECK(content("pattern") == content(work.inputs[0].file).substr(0, 4096));
}

TEST_CASE_FIXTURE(oracle_fixture, "what torch lacks for float16 is computed in float32, and said") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.oracle = oracle_kind::torch;
  what.prepare.definition_text =
    small_definition("import torch\n"
                     "def run(x, eps):\n"
                     "    half = x.half()\n"
                     "    y = torch.nn.functional.gelu(half)\n"
                     "    assert y.dtype == torch.float16\n"
                     "    return (y + torch.mm(half, half.new_ones(6, 6))).float()\n");
  add("w", {{"M", 5}});
  what.prepare.workloads.back().scalars = {{"eps", {dtype::float32, 0.25, 0, false}}};
  const auto answers = prepare();
  CHECK_MESSAGE(
    answers.workloads.at(0).status == verdict_status::passed, answers.workloads[0].reason);
  const auto& reason = answers.workloads[0].reason;
  // A torch that has the kernels has nothing to say.
  if (!reason.empty()) {
    CHECK(reason.starts_with("emulated: "));
    CHECK(reason.find("`gelu`") != std::string::npos);
    CHECK(reason.find("`mm`") != std::string::npos);
    CHECK(reason.find("`add`") == std::string::npos);
  }
  const auto x = floats(content("w.x"));
  const auto y = floats(content("w.y"));
  for (size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < 6; ++k)
      sum += static_cast<double>(x[i / 6 * 6 + k]);
    const auto at = static_cast<double>(x[i]);
    const double gelu = 0.5 * at * (1 + std::erf(at / std::sqrt(2.0)));
    CHECK(static_cast<double>(y[i]) == doctest::Approx(gelu + sum).epsilon(0.01).scale(1));
  }
}

TEST_CASE_FIXTURE(
  oracle_fixture, "a definition that only borrows a built-in's name has no native reference") {
  what.prepare.definition_text = rmsnorm_text() + " ";
  add("w", {{"tokens", 3}, {"hidden", 64}});
  const auto answers = prepare();
  CHECK(answers.workloads.at(0).status == verdict_status::invalid_reference);
  CHECK_FALSE(answers.workloads[0].reason.empty());
}

TEST_CASE_FIXTURE(oracle_fixture, "scalars reach a torch reference as Python numbers") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.oracle = oracle_kind::torch;
  what.prepare.definition_text = small_definition(
    "def run(x, eps):\n    assert type(eps) is float\n    x.mul_(0)\n    return x + eps\n");
  for (const char* uuid : {"w1", "w2"}) {
    add(uuid, {{"M", 2}});
    what.prepare.workloads.back().scalars = {{"eps", {dtype::float32, 0.25, 0, false}}};
  }
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == 2);
  for (const auto& answer : answers.workloads)
    CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
  CHECK(floats(content("w1.y")) == std::vector<float>(12, 0.25F));
  // The reference wrote to its copy.
  CHECK(floats(content("w1.x")) != std::vector<float>(12, 0.0F));
}

TEST_CASE_FIXTURE(
  oracle_fixture, "a reference that breaks its definition is INVALID_REFERENCE with a reason") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.oracle = oracle_kind::torch;
  // One start of Python for all: the number of rows chooses what goes wrong.
  const std::vector<std::pair<std::string, std::string>> cases{
    {"1 / 0", "ZeroDivisionError: division by zero (reference, line"},
    {"x[:1]", "the shape [1, 6], declared is [3, 6]"},
    {"x.double()", "float64, declared is float32"}, {"(x, x)", "returns 2 outputs, declared are 1"},
    {"{'z': x}", "returns no y"}, {"'text'", "is a str, not a tensor"},
    {"sys.exit(0)", "SystemExit"}};
  std::string reference = "import sys\ndef run(x, eps):\n    case = x.shape[0]\n";
  for (size_t i = 0; i < cases.size(); ++i)
    reference +=
      "    if case == " + std::to_string(i + 2) + ":\n        return " + cases[i].first + "\n";
  what.prepare.definition_text = small_definition(reference + "    return x\n");
  for (size_t i = 0; i <= cases.size(); ++i) {
    add("w" + std::to_string(i), {{"M", static_cast<int64_t>(i) + 2}});
    what.prepare.workloads[i].scalars = {{"eps", {dtype::float32, 0.25, 0, false}}};
  }
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == cases.size() + 1);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& answer = answers.workloads[i];
    CHECK(answer.status == verdict_status::invalid_reference);
    CHECK_MESSAGE(answer.reason.find(cases[i].second) != std::string::npos, answer.reason);
  }
  // What breaks one workload does not touch the next.
  CHECK(answers.workloads.back().status == verdict_status::passed);
}

TEST_CASE_FIXTURE(
  oracle_fixture, "a reference that does not load is INVALID_REFERENCE for every workload") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.oracle = oracle_kind::torch;
  what.prepare.definition_text =
    small_definition("limit = int('much')\ndef run(x, eps):\n    return x\n");
  add("w1", {{"M", 2}});
  add("w2", {{"M", 3}});
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == 2);
  for (const auto& answer : answers.workloads) {
    CHECK(answer.status == verdict_status::invalid_reference);
    CHECK(answer.reason.find("ValueError") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(oracle_fixture, "a Python that is missing or dies is infrastructure") {
  what.prepare.oracle = oracle_kind::torch;
  what.prepare.definition_text = small_definition("def run(x, eps):\n    return x\n");
  what.prepare.python = "/nowhere/python3";
  add("w", {{"M", 2}});
  const auto missing = prepare();
  CHECK(missing.workloads.at(0).status == verdict_status::infrastructure);
  CHECK(missing.workloads[0].reason.find("/nowhere/python3") != std::string::npos);

  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.definition_text = small_definition("import os\ndef run(x, eps):\n    os._exit(7)\n");
  what.prepare.workloads[0].scalars = {{"eps", {dtype::float32, 0.25, 0, false}}};
  const auto died = prepare();
  CHECK(died.workloads.at(0).status == verdict_status::infrastructure);
  CHECK(died.workloads[0].reason.find("status 7") != std::string::npos);
}

TEST_CASE_FIXTURE(oracle_fixture, "every dtype that torch has goes through the files unchanged") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.oracle = oracle_kind::torch;
  ordered_json def{{"name", "copy"}, {"axes", {{"N", {{"type", "var"}}}}},
    {"inputs", ordered_json::object()}, {"outputs", ordered_json::object()}};
  std::string names, values;
  for (const char* type :
    {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "bool"}) {
    def["inputs"][std::string("in_") + type] = {{"shape", {"N"}}, {"dtype", type}};
    def["outputs"][std::string("out_") + type] = {{"shape", {"N"}}, {"dtype", type}};
    names += (names.empty() ? "" : ", ") + std::string("in_") + type;
  }
  def["reference"] = "def run(" + names + "):\n    return " + names + "\n";
  what.prepare.definition_text = def.dump();
  add("full", {{"N", 33}});
  add("empty", {{"N", 0}});
  const auto answers = prepare();
  for (const auto& answer : answers.workloads)
    CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
  for (const auto& work : what.prepare.workloads)
    for (size_t i = 0; i < work.inputs.size(); ++i)
      CHECK(content(work.inputs[i].file) == content(work.references[i].file));
}

TEST_CASE_FIXTURE(oracle_fixture, "a dtype that this torch lacks is named") {
  what.prepare.python = python_with_torch();
  if (what.prepare.python.empty())
    return;
  what.prepare.oracle = oracle_kind::torch;
  what.prepare.definition_text =
    small_definition("def run(x, eps):\n    return x\n", R"(["M", "K"])", "float4_e2m1");
  add("w", {{"M", 2}});
  what.prepare.workloads[0].scalars = {{"eps", {dtype::float32, 0.25, 0, false}}};
  const auto answers = prepare();
  CHECK(answers.workloads.at(0).status == verdict_status::infrastructure);
  CHECK(answers.workloads[0].reason.find("has no dtype float4_e2m1fn_x2") != std::string::npos);
}
