#include "protocol/job_parts.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace gristmill::job_parts {

namespace {

const std::vector<std::string> roles{"input", "output", "scratch"};
const std::vector<std::string> inits{"", "undefined", "restored", "zero"};
const std::vector<std::string> argument_kinds{"buffer", "bytes", "maps"};
const std::vector<std::string> operations{"launch", "memset", "copy"};
const std::vector<std::string> flushes{"official", "clean"};

ordered_json write(const run_buffer& buffer) {
  const auto& what = buffer.what;
  return {{"name", what.name}, {"role", roles[static_cast<size_t>(what.kind)]},
    {"dtype", name(what.type)}, {"shape", what.shape}, {"bytes", what.bytes}, {"init", what.init},
    {"align", what.align}, {"file", buffer.file}, {"file_bytes", buffer.file_bytes}};
}

run_buffer read_buffer(const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  run_buffer buffer;
  auto& what = buffer.what;
  what.name = object.text("name", name_bytes);
  what.kind = static_cast<resolved_buffer::role>(object.choice("role", roles));
  what.type = read_dtype(object);
  what.bytes = object.natural("bytes");
  what.shape = read_shape(object, what.type, what.bytes);
  what.init = inits[object.choice("init", inits)];
  what.align = object.natural("align");
  if (what.align == 0 || (what.align & (what.align - 1)) != 0)
    object.complain("align", "not a power of two");
  const bool scratch = what.kind == resolved_buffer::role::scratch;
  if (scratch == what.init.empty())
    object.complain("init", scratch ? "scratch needs one" : "only scratch has one");
  buffer.file = object.text("file", path_bytes);
  buffer.file_bytes = object.natural("file_bytes", what.bytes);
  if (what.kind == resolved_buffer::role::input) {
    if (buffer.file.empty())
      object.complain("file", "an input comes from a file");
    if (what.bytes > 0 && buffer.file_bytes == 0)
      object.complain("file_bytes", "an input needs at least one byte to repeat");
  } else if (buffer.file_bytes != 0) {
    object.complain("file_bytes", "only an input has a size on disk");
  }
  return buffer;
}

ordered_json write(const resolved_map& map) {
  const tensor_map_spec& spec = map.spec;
  return {{"offset", map.offset}, {"type", name(spec.type)}, {"dims", spec.dims},
    {"strides", spec.strides}, {"box", spec.box}, {"element_strides", spec.element_strides},
    {"swizzle", span_of(spec.swizzle)}, {"l2", static_cast<uint32_t>(spec.l2)},
    {"oob_nan", spec.oob_nan}};
}

ordered_json write(const resolved_argument& argument) {
  ordered_json all{{"kind", argument_kinds[static_cast<size_t>(argument.what)]},
    {"abi", argument.abi}, {"name", argument.name}};
  if (argument.what == resolved_argument::kind::buffer) {
    all["buffer"] = argument.buffer;
    all["offset"] = argument.offset;
  } else if (argument.what == resolved_argument::kind::maps) {
    all["buffer"] = argument.buffer;
    all["maps"] = ordered_json::array();
    for (const resolved_map& map : argument.maps)
      all["maps"].push_back(write(map));
  } else {
    all["bytes"] = hex_text(argument.bytes);
  }
  return all;
}

/// Index of a buffer and a range in it.
void check_range(strict_object& object, const run_pass& in, std::string_view key, uint32_t buffer,
  uint64_t offset, uint64_t bytes) {
  if (object.failed())
    return;
  if (buffer >= in.buffers.size()) {
    object.complain(
      key, fmt::format("there are only {} buffers, counted from 0", in.buffers.size()));
    return;
  }
  const auto& what = in.buffers[buffer].what;
  if (offset > what.bytes || bytes > what.bytes - offset)
    object.complain(key,
      fmt::format(
        "{} bytes at {} lie outside `{}`, which has {}", bytes, offset, what.name, what.bytes));
}

template <class T>
std::vector<T> naturals(strict_object& object, std::string_view key) {
  std::vector<T> out;
  for (const int64_t each : object.integers(key, tensor_map_rank_max)) {
    if (each < 0 || static_cast<uint64_t>(each) > std::numeric_limits<T>::max())
      object.complain(key, fmt::format("{} is out of range", each));
    out.push_back(static_cast<T>(each));
  }
  return out;
}

resolved_map read_map(strict_object& object) {
  resolved_map map;
  tensor_map_spec& spec = map.spec;
  map.offset = object.natural("offset");
  const std::string type = object.text("type", name_bytes);
  if (!parse_tensor_map_type(type, spec.type))
    object.complain("type", fmt::format("{} is no type of a tensor map", type));
  spec.dims = naturals<uint64_t>(object, "dims");
  spec.strides = naturals<uint64_t>(object, "strides");
  spec.box = naturals<uint32_t>(object, "box");
  spec.element_strides = naturals<uint32_t>(object, "element_strides");
  const uint32_t span = object.natural32("swizzle", 128);
  for (uint8_t i = 0; i <= static_cast<uint8_t>(tensor_map_swizzle::by_128); ++i)
    if (span_of(static_cast<tensor_map_swizzle>(i)) == span)
      spec.swizzle = static_cast<tensor_map_swizzle>(i);
  if (span_of(spec.swizzle) != span)
    object.complain("swizzle", fmt::format("{} is none of 0, 32, 64, 128", span));
  spec.l2 = static_cast<tensor_map_l2>(object.natural32("l2", 3));
  spec.oob_nan = object.boolean("oob_nan");
  if (object.failed())
    return map;
  if (const std::string broken = broken_rule(spec, map.offset); !broken.empty())
    object.complain("maps", broken);
  return map;
}

/// Maps and the buffer in which they lie.
void read_maps(strict_object& object, resolved_argument& argument, const run_pass& in) {
  argument.buffer = object.natural32("buffer");
  object.each("maps", plan_limits::maps_in_array, [&](const ordered_json& each, std::string where) {
    strict_object inner{each, std::move(where), object.sink()};
    argument.maps.push_back(read_map(inner));
  });
  if (!object.failed() && argument.maps.empty())
    object.complain("maps", "there is none");
  for (const resolved_map& map : argument.maps)
    if (!object.failed())
      check_range(object, in, "maps", argument.buffer, map.offset, reach_of(map.spec));
}

resolved_argument read_argument(
  const ordered_json& value, std::string path, std::optional<failure>& sink, const run_pass& in) {
  strict_object object{value, std::move(path), sink};
  resolved_argument argument;
  argument.what = static_cast<resolved_argument::kind>(object.choice("kind", argument_kinds));
  argument.abi = object.text("abi", name_bytes);
  argument.name = object.text("name", path_bytes);
  if (argument.what == resolved_argument::kind::buffer) {
    argument.buffer = object.natural32("buffer");
    argument.offset = object.natural("offset");
    check_range(object, in, "buffer", argument.buffer, argument.offset, 0);
  } else if (argument.what == resolved_argument::kind::maps) {
    read_maps(object, argument, in);
  } else {
    argument.bytes = object.hex("bytes", plan_limits::parameter_bytes);
    // The layout aligns a value to its size, so the size must be one that a machine has.
    const size_t size = argument.bytes.size();
    if (size != 1 && size != 2 && size != 4 && size != 8)
      object.complain("bytes", fmt::format("a value of {} bytes is none of 1, 2, 4, 8", size));
  }
  return argument;
}

ordered_json write(const resolved_step& step) {
  ordered_json all{
    {"op", operations[static_cast<size_t>(step.what)]}, {"id", step.id}, {"after", step.after}};
  switch (step.what) {
  case resolved_step::op::launch: {
    all["entry"] = step.entry;
    all["grid"] = step.grid;
    all["block"] = step.block;
    all["cluster"] = step.cluster;
    all["shared"] = step.shared_bytes;
    all["cooperative"] = step.cooperative;
    all["pdl"] = step.pdl;
    all["carveout"] = step.carveout;
    auto args = ordered_json::array();
    for (const auto& argument : step.args)
      args.push_back(write(argument));
    all["args"] = args;
    break;
  }
  case resolved_step::op::memset:
    all["dst"] = step.buffer;
    all["offset"] = step.offset;
    all["bytes"] = step.bytes;
    all["width"] = step.width;
    all["value"] = step.value;
    break;
  case resolved_step::op::copy:
    all["dst"] = step.buffer;
    all["offset"] = step.offset;
    all["bytes"] = step.bytes;
    all["src"] = step.src_buffer;
    all["src_offset"] = step.src_offset;
    break;
  }
  return all;
}

std::array<uint32_t, 3> read_triple(strict_object& object, std::string_view key) {
  const auto read = object.integers(key, 3);
  std::array<uint32_t, 3> triple{1, 1, 1};
  if (object.failed())
    return triple;
  if (read.size() != 3) {
    object.complain(key, "needs three numbers");
    return triple;
  }
  for (size_t i = 0; i < 3; ++i) {
    if (read[i] < 1 || read[i] > INT32_MAX)
      object.complain(key, fmt::format("{} lies outside 1 to {}", read[i], INT32_MAX));
    else
      triple[i] = static_cast<uint32_t>(read[i]);
  }
  return triple;
}

void read_launch(strict_object& object, resolved_step& step, const run_pass& in) {
  step.entry = object.text("entry", path_bytes);
  step.grid = read_triple(object, "grid");
  step.block = read_triple(object, "block");
  step.cluster = read_triple(object, "cluster");
  step.shared_bytes = object.natural32("shared");
  step.cooperative = object.boolean("cooperative");
  step.pdl = object.boolean("pdl");
  step.carveout = static_cast<int>(object.integer("carveout", -1, 100));
  object.each("args", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    step.args.push_back(read_argument(element, std::move(where), object.sink(), in));
  });
}

