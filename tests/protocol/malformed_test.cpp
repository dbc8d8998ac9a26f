#include "protocol/config_file.hpp"
#include "protocol/definition.hpp"
#include "protocol/solution.hpp"
#include "protocol/trace.hpp"
#include "protocol/workload.hpp"

#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <vector>

// Small tables of files that a person or a program may well write, each with the field that the
// message must name.

using namespace gristmill;

namespace {

/// One value of a right document replaced. The value is JSON; `@` removes the field.
struct fault {
  const char* pointer;
  const char* value;
  const char* blamed;
};

/// The message, or nothing when the text was taken.
using reader = std::function<std::string(const std::string&)>;

template <class T>
std::string message_of(const result<T>& read) {
  return read ? std::string{} : read.error().what;
}

void check_table(const char* right, const std::vector<fault>& table, const reader& read) {
  CHECK(read(ordered_json::parse(right).dump()).empty());
  CHECK(table.size() >= 20);
  for (const auto& each : table) {
    CAPTURE(each.pointer);
    CAPTURE(each.value);
    auto document = ordered_json::parse(right);
    const ordered_json::json_pointer at{each.pointer};
    if (std::string{each.value} == "@")
      document[at.parent_pointer()].erase(at.back());
    else
      document[at] = ordered_json::parse(each.value);
    const auto what = read(document.dump());
    CAPTURE(what);
    CHECK(what.find(std::string{": "} + each.blamed) != std::string::npos);
    CHECK(what.starts_with("FILE:1: "));
  }
}

/// What no reader takes, whatever it reads.
void check_texts(const reader& read) {
  for (const char* text :
    {"", "null", "[]", "5", "\"text\"", "{", "{\"name\":", "{\"a\":1,}", "{} {}", "{'name': 1}",
      "{\"name\": \"\xff\"}", "{\"name\": \"\\ud800\"}", "{\"a\": 1e999}", "// comment\n{}",
      "\xef\xbb\xbf{", "{\"a\":\x01}", "{\"name\": +1}", "{\"name\": .5}"}) {
    CAPTURE(text);
    const auto what = read(text);
    CHECK(what.starts_with("FILE"));
  }
  CHECK(read(std::string(1000, '[')).starts_with("FILE"));
  std::string deep;
  for (int i = 0; i < 1000; ++i)
    deep += "{\"a\":";
  CHECK(read(deep).find("nested deeper") != std::string::npos);
  std::string wide = "{";
  for (int i = 0; i < 5000; ++i)
    wide += "\"k" + std::to_string(i) + "\":1,";
  CHECK(read(wide + "\"z\":1}").find("keys") != std::string::npos);
}

} // namespace

