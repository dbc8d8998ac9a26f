#include "tests/kernels/oracle/oracle_fixture.hpp"

#include "tensors/generate.hpp"
#include "tensors/safetensors.hpp"

#include <cstring>

using namespace gristmill;

namespace {

/// x [M] from somewhere, y [M] = what the reference returns; all float32.
std::string definition_with(const std::string& reference, const std::string& entry = "",
  const std::string& more_inputs = "") {
  ordered_json all = ordered_json::parse(R"({"name": "small", "axes": {"M": {"type": "var"},
    "K": {"type": "const", "value": 3}, "MK": {"type": "expr", "expression": "M * K"}},
    "inputs": {"x": {"shape": ["M"], "dtype": "float32"})"
    + more_inputs + R"(}, "outputs": {"y": {"shape": ["M"], "dtype": "float32"}}})");
  if (!entry.empty())
    all["custom_inputs_entrypoint"] = entry;
  all["reference"] = reference;
  return all.dump();
}

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

struct inputs_fixture : oracle_fixture {
  /// Torch is the oracle; false, after a loud word, when there is none.
  bool torch() {
    what.prepare.python = python_with_torch();
    what.prepare.oracle = oracle_kind::torch;
    return !what.prepare.python.empty();
  }

  prepare_workload& last() { return what.prepare.workloads.back(); }

  /// The last workload's input x comes from that file.
  void take_from(const std::string& file, const std::string& key) {
    last().inputs[0].source = tensor_source::safetensors;
    last().inputs[0].blob_file = folder.file(file);
    last().inputs[0].blob_key = key;
  }

  /// The last workload's inputs, and these numbers, come from the entry point.
  entry_call& call(std::vector<custom_number> numbers = {}) {
    entry_call made;
    made.axes = last().axes;
    made.key.bytes[3] = 7;
    made.numbers = std::move(numbers);
    for (auto& input : last().inputs) {
      input.source = tensor_source::custom;
      made.tensors.push_back({input.name, input.type, input.shape, input.bytes, input.file});
    }
    last().calls.push_back(made);
    return last().calls.back();
  }

  /// Prepares and answers for the only workload.
  prepare_answer only() {
    const auto answers = prepare();
    REQUIRE(answers.workloads.size() == 1);
    return answers.workloads[0];
  }

  void write_blob(const std::string& file, const std::vector<float>& values) {
    const std::vector<safetensor_source> tensors{{"x", dtype::float32,
      {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))}};
    const auto made = make_safetensors(tensors);
    REQUIRE(made);
    REQUIRE(folder.write(
      file, std::string_view(reinterpret_cast<const char*>(made->data()), made->size())));
  }
};

bool mentions(const prepare_answer& answer, std::string_view text) {
  CAPTURE(answer.reason);
  CAPTURE(text);
  CHECK(answer.reason.find(text) != std::string::npos);
  return answer.reason.find(text) != std::string::npos;
}

} // namespace

