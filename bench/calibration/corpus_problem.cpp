#include "bench/calibration/corpus_problem.hpp"

#include "protocol/definition.hpp"
#include "protocol/workload.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace gristmill::calibration {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct problem_file {
  json text;
  definition def;
};

result<std::string> read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(errc::io_failed, fmt::format("{} cannot be read", path.string()));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

result<json> read_json(const fs::path& path) {
  const auto text = read_text(path);
  if (!text)
    return pass(text);
  json parsed = json::parse(*text, nullptr, false);
  if (parsed.is_discarded())
    return fail(errc::invalid_input, fmt::format("{} is no JSON", path.string()));
  return parsed;
}

std::string_view word_of(tensor_map_swizzle swizzle) {
  constexpr std::string_view words[] = {"none", "32B", "64B", "128B"};
  return words[static_cast<size_t>(swizzle)];
}

std::string_view word_of(tensor_map_l2 promotion) {
  constexpr std::string_view words[] = {"none", "64B", "128B", "256B"};
  return words[static_cast<size_t>(promotion)];
}

/// The line of a map, of those forms that the harness encodes.
result<std::string> map_line(const resolved_argument& argument, const resolved_workload& work) {
  const resolved_buffer& of = work.buffers[argument.buffer];
  const tensor_map_spec& map = argument.maps.front().spec;
  const auto is_one = [](uint32_t step) { return step == 1; };
  if (argument.maps.size() != 1 || argument.maps.front().offset != 0
    || name(map.type) != name(of.type) || map.oob_nan
    || !std::all_of(map.element_strides.begin(), map.element_strides.end(), is_one))
    return fail(errc::unsupported,
      fmt::format(
        "the map {}: the harness takes one map an argument, of a whole buffer and its type, "
        "every element of it, with zeros outside",
        argument.name));
  return fmt::format("map {} {} {} {} {} {} {}\n", argument.buffer, map.dims.size(),
    fmt::join(map.dims, " "), fmt::join(map.strides, " "), fmt::join(map.box, " "),
    word_of(map.swizzle), word_of(map.l2));
}

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string out;
  for (const uint8_t byte : bytes)
    out += fmt::format("{:02x}", byte);
  return out;
}

/// "below V" with the axis's value, or what is drawn when the file says nothing.
result<std::string> fill_text(
  const problem_file& problem, const std::string& input, const axis_values& axes) {
  if (!problem.text["fills"].contains(input))
    return std::string("uniform 1");
  const auto text = problem.text["fills"][input].get<std::string>();
  const size_t blank = text.find(' ');
  std::string kind = text.substr(0, blank);
  const std::string value = blank == std::string::npos ? "1" : text.substr(blank + 1);
  if (kind == "scale")
    kind = "uniform";
  if (const int64_t* found = find_axis_value(axes, value))
    return fmt::format("{} {}", kind, *found);
  if (value.find_first_not_of("0123456789.") != std::string::npos)
    return fail(errc::invalid_input, fmt::format("fills.{}: no axis {}", input, value));
  return fmt::format("{} {}", kind, value);
}

std::string step_lines(const resolved_step& step) {
  if (step.what == resolved_step::op::memset)
    return fmt::format(
      "memset {} {} {} {} {}\n", step.buffer, step.offset, step.bytes, step.width, step.value);
  if (step.what == resolved_step::op::copy)
    return fmt::format("copy {} {} {} {} {}\n", step.buffer, step.offset, step.bytes,
      step.src_buffer, step.src_offset);
  return fmt::format("launch {} {} {} {} {} {}\n", step.entry, fmt::join(step.grid, " "),
    fmt::join(step.block, " "), fmt::join(step.cluster, " "), step.shared_bytes,
    step.cooperative ? 1 : 0);
}

result<axis_values> axes_of(const problem_file& problem, const std::string& which) {
  axis_values given;
  for (const auto& [axis_name, value] : problem.text[which].items())
    given.emplace_back(axis_name, value.get<int64_t>());
  return resolve_axes(problem.def, given);
}

result<corpus_kernel> load_plan(
  const problem_file& problem, const fs::path& path, const std::string& folder) {
  corpus_kernel out;
  out.folder = folder;
  const std::string file = path.filename().string();
  out.name = folder + file.substr(4, file.size() - 4 - std::string(".json").size());
  const auto text = read_text(path);
  if (!text)
    return pass(text);
  const auto plan = parse_plan(*text);
  if (!plan)
    return fail(errc::invalid_input, fmt::format("{}: {}", path.string(), plan.error().what));
  out.options = plan->options;
  const json& check = problem.text["check"];
  out.lines = fmt::format("kernel {} {} {} {} {} {} {}\n", out.name, folder,
    problem.text["family"].get<std::string>(), problem.text["class"].get<std::string>(),
    check["reference"].get<std::string>(), check["atol"].get<double>(),
    check["rtol"].get<double>());
  for (const std::string which : {"small", "large"}) {
    const auto axes = axes_of(problem, which);
    if (!axes)
      return fail(errc::invalid_input, fmt::format("{}: {}", path.string(), axes.error().what));
    auto bound = resolve(*plan, problem.def, *axes, {}, corpus_device());
    if (!bound)
      return fail(
        errc::invalid_input, fmt::format("{}: {}: {}", path.string(), which, bound.error().what));
    const auto lines = size_lines(which, *axes, *bound,
      [&](const std::string& input) { return fill_text(problem, input, *axes); });
    if (!lines)
      return fail(errc::invalid_input, fmt::format("{}: {}", path.string(), lines.error().what));
    out.lines += *lines;
    (which == "small" ? out.small : out.large) = std::move(bound);
  }
  return out;
}

