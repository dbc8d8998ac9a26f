#include "protocol/child_answers.hpp"

#include "protocol/child_channel.hpp"
#include "protocol/job.hpp"
#include "protocol/strict_json.hpp"

#include <fmt/format.h>
#include <functional>
#include <optional>

namespace gristmill {

namespace {

constexpr size_t text_bytes = child_line_bytes_max;
constexpr size_t samples_max = 10'000;
constexpr size_t terms_max = 64;
constexpr size_t tiles_max = 64;
constexpr size_t ulp_bins_max = 65;
/// Every case, and as many timed calls.
constexpr size_t written_max = 2 * job_limits::cases;
/// The executed steps of a plan, and as many that it did not announce.
constexpr size_t activities_max = 512;
const std::vector<std::string> methods{"events", "cupti"};

ordered_json write_entries(const std::vector<compiled_entry>& entries) {
  auto all = ordered_json::array();
  for (const auto& entry : entries)
    all.push_back({{"expression", entry.expression}, {"symbol", entry.symbol}});
  return all;
}

verdict_status read_status(strict_object& object) {
  auto status = status_from_text(object.text("status", 64));
  if (!status) {
    object.complain("status", status.error().what);
    return verdict_status::infrastructure;
  }
  return *status;
}

using read_sample = std::function<void(strict_object&)>;

/// Goes through all lines; `read` sees the bodies of the samples.
result<void> read_lines(
  const std::vector<std::string>& lines, std::string_view nonce, const read_sample& read) {
  std::optional<failure> sink;
  bool done = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    auto line = parse_child_line(lines[i], nonce);
    if (!line)
      return pass(line);
    if (done)
      return fail(errc::invalid_input, fmt::format("line {} comes after `done`", i + 1));
    if (line->kind == child_line_kind::sample) {
      strict_object object{line->body, fmt::format("line {}", i + 1), sink};
      read(object);
    }
    if (sink)
      return tl::unexpected<failure>(*sink);
    done = line->kind == child_line_kind::done;
  }
  if (!done)
    return fail(errc::child_failed, "the child ended without `done`");
  return {};
}

std::vector<uint64_t> read_times(strict_object& object, std::string_view key) {
  std::vector<uint64_t> out;
  for (const int64_t sample : object.integers(key, samples_max)) {
    if (sample < 0)
      object.complain(key, "a time is negative");
    out.push_back(static_cast<uint64_t>(sample));
  }
  return out;
}

std::vector<uint32_t> read_sizes(strict_object& object, std::string_view key, size_t count_max) {
  std::vector<uint32_t> out;
  for (const int64_t each : object.integers(key, count_max)) {
    if (each < 0 || each > int64_t{UINT32_MAX})
      object.complain(key, fmt::format("{} is out of range", each));
    out.push_back(static_cast<uint32_t>(each));
  }
  return out;
}

ordered_json write(const device_activity& one) {
  return {{"kind", one.kind}, {"name", one.name}, {"grid", one.grid}, {"block", one.block},
    {"bytes", one.bytes}};
}

device_activity read_activity(strict_object& object) {
  device_activity one;
  one.kind = object.text("kind", 16);
  one.name = object.text("name", text_bytes);
  one.grid = read_sizes(object, "grid", 3);
  one.block = read_sizes(object, "block", 3);
  one.bytes = object.natural("bytes");
  return one;
}

ordered_json write(const device_weather& seen) {
  return {{"readings", seen.readings}, {"sm_mhz_min", seen.sm_mhz_min},
    {"sm_mhz_max", seen.sm_mhz_max}, {"memory_mhz_min", seen.memory_mhz_min},
    {"memory_mhz_max", seen.memory_mhz_max}, {"power_mw_max", seen.power_mw_max},
    {"temperature_c_max", seen.temperature_c_max}, {"throttle_bits", seen.throttle_bits},
    {"foreign_processes", seen.foreign_processes}};
}

device_weather read_weather(strict_object& object) {
  device_weather seen;
  seen.readings = object.natural32("readings");
  seen.sm_mhz_min = object.natural32("sm_mhz_min");
  seen.sm_mhz_max = object.natural32("sm_mhz_max");
  seen.memory_mhz_min = object.natural32("memory_mhz_min");
  seen.memory_mhz_max = object.natural32("memory_mhz_max");
  seen.power_mw_max = object.natural32("power_mw_max");
  seen.temperature_c_max = object.natural32("temperature_c_max");
  seen.throttle_bits = object.natural("throttle_bits");
  seen.foreign_processes = object.natural32("foreign_processes");
  return seen;
}

ordered_json write(const timing_record& how) {
  auto activities = ordered_json::array();
  for (const auto& one : how.activities)
    activities.push_back(write(one));
  return {{"method", how.method}, {"fallback", how.fallback}, {"flush", how.flush},
    {"warm_up_calls", how.warm_up_calls}, {"span_ns", how.span_ns}, {"device_ns", how.device_ns},
    {"activities", activities}, {"taken_again", how.taken_again},
    {"canary_khz_before", how.canary_khz_before}, {"canary_khz_after", how.canary_khz_after},
    {"weather", write(how.weather)}, {"digested", how.digested},
    {"digests_equal", how.digests_equal}, {"written_out", how.written_out}};
}

timing_record read_timing(strict_object& object) {
  timing_record how;
  how.method = methods[object.choice("method", methods)];
  how.fallback = object.text("fallback", text_bytes);
  how.flush = object.text("flush", 16);
  how.warm_up_calls = object.natural32("warm_up_calls");
  how.span_ns = read_times(object, "span_ns");
  how.device_ns = read_times(object, "device_ns");
  object.each("activities", activities_max, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    how.activities.push_back(read_activity(inner));
  });
  how.taken_again = object.natural32("taken_again");
  how.canary_khz_before = object.natural32("canary_khz_before");
  how.canary_khz_after = object.natural32("canary_khz_after");
  object.object("weather", [&](strict_object& inner) { how.weather = read_weather(inner); });
  how.digested = object.natural32("digested");
  how.digests_equal = object.natural32("digests_equal", how.digested);
  how.written_out = object.natural32("written_out");
  return how;
}