void read_destination(strict_object& object, resolved_step& step, const run_pass& in) {
  step.buffer = object.natural32("dst");
  step.offset = object.natural("offset");
  step.bytes = object.natural("bytes");
  check_range(object, in, "dst", step.buffer, step.offset, step.bytes);
  if (!object.failed() && in.buffers[step.buffer].what.kind == resolved_buffer::role::input)
    object.complain("dst", "an input is read-only");
}

resolved_step read_step(
  const ordered_json& value, std::string path, std::optional<failure>& sink, const run_pass& in) {
  strict_object object{value, std::move(path), sink};
  resolved_step step;
  step.what = static_cast<resolved_step::op>(object.choice("op", operations));
  step.id = object.text("id", name_bytes);
  for (int64_t earlier : object.integers("after", plan_limits::steps)) {
    if (earlier < 0 || static_cast<uint64_t>(earlier) >= in.steps.size())
      object.complain("after", fmt::format("{} is no earlier step", earlier));
    else
      step.after.push_back(static_cast<uint32_t>(earlier));
  }
  switch (step.what) {
  case resolved_step::op::launch:
    read_launch(object, step, in);
    break;
  case resolved_step::op::memset:
    read_destination(object, step, in);
    step.width = object.natural32("width", 4);
    step.value = object.natural32("value");
    if (step.width != 1 && step.width != 2 && step.width != 4)
      object.complain("width", "is none of 1, 2, 4");
    else if (step.offset % step.width != 0 || step.bytes % step.width != 0)
      object.complain("width", "offset and bytes are no multiples of it");
    break;
  case resolved_step::op::copy:
    read_destination(object, step, in);
    step.src_buffer = object.natural32("src");
    step.src_offset = object.natural("src_offset");
    check_range(object, in, "src", step.src_buffer, step.src_offset, step.bytes);
    break;
  }
  return step;
}