TEST_CASE("malformed definitions are refused by the name of the field") {
  const reader read = [](const std::string& text) {
    return message_of(parse_definition(text, "FILE"));
  };
  check_texts(read);
  check_table(R"({"name":"n","axes":{"N":{"type":"var"},"K":{"value":2}},
    "inputs":{"x":{"shape":["N"],"dtype":"float32"}},
    "outputs":{"y":{"shape":["N"],"dtype":"float32"}},
    "reference":"def gen(a, d): pass\ndef run(x): pass","custom_inputs_entrypoint":"gen"})",
    {
      {"/name", "@", "name: a string is required"},
      {"/name", "null", "name: must be a string, not null"},
      {"/name", "7", "name: must be a string, not an integer"},
      {"/op_type", "\"\"", "op_type: must not be empty"},
      {"/axes", "[]", "axes: must be an object, not a list"},
      {"/axes", "@", "axes: an object is required"},
      {"/axes/N", "null", "axes.N: must be an object, not null"},
      {"/axes/N/type", "\"vra\"", "axes.N.type: unknown axis type `vra`; did you mean `var`?"},
      {"/axes/N/type", "null", "axes.N.type: must be a string, not null"},
      {"/axes/K", R"({"type":"const"})", "axes.K.value: "},
      {"/axes/K", R"({"type":"const","value":"x"})", "axes.K.value: "},
      {"/axes/K", R"({"type":"const","value":9223372036854775808})", "axes.K.value: "},
      {"/axes/K", R"({"type":"expr"})", "axes.K.expression: a string is required"},
      {"/axes/K", R"({"type":"expr","expression":""})", "axes.K.expression: must not be empty"},
      {"/axes/K", R"({"value":1,"description":5})", "axes.K.description: must be a string"},
      {"/axes/", R"({"type":"var"})", "axes: a name must not be empty"},
      {"/inputs/x/shape", "@", "inputs.x.shape: is required"},
      {"/inputs/x/shape", R"(["N",4])", "inputs.x.shape.1: "},
      {"/inputs/x/shape", R"([""])", "inputs.x.shape.0: "},
      {"/inputs/x/shape", R"(["-1"])", "inputs.x.shape.0: there is no axis `-1`"},
      {"/inputs/x/shape", R"(["n"])", "inputs.x.shape.0: there is no axis `n`; did you mean `N`?"},
      {"/inputs/x/dtype", "\"Float32\"", "inputs.x.dtype: "},
      {"/outputs/y/dtype", "@", "outputs.y.dtype: a string is required"},
      {"/outputs/x", R"({"shape":[],"dtype":"int8"})", "outputs.x: an input has the same name"},
      {"/axes/x", "{}", "inputs.x: an axis has the same name"},
      {"/reference", "\"\"", "reference: must not be empty"},
      {"/reference", "\"def run(x\"", "reference: line 1 is not Python"},
      {"/reference", "\"def run(y): pass\"", "reference: the parameters of `run` are (y)"},
      {"/reference", "\"def run(x): pass\\u0000\"", "reference: line 1 is not Python: a null byte"},
      {"/custom_inputs_entrypoint", "\"gem\"", "custom_inputs_entrypoint: the reference has no"},
    },
    read);
}

TEST_CASE("malformed workload lines are refused by the name of the field") {
  const reader read = [](const std::string& text) {
    return message_of(parse_workload(text, "FILE", 1));
  };
  check_texts(read);
  check_table(R"({"uuid":"u","axes":{"N":1},"inputs":{"x":{"type":"random"},
    "s":{"type":"scalar","value":1},"b":{"type":"safetensors","path":"p","tensor_key":"k"}},
    "tolerance":{"max_atol":1,"max_error_cap":null}})",
    {
      {"/uuid", "@", "uuid: a string is required"},
      {"/uuid", "\"\"", "uuid: must not be empty"},
      {"/uuid", "1", "uuid: must be a string, not an integer"},
      {"/axes", "@", "axes: an object is required"},
      {"/axes", "null", "axes: must be an object, not null"},
      {"/axes/N", "-1", "axes.N: must be an integer of 0 or more, not -1"},
      {"/axes/N", "1.5", "axes.N: "},
      {"/axes/N", "null", "axes.N: "},
      {"/axes/N", "\"four\"", "axes.N: "},
      {"/axes/N", "1e30", "axes.N: "},
      {"/inputs", "@", "inputs: an object is required"},
      {"/inputs", "[]", "inputs: must be an object, not a list"},
      {"/inputs/x", "\"random\"", "inputs.x: must be an object, not a string"},
      {"/inputs/x/type", "\"zeros\"", "inputs.x.type: unknown input type `zeros`"},
      {"/inputs/x/type", "\"randon\"", "inputs.x.type: unknown input type `randon`; did you mean"},
      {"/inputs/x/type", "5", "inputs.x.type: must be a string"},
      {"/inputs/s/value", "@", "inputs.s.value: "},
      {"/inputs/s/value", "[1]", "inputs.s.value: "},
      {"/inputs/s/value", "\"x\"", "inputs.s.value: "},
      {"/inputs/b/path", "@", "inputs.b.path: a string is required"},
      {"/inputs/b/tensor_key", "\"\"", "inputs.b.tensor_key: must not be empty"},
      {"/inputs/x/type", "\"custom\"", "inputs: custom inputs do not mix"},
      {"/tolerance", "null", "tolerance: must be an object, not null"},
      {"/tolerance/max_atol", "\"small\"", "tolerance.max_atol: must be a number"},
      {"/tolerance/max_rtol", "null", "tolerance.max_rtol: must be a number"},
      {"/tolerance/max_error_cap", "[]", "tolerance.max_error_cap: must be a number"},
      {"/tolerance/allow_negative_inf", "2", "tolerance.allow_negative_inf: must be a bool"},
    },
    read);
}