/// What only a measurement on a real device has.
void read_real_device(strict_object& object, workload_measurement& measured) {
  if (object.has("timing"))
    object.object("timing", [&](strict_object& inner) { measured.timing = read_timing(inner); });
  object.each("written", written_max, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    written_call call;
    call.check = inner.natural32("check", job_limits::cases - 1);
    call.call = inner.text("call", 64);
    measured.written.push_back(std::move(call));
  });
  object.each(
    "blocks", 2 * job_limits::blocks, [&](const ordered_json& element, std::string where) {
      strict_object inner{element, std::move(where), object.sink()};
      comparison_block block;
      block.rival = inner.boolean("rival");
      block.median_ns = inner.natural("median_ns");
      block.mad_ns = inner.natural("mad_ns");
      block.samples = inner.natural32("samples");
      measured.blocks.push_back(block);
    });
}

} // namespace

workload_measurement read_measurement(strict_object& object) {
  workload_measurement measured;
  measured.uuid = object.text("workload", text_bytes);
  measured.status = read_status(object);
  measured.time_ns = object.natural("time_ns");
  measured.samples_ns = read_times(object, "samples_ns");
  object.each("terms", terms_max, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    time_term term;
    term.name = inner.text("name", 256);
    term.ns = inner.number("ns");
    measured.terms.push_back(std::move(term));
  });
  measured.bound = object.text("bound", 256);
  measured.shrunken = object.boolean("shrunken");
  measured.detail = object.text("detail", text_bytes);
  read_real_device(object, measured);
  return measured;
}

finding read_finding(strict_object& object) {
  finding found;
  found.rule = object.text("rule", 256);
  found.workload = object.text("workload", text_bytes);
  found.detail = object.text("detail", text_bytes);
  found.fatal = object.boolean("fatal");
  return found;
}

namespace {

output_evaluation read_output(strict_object& object) {
  output_evaluation output;
  output.output = object.text("output", text_bytes);
  output.passed = object.boolean("passed");
  output.has_nan = object.boolean("has_nan");
  output.has_inf = object.boolean("has_inf");
  output.elements = object.natural("elements");
  output.mismatches = object.natural("mismatches");
  output.matched_ratio = object.number("matched_ratio");
  output.max_absolute_error = object.number("max_absolute_error");
  output.max_relative_error = object.number("max_relative_error");
  output.all_zero = object.boolean("all_zero");
  for (int64_t count : object.integers("miss_tiles", tiles_max)) {
    if (count < 0 || count > int64_t{UINT32_MAX})
      object.complain("miss_tiles", fmt::format("{} is no count", count));
    output.miss_tiles.push_back(static_cast<uint32_t>(count));
  }
  for (const int64_t count : object.integers("ulp_histogram", ulp_bins_max)) {
    if (count < 0)
      object.complain("ulp_histogram", fmt::format("{} is no count", count));
    output.ulp_histogram.push_back(static_cast<uint64_t>(count));
  }
  output.relative_rms_error = object.number("relative_rms_error");
  return output;
}

} // namespace