ordered_json write(const run_pass& in) {
  auto buffers = ordered_json::array();
  for (const auto& buffer : in.buffers)
    buffers.push_back(write(buffer));
  auto steps = ordered_json::array();
  for (const auto& step : in.steps)
    steps.push_back(write(step));
  return {{"unit", in.unit}, {"buffers", buffers}, {"steps", steps}};
}

run_pass read_pass(strict_object& object, const std::set<std::string>& units) {
  run_pass in;
  in.unit = object.text("unit", plan_limits::text_bytes);
  if (!units.contains(in.unit))
    object.complain("unit", fmt::format("there is no unit {}", excerpt(in.unit)));
  object.each("buffers", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    in.buffers.push_back(read_buffer(element, std::move(where), object.sink()));
  });
  object.each("steps", plan_limits::steps, [&](const ordered_json& element, std::string where) {
    in.steps.push_back(read_step(element, std::move(where), object.sink(), in));
  });
  return in;
}

} // namespace

namespace {

ordered_json write(const run_timing& timing) {
  return {{"flush", timing.flush}, {"warm_up_ns", timing.warm_up_ns}, {"limit_ns", timing.limit_ns},
    {"trace", timing.trace}, {"written_share", timing.written_share},
    {"written_max", timing.written_max}, {"order", key_text(timing.order)}};
}

run_timing read_timing(strict_object& object) {
  run_timing timing;
  timing.flush = flushes[object.choice("flush", flushes)];
  timing.warm_up_ns = object.natural("warm_up_ns");
  timing.limit_ns = object.natural("limit_ns");
  timing.trace = object.boolean("trace");
  timing.written_share = object.natural32("written_share", 1024);
  timing.written_max = object.natural32("written_max", job_limits::cases);
  timing.order = read_key(object, "order");
  return timing;
}

ordered_json write(const run_workload& work) {
  ordered_json one{{"uuid", work.uuid}, {"shrunken", work.shrunken}};
  auto cases = ordered_json::array();
  for (const auto& each : work.cases)
    cases.push_back({{"label", each.label}, {"pass", write(each.pass)}});
  one["cases"] = std::move(cases);
  if (work.has_clock)
    one["clock"] = write(work.clock);
  one["timed_on"] = work.timed_on;
  return one;
}

/// A timed call runs the steps of the clock on the buffers of a case.
void check_timed_on(strict_object& object, const run_workload& work) {
  if (!work.timed_on.empty() && !work.has_clock)
    object.complain("timed_on", "there is no clock");
  for (const uint32_t index : work.timed_on) {
    if (index >= work.cases.size()) {
      object.complain("timed_on", fmt::format("there is no case {}", index));
      return;
    }
    const auto& pass = work.cases[index].pass;
    bool same = pass.steps == work.clock.steps && pass.buffers.size() == work.clock.buffers.size();
    for (size_t i = 0; same && i < pass.buffers.size(); ++i)
      same = pass.buffers[i].what == work.clock.buffers[i].what;
    if (!same) {
      object.complain("timed_on", fmt::format("case {} is not the clock's call", index));
      return;
    }
  }
}

run_workload read_workload(strict_object& inner, const std::set<std::string>& keys) {
  run_workload work;
  work.uuid = inner.text("uuid", name_bytes);
  work.shrunken = inner.boolean("shrunken");
  inner.each("cases", job_limits::cases, [&](const ordered_json& element, std::string where) {
    strict_object body{element, std::move(where), inner.sink()};
    run_case one;
    one.label = body.text("label", name_bytes);
    body.object("pass", [&](strict_object& pass) { one.pass = read_pass(pass, keys); });
    work.cases.push_back(std::move(one));
  });
  work.has_clock = inner.has("clock");
  if (work.has_clock)
    inner.object("clock", [&](strict_object& body) { work.clock = read_pass(body, keys); });
  for (const int64_t index : inner.integers("timed_on", job_limits::cases)) {
    if (index < 0 || index > int64_t{UINT32_MAX})
      inner.complain("timed_on", fmt::format("{} is no case", index));
    else
      work.timed_on.push_back(static_cast<uint32_t>(index));
  }
  if (!inner.failed())
    check_timed_on(inner, work);
  return work;
}

} // namespace