TEST_CASE("malformed solutions are refused by the name of the field") {
  const reader read = [](const std::string& text) {
    return message_of(parse_solution(text, "FILE"));
  };
  check_texts(read);
  check_table(R"({"name":"s","definition":"d","author":"a",
    "spec":{"languages":["cuda_cpp"],"target_hardware":["LOCAL"],"entry_point":"k.cu::run"},
    "sources":[{"path":"k.cu","content":"x"},{"path":"k.h","content":"y"}]})",
    {
      {"/name", "@", "name: a string is required"},
      {"/author", "\"\"", "author: must not be empty"},
      {"/definition", "5", "definition: must be a string"},
      {"/description", "5", "description: must be a string"},
      {"/spec", "@", "spec: an object is required"},
      {"/spec", "[]", "spec: must be an object, not a list"},
      {"/spec/languages", "@", "spec.languages: a list is required"},
      {"/spec/languages", "\"cuda_cpp\"", "spec.languages: must be a list, not a string"},
      {"/spec/languages/0", "\"cuda\"", "spec.languages.0: unknown language `cuda`"},
      {"/spec/languages", R"(["cublas","pytorch"])", "spec.languages: Python languages and C++"},
      {"/spec/target_hardware", "[]", "spec.target_hardware: must name at least one"},
      {"/spec/target_hardware", R"(["B100"])", "spec.target_hardware.0: unknown hardware `B100`"},
      {"/spec/entry_point", "@", "spec.entry_point: a string is required"},
      {"/spec/entry_point", "\"k.cu\"", "spec.entry_point: `k.cu` is not of the form"},
      {"/spec/entry_point", "\"k.py::run\"", "spec.entry_point: the file of a C++ solution"},
      {"/spec/entry_point", "\"K.cu::run\"",
        "spec.entry_point: no source has the path `K.cu`; did"},
      {"/spec/dependencies", "null", "spec.dependencies: must be a list, not null"},
      {"/spec/dependencies", R"(["a",""])", "spec.dependencies.1: must not be empty"},
      {"/spec/destination_passing_style", "null", "spec.destination_passing_style: must be a bool"},
      {"/spec/binding", "\"tvm-ffi\"", "spec.binding: `tvm-ffi` is not a binding"},
      {"/spec/binding", "true", "spec.binding: must be a string"},
      {"/spec/compile_options", "[]", "spec.compile_options: must be an object"},
      {"/spec/compile_options", R"({"cflags":"-O3"})",
        "spec.compile_options.cflags: must be a list"},
      {"/sources", "@", "sources: a list is required"},
      {"/sources", "{}", "sources: must be a list, not an object"},
      {"/sources", "[]", "sources: must have at least one file"},
      {"/sources/0", "\"k.cu\"", "sources.0: must be an object, not a string"},
      {"/sources/1/path", "@", "sources.1.path: a string is required"},
      {"/sources/1/path", "\"/k.h\"", "sources.1.path: `/k.h` must be relative"},
      {"/sources/1/path", "\"a/../k.h\"", "sources.1.path: `a/../k.h` must not have"},
      {"/sources/1/path", "\"k.cu\"", "sources.1.path: `k.cu` stands on an earlier source too"},
      {"/sources/1/content", "@", "sources.1.content: a string is required"},
      {"/sources/1/content", "\"\"", "sources.1.content: must not be empty"},
      {"/sources/1/path", "\"config.json\"", "sources.1.path: `config.json` would replace"},
    },
    read);
}