workload_evaluation read_evaluation(strict_object& object) {
  workload_evaluation evaluated;
  evaluated.uuid = object.text("workload", text_bytes);
  evaluated.status = read_status(object);
  evaluated.shrunken = object.boolean("shrunken");
  object.each("outputs", job_limits::tensors, [&](const ordered_json& element, std::string where) {
    strict_object inner{element, std::move(where), object.sink()};
    evaluated.outputs.push_back(read_output(inner));
  });
  evaluated.calls = object.natural32("calls");
  evaluated.call = object.text("call", text_bytes);
  evaluated.detail = object.text("detail", text_bytes);
  return evaluated;
}

result<verdict_status> status_from_text(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(verdict_status::infrastructure); ++i)
    if (to_string(static_cast<verdict_status>(i)) == text)
      return static_cast<verdict_status>(i);
  return fail(errc::invalid_input, fmt::format("{} is no status", excerpt(text)));
}

ordered_json to_json(const compile_answer& answer) {
  auto findings = ordered_json::array();
  for (const auto& found : answer.findings)
    findings.push_back(to_json(found));
  return {{"unit", answer.unit}, {"status", to_string(answer.status)}, {"file", answer.file},
    {"entries", write_entries(answer.entries)}, {"log", answer.log},
    {"toolchain", answer.toolchain}, {"findings", findings}};
}

ordered_json to_json(const prepare_answer& answer) {
  auto numbers = ordered_json::array();
  for (const auto& call : answer.numbers)
    numbers.push_back(to_json(call));
  return {{"workload", answer.uuid}, {"status", to_string(answer.status)},
    {"reason", answer.reason}, {"numbers", numbers}};
}

ordered_json to_json(const named_numbers& numbers) {
  auto all = ordered_json::object();
  for (const auto& [input, number] : numbers)
    if (const auto* real = std::get_if<double>(&number))
      all[input] = number_to_json(*real);
    else if (const auto* whole = std::get_if<int64_t>(&number))
      all[input] = *whole;
    else
      all[input] = std::get<bool>(number);
  return all;
}

named_numbers read_numbers(
  const ordered_json& value, std::string path, std::optional<failure>& sink) {
  named_numbers numbers;
  if (sink)
    return numbers;
  if (!value.is_object() || value.size() > job_limits::tensors) {
    sink = failure{errc::invalid_input,
      fmt::format("{}: expected an object with at most {} numbers", path, job_limits::tensors)};
    return numbers;
  }
  for (const auto& [input, number] : value.items()) {
    if (number.is_boolean())
      numbers.emplace_back(input, number.get<bool>());
    else if (number.is_number_integer()
      && !(number.is_number_unsigned() && number.get<uint64_t>() > uint64_t{INT64_MAX}))
      numbers.emplace_back(input, number.get<int64_t>());
    else {
      const ordered_json alone{{input, number}};
      numbers.emplace_back(input, strict_object{alone, path, sink}.number(input));
    }
    if (sink)
      return {};
  }
  return numbers;
}

ordered_json graph_to_json(std::string_view graph_file, std::string_view reason) {
  return {{"graph", graph_file}, {"reason", reason}};
}

ordered_json to_json(const workload_measurement& measured) {
  auto terms = ordered_json::array();
  for (const auto& term : measured.terms)
    terms.push_back({{"name", term.name}, {"ns", number_to_json(term.ns)}});
  ordered_json out{{"workload", measured.uuid}, {"status", to_string(measured.status)},
    {"time_ns", measured.time_ns}, {"samples_ns", measured.samples_ns}, {"terms", terms},
    {"bound", measured.bound}, {"shrunken", measured.shrunken}, {"detail", measured.detail}};
  if (measured.timing.taken())
    out["timing"] = write(measured.timing);
  out["written"] = ordered_json::array();
  for (const auto& call : measured.written)
    out["written"].push_back({{"check", call.check}, {"call", call.call}});
  out["blocks"] = ordered_json::array();
  for (const auto& block : measured.blocks)
    out["blocks"].push_back({{"rival", block.rival}, {"median_ns", block.median_ns},
      {"mad_ns", block.mad_ns}, {"samples", block.samples}});
  return out;
}

