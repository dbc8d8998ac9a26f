#include "gpu/mock/emulate_json.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// Sentences of all launches together.
constexpr size_t words_in_document = 24;

ordered_json source_json(const ptx::source_place& source) {
  if (source.line == 0)
    return nullptr;
  return {{"file", source.file}, {"line", source.line}};
}

ordered_json place_json(const ptx::executed_place& place) {
  return {{"ptx_line", place.ptx_line}, {"instruction", place.instruction},
    {"source", source_json(place.source)}, {"block", place.block}, {"thread", place.thread}};
}

ordered_json finding_json(const emulated_finding& found) {
  ordered_json out{{"kind", ptx::to_string(found.what.kind)},
    {"severity", found.is_fault ? "fault" : "note"}, {"text", found.what.what},
    {"kernel", found.what.entry}, {"step", found.step}};
  out.update(place_json(found.what));
  out["other"] = found.what.other ? place_json(*found.what.other) : ordered_json(nullptr);
  out["times"] = found.what.times;
  return out;
}

ordered_json terms_json(const std::vector<time_term>& terms) {
  ordered_json out = ordered_json::array();
  for (const time_term& term : terms)
    out.push_back({{"name", term.name}, {"ns", static_cast<double>(term.ns)}});
  return out;
}

ordered_json line_json(const hot_line& line) {
  return {{"ptx_line", line.counts.ptx_line}, {"source", source_json(line.counts.source)},
    {"instruction", line.counts.instruction}, {"warp_instructions", line.counts.warp_instructions},
    {"share", line.share}, {"lanes", line.lanes}, {"memory", line.memory}, {"passes", line.passes},
    {"passes_ideal", line.passes_ideal}, {"diverged", line.counts.diverged}};
}

ordered_json launch_json(const emulated_launch& launch, const std::string& label) {
  const launch_profile& p = launch.profile;
  ordered_json time = nullptr;
  if (launch.launch.time)
    time = {{"ns", launch.launch.time->ns}, {"label", label}, {"bound", launch.launch.time->bound},
      {"terms", terms_json(launch.launch.time->terms)}};
  ordered_json lines = ordered_json::array();
  for (const hot_line& line : p.lines)
    lines.push_back(line_json(line));
  return {{"step", launch.step}, {"entry", launch.launch.entry.name}, {"grid", launch.launch.grid},
    {"block", launch.launch.block}, {"cluster", launch.cluster}, {"shared_bytes", p.shared_bytes},
    {"blocks", launch.launch.counts.blocks_run},
    {"warp_instructions", launch.launch.counts.warp_instructions}, {"time", std::move(time)},
    {"occupancy",
      {{"blocks_per_sm", p.blocks_per_sm}, {"warps_per_sm", p.warps_per_sm},
        {"warps_per_sm_max", p.warps_per_sm_max}, {"limiter", p.limiter},
        {"registers", p.registers}, {"shared_bytes", p.shared_bytes}}},
    {"divergence",
      {{"lanes_per_instruction", p.lanes_per_instruction},
        {"divergent_branches", p.divergent_branches}}},
    {"memory",
      {{"global_sectors", p.global_sectors}, {"global_sectors_ideal", p.global_sectors_ideal},
        {"shared_wavefronts", p.shared_wavefronts},
        {"shared_wavefronts_ideal", p.shared_wavefronts_ideal}, {"local_bytes", p.local_bytes}}},
    {"barriers", p.barriers}, {"lines", std::move(lines)}};
}

ordered_json head(const emulate_request& asked, const char* verdict, const std::string& error) {
  ordered_json axes = ordered_json::object();
  for (const auto& [name, value] : asked.axes)
    axes[name] = value;
  return {{"schema", "gristmill.emulate/1"}, {"verdict", verdict}, {"error", error},
    {"kernel", asked.kernel}, {"plan", asked.plan}, {"toolchain", asked.toolchain},
    {"device", asked.device}, {"problem", asked.problem}, {"workload", asked.workload},
    {"axes", std::move(axes)}, {"checks", ptx::names_of(asked.checks)}};
}

/// Sentences of all launches; with several, each says which.
std::vector<std::string> words_of(const emulation& seen) {
  std::vector<std::string> all;
  for (const emulated_launch& launch : seen.launches)
    for (const std::string& text : launch.profile.words)
      if (all.size() < words_in_document)
        all.push_back(seen.launches.size() == 1
            ? text
            : fmt::format("step {} ({}): {}", launch.step, launch.launch.entry.name, text));
  return all;
}

} // namespace