TEST_CASE("malformed trace lines are refused by the name of the field") {
  const reader read = [](const std::string& text) {
    return message_of(parse_trace(text, "FILE", 1));
  };
  check_texts(read);
  check_table(R"({"definition":"d","workload":{"uuid":"u","axes":{},"inputs":{}},"solution":"s",
    "evaluation":{"status":"PASSED","environment":{"hardware":"H","libs":{"torch":"2"}},
    "timestamp":"t","log":"","correctness":{"extra":null},"performance":{"latency_ms":1}}})",
    {
      {"/definition", "@", "definition: a string is required"},
      {"/definition", "\"\"", "definition: must not be empty"},
      {"/workload", "@", "workload: an object is required"},
      {"/workload/uuid", "@", "workload.uuid: a string is required"},
      {"/workload/axes", "[]", "workload.axes: must be an object"},
      {"/workload/axes/N", "-2", "workload.axes.N: must be an integer of 0 or more"},
      {"/workload/inputs/x", R"({"type":"ones"})", "workload.inputs.x.type: unknown input type"},
      {"/workload/tolerance", "null", "workload.tolerance: must be an object"},
      {"/solution", "5", "solution: must be a string"},
      {"/evaluation", "[]", "evaluation: must be an object"},
      {"/evaluation/status", "@", "evaluation.status: a string is required"},
      {"/evaluation/status", "\"passed\"", "evaluation.status: unknown status `passed`; did you"},
      {"/evaluation/environment", "@", "evaluation.environment: an object is required"},
      {"/evaluation/environment/hardware", "\"\"", "evaluation.environment.hardware: must not"},
      {"/evaluation/environment/libs", "[]", "evaluation.environment.libs: must be an object"},
      {"/evaluation/environment/libs/torch", "2", "evaluation.environment.libs.torch: must be"},
      {"/evaluation/timestamp", "@", "evaluation.timestamp: a string is required"},
      {"/evaluation/log", "null", "evaluation.log: must be a string, not null"},
      {"/evaluation/correctness", "null", "evaluation.correctness: must be there when"},
      {"/evaluation/correctness", "7", "evaluation.correctness: must be an object"},
      {"/evaluation/correctness/has_nan", "\"x\"",
        "evaluation.correctness.has_nan: must be a bool"},
      {"/evaluation/correctness/extra", "[]", "evaluation.correctness.extra: must be an object"},
      {"/evaluation/correctness/max_relative_error", "-1", "evaluation.correctness.max_relative"},
      {"/evaluation/performance", "null", "evaluation.performance: must be there when"},
      {"/evaluation/performance/latency_ms", "-1", "evaluation.performance.latency_ms: must not"},
      {"/evaluation/performance/latency_ms", "\"nan\"", "evaluation.performance.latency_ms: must"},
      {"/evaluation/status", "\"TIMEOUT\"", "evaluation.correctness: must be absent when"},
      {"/evaluation/status", "\"INCORRECT_NUMERICAL\"", "evaluation.performance: must be absent"},
    },
    read);
}

TEST_CASE("malformed config files are refused by the name of the field") {
  const reader read = [](const std::string& text) {
    return message_of(parse_config_file(text, "FILE"));
  };
  check_texts(read);
  check_table(
    R"({"warmup_runs":1,"iterations":1,"lock_clocks":false,"benchmark_reference":true,"seed":1})",
    {
      {"/warmup_runs", "-1", "warmup_runs: must be 0 or more, not -1"},
      {"/warmup_runs", "null", "warmup_runs: must be an integer, not null"},
      {"/warmup_runs", "1.5", "warmup_runs: must be an integer"},
      {"/warmup_runs", "\"ten\"", "warmup_runs: must be an integer"},
      {"/warmup_runs", "[]", "warmup_runs: must be an integer, not a list"},
      {"/iterations", "0", "iterations: must be 1 or more, not 0"},
      {"/iterations", "-5", "iterations: must be 1 or more, not -5"},
      {"/iterations", "1e30", "iterations: must be an integer"},
      {"/iterations", "{}", "iterations: must be an integer, not an object"},
      {"/iterations", "null", "iterations: must be an integer, not null"},
      {"/lock_clocks", "null", "lock_clocks: must be a bool, not null"},
      {"/lock_clocks", "2", "lock_clocks: must be a bool"},
      {"/lock_clocks", "\"maybe\"", "lock_clocks: must be a bool"},
      {"/benchmark_reference", "[]", "benchmark_reference: must be a bool, not a list"},
      {"/benchmark_reference", "0.5", "benchmark_reference: must be a bool"},
      {"/seed", "null", "seed: must be an integer"},
      {"/seed", "0.5", "seed: must be an integer"},
      {"/seed", "18446744073709551616", "seed: must be an integer"},
      {"/sed", "1", "sed: unknown key; did you mean `seed`?"},
      {"/warmup", "1", "warmup: unknown key"},
      {"/Iterations", "1", "Iterations: unknown key; did you mean `iterations`?"},
      {"/", "1", "unknown key"},
    },
    read);
}
