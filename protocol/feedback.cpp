#include "protocol/feedback.hpp"

#include "tensors/miss_pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace gristmill {

using nlohmann::json;

namespace {

constexpr size_t diagnostics_max = 3;
constexpr size_t misses_max = 4;
constexpr size_t times_max = 12;
constexpr size_t findings_max = 8;
constexpr size_t terms_max = 4;
constexpr size_t text_bytes_max = 320;
constexpr size_t source_line_bytes_max = 140;

/// Cut between characters.
std::string cut(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max)
    return std::string(text);
  auto end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return std::string(text.substr(0, end)) + "...";
}

bool is_path_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-'
    || c == '+' || c == '/';
}

/// Absolute paths of two and more parts become their last part.
std::string without_paths(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool begins = text[i] == '/' && (i == 0 || !is_path_letter(text[i - 1]));
    size_t end = i;
    while (begins && end < text.size() && is_path_letter(text[end]))
      ++end;
    auto path = text.substr(i, end - i);
    if (auto last = path.rfind('/'); begins && last != std::string_view::npos && last > 0) {
      out += path.substr(last + 1);
      i = end;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string one_line(std::string_view text) {
  return cut(without_paths(text.substr(0, text.find('\n'))), text_bytes_max);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    auto end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

struct said_line {
  uint32_t line = 0;
  std::string message;
};

/// "candidate.cu:12:5: error: what" of clang and "candidate.cu(12): error: what" of NVRTC.
std::optional<said_line> error_in(std::string_view text) {
  size_t skipped = 0;
  auto at = std::string_view::npos;
  for (std::string_view mark : {"fatal error: ", "error: "})
    if (at == std::string_view::npos) {
      at = text.find(mark);
      skipped = mark.size();
    }
  if (at == std::string_view::npos)
    return std::nullopt;
  said_line out;
  out.message = one_line(text.substr(at + skipped));
  auto place = text.substr(0, at);
  auto digit = place.find_first_of(":(");
  if (digit != std::string_view::npos) {
    const char* end = place.data() + place.size();
    std::from_chars(place.data() + digit + 1, end, out.line);
  }
  return out;
}

std::string around(const std::vector<std::string_view>& source, uint32_t line) {
  std::string out;
  if (line == 0 || line > source.size())
    return out;
  for (uint32_t i = std::max(line, 2u) - 1; i <= std::min<size_t>(line + 1, source.size()); ++i)
    out += fmt::format(
      "{}{:>4} | {}\n", i == line ? '>' : ' ', i, cut(source[i - 1], source_line_bytes_max));
  return out;
}

void take_log(feedback& out, std::string_view log, std::string_view source_text) {
  auto source = lines_of(source_text);
  auto add = [&](said_line said) {
    auto same = [&](const feedback_diagnostic& d) { return d.message == said.message; };
    if (std::any_of(out.diagnostics.begin(), out.diagnostics.end(), same))
      return;
    if (out.diagnostics.size() == diagnostics_max)
      ++out.left_out;
    else
      out.diagnostics.push_back({said.line, said.message, around(source, said.line)});
  };
  for (auto line : lines_of(log))
    if (auto said = error_in(line))
      add(std::move(*said));
  if (!out.diagnostics.empty())
    return;
  // Not the words of a compiler: a plan that does not resolve, a rule of the source check.
  for (auto line : lines_of(log))
    if (!line.empty())
      add({0, one_line(line)});
}

void take_findings(feedback& out, const std::vector<finding>& findings, bool fatal_only) {
  for (const auto& f : findings) {
    if (fatal_only && !f.fatal)
      continue;
    if (out.findings.size() == findings_max)
      ++out.left_out;
    else
      out.findings.push_back({f.rule, f.workload, one_line(f.detail), f.fatal});
  }
}

std::string rows(size_t from, size_t to, int64_t extent) {
  auto edge = [&](size_t tile) { return static_cast<int64_t>(tile) * extent / 8; };
  return fmt::format("{}..{}", edge(from), std::max(edge(to + 1), edge(from) + 1) - 1);
}

/// The tiles are over the tensor as (all but the last dimension) x (last dimension).
std::string where_of(const std::vector<uint32_t>& tiles, const std::vector<int64_t>& shape) {
  auto words = tiles.size() == 64 ? describe_misses(tiles) : std::string{};
  if (tiles.size() != 64 || shape.empty())
    return words;
  auto first = std::find_if(tiles.begin(), tiles.end(), [](uint32_t n) { return n > 0; });
  if (first == tiles.end())
    return words;
  const auto tile = static_cast<size_t>(first - tiles.begin());
  int64_t rest = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rest *= shape[i];
  auto begin = fmt::format("the first lie in rows {}, columns {}", rows(tile / 8, tile / 8, rest),
    rows(tile % 8, tile % 8, shape.back()));
  return words.empty() ? begin : words + "; " + begin;
}

void take_misses(feedback& out, const evaluation& compared, const output_shape& shape_of) {
  for (const auto& w : compared.workloads)
    for (const auto& o : w.outputs) {
      if (o.passed)
        continue;
      if (out.misses.size() == misses_max) {
        ++out.left_out;
        continue;
      }
      feedback_miss miss;
      miss.workload = w.uuid;
      miss.output = o.output;
      miss.shape = shape_of ? shape_of(w.uuid, o.output, w.shrunken) : std::vector<int64_t>{};
      miss.shrunken = w.shrunken;
      miss.elements = o.elements;
      miss.mismatches = o.mismatches;
      miss.max_absolute_error = o.max_absolute_error;
      miss.max_relative_error = o.max_relative_error;
      miss.has_nan = o.has_nan;
      miss.has_inf = o.has_inf;
      miss.all_zero = o.all_zero;
      miss.where = where_of(o.miss_tiles, miss.shape);
      out.misses.push_back(std::move(miss));
    }
}

double share(uint64_t floor_ns, uint64_t time_ns) {
  return time_ns == 0 ? 0 : static_cast<double>(floor_ns) / static_cast<double>(time_ns);
}

void take_times(feedback& out, const verdict& judged, const measurement& measured) {
  for (const auto& w : judged.workloads) {
    if (w.time_ns == 0)
      continue;
    feedback_time time{w.uuid, w.time_ns, w.floor_ns, w.baseline_ns, {}, {}};
    for (const auto& m : measured.workloads) {
      if (m.uuid != w.uuid)
        continue;
      time.limiter = m.bound;
      time.terms = m.terms;
      std::stable_sort(time.terms.begin(), time.terms.end(),
        [](const time_term& a, const time_term& b) { return double(a.ns) > double(b.ns); });
      if (time.terms.size() > terms_max)
        time.terms.resize(terms_max);
    }
    out.times.push_back(std::move(time));
  }
  std::stable_sort(
    out.times.begin(), out.times.end(), [](const feedback_time& a, const feedback_time& b) {
      return share(a.floor_ns, a.time_ns) < share(b.floor_ns, b.time_ns);
    });
  if (out.times.size() > times_max) {
    out.left_out += static_cast<uint32_t>(out.times.size() - times_max);
    out.times.resize(times_max);
  }
}

/// The first workload with this status.
void take_detail(feedback& out, const verdict& judged) {
  for (const auto& w : judged.workloads)
    if (w.status == judged.status) {
      out.workload = w.uuid;
      out.detail = cut(without_paths(w.detail), 2 * text_bytes_max);
      return;
    }
}

feedback_class class_of(const verdict& judged) {
  switch (judged.status) { // no default: the compiler reports a missing case
  case verdict_status::passed:
    return feedback_class::slow;
  case verdict_status::incorrect_numerical:
  case verdict_status::incorrect_shape:
  case verdict_status::incorrect_dtype:
  case verdict_status::invalid_reference:
  case verdict_status::not_checked:
    return feedback_class::wrong;
  case verdict_status::runtime_error:
  case verdict_status::infrastructure:
    return feedback_class::fault;
  case verdict_status::timeout:
    return feedback_class::hang;
  case verdict_status::reward_hack:
    return feedback_class::cheat;
  case verdict_status::compile_error:
    return feedback_class::compile;
  }
  return feedback_class::fault;
}

double finite(double value) {
  return std::isfinite(value) ? value : 0;
}

} // namespace

std::string to_string(feedback_class what) {
  switch (what) { // no default: the compiler reports a missing case
  case feedback_class::compile:
    return "compile";
  case feedback_class::wrong:
    return "wrong";
  case feedback_class::slow:
    return "slow";
  case feedback_class::hang:
    return "hang";
  case feedback_class::fault:
    return "fault";
  case feedback_class::cheat:
    return "cheat";
  }
  return "unknown";
}

feedback feedback_of_refusal(
  const compiled_candidate& compiled, const verdict& judged, std::string_view source) {
  feedback out;
  out.what = compiled.status == verdict_status::reward_hack ? feedback_class::cheat
                                                            : feedback_class::compile;
  out.summary = one_line(judged.reason.empty() ? compiled.log : judged.reason);
  take_log(out, compiled.log, source);
  take_findings(out, compiled.findings, out.what == feedback_class::cheat);
  return out;
}

feedback feedback_of_verdict(const verdict& judged, const measurement& measured,
  const evaluation& compared, const output_shape& shape_of) {
  feedback out;
  out.what = class_of(judged);
  out.origin = judged.origin;
  out.summary = one_line(judged.reason);
  switch (out.what) { // The first failing class only: what comes after it would distract.
  case feedback_class::wrong:
    take_misses(out, compared, shape_of);
    if (out.misses.empty())
      take_detail(out, judged);
    break;
  case feedback_class::slow:
    take_times(out, judged, measured);
    take_findings(out, judged.findings, false);
    break;
  case feedback_class::hang:
  case feedback_class::fault:
  case feedback_class::compile:
    take_detail(out, judged);
    break;
  case feedback_class::cheat:
    take_detail(out, judged);
    take_findings(out, judged.findings, true);
    break;
  }
  return out;
}

namespace {

json json_of(const feedback& what) {
  json out{
    {"schema", "gristmill.feedback/1"}, {"class", to_string(what.what)}, {"summary", what.summary}};
  if (what.origin != time_origin::none)
    out["origin"] = to_string(what.origin);
  for (const auto& d : what.diagnostics)
    out["diagnostics"].push_back({{"line", d.line}, {"message", d.message}, {"source", d.source}});
  for (const auto& m : what.misses)
    out["misses"].push_back({{"workload", m.workload}, {"output", m.output}, {"shape", m.shape},
      {"shrunken", m.shrunken}, {"elements", m.elements}, {"mismatches", m.mismatches},
      {"max_absolute_error", finite(m.max_absolute_error)},
      {"max_relative_error", finite(m.max_relative_error)}, {"has_nan", m.has_nan},
      {"has_inf", m.has_inf}, {"all_zero", m.all_zero}, {"where", m.where}});
  for (const auto& t : what.times) {
    json row{{"workload", t.workload}, {"time_ns", t.time_ns}, {"floor_ns", t.floor_ns},
      {"baseline_ns", t.baseline_ns}, {"limiter", t.limiter}, {"terms", json::array()}};
    for (const auto& term : t.terms)
      row["terms"].push_back({{"name", term.name}, {"ns", finite(term.ns)}});
    out["times"].push_back(std::move(row));
  }
  if (!what.workload.empty())
    out["workload"] = what.workload;
  if (!what.detail.empty())
    out["detail"] = what.detail;
  for (const auto& f : what.findings)
    out["findings"].push_back(
      {{"rule", f.rule}, {"workload", f.workload}, {"detail", f.detail}, {"fatal", f.fatal}});
  if (what.left_out > 0)
    out["left_out"] = what.left_out;
  return out;
}

/// Drops the last entry of the longest list; false when nothing is left to drop.
bool drop_one(feedback& what) {
  const std::array sizes{
    what.times.size(), what.misses.size(), what.findings.size(), what.diagnostics.size()};
  const auto most = std::max_element(sizes.begin(), sizes.end());
  if (*most == 0)
    return false;
  switch (most - sizes.begin()) {
  case 0:
    what.times.pop_back();
    break;
  case 1:
    what.misses.pop_back();
    break;
  case 2:
    what.findings.pop_back();
    break;
  default:
    what.diagnostics.pop_back();
    break;
  }
  ++what.left_out;
  return true;
}

template <class List, class F>
void each(const json& document, const char* field, List& to, F read) {
  if (auto found = document.find(field); found != document.end())
    for (const auto& item : *found)
      to.push_back(read(item));
}

} // namespace

std::string to_json(feedback what) {
  for (;;) {
    auto text = json_of(what).dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() <= feedback_bytes_max)
      return text;
    if (!drop_one(what)) {
      // Names of strangers, longer than everything else together.
      what.summary = cut(what.summary, text_bytes_max);
      what.workload.clear();
      what.detail.clear();
    }
  }
}

result<feedback> parse_feedback(std::string_view text) {
  try {
    const auto document = json::parse(text);
    feedback out;
    if (document.at("schema") != "gristmill.feedback/1")
      return fail(errc::invalid_input, "schema: must be gristmill.feedback/1");
    const auto& name = document.at("class").get_ref<const std::string&>();
    bool known = false;
    for (int i = 0; i <= static_cast<int>(feedback_class::cheat); ++i)
      if (to_string(static_cast<feedback_class>(i)) == name) {
        out.what = static_cast<feedback_class>(i);
        known = true;
      }
    if (!known)
      return fail(errc::invalid_input, fmt::format("class: '{}' is unknown", name));
    out.summary = document.at("summary").get<std::string>();
    for (auto origin :
      {time_origin::modelled, time_origin::measured, time_origin::not_a_measurement})
      if (to_string(origin) == document.value("origin", std::string{}))
        out.origin = origin;
    each(document, "diagnostics", out.diagnostics, [](const json& d) {
      return feedback_diagnostic{d.at("line").get<uint32_t>(), d.at("message").get<std::string>(),
        d.at("source").get<std::string>()};
    });
    each(document, "misses", out.misses, [](const json& m) {
      feedback_miss miss;
      miss.workload = m.at("workload").get<std::string>();
      miss.output = m.at("output").get<std::string>();
      miss.shape = m.at("shape").get<std::vector<int64_t>>();
      miss.shrunken = m.at("shrunken").get<bool>();
      miss.elements = m.at("elements").get<uint64_t>();
      miss.mismatches = m.at("mismatches").get<uint64_t>();
      miss.max_absolute_error = m.at("max_absolute_error").get<double>();
      miss.max_relative_error = m.at("max_relative_error").get<double>();
      miss.has_nan = m.at("has_nan").get<bool>();
      miss.has_inf = m.at("has_inf").get<bool>();
      miss.all_zero = m.at("all_zero").get<bool>();
      miss.where = m.at("where").get<std::string>();
      return miss;
    });
    each(document, "times", out.times, [](const json& t) {
      feedback_time time{t.at("workload").get<std::string>(), t.at("time_ns").get<uint64_t>(),
        t.at("floor_ns").get<uint64_t>(), t.at("baseline_ns").get<uint64_t>(),
        t.at("limiter").get<std::string>(), {}};
      for (const auto& term : t.at("terms"))
        time.terms.push_back({term.at("name").get<std::string>(), term.at("ns").get<double>()});
      return time;
    });
    out.workload = document.value("workload", std::string{});
    out.detail = document.value("detail", std::string{});
    each(document, "findings", out.findings, [](const json& f) {
      return finding{f.at("rule").get<std::string>(), f.at("workload").get<std::string>(),
        f.at("detail").get<std::string>(), f.at("fatal").get<bool>()};
    });
    out.left_out = document.value("left_out", 0u);
    return out;
  } catch (const json::exception& error) {
    return fail(errc::invalid_input, fmt::format("feedback: {}", error.what()));
  }
}

} // namespace gristmill
