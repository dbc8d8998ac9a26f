// Loads and validates as many problems as the published set has, and prints what that costs:
//
//     build/release/bench/gristmill-bench-load [RUNS]
//
// The set is made here, into a folder that is removed again: 235 problems with 3,957 workloads,
// with the published set's extremes: a definition of 28.5 kB (its reference on one line), a
// workload file of 41.8 kB, 41 inputs, 14 outputs, 259 expression axes in all. A run reads every
// file, checks every rule, resolves axes, shapes and sizes of every workload and chooses how each
// input is drawn; all problems are kept until its end. The goal is less than a second and 200 MB.

#include "protocol/json_document.hpp"
#include "protocol/problem.hpp"
#include "tensors/generate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

namespace fs = std::filesystem;
using gristmill::ordered_json;

constexpr size_t problems_count = 235;
constexpr size_t workloads_count = 3957;
constexpr double seconds_goal = 1;
constexpr double megabytes_goal = 200;

struct made_set {
  fs::path folder;
  size_t bytes = 0;
  size_t largest_definition = 0;
  size_t largest_workloads = 0;
};

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

/// How many of them problem `index` has, so that all together have `total`.
size_t share_of(size_t total, size_t index) {
  return total * (index + 1) / problems_count - total * index / problems_count;
}

size_t inputs_of(size_t index) {
  return index == 7 ? 41 : 2 + index % 12;
}

size_t outputs_of(size_t index) {
  return index == 7 ? 14 : 1 + index % 3;
}

std::string reference_of(size_t index) {
  std::string parameters;
  for (size_t i = 0; i < inputs_of(index); ++i)
    parameters += (i == 0 ? "input_" : ", input_") + std::to_string(i);
  std::string returned;
  for (size_t i = 0; i < outputs_of(index); ++i)
    returned += std::string(i == 0 ? "" : ", ") + "input_0";
  // Problem 11 says all of it on one line.
  const bool one_line = index == 11;
  const size_t wanted = one_line ? 25'400 : index == 3 ? 22'000 : 600 + index % 40 * 250;
  std::string body = "import torch\n\n\ndef make(axes, device):\n    return {}\n\n\ndef run("
    + parameters + ")" + (one_line ? ": x = input_0" : ":\n    x = input_0\n");
  for (size_t i = 0; body.size() < wanted; ++i)
    body += one_line
      ? "; x = torch.nn.functional.silu(x + " + std::to_string(i) + ")"
      : "    # step \"" + std::to_string(i) + "\"\n    x = torch.matmul(x, x.transpose(-1, -2))\n";
  return body + (one_line ? "; return " : "    return ") + returned + "\n";
}

std::string definition_of(size_t index) {
  ordered_json axes{{"batch", {{"type", "var"}, {"description", "how many at once"}}},
    {"hidden", {{"type", "const"}, {"value", 4096}}}};
  for (size_t i = 0; i < share_of(259, index); ++i)
    axes["part_" + std::to_string(i)] = {
      {"type", "expr"}, {"expression", "(batch * hidden + 7) // 8 - " + std::to_string(i)}};
  const bool has_parts = axes.size() > 2;
  ordered_json inputs = ordered_json::object();
  for (size_t i = 0; i < inputs_of(index); ++i) {
    ordered_json spec{{"shape", {"batch", i % 2 == 1 && has_parts ? "part_0" : "hidden", "128"}},
      {"dtype", i % 3 == 0 ? "bfloat16" : "float32"}, {"description", "an operand of the layer"}};
    if (i % 5 == 4)
      spec["shape"] = nullptr;
    inputs["input_" + std::to_string(i)] = std::move(spec);
  }
  ordered_json outputs = ordered_json::object();
  for (size_t i = 0; i < outputs_of(index); ++i)
    outputs["output_" + std::to_string(i)] = {
      {"shape", {"batch", "hidden"}}, {"dtype", "bfloat16"}, {"description", "a result"}};
  return ordered_json{{"name", "problem_" + std::to_string(index)}, {"description", "Synthetic."},
    {"hf_id", "nobody/nothing"}, {"axes", axes}, {"custom_inputs_entrypoint", "make"},
    {"inputs", inputs}, {"outputs", outputs}, {"reference", reference_of(index)}}
    .dump(2);
}