ordered_json write(const run_job& run) {
  auto units = ordered_json::array();
  for (const auto& unit : run.units)
    units.push_back(
      {{"key", unit.key}, {"file", unit.file}, {"entries", job_parts::write(unit.entries)}});
  auto workloads = ordered_json::array();
  for (const auto& work : run.workloads)
    workloads.push_back(write(work));
  ordered_json out{{"device", run.device}, {"instruction_limit", run.instruction_limit},
    {"samples", run.samples}, {"fill", key_text(run.fill)}, {"timing", write(run.timing)},
    {"units", units}, {"workloads", workloads}};
  if (!run.against.empty()) {
    out["against"] = write(run.against.front());
    out["blocks"] = run.blocks;
  }
  return out;
}

namespace {

void read_against(strict_object& object, run_job& run);

run_job read_side(strict_object& object, bool may_have_rival) {
  run_job run;
  run.device = object.text("device", name_bytes);
  run.instruction_limit = object.natural("instruction_limit");
  if (run.instruction_limit == 0)
    object.complain("instruction_limit", "must be at least 1");
  run.samples = object.natural32("samples", 10'000);
  if (run.samples == 0)
    object.complain("samples", "must be at least 1");
  run.fill = read_key(object, "fill");
  object.object("timing", [&](strict_object& inner) { run.timing = read_timing(inner); });
  std::set<std::string> keys;
  object.each("units", plan_limits::units, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    run_unit unit;
    unit.key = inner.text("key", plan_limits::text_bytes);
    unit.file = read_file_name(inner, "file");
    unit.entries = read_entries(inner, "entries");
    if (!keys.insert(unit.key).second)
      inner.complain("key", "this unit stands here twice");
    run.units.push_back(std::move(unit));
  });
  object.each(
    "workloads", job_limits::workloads, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), object.sink()};
      run.workloads.push_back(read_workload(inner, keys));
    });
  if (object.has("against")) {
    if (may_have_rival)
      read_against(object, run);
    else
      object.complain("against", "the job of an incumbent has none");
  }
  return run;
}

