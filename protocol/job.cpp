#include "protocol/job.hpp"

#include "protocol/job_parts.hpp"
#include "protocol/strict_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

// The other half of what reads and writes a job.
using namespace job_parts; // NOLINT(google-build-using-namespace)

namespace {

constexpr std::string_view schema = "gristmill.job/1";
const std::vector<std::string> kinds{"compile", "prepare", "run", "judge"};
const std::vector<std::string> oracles{"native", "torch"};
const std::vector<std::string> sources{"generator", "safetensors", "custom"};
/// In the order of `input_style`.
const std::vector<std::string> styles{
  "standard", "held-out", "tiny", "large", "constant rows", "NaN rows"};
constexpr size_t nonce_bytes_min = 16;
constexpr size_t nonce_bytes_max = 128;
constexpr size_t text_bytes = size_t{4} << 20;

ordered_json write(const drawn_tensor& tensor);
ordered_json write(const stored_tensor& tensor);
ordered_json write(const entry_call& call);
ordered_json write(const prepare_workload& work);
ordered_json write(const trace_tensor& tensor);
ordered_json write(const trace_attempt& attempt);
ordered_json write(const judge_output& output);
ordered_json write(const judge_call& call);
ordered_json write(const judge_workload& work);

template <class T>
ordered_json write_all(const std::vector<T>& all) {
  auto array = ordered_json::array();
  for (const auto& one : all)
    array.push_back(write(one));
  return array;
}

ordered_json write(const plan_options& options) {
  return {{"std", options.standard}, {"fast_math", options.fast_math},
    {"maxrregcount", options.max_registers}, {"headers", options.headers}};
}

plan_options read_options(strict_object& object) {
  plan_options options;
  object.object("options", [&](strict_object& inner) {
    options.standard = inner.text("std", 32);
    options.fast_math = inner.boolean("fast_math");
    options.max_registers = inner.natural32("maxrregcount");
    inner.each("headers", 16, [&](const ordered_json& element, const std::string& where) {
      if (element.is_string())
        options.headers.push_back(element.get<std::string>());
      else if (!inner.failed())
        inner.sink() = failure{errc::invalid_input, where + ": expected a string"};
    });
  });
  return options;
}

ordered_json write(const compile_job& compile) {
  auto units = ordered_json::array();
  for (const auto& unit : compile.units)
    units.push_back(job_parts::write(unit));
  return {{"source_file", compile.source_file}, {"options", write(compile.options)},
    {"units", units}, {"arch", compile.arch}, {"compiler", compile.compiler},
    {"compiler_version", compile.compiler_version}};
}

compile_job read_compile(strict_object& object) {
  compile_job compile;
  compile.source_file = read_file_name(object, "source_file");
  compile.options = read_options(object);
  object.each("units", plan_limits::units, [&](const ordered_json& element, std::string where) {
    compile.units.push_back(read_unit(element, std::move(where), object.sink()));
  });
  compile.arch = object.text("arch", 32);
  compile.compiler = read_file_name(object, "compiler");
  compile.compiler_version = object.text("compiler_version", 256);
  return compile;
}

ordered_json write(const axis_values& axes) {
  auto all = ordered_json::object();
  for (const auto& [name, value] : axes)
    all[name] = value;
  return all;
}

axis_values read_axes(strict_object& object) {
  axis_values axes;
  object.each_member("axes", job_limits::tensors,
    [&](const std::string& name, const ordered_json& value, const std::string& where) {
      if (value.is_number_integer() && value.get<int64_t>() >= 0)
        axes.emplace_back(name, value.get<int64_t>());
      else if (!object.failed())
        object.sink() = failure{errc::invalid_input, where + ": expected an integer of 0 or more"};
    });
  return axes;
}

ordered_json write(const scalar_values& scalars) {
  auto all = ordered_json::array();
  for (const auto& [name, scalar] : scalars)
    all.push_back({{"name", name}, {"dtype", gristmill::name(scalar.type)},
      {"number", number_to_json(scalar.number)}, {"integer", scalar.integer},
      {"is_integer", scalar.is_integer}});
  return all;
}

scalar_values read_scalars(strict_object& object) {
  scalar_values scalars;
  object.each("scalars", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    auto name = inner.text("name", name_bytes);
    scalar_value scalar;
    scalar.type = read_dtype(inner);
    scalar.number = inner.number("number");
    scalar.integer = inner.integer("integer");
    scalar.is_integer = inner.boolean("is_integer");
    scalars.emplace_back(std::move(name), scalar);
  });
  return scalars;
}