TEST_CASE_FIXTURE(inputs_fixture, "a safetensors input is the tensor of the file") {
  write_blob("b.safetensors", {1, 2, 3, 4});
  const bool has_torch = torch();
  if (!has_torch)
    what.prepare.oracle = oracle_kind::native;
  what.prepare.definition_text = definition_with("def run(x):\n    return x * 2\n");
  add("w", {{"M", 4}});
  take_from("b.safetensors", "x");
  last().patterns = {last().inputs[0]};
  last().patterns[0].file = "pattern";
  if (!has_torch)
    last().references.clear();
  const auto answer = only();
  CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
  CHECK(floats(content("w.x")) == std::vector<float>{1, 2, 3, 4});
  CHECK(floats(content("pattern")) == std::vector<float>{1, 2, 3, 4});
  if (has_torch)
    CHECK(floats(content("w.y")) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE_FIXTURE(inputs_fixture,
  "a blob that is not what the problem declares is the workload's error, with both named") {
  write_blob("b.safetensors", {1, 2, 3, 4});
  REQUIRE(folder.write("broken.safetensors", "not a safetensors file"));
  what.prepare.definition_text = definition_with("def run(x):\n    return x\n");
  const auto add_one = [&](const std::string& uuid, int64_t rows, const std::string& file,
                         const std::string& key) {
    add(uuid, {{"M", rows}});
    last().references.clear();
    take_from(file, key);
  };
  add_one("shape", 5, "b.safetensors", "x");
  add_one("type", 4, "b.safetensors", "x");
  last().inputs[0].type = dtype::int32;
  add_one("key", 4, "b.safetensors", "z");
  add_one("broken", 4, "broken.safetensors", "x");
  add_one("gone", 4, "gone.safetensors", "x");
  add_one("good", 4, "b.safetensors", "x");
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == 6);
  const std::vector<std::string> reasons{"[4], declared is [5]", "F32 (float32), declared is int32",
    "no tensor 'z'; it holds x", "safetensors: a header of"};
  for (size_t i = 0; i < reasons.size(); ++i) {
    CHECK(answers.workloads[i].status == verdict_status::runtime_error);
    mentions(answers.workloads[i], "input `x`");
    mentions(answers.workloads[i], reasons[i]);
  }
  CHECK(answers.workloads[4].status == verdict_status::infrastructure);
  CHECK(answers.workloads[5].uuid == "good");
  CHECK(answers.workloads[5].status == verdict_status::passed);
}

TEST_CASE_FIXTURE(inputs_fixture, "a reference of a backward pass may ask autograd") {
  if (!torch())
    return;
  what.prepare.definition_text = definition_with(
    "def run(x):\n    x = x.clone().requires_grad_()\n    (x * x).sum().backward()\n"
    "    return x.grad\n");
  add("w", {{"M", 4}});
  const auto answer = only();
  CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
  auto doubled = floats(content("w.x"));
  for (float& each : doubled)
    each *= 2;
  CHECK(floats(content("w.y")) == doubled);
}

TEST_CASE_FIXTURE(inputs_fixture, "held-out inputs are drawn from the held-out distributions") {
  auto text = definition_with("def run(x):\n    return x\n");
  text.replace(text.find("\"x\""), 3, "\"norm_weight\"");
  text.replace(text.find("run(x)"), 6, "run(norm_weight)");
  what.prepare.definition_text = text;
  add("w", {{"M", 50}});
  last().references.clear();
  CHECK(only().status == verdict_status::passed);
  CHECK(floats(content("w.norm_weight")) == std::vector<float>(50, 1.0F));
  for (auto& each : last().inputs)
    each.style = input_style::held_out;
  CHECK(only().status == verdict_status::passed);
  const auto drawn = floats(content("w.norm_weight"));
  CHECK(drawn != std::vector<float>(50, 1.0F));
  for (float each : drawn)
    CHECK((each >= 0.5F && each < 1.5F));
}

TEST_CASE_FIXTURE(
  inputs_fixture, "an entry point is called with all axes and numbers together, on the CPU") {
  if (!torch())
    return;
  what.prepare.definition_text = definition_with(
    "import torch\n"
    "def make(axes_and_scalars, device):\n"
    "    assert axes_and_scalars == {'K': 3, 'M': 4, 'extra': 9, 'MK': 12, 'eps': 0.5}\n"
    "    assert device == 'cpu'\n"
    "    return {'x': torch.full((4,), axes_and_scalars['eps'], device=device), 'unasked': 1}\n"
    "def run(x):\n    return x + 1\n",
    "make");
  add("w", {{"M", 4}, {"extra", 9}});
  call().scalars = {{"eps", {dtype::float32, 0.5, 0, false}}};
  const auto answer = only();
  CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
  CHECK(floats(content("w.x")) == std::vector<float>(4, 0.5F));
  CHECK(floats(content("w.y")) == std::vector<float>(4, 1.5F));
}

TEST_CASE_FIXTURE(
  inputs_fixture, "the key of a call seeds every generator, so it can be repeated") {
  if (!torch())
    return;
  what.prepare.definition_text =
    definition_with("import random\nimport torch\n"
                    "def make(axes_and_scalars, device):\n"
                    "    return {'x': torch.randn(axes_and_scalars['M']) + random.random()}\n"
                    "def run(x):\n    return x\n",
      "make");
  add("w", {{"M", 64}});
  call();
  CHECK(only().status == verdict_status::passed);
  const auto first = content("w.x");
  CHECK(only().status == verdict_status::passed);
  CHECK(content("w.x") == first);
  last().calls[0].key.bytes[0] = 1;
  CHECK(only().status == verdict_status::passed);
  CHECK(content("w.x") != first);
}

TEST_CASE_FIXTURE(
  inputs_fixture, "numbers of an entry point reach the reference and come back, call by call") {
  if (!torch())
    return;
  what.prepare.definition_text = definition_with(
    "import torch\n"
    "def make(axes_and_scalars, device):\n"
    "    m = axes_and_scalars['M']\n"
    "    return {'x': torch.ones(m), 'k': m, 'flag': True, 'scale': torch.tensor(float(m) / 2)}\n"
    "def run(x, k, flag, scale):\n"
    "    assert type(k) is int and flag is True and type(scale) is float\n"
    "    return x * k * scale\n",
    "make",
    R"(, "k": {"shape": null, "dtype": "int32"}, "flag": {"shape": null, "dtype": "bool"},
         "scale": {"shape": null, "dtype": "float32"})");
  add("w", {{"M", 4}});
  call({{"k", dtype::int32}, {"flag", dtype::boolean}, {"scale", dtype::float32}});
  auto clock = last().calls[0];
  clock.axes = {{"M", 8}};
  clock.tensors = {{"x", dtype::float32, {8}, 32, "clock.x"}};
  last().calls.push_back(clock);
  const auto answer = only();
  CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
  REQUIRE(answer.numbers.size() == 2);
  CHECK(answer.numbers[0] == named_numbers{{"k", int64_t{4}}, {"flag", true}, {"scale", 2.0}});
  CHECK(answer.numbers[1] == named_numbers{{"k", int64_t{8}}, {"flag", true}, {"scale", 4.0}});
  CHECK(floats(content("w.y")) == std::vector<float>(4, 8.0F));
  CHECK(floats(content("clock.x")) == std::vector<float>(8, 1.0F));
}

TEST_CASE_FIXTURE(inputs_fixture, "an entry point is called even when no input comes from it") {
  if (!torch())
    return;
  what.prepare.definition_text =
    definition_with("called = []\n"
                    "def make(axes_and_scalars, device):\n    called.append(1)\n    return {}\n"
                    "def run(x):\n    assert called == [1]\n    return x\n",
      "make");
  add("w", {{"M", 4}});
  entry_call made;
  made.axes = last().axes;
  last().calls.push_back(made);
  const auto answer = only();
  CHECK_MESSAGE(answer.status == verdict_status::passed, answer.reason);
}

TEST_CASE_FIXTURE(inputs_fixture,
  "an entry point that breaks its definition is RUNTIME_ERROR with a reason that names it") {
  if (!torch())
    return;
  const std::vector<std::pair<std::string, std::string>> cases{
    {"1 / 0", "the entry point `make`: ZeroDivisionError"},
    {"[torch.ones(m)]", "`make` returns a list, not a dict"},
    {"{'z': torch.ones(m)}", "`make` returns no x"},
    {"{'x': torch.ones(1)}", "`make` gives the input `x` the shape [1], declared is [5]"},
    {"{'x': torch.ones(m).double()}", "`x` as float64, declared is float32"},
    {"{'x': 'text'}", "`make` gives a str for the input `x`"}, {"exit(0)", "SystemExit"}};
  std::string source = "import torch\nfrom sys import exit\n"
                       "def make(axes_and_scalars, device):\n    m = axes_and_scalars['M']\n";
  for (size_t i = 0; i < cases.size(); ++i)
    source += "    if m == " + std::to_string(i + 2) + ":\n        return " + cases[i].first + "\n";
  what.prepare.definition_text = definition_with(
    source + "    return {'x': torch.ones(m)}\ndef run(x):\n    return x\n", "make");
  for (size_t i = 0; i <= cases.size(); ++i) {
    add("w" + std::to_string(i), {{"M", static_cast<int64_t>(i) + 2}});
    call();
  }
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == cases.size() + 1);
  for (size_t i = 0; i < cases.size(); ++i) {
    CHECK(answers.workloads[i].status == verdict_status::runtime_error);
    mentions(answers.workloads[i], cases[i].second);
  }
  CHECK(answers.workloads.back().status == verdict_status::passed);
}

