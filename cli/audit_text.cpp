#include "cli/audit_text.hpp"

#include "scoring/sanitizer_report.hpp"
#include "scoring/score.hpp"
#include "scoring/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace gristmill {

namespace {

double median_of(const std::vector<uint64_t>& values) {
  auto found = median(std::vector<double>(values.begin(), values.end()));
  return found ? *found : 0;
}

std::string spread_of(const std::vector<uint64_t>& values) {
  if (values.empty())
    return "none";
  const double middle = median_of(values);
  std::vector<double> away;
  for (const auto x : values)
    away.push_back(std::abs(static_cast<double>(x) - middle));
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} samples, median {:.0f} ns, median deviation {:.0f} ns, {} to {} ns",
    values.size(), middle, *median(std::move(away)), *low, *high);
}

std::string shape_of(const std::vector<uint32_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

std::string activity_of(const device_activity& one) {
  if (one.kind == "kernel")
    return fmt::format(
      "kernel {} {} blocks of {}", one.name, shape_of(one.grid), shape_of(one.block));
  return fmt::format("{} of {} bytes", one.kind, one.bytes);
}

std::string timing_text(const workload_measurement& m) {
  const auto& how = m.timing;
  if (!how.taken()) {
    std::string out = "    time: modelled, not measured";
    for (const auto& term : m.terms)
      out += fmt::format(
        "{} {} {:.0f} ns", &term == &m.terms.front() ? ":" : ",", term.name, double(term.ns));
    return out + "\n";
  }
  auto out =
    fmt::format("    time: by {}{}, L2 {} before each call, {} calls of warm-up, {} taken again\n",
      how.method, how.fallback.empty() ? "" : " (" + how.fallback + ")", how.flush,
      how.warm_up_calls, how.taken_again);
  out += fmt::format("    samples: {}\n    behind a wait: {}\n    as the host sees it: {}\n",
    spread_of(m.samples_ns), spread_of(how.device_ns), spread_of(how.span_ns));
  out += "    each call:";
  for (const auto& one : how.activities)
    out += fmt::format("{} {}", &one == &how.activities.front() ? "" : ",", activity_of(one));
  out += fmt::format("\n    clock by a kernel of ours: {} kHz before, {} kHz after\n",
    how.canary_khz_before, how.canary_khz_after);
  const auto& air = how.weather;
  out += air.readings == 0
    ? "    the device's own readings: none\n"
    : fmt::format(
      "    the device's own readings, {}: SM {} to {} MHz, memory {} to {} MHz, at most "
      "{:.0f} W and {} C, throttle bits {:#x}, {} foreign processes\n",
      air.readings, air.sm_mhz_min, air.sm_mhz_max, air.memory_mhz_min, air.memory_mhz_max,
      air.power_mw_max / 1000.0, air.temperature_c_max, air.throttle_bits, air.foreign_processes);
  out += fmt::format("    timed outputs: {} digested, {} equal to the checked ones, {} judged\n",
    how.digested, how.digests_equal, how.written_out);
  return out;
}

std::string blocks_text(const std::vector<comparison_block>& blocks) {
  std::string out = "    blocks in their order:";
  for (const auto& b : blocks)
    out += fmt::format(" {}{}", b.rival ? "i" : "c", b.median_ns);
  return out + " (c candidate, i incumbent, medians in ns)\n";
}

std::string judged_text(const workload_evaluation& j) {
  auto out = fmt::format("    compared: {} calls{}; {} on '{}'{}\n", j.calls,
    j.shrunken ? ", at a smaller twin of the shape" : "", to_string(j.status), j.call,
    j.detail.empty() ? "" : ": " + j.detail);
  for (const auto& o : j.outputs) {
    out += fmt::format("      {}: {} of {} elements miss, largest error {:.3g} absolute, {:.3g} "
                       "relative, root mean square {:.3g} of the output's\n",
      o.output, o.mismatches, o.elements, double(o.max_absolute_error),
      double(o.max_relative_error), double(o.relative_rms_error));
    if (!o.ulp_histogram.empty())
      out += fmt::format("      units in the last place off, 0, 1, 2-3, 4-7 and so on: {}\n",
        fmt::join(o.ulp_histogram, " "));
  }
  return out;
}

template <class T>
const T* find_uuid(const std::vector<T>& list, const std::string& uuid) {
  const auto found =
    std::find_if(list.begin(), list.end(), [&](const T& x) { return x.uuid == uuid; });
  return found == list.end() ? nullptr : &*found;
}

std::string workload_text(const evidence& seen, const workload_verdict& w) {
  const auto* bounds = find_uuid(seen.yardsticks, w.uuid);
  auto out = fmt::format("\n  workload {}: {}{}, {} ns {}\n", w.uuid, to_string(w.status),
    w.needs_audit ? ", NEEDS AN AUDIT" : "", w.time_ns, to_string(seen.measured.origin));
  out += fmt::format(
    "    against: baseline {} ns {}, bound {} ns, physical floor {} ns (0: not known)\n",
    bounds->baseline_ns, to_string(bounds->baseline_origin), bounds->floor_ns, bounds->physical_ns);
  if (const auto* m = find_uuid(seen.measured.workloads, w.uuid)) {
    out += timing_text(*m);
    if (!m->blocks.empty())
      out += blocks_text(m->blocks);
    if (!m->detail.empty())
      out += "    the runner says: " + m->detail + "\n";
  }
  if (const auto* j = find_uuid(seen.judged.workloads, w.uuid))
    out += judged_text(*j);
  else
    out += "    compared: nothing\n";
  return out;
}

} // namespace