ordered_json write(const drawn_tensor& tensor) {
  return {{"name", tensor.name}, {"description", tensor.description}, {"dtype", name(tensor.type)},
    {"shape", tensor.shape}, {"bytes", tensor.bytes}, {"key", key_text(tensor.key)},
    {"file", tensor.file}, {"file_bytes", tensor.file_bytes}, {"style", to_string(tensor.style)},
    {"source", sources[static_cast<size_t>(tensor.source)]}, {"blob_file", tensor.blob_file},
    {"blob_key", tensor.blob_key}};
}

drawn_tensor read_drawn(const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  drawn_tensor tensor;
  tensor.name = object.text("name", name_bytes);
  tensor.description = object.text("description", text_bytes);
  tensor.type = read_dtype(object);
  tensor.bytes = object.natural("bytes");
  tensor.shape = read_shape(object, tensor.type, tensor.bytes);
  tensor.key = read_key(object, "key");
  tensor.file = read_file_name(object, "file");
  tensor.file_bytes = object.natural("file_bytes", tensor.bytes);
  const uint64_t element = element_bits(tensor.type) / 8;
  if (element > 1 && tensor.file_bytes % element != 0)
    object.complain("file_bytes", "does not end at an element");
  tensor.style = static_cast<input_style>(object.choice("style", styles));
  tensor.source = static_cast<tensor_source>(object.choice("source", sources));
  tensor.blob_file = object.text("blob_file", path_bytes);
  tensor.blob_key = object.text("blob_key", path_bytes);
  const bool from_blob = tensor.source == tensor_source::safetensors;
  if (from_blob == tensor.blob_file.empty() || from_blob == tensor.blob_key.empty())
    object.complain("blob_file",
      from_blob ? "a safetensors input needs a file and a key"
                : "only safetensors inputs have one");
  return tensor;
}

ordered_json write(const stored_tensor& tensor) {
  return {{"name", tensor.name}, {"dtype", name(tensor.type)}, {"shape", tensor.shape},
    {"bytes", tensor.bytes}, {"file", tensor.file}};
}

stored_tensor read_stored(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  stored_tensor tensor;
  tensor.name = object.text("name", name_bytes);
  tensor.type = read_dtype(object);
  tensor.bytes = object.natural("bytes");
  tensor.shape = read_shape(object, tensor.type, tensor.bytes);
  tensor.file = read_file_name(object, "file");
  return tensor;
}

template <class Read>
auto read_all(strict_object& object, std::string_view key, size_t max, Read read) {
  std::vector<decltype(read(ordered_json{}, std::string{}, object.sink()))> all;
  object.each(key, max, [&](const ordered_json& element, std::string where) {
    all.push_back(read(element, std::move(where), object.sink()));
  });
  return all;
}

ordered_json write(const entry_call& call) {
  auto numbers = ordered_json::array();
  for (const auto& number : call.numbers)
    numbers.push_back({{"name", number.name}, {"dtype", name(number.type)}});
  return {{"axes", write(call.axes)}, {"scalars", write(call.scalars)}, {"key", key_text(call.key)},
    {"tensors", write_all(call.tensors)}, {"numbers", numbers}};
}

entry_call read_call(const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  entry_call call;
  call.axes = read_axes(object);
  call.scalars = read_scalars(object);
  call.key = read_key(object, "key");
  call.tensors = read_all(object, "tensors", job_limits::tensors, read_stored);
  object.each("numbers", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    custom_number number;
    number.name = inner.text("name", name_bytes);
    number.type = read_dtype(inner);
    call.numbers.push_back(std::move(number));
  });
  return call;
}

ordered_json write(const prepare_workload& work) {
  return {{"uuid", work.uuid}, {"axes", write(work.axes)}, {"scalars", write(work.scalars)},
    {"inputs", write_all(work.inputs)}, {"references", write_all(work.references)},
    {"patterns", write_all(work.patterns)}, {"calls", write_all(work.calls)}};
}

