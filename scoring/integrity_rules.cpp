#include "scoring/integrity_rules.hpp"

#include "scoring/integrity.hpp"
#include "scoring/score.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace gristmill::rules {

namespace {

said silent(std::string text) {
  return {false, std::move(text)};
}

double median_of(std::span<const uint64_t> values) {
  auto found = median(std::vector<double>(values.begin(), values.end()));
  return found ? *found : 0;
}

bool was_timed(const looked_at& at) {
  return at.measured != nullptr && at.measured->status == verdict_status::passed
    && at.measured->time_ns > 0;
}

said below_physical_floor(const looked_at& at) {
  if (!was_timed(at) || at.bounds.physical_ns == 0)
    return silent("no time, or no physical floor is known");
  return {at.measured->time_ns < at.bounds.physical_ns,
    fmt::format("{} ns; nothing on this device can take less than {} ns", at.measured->time_ns,
      at.bounds.physical_ns)};
}

said below_floor(const looked_at& at) {
  if (!was_timed(at) || at.bounds.floor_ns == 0)
    return silent("no time, or no bound is known");
  return {at.measured->time_ns < at.bounds.floor_ns,
    fmt::format("{} ns against the floor of {} ns", at.measured->time_ns, at.bounds.floor_ns)};
}

said wrong(const looked_at& at, std::string_view rule) {
  if (at.judged == nullptr)
    return silent("nothing was compared");
  const auto& judged = *at.judged;
  const bool passed = judged.status == verdict_status::passed;
  if (!passed && wrong_rule(judged.call) == rule)
    return {true,
      fmt::format("{} on '{}': {}", to_string(judged.status), judged.call,
        judged.detail.empty() ? "the outputs do not match" : judged.detail)};
  return silent(fmt::format("{} calls were compared{}", judged.calls,
    passed ? ", all are right"
           : fmt::format(", wrong on '{}', which is another rule's", judged.call)));
}

/// Timed outputs in bits against the checked ones: silent where the device takes no digests.
said outputs_not_compared(const looked_at& at) {
  if (at.measured == nullptr || at.measured->timing.digested == 0)
    return silent("no timed output was digested");
  const auto& how = at.measured->timing;
  return {how.digests_equal < how.digested && how.written_out == 0,
    fmt::format("{} of {} timed outputs equal the checked ones, {} were judged", how.digests_equal,
      how.digested, how.written_out)};
}

said not_deterministic(const looked_at& at) {
  if (at.measured == nullptr || at.measured->timing.digested == 0)
    return silent("no timed output was digested");
  const auto& how = at.measured->timing;
  return {how.digests_equal < how.digested && how.written_out > 0,
    fmt::format(
      "{} of {} timed outputs equal the checked ones bit by bit", how.digests_equal, how.digested)};
}

/// How far apart the clock was before and after, as a share; 0 where nobody looked.
double clock_drift(const timing_record& how) {
  if (how.canary_khz_before == 0 || how.canary_khz_after == 0)
    return 0;
  return std::abs(static_cast<double>(how.canary_khz_after) / how.canary_khz_before - 1);
}

said times_fall(const looked_at& at) {
  constexpr size_t least = 16;
  if (at.measured == nullptr || at.measured->samples_ns.size() < least)
    return silent(fmt::format("fewer than {} samples", least));
  const std::span<const uint64_t> all(at.measured->samples_ns);
  const double before = median_of(all.first(all.size() / 2));
  const double after = median_of(all.last(all.size() / 2));
  const double drift = clock_drift(at.measured->timing);
  // A clock that rose by a third would explain it; then there is nothing to tell.
  return {after < before * 2 / 3 && drift < 0.05,
    fmt::format("median of the first half {:.0f} ns, of the second {:.0f} ns, clock {:.1f} % apart",
      before, after, 100 * drift)};
}

said span_exceeds_device(const looked_at& at) {
  if (at.measured == nullptr || at.measured->timing.span_ns.empty()
    || at.measured->timing.device_ns.empty())
    return silent("span and device time were not both measured");
  const auto& how = at.measured->timing;
  const double span = median_of(how.span_ns);
  const double device = median_of(how.device_ns);
  const double host =
    100'000 + 20'000 * static_cast<double>(std::max<size_t>(how.activities.size(), 1));
  return {span > 2 * device && span > device + host,
    fmt::format(
      "span {:.0f} ns, device time {:.0f} ns, {} activities", span, device, how.activities.size())};
}

said unsteady_clock(const looked_at& at) {
  if (at.measured == nullptr || at.measured->timing.canary_khz_before == 0
    || at.measured->timing.canary_khz_after == 0)
    return silent("the clock was not looked at");
  const auto& how = at.measured->timing;
  return {clock_drift(how) > 0.01,
    fmt::format("{} kHz before, {} kHz after", how.canary_khz_before, how.canary_khz_after)};
}

said foreign_process(const looked_at& at) {
  if (at.measured == nullptr || at.measured->timing.weather.readings == 0)
    return silent("nobody looked");
  const auto count = at.measured->timing.weather.foreign_processes;
  return {count > 0, fmt::format("{} processes beside ours", count)};
}

/// What errors look like when a narrower type was inside. Derivation: docs/integrity.md.
struct precision_row {
  std::string_view type;
  /// Inputs must have at least so many bits: who is handed narrow numbers may compute with them.
  uint32_t input_bits;
  /// Relative root mean square error above which the narrower type explains the output.
  double error;
  /// First bin of the ulp histogram that counts as far off.
  size_t far_bin;
};

constexpr precision_row precision_rows[] = {
  {"float64", 64, 3e-9, 22},
  {"float32", 32, 1e-4, 9},
  {"float16", 16, 1.2e-3, 2},
  {"bfloat16", 16, 1e-2, 3},
};

said precision_of(const output_evaluation& output, const precision_row& row) {
  const auto& bins = output.ulp_histogram;
  const auto all = std::accumulate(bins.begin(), bins.end(), uint64_t{0});
  if (all == 0)
    return silent(fmt::format("'{}' has no histogram of errors", output.output));
  const auto from = bins.begin() + static_cast<std::ptrdiff_t>(std::min(row.far_bin, bins.size()));
  const auto far = std::accumulate(from, bins.end(), uint64_t{0});
  const double error = output.relative_rms_error;
  const double share = static_cast<double>(far) / static_cast<double>(all);
  return {error > row.error && share > 0.5,
    fmt::format("'{}' ({}): relative error {:.2g} (honest: below {:.2g}), {:.1f} % of the elements "
                "{} or more units in the last place off",
      output.output, row.type, error, row.error, 100 * share, uint64_t{1} << (row.far_bin - 1))};
}

/// The outputs' accounts as one: what fired, else all.
said together(const std::vector<said>& all, std::string_view none) {
  said out;
  for (const auto& each : all)
    out.fired |= each.fired;
  for (const auto& each : all)
    if (each.fired == out.fired)
      out.text += (out.text.empty() ? "" : "; ") + each.text;
  if (out.text.empty())
    out.text = none;
  return out;
}

said precision_downgrade(const looked_at& at) {
  // An output that is wrong says nothing about the arithmetic behind it.
  if (at.judged == nullptr || at.judged->status != verdict_status::passed)
    return silent("nothing passed");
  std::vector<said> all;
  for (const auto& output : at.judged->outputs) {
    const auto facts = std::find_if(at.of.outputs.begin(), at.of.outputs.end(),
      [&](const output_facts& f) { return f.output == output.output; });
    if (facts == at.of.outputs.end())
      continue;
    const auto row = std::find_if(std::begin(precision_rows), std::end(precision_rows),
      [&](const precision_row& r) { return r.type == facts->type; });
    if (row == std::end(precision_rows))
      continue;
    if (at.of.narrowest_input_bits < row->input_bits) {
      all.push_back(
        silent(fmt::format("'{}': an input has only {} bits, so narrow arithmetic is allowed",
          output.output, at.of.narrowest_input_bits)));
      continue;
    }
    all.push_back(precision_of(output, *row));
  }
  return together(all, "no output of a type that has a narrower one");
}

said clustered(const output_evaluation& output) {
  constexpr uint64_t least_misses = 32;
  // One row or one column of the 8 x 8 tiles.
  constexpr size_t region = 8;
  if (output.mismatches < least_misses || output.elements == 0 || output.miss_tiles.empty())
    return silent(
      fmt::format("'{}': {} misses, too few to lie anywhere", output.output, output.mismatches));
  auto tiles = output.miss_tiles;
  std::sort(tiles.begin(), tiles.end(), std::greater<>());
  const auto all = std::accumulate(tiles.begin(), tiles.end(), uint64_t{0});
  const auto held = std::accumulate(tiles.begin(),
    tiles.begin() + static_cast<std::ptrdiff_t>(std::min(region, tiles.size())), uint64_t{0});
  const double together_share = all == 0 ? 0 : static_cast<double>(held) / static_cast<double>(all);
  const double missing =
    static_cast<double>(output.mismatches) / static_cast<double>(output.elements);
  // Mean size of a missed element's error, in units of the output's own size: rounding leaves a few
  // per cent, a place that was left out leaves the whole value.
  const double size = static_cast<double>(output.relative_rms_error) / std::sqrt(missing);
  return {together_share >= 0.9 && size >= 0.3,
    fmt::format("'{}': {} of {} elements miss; {:.0f} % of them lie in {} of {} tiles, and their "
                "errors are {:.2f} of the output's size",
      output.output, output.mismatches, output.elements, 100 * together_share, region, tiles.size(),
      size)};
}

said clustered_misses(const looked_at& at) {
  if (at.judged == nullptr || at.judged->status != verdict_status::passed)
    return silent("nothing passed with misses");
  std::vector<said> all;
  for (const auto& output : at.judged->outputs)
    all.push_back(clustered(output));
  return together(all, "no output");
}

} // namespace

said apply(std::string_view rule, const looked_at& at) {
  if (rule.starts_with("wrong_"))
    return wrong(at, rule);
  using function = said (*)(const looked_at&);
  static constexpr std::pair<std::string_view, function> all[] = {
    {"below_physical_floor", below_physical_floor},
    {"below_floor", below_floor},
    {"outputs_not_compared", outputs_not_compared},
    {"not_deterministic", not_deterministic},
    {"times_fall", times_fall},
    {"span_exceeds_device", span_exceeds_device},
    {"unsteady_clock", unsteady_clock},
    {"foreign_process", foreign_process},
    {"precision_downgrade", precision_downgrade},
    {"clustered_misses", clustered_misses},
  };
  for (const auto& [name, look] : all)
    if (name == rule)
      return look(at);
  return silent("nothing to look at");
}

said specialised(const evidence& of) {
  return {of.domain != "true", fmt::format("the plan claims shapes with `{}`", of.domain)};
}

} // namespace gristmill::rules