void read_against(strict_object& object, run_job& run) {
  object.object(
    "against", [&](strict_object& inner) { run.against.push_back(read_side(inner, false)); });
  run.blocks = object.natural32("blocks", job_limits::blocks);
  if (object.failed())
    return;
  if (run.blocks == 0)
    object.complain("blocks", "must be at least 1");
  const auto& other = run.against.front();
  if (other.device != run.device)
    object.complain("against", "it is for another device");
  bool same = other.workloads.size() == run.workloads.size();
  for (size_t i = 0; same && i < run.workloads.size(); ++i)
    same = other.workloads[i].uuid == run.workloads[i].uuid;
  if (!same)
    object.complain("against", "its workloads are not the same");
}

} // namespace

run_job read_run(strict_object& object) {
  return read_side(object, true);
}

// ---- parts that compile and run share ----

ordered_json write(const std::vector<compiled_entry>& entries) {
  auto all = ordered_json::array();
  for (const auto& entry : entries)
    all.push_back({{"expression", entry.expression}, {"symbol", entry.symbol}});
  return all;
}

std::vector<compiled_entry> read_entries(strict_object& object, std::string_view key) {
  std::vector<compiled_entry> entries;
  object.each(key, job_limits::entries, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    compiled_entry entry;
    entry.expression = inner.text("expression", path_bytes);
    entry.symbol = inner.text("symbol", plan_limits::text_bytes);
    entries.push_back(std::move(entry));
  });
  return entries;
}

ordered_json write(const compile_unit& unit) {
  auto defines = ordered_json::array();
  for (const auto& [macro, literal] : unit.defines)
    defines.push_back({{"name", macro}, {"value", literal}});
  auto entries = ordered_json::array();
  for (const auto& entry : unit.entries) {
    auto parameters = ordered_json::array();
    for (size_t i = 0; i < entry.parameter_abi.size(); ++i)
      parameters.push_back({{"abi", entry.parameter_abi[i]}, {"name", entry.argument_names[i]},
        {"const", static_cast<bool>(entry.parameter_const[i])}});
    entries.push_back({{"expression", entry.expression}, {"parameters", parameters}});
  }
  return {{"key", unit.key}, {"defines", defines}, {"entries", entries}};
}

compile_unit read_unit(const ordered_json& value, std::string path, std::optional<failure>& sink) {
  strict_object object{value, std::move(path), sink};
  compile_unit unit;
  unit.key = object.text("key", plan_limits::text_bytes);
  object.each("defines", job_limits::entries, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), sink};
    auto macro = inner.text("name", name_bytes);
    auto literal = inner.text("value", path_bytes);
    unit.defines.emplace_back(std::move(macro), std::move(literal));
  });
  object.each("entries", job_limits::entries, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), sink};
    entry_use entry;
    entry.expression = inner.text("expression", path_bytes);
    inner.each(
      "parameters", job_limits::entries, [&](const ordered_json& parameter, std::string place) {
        strict_object of{parameter, std::move(place), sink};
        entry.parameter_abi.push_back(of.text("abi", name_bytes));
        entry.argument_names.push_back(of.text("name", path_bytes));
        entry.parameter_const.push_back(of.boolean("const"));
      });
    unit.entries.push_back(std::move(entry));
  });
  return unit;
}

dtype read_dtype(strict_object& object) {
  const auto index = object.choice("dtype", dtype_names());
  return parse_dtype(dtype_names()[index]).value_or(dtype::float32);
}

std::vector<int64_t> read_shape(strict_object& object, dtype type, uint64_t bytes) {
  auto shape = object.integers("shape", job_limits::dimensions);
  if (object.failed())
    return shape;
  const auto expected = storage_bytes(type, shape);
  if (!expected)
    object.complain("shape", expected.error().what);
  else if (*expected != bytes)
    object.complain("bytes",
      fmt::format(
        "{} given, but {} of shape {} take {}", bytes, name(type), shape_text(shape), *expected));
  return shape;
}

tensor_key read_key(strict_object& object, std::string_view key) {
  tensor_key read;
  const auto bytes = object.hex(key, read.bytes.size());
  if (object.failed())
    return read;
  if (bytes.size() != read.bytes.size())
    object.complain(key, fmt::format("needs {} bytes", read.bytes.size()));
  else
    std::copy(bytes.begin(), bytes.end(), read.bytes.begin());
  return read;
}

std::string key_text(const tensor_key& key) {
  return hex_text({key.bytes.begin(), key.bytes.end()});
}

std::string read_file_name(strict_object& object, std::string_view key) {
  auto name = object.text(key, path_bytes);
  if (name.empty() || name.find('\0') != std::string::npos)
    object.complain(key, "no file name");
  return name;
}

} // namespace gristmill::job_parts