prepare_workload read_prepare_workload(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  prepare_workload work;
  work.uuid = object.text("uuid", name_bytes);
  work.axes = read_axes(object);
  work.scalars = read_scalars(object);
  work.inputs = read_all(object, "inputs", job_limits::tensors, read_drawn);
  work.references = read_all(object, "references", job_limits::tensors, read_stored);
  work.patterns = read_all(object, "patterns", job_limits::tensors, read_drawn);
  work.calls = read_all(object, "calls", job_limits::calls, read_call);
  return work;
}

ordered_json write(const trace_tensor& tensor) {
  return {{"name", tensor.name}, {"dtype", name(tensor.type)}, {"shape", tensor.shape}};
}

trace_tensor read_trace_tensor(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  trace_tensor tensor;
  tensor.name = object.text("name", name_bytes);
  tensor.type = read_dtype(object);
  tensor.shape = object.integers("shape", job_limits::dimensions);
  for (int64_t size : tensor.shape)
    if (size < 0)
      object.complain("shape", "a dimension is negative");
  return tensor;
}

ordered_json write(const trace_set& set) {
  return {{"axes", write(set.axes)}, {"scalars", write(set.scalars)},
    {"inputs", write_all(set.inputs)}, {"outputs", write_all(set.outputs)}};
}

ordered_json write(const trace_attempt& attempt) {
  return {{"first", write(attempt.sets[0])}, {"second", write(attempt.sets[1])}};
}

trace_attempt read_trace_attempt(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  trace_attempt attempt;
  const std::array<const char*, 2> keys{"first", "second"};
  for (size_t i = 0; i < 2; ++i)
    object.object(keys[i], [&](strict_object& inner) {
      auto& set = attempt.sets[i];
      set.axes = read_axes(inner);
      set.scalars = read_scalars(inner);
      set.inputs = read_all(inner, "inputs", job_limits::tensors, read_trace_tensor);
      set.outputs = read_all(inner, "outputs", job_limits::tensors, read_trace_tensor);
    });
  return attempt;
}

ordered_json write(const prepare_job& prepare) {
  return {{"oracle", to_string(prepare.oracle)}, {"definition", prepare.definition_text},
    {"python", prepare.python}, {"workloads", write_all(prepare.workloads)},
    {"trace", write_all(prepare.trace)}, {"graph_file", prepare.graph_file}};
}

prepare_job read_prepare(strict_object& object) {
  prepare_job prepare;
  prepare.oracle = static_cast<oracle_kind>(object.choice("oracle", oracles));
  prepare.definition_text = object.text("definition", job_limits::text_bytes);
  prepare.python = object.text("python", path_bytes);
  prepare.workloads = read_all(object, "workloads", job_limits::workloads, read_prepare_workload);
  prepare.trace = read_all(object, "trace", job_limits::trace_attempts, read_trace_attempt);
  prepare.graph_file = object.text("graph_file", path_bytes);
  if (prepare.oracle == oracle_kind::torch && prepare.python.empty())
    object.complain("python", "the torch oracle needs an interpreter");
  if (!prepare.trace.empty() && prepare.graph_file.empty())
    object.complain("graph_file", "a trace needs a file for its graph");
  if (!prepare.trace.empty() && prepare.python.empty())
    object.complain("python", "a trace needs an interpreter");
  for (const auto& work : prepare.workloads)
    if (!work.calls.empty() && prepare.oracle != oracle_kind::torch)
      object.complain("oracle", "only the torch oracle can call a custom entry point");
  return prepare;
}

ordered_json write(const tolerance& allowed) {
  return {{"atol", number_to_json(allowed.atol)}, {"rtol", number_to_json(allowed.rtol)},
    {"matched_ratio", number_to_json(allowed.matched_ratio)},
    {"error_cap", allowed.error_cap ? number_to_json(*allowed.error_cap) : ordered_json()},
    {"allow_negative_inf", allowed.allow_negative_inf}};
}

tolerance read_tolerance(strict_object& object) {
  tolerance allowed;
  object.object("tolerance", [&](strict_object& inner) {
    allowed.atol = inner.number("atol");
    allowed.rtol = inner.number("rtol");
    allowed.matched_ratio = inner.number("matched_ratio");
    if (inner.is_null("error_cap"))
      allowed.error_cap.reset();
    else
      allowed.error_cap = inner.number("error_cap");
    allowed.allow_negative_inf = inner.boolean("allow_negative_inf");
  });
  return allowed;
}