std::string workloads_of(size_t index) {
  std::string out;
  for (size_t n = 0; n < share_of(workloads_count, index); ++n) {
    const bool custom = index % 3 == 0;
    ordered_json inputs = ordered_json::object();
    for (size_t i = 0; i < inputs_of(index); ++i) {
      ordered_json spec{{"type", custom ? "custom" : "random"}};
      if (!custom && i % 5 == 4)
        spec = {{"type", "scalar"}, {"value", 1e-6}};
      else if (!custom && (index % 20 == 1 ? i == 0 : index == 7 && i % 3 == 0))
        spec = {{"type", "safetensors"},
          {"path",
            index == 7 ? "data/blob/workloads/decoderblock_017/layer.safetensors"
                       : "data/blob/workloads/layer.safetensors"},
          {"tensor_key", "input_0"}};
      inputs["input_" + std::to_string(i)] = std::move(spec);
    }
    out +=
      ordered_json{
        {"uuid",
          "0b0e9a7c-0000-4000-8000-" + std::to_string(100000 + index) + std::to_string(100000 + n)},
        {"axes", {{"batch", 1 + n * 7}}}, {"inputs", inputs},
        {"tolerance", {{"max_atol", 0.005}, {"max_rtol", 0.01}, {"required_matched_ratio", 0.98}}}}
        .dump()
      + "\n";
  }
  return out;
}

size_t write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    give_up(file.string() + ": cannot be written");
  return text.size();
}

made_set make_set() {
  std::string name = (fs::temp_directory_path() / "gristmill-load-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    give_up(name + ": cannot be made");
  made_set out;
  out.folder = name;
  for (size_t i = 0; i < problems_count; ++i) {
    const auto folder = out.folder / ("problem_" + std::to_string(1000 + i));
    fs::create_directory(folder);
    const size_t definition_bytes = write(folder / "definition.json", definition_of(i));
    const size_t workload_bytes = write(folder / "workload.jsonl", workloads_of(i));
    out.bytes += definition_bytes + workload_bytes;
    out.largest_definition = std::max(out.largest_definition, definition_bytes);
    out.largest_workloads = std::max(out.largest_workloads, workload_bytes);
  }
  return out;
}

/// Everything of one workload that depends on its axes. The sum keeps the work from being dropped.
uint64_t resolve_all(const gristmill::problem& p, const gristmill::workload& work) {
  const auto axes = gristmill::resolve_axes(p.def, work.axes);
  if (!axes)
    give_up(axes.error().what);
  uint64_t sum = 0;
  for (const auto* specs : {&p.def.inputs, &p.def.outputs}) {
    for (const auto& spec : *specs) {
      const auto shape = gristmill::resolve_shape(spec, *axes);
      if (!shape)
        give_up(shape.error().what);
      const auto bytes = gristmill::storage_bytes(spec.type, *shape);
      if (!bytes)
        give_up(bytes.error().what);
      const auto drawn = gristmill::choose_distribution(
        spec.name, spec.description, spec.type, *shape, p.def.op_type);
      sum += *bytes + static_cast<uint64_t>(drawn.kind);
    }
  }
  return sum;
}

struct loaded_set {
  size_t problems = 0;
  size_t workloads = 0;
  double seconds = 0;
};

loaded_set load_set(const fs::path& folder) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder))
    folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<gristmill::problem> problems;
  uint64_t sum = 0;
  loaded_set out;
  for (const auto& each : folders) {
    auto loaded = gristmill::load_problem(each);
    if (!loaded)
      give_up(loaded.error().what);
    for (const auto& work : loaded->workloads)
      sum += resolve_all(*loaded, work);
    out.workloads += loaded->workloads.size();
    problems.push_back(std::move(*loaded));
  }
  out.problems = problems.size();
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (sum == 0)
    give_up("nothing was resolved");
  return out;
}

} // namespace

int main(int argc, char** argv) {
  const long runs = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 9;
  if (runs < 1 || argc > 2)
    give_up("usage: gristmill-bench-load [RUNS]");
  const auto made = make_set();
  std::printf("made: %zu bytes, largest definition %zu, largest workload file %zu\n", made.bytes,
    made.largest_definition, made.largest_workloads);
  std::vector<double> seconds;
  loaded_set last;
  for (long i = 0; i < runs; ++i) {
    last = load_set(made.folder);
    seconds.push_back(last.seconds);
  }
  std::error_code ignored;
  fs::remove_all(made.folder, ignored);
  std::sort(seconds.begin(), seconds.end());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double megabytes = static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
  const double median = seconds[seconds.size() / 2];
  std::printf(
    "loaded: %zu problems, %zu workloads, %ld runs\n", last.problems, last.workloads, runs);
  std::printf("time: min %.3f s, median %.3f s (goal %.0f s: %s)\n", seconds.front(), median,
    seconds_goal, median < seconds_goal ? "kept" : "MISSED");
  std::printf("memory: at most %.0f MB resident (goal %.0f MB: %s)\n", megabytes, megabytes_goal,
    megabytes < megabytes_goal ? "kept" : "MISSED");
  return median < seconds_goal && megabytes < megabytes_goal ? 0 : 1;
}