result<void> load_folder(const fs::path& folder, std::vector<corpus_kernel>& out) {
  problem_file problem;
  auto text = read_json(folder / "problem.json");
  if (!text)
    return pass(text);
  problem.text = std::move(*text);
  for (const char* field :
    {"schema", "family", "class", "definition", "fills", "check", "small", "large"})
    if (!problem.text.contains(field))
      return fail(errc::invalid_input,
        fmt::format("{}: {} is missing", (folder / "problem.json").string(), field));
  auto def =
    parse_definition(problem.text["definition"].dump(), (folder / "problem.json").string());
  if (!def)
    return pass(def);
  problem.def = std::move(*def);
  const auto source = read_text(folder / "kernel.cu");
  if (!source)
    return pass(source);
  std::vector<fs::path> plans;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string file = entry.path().filename().string();
        file.starts_with("plan.") && file.ends_with(".json"))
      plans.push_back(entry.path());
  std::sort(plans.begin(), plans.end());
  for (const fs::path& plan : plans) {
    auto kernel = load_plan(problem, plan, folder.filename().string());
    if (!kernel)
      return pass(kernel);
    kernel->source = *source;
    out.push_back(std::move(*kernel));
  }
  return {};
}

} // namespace

result<std::vector<corpus_kernel>> load_corpus(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory())
      folders.push_back(entry.path());
  if (error)
    return fail(errc::io_failed, fmt::format("{}: {}", folder.string(), error.message()));
  std::sort(folders.begin(), folders.end());
  std::vector<corpus_kernel> out;
  try {
    for (const fs::path& each : folders)
      if (auto done = load_folder(each, out); !done)
        return pass(done);
  } catch (const json::exception& wrong) {
    return fail(errc::invalid_input, fmt::format("{}: {}", folder.string(), wrong.what()));
  }
  return out;
}

result<std::string> size_lines(const std::string& which, const axis_values& axes,
  const resolved_workload& work, const fill_of_input& fill_text) {
  std::string out = fmt::format("size {}\n", which);
  for (const auto& [axis_name, value] : axes)
    out += fmt::format("axis {} {}\n", axis_name, value);
  for (const auto& [macro, value] : work.unit.defines)
    out += fmt::format("define {} {}\n", macro, value);
  for (const resolved_buffer& buffer : work.buffers) {
    const uint64_t elements = buffer.bytes * 8 / element_bits(buffer.type);
    const bool is_input = buffer.kind == resolved_buffer::role::input;
    const bool is_output = buffer.kind == resolved_buffer::role::output;
    out += fmt::format("{} {} {} {} {}",
      is_input      ? "input"
        : is_output ? "output"
                    : "scratch",
      buffer.name, name(buffer.type), buffer.bytes, elements);
    if (is_input) {
      const auto fill = fill_text(buffer.name);
      if (!fill)
        return pass(fill);
      out += " " + *fill;
    } else if (!is_output) {
      out += " " + buffer.init;
    }
    out += "\n";
  }
  std::string steps;
  size_t map_count = 0;
  for (const resolved_step& step : work.steps) {
    steps += step_lines(step);
    for (const resolved_argument& argument : step.args)
      switch (argument.what) {
      case resolved_argument::kind::maps: {
        const auto line = map_line(argument, work);
        if (!line)
          return pass(line);
        out += *line;
        steps += fmt::format("arg map {}\n", map_count++);
        break;
      }
      case resolved_argument::kind::buffer:
        steps += fmt::format("arg buffer {} {}\n", argument.buffer, argument.offset);
        break;
      case resolved_argument::kind::bytes:
        steps += fmt::format("arg bytes {}\n", hex(argument.bytes));
        break;
      }
  }
  return out + steps;
}

std::string corpus_text(const std::vector<corpus_kernel>& kernels) {
  std::string out =
    "# Written by gristmill-bench-corpus resolve from tests/corpus/device_kernels.\n";
  for (const corpus_kernel& kernel : kernels)
    out += kernel.lines;
  return out;
}

device_facts corpus_device() {
  return {.sm_count = 132,
    .smem_per_block = 232448,
    .smem_per_sm = 233472,
    .l2_bytes = 52428800,
    .arch = 90};
}

} // namespace gristmill::calibration