ordered_json to_json(const finding& found) {
  return {{"rule", found.rule}, {"workload", found.workload}, {"detail", found.detail},
    {"fatal", found.fatal}};
}

ordered_json to_json(const workload_evaluation& evaluated) {
  auto outputs = ordered_json::array();
  for (const auto& output : evaluated.outputs)
    outputs.push_back({{"output", output.output}, {"passed", output.passed},
      {"has_nan", output.has_nan}, {"has_inf", output.has_inf}, {"elements", output.elements},
      {"mismatches", output.mismatches}, {"matched_ratio", number_to_json(output.matched_ratio)},
      {"max_absolute_error", number_to_json(output.max_absolute_error)},
      {"max_relative_error", number_to_json(output.max_relative_error)},
      {"all_zero", output.all_zero}, {"miss_tiles", output.miss_tiles},
      {"ulp_histogram", output.ulp_histogram},
      {"relative_rms_error", number_to_json(output.relative_rms_error)}});
  return {{"workload", evaluated.uuid}, {"status", to_string(evaluated.status)},
    {"shrunken", evaluated.shrunken}, {"outputs", outputs}, {"calls", evaluated.calls},
    {"call", evaluated.call}, {"detail", evaluated.detail}};
}

result<std::vector<compile_answer>> read_compile_answers(
  const std::vector<std::string>& lines, std::string_view nonce) {
  std::vector<compile_answer> all;
  auto read = read_lines(lines, nonce, [&](strict_object& object) {
    compile_answer answer;
    answer.unit = object.text("unit", text_bytes);
    answer.status = read_status(object);
    answer.file = object.text("file", text_bytes);
    object.each(
      "entries", job_limits::entries, [&](const ordered_json& element, std::string where) {
        strict_object inner{element, std::move(where), object.sink()};
        auto expression = inner.text("expression", text_bytes);
        auto symbol = inner.text("symbol", text_bytes);
        answer.entries.push_back({std::move(expression), std::move(symbol)});
      });
    answer.log = object.text("log", text_bytes);
    answer.toolchain = object.text("toolchain", text_bytes);
    object.each(
      "findings", job_limits::entries, [&](const ordered_json& element, std::string where) {
        strict_object inner{element, std::move(where), object.sink()};
        answer.findings.push_back(read_finding(inner));
      });
    all.push_back(std::move(answer));
  });
  if (!read)
    return pass(read);
  return all;
}

result<prepare_answers> read_prepare_answers(
  const std::vector<std::string>& lines, std::string_view nonce) {
  prepare_answers all;
  auto read = read_lines(lines, nonce, [&](strict_object& object) {
    if (object.has("graph")) {
      all.graph_file = object.text("graph", text_bytes);
      all.graph_reason = object.text("reason", text_bytes);
      return;
    }
    prepare_answer answer;
    answer.uuid = object.text("workload", text_bytes);
    answer.status = read_status(object);
    answer.reason = object.text("reason", text_bytes);
    object.each("numbers", job_limits::calls, [&](const ordered_json& call, std::string where) {
      answer.numbers.push_back(read_numbers(call, std::move(where), object.sink()));
    });
    all.workloads.push_back(std::move(answer));
  });
  if (!read)
    return pass(read);
  return all;
}

result<run_answers> read_run_answers(
  const std::vector<std::string>& lines, std::string_view nonce) {
  run_answers all;
  auto read = read_lines(lines, nonce, [&](strict_object& object) {
    if (object.has("rule"))
      all.findings.push_back(read_finding(object));
    else
      all.workloads.push_back(read_measurement(object));
  });
  if (!read)
    return pass(read);
  return all;
}

result<evaluation> read_judge_answers(
  const std::vector<std::string>& lines, std::string_view nonce) {
  evaluation all;
  auto read = read_lines(
    lines, nonce, [&](strict_object& object) { all.workloads.push_back(read_evaluation(object)); });
  if (!read)
    return pass(read);
  return all;
}

} // namespace gristmill