ordered_json to_json(const emulate_request& asked, const emulation& seen,
  const std::vector<emulated_output>& outputs) {
  ordered_json out = head(asked, seen.has_fault() ? "fault" : "clean", "");
  out["orders"] = {
    {"run", seen.orders_run}, {"seed", asked.order_seed}, {"agree", seen.orders_agree}};
  ordered_json findings = ordered_json::array();
  for (const emulated_finding& found : seen.findings)
    findings.push_back(finding_json(found));
  out["findings"] = std::move(findings);
  out["findings_left_out"] = seen.findings_left_out;
  out["time"] = nullptr;
  if (seen.time)
    out["time"] = {{"ns", seen.time->ns}, {"label", seen.time_label}, {"bound", seen.time->bound},
      {"terms", terms_json(seen.time->terms)}};
  out["time_refused"] = seen.time_refused;
  ordered_json launches = ordered_json::array();
  for (const emulated_launch& launch : seen.launches)
    launches.push_back(launch_json(launch, seen.time_label));
  out["launches"] = std::move(launches);
  out["words"] = words_of(seen);
  out["warnings"] = seen.warnings;
  out["printed"] = seen.printed;
  out["printed_left_out"] = seen.printed_left_out;
  ordered_json written = ordered_json::array();
  for (const emulated_output& output : outputs)
    written.push_back({{"name", output.name}, {"dtype", output.dtype}, {"shape", output.shape},
      {"bytes", output.bytes}, {"file", output.file}});
  out["outputs"] = std::move(written);
  return out;
}

ordered_json refused_to_json(const emulate_request& asked, const std::string& why) {
  ordered_json out = head(asked, "refused", why);
  out["orders"] = {{"run", 0}, {"seed", asked.order_seed}, {"agree", true}};
  for (const char* list : {"findings", "launches", "words", "warnings", "outputs"})
    out[list] = ordered_json::array();
  out["findings_left_out"] = 0;
  out["time"] = nullptr;
  out["time_refused"] = "the kernel was not run";
  out["printed"] = "";
  out["printed_left_out"] = 0;
  return out;
}

std::string to_text(const emulate_request& asked, const emulation& seen) {
  std::string out;
  if (seen.findings.empty())
    out += fmt::format("nothing found ({}{})\n", fmt::join(ptx::names_of(asked.checks), ", "),
      seen.orders_run > 0 ? fmt::format("; {} shuffled orders agree", seen.orders_run) : "");
  for (const emulated_finding& found : seen.findings)
    out += fmt::format("{}: {}: {}{}\n", found.is_fault ? "FAULT" : "note",
      ptx::to_string(found.what.kind), found.what.what,
      found.what.times > 1 ? fmt::format(" ({} times)", found.what.times) : "");
  if (seen.findings_left_out > 0)
    out += fmt::format("and {} more\n", seen.findings_left_out);
  for (const std::string& warning : seen.warnings)
    out += fmt::format("warning: {}\n", warning);
  if (seen.time)
    out += fmt::format("time: {:.2f} us, limited by {} ({})\n",
      static_cast<double>(seen.time->ns) / 1e3, seen.time->bound, seen.time_label);
  else
    out += fmt::format("time: none, {}\n", seen.time_refused);
  for (const std::string& text : words_of(seen))
    out += fmt::format("  {}\n", text);
  for (const emulated_launch& launch : seen.launches) {
    out += fmt::format("step {}: {} grid {} block {}, {} warp instructions; hottest lines:\n",
      launch.step, launch.launch.entry.name, fmt::join(launch.launch.grid, "x"),
      fmt::join(launch.launch.block, "x"), launch.launch.counts.warp_instructions);
    for (const hot_line& line : launch.profile.lines)
      out += fmt::format("  {:5.1f} %  {:>6} {:16} {}{}\n", 100 * line.share, line.counts.ptx_line,
        line.counts.source.line == 0
          ? ""
          : fmt::format("{}:{}", line.counts.source.file, line.counts.source.line),
        line.counts.instruction,
        line.memory.empty() ? ""
                            : fmt::format("  [{}: {:.1f} passes, {:.1f} ideal]", line.memory,
                              line.passes, line.passes_ideal));
  }
  if (!seen.printed.empty())
    out += "printed:\n" + seen.printed + (seen.printed.back() == '\n' ? "" : "\n");
  if (seen.printed_left_out > 0)
    out += fmt::format("({} bytes more were printed)\n", seen.printed_left_out);
  return out;
}

} // namespace gristmill