TEST_CASE_FIXTURE(
  inputs_fixture, "what this machine lacks is INFRASTRUCTURE, not the reference's fault") {
  if (!torch())
    return;
  const std::vector<std::pair<std::string, std::string>> cases{
    {"import no_such_module", "has no module `no_such_module`"},
    {"torch.no_such_operator(x)", "has no torch.no_such_operator"},
    {"raise RuntimeError('\"addmm_impl_cpu_\" not implemented for \\'Half\\'')",
      "lacks an operator on the CPU"},
    {"raise AssertionError('Torch not compiled with CUDA enabled')", "asks for a CUDA device"},
    {"raise MemoryError('no room')", "no room"}, {"torch.empty(1 << 60)", "memory"}};
  std::string source = "import torch\ndef run(x):\n    m = x.shape[0]\n";
  for (size_t i = 0; i < cases.size(); ++i)
    source += "    if m == " + std::to_string(i + 2) + ":\n        " + cases[i].first + "\n";
  what.prepare.definition_text = definition_with(source + "    return x\n");
  for (size_t i = 0; i <= cases.size(); ++i)
    add("w" + std::to_string(i), {{"M", static_cast<int64_t>(i) + 2}});
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == cases.size() + 1);
  for (size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].first);
    CHECK(answers.workloads[i].status == verdict_status::infrastructure);
    mentions(answers.workloads[i], cases[i].second);
    mentions(answers.workloads[i], "(reference, line");
  }
  CHECK(answers.workloads.back().status == verdict_status::passed);
}

TEST_CASE_FIXTURE(
  inputs_fixture, "an import that is missing when the reference loads is INFRASTRUCTURE for all") {
  if (!torch())
    return;
  what.prepare.definition_text =
    definition_with("import no_such_module\ndef run(x):\n    return x\n");
  add("w1", {{"M", 2}});
  add("w2", {{"M", 3}});
  const auto answers = prepare();
  REQUIRE(answers.workloads.size() == 2);
  for (const auto& answer : answers.workloads) {
    CHECK(answer.status == verdict_status::infrastructure);
    mentions(answer, "no_such_module");
  }
}