std::string audit_text(const stored_verdict& was, size_t number, size_t count) {
  auto out = fmt::format("{}attempt {}: {} ({}, {} of {}, event {})\n", number > 1 ? "\n" : "",
    was.attempt, was.status, was.kind, number, count, was.seq);
  out += fmt::format("  candidate {}\n  objective {} ns\n", was.candidate, was.objective_ns);
  if (!was.reason.empty())
    out += "  reason: " + was.reason + "\n";
  for (const auto& f : was.findings)
    out += fmt::format(
      "  found: {}{}{}: {}\n", f.rule, f.workload.empty() ? "" : " on ", f.workload, f.detail);
  if (was.evidence_sha256.empty())
    out += "  no evidence was kept: the compiler refused the candidate, or the run is older than "
           "evidence\n";
  return out;
}

std::string audit_text(const sanitizer_record& record) {
  auto out =
    fmt::format("sanitizer: {} candidate {} on {}, by {}, {}, one call of {} workloads{}\n",
      record.attempt, record.candidate.substr(0, 12), record.device, record.program, record.at,
      record.workloads.size(),
      record.same_code ? "" : "; the code is not byte for byte what the run measured");
  for (const auto& look : record.looks) {
    out += fmt::format("  {:<10} {}", to_string(look.tool), to_string(look.end));
    if (look.end == look_end::found)
      out += fmt::format(" {} kinds{}", look.findings.size(),
        look.left_out > 0 ? fmt::format(", {} further reports not kept", look.left_out) : "");
    out += look.why.empty() ? "\n" : ": " + look.why + "\n";
    for (const auto& each : look.findings)
      out += fmt::format("    {} in {} at {}, {} times{}\n", each.kind,
        each.kernel.empty() ? "no kernel that is named" : "`" + each.kernel + "`",
        each.where.empty() ? "no place that is named" : each.where, each.count,
        each.example.empty() ? "" : ": " + each.example);
    for (const auto& each : look.notes)
      out += "    note: " + each + "\n";
  }
  return out;
}

std::string audit_text(const evidence& seen) {
  const auto now = decide(seen);
  auto out = fmt::format("  {} of a {} attempt, {} effort, on {} under token {}, compiled by {}\n",
    to_string(seen.purpose), to_string(seen.kind), to_string(seen.effort), seen.device,
    seen.measured.token, seen.toolchain.empty() ? "(not kept)" : seen.toolchain);
  if (!seen.against.hash.empty())
    out += fmt::format("  against candidate {}\n", seen.against.hash);
  out +=
    fmt::format("  claims shapes with `{}`; attempt {} on the problem, measured again {} times\n",
      seen.domain, seen.attempts, seen.retrials);
  for (const auto& w : now.decided.workloads)
    out += workload_text(seen, w);
  out += fmt::format("\n  rules of this program: {}{}\n", to_string(now.decided.status),
    now.decided.reason.empty() ? "" : ", " + now.decided.reason);
  for (const auto& a : now.accounts)
    out += fmt::format("  {} {:<10} {:<22} {}{}\n", a.fired ? "FIRED " : "silent",
      to_string(a.level), a.rule, a.workload.empty() ? "" : a.workload + ": ", a.said);
  return out;
}

} // namespace gristmill