ordered_json write(const judge_output& output) {
  auto all = write(output.solution);
  all["reference_file"] = output.reference_file;
  return all;
}

ordered_json write(const judge_call& call) {
  return {{"label", call.label}, {"nan_positions", call.nan_positions},
    {"outputs", write_all(call.outputs)}};
}

ordered_json write(const judge_workload& work) {
  return {{"uuid", work.uuid}, {"shrunken", work.shrunken}, {"tolerance", write(work.allowed)},
    {"calls", write_all(work.calls)}};
}

judge_call read_judge_call(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  judge_call call;
  call.label = object.text("label", name_bytes);
  call.nan_positions = object.boolean("nan_positions");
  object.each("outputs", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), sink};
    judge_output output;
    output.solution.name = inner.text("name", name_bytes);
    output.solution.type = read_dtype(inner);
    output.solution.bytes = inner.natural("bytes");
    output.solution.shape = read_shape(inner, output.solution.type, output.solution.bytes);
    output.solution.file = read_file_name(inner, "file");
    output.reference_file = read_file_name(inner, "reference_file");
    call.outputs.push_back(std::move(output));
  });
  return call;
}

judge_workload read_judge_workload(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  judge_workload work;
  work.uuid = object.text("uuid", name_bytes);
  work.shrunken = object.boolean("shrunken");
  work.allowed = read_tolerance(object);
  // Every case, and as many timed calls.
  object.each("calls", 2 * job_limits::cases, [&](const ordered_json& element, std::string where) {
    work.calls.push_back(read_judge_call(element, std::move(where), sink));
  });
  return work;
}

} // namespace

std::string_view to_string(job_kind kind) {
  return kinds[static_cast<size_t>(kind)];
}

std::string_view to_string(oracle_kind kind) {
  return oracles[static_cast<size_t>(kind)];
}

std::string to_json(const job& what) {
  ordered_json root{{"schema", schema}, {"kind", to_string(what.kind)}, {"token", what.token},
    {"nonce", what.nonce}};
  switch (what.kind) {
  case job_kind::compile:
    root["compile"] = write(what.compile);
    break;
  case job_kind::prepare:
    root["prepare"] = write(what.prepare);
    break;
  case job_kind::run:
    root["run"] = job_parts::write(what.run);
    break;
  case job_kind::judge:
    root["judge"] = ordered_json{{"workloads", write_all(what.judge.workloads)}};
    break;
  }
  return root.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

result<job> job_from_json(std::string_view text) {
  auto parsed = parse_json(text, "job.json", {job_limits::text_bytes, 24, size_t{1} << 16});
  if (!parsed)
    return pass(parsed);
  std::optional<failure> sink;
  job what;
  {
    strict_object root{*parsed, "job", sink};
    const auto found = root.text("schema", name_bytes);
    if (!root.failed() && found != schema)
      root.complain("schema", fmt::format("{}, but this program reads {}", excerpt(found), schema));
    what.kind = static_cast<job_kind>(root.choice("kind", kinds));
    what.token = root.natural("token");
    what.nonce = root.text("nonce", nonce_bytes_max);
    if (what.nonce.size() < nonce_bytes_min)
      root.complain("nonce", fmt::format("needs at least {} characters", nonce_bytes_min));
    root.object(to_string(what.kind), [&](strict_object& body) {
      switch (what.kind) {
      case job_kind::compile:
        what.compile = read_compile(body);
        break;
      case job_kind::prepare:
        what.prepare = read_prepare(body);
        break;
      case job_kind::run:
        what.run = read_run(body);
        break;
      case job_kind::judge:
        what.judge.workloads =
          read_all(body, "workloads", job_limits::workloads, read_judge_workload);
        break;
      }
    });
  }
  if (sink)
    return tl::unexpected<failure>(*sink);
  return what;
}

std::string written_file(const std::string& file_of_case, std::string_view call) {
  if (call == "check")
    return file_of_case;
  std::string suffix(call);
  std::replace(suffix.begin(), suffix.end(), ' ', '-');
  return file_of_case + "." + suffix;
}

run_buffer make_run_buffer(const resolved_buffer& buffer, std::string file, uint64_t file_bytes) {
  return {buffer, std::move(file), file_bytes};
}

} // namespace gristmill
