#include "scoring/integrity.hpp"

#include "scoring/integrity_rules.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

constexpr integrity_rule table[] = {
  {"below_physical_floor", rule_level::proof, rule_source::workload,
    "a time below what the device needs for its shortest kernel and for writing the outputs"},
  {"below_floor", rule_level::suspicion, rule_source::workload, "a time below the bound T_SOL"},
  {"wrong_output", rule_level::refusal, rule_source::workload,
    "outputs on the run's sets of inputs against references"},
  {"wrong_when_timed", rule_level::refusal, rule_source::workload,
    "outputs of timed calls against references: wrong there and right when checked"},
  {"wrong_held_out", rule_level::refusal, rule_source::workload,
    "outputs on distributions that no proposer has seen: wrong there and right on the usual ones"},
  {"wrong_neighbour", rule_level::refusal, rule_source::workload,
    "outputs at other shapes inside the domain that the plan claims"},
  {"writes_input", rule_level::proof, rule_source::reported,
    "inputs after the call against what they were before"},
  {"changes_global", rule_level::proof, rule_source::reported,
    "module variables after the call against before"},
  {"unwritten_output", rule_level::proof, rule_source::reported_if_right,
    "outputs that still hold what lay there before the call"},
  {"late_write", rule_level::proof, rule_source::reported,
    "outputs that change after the call has ended"},
  {"extra_activity", rule_level::suspicion, rule_source::reported,
    "what ran on the device beyond the plan's steps"},
  {"changing_activity", rule_level::suspicion, rule_source::reported,
    "calls that did not all do the same"},
  {"device_limit_changed", rule_level::suspicion, rule_source::reported,
    "limits of the device after the call"},
  {"unexpected_entry", rule_level::proof, rule_source::reported,
    "kernels in the code that the source does not have"},
  {"reads_clock", rule_level::suspicion, rule_source::reported,
    "clock and counter registers, by which code can tell that it is timed"},
  {"sanitizer", rule_level::refusal, rule_source::reported,
    "accesses out of bounds, races and unset values"},
  {"outputs_not_compared", rule_level::suspicion, rule_source::workload,
    "timed outputs that differ from the checked ones while none was given to the judge"},
  {"times_fall", rule_level::suspicion, rule_source::workload,
    "the second half of the samples at less than two thirds of the first, with a steady clock"},
  {"span_exceeds_device", rule_level::suspicion, rule_source::workload,
    "the span that the host sees: twice the device's time and 100 us + 20 us a step more"},
  {"precision_downgrade", rule_level::suspicion, rule_source::workload,
    "errors of the size of a narrower type in most elements, where all inputs are wider"},
  {"clustered_misses", rule_level::suspicion, rule_source::workload,
    "misses within the allowance that lie together and are as large as the output itself"},
  {"writable_module_global", rule_level::note, rule_source::reported,
    "module variables that kernels can write"},
  {"not_deterministic", rule_level::note, rule_source::workload,
    "timed outputs that differ in bits from the checked ones and are right"},
  {"unsteady_clock", rule_level::note, rule_source::workload,
    "the device's clock before the samples and after them"},
  {"foreign_process", rule_level::note, rule_source::workload,
    "processes on the device that are not ours"},
  {"specialised", rule_level::note, rule_source::candidate,
    "a plan that claims some shapes only, which it may"},
};

template <class T>
const T* find_uuid(const std::vector<T>& list, const std::string& uuid) {
  const auto found =
    std::find_if(list.begin(), list.end(), [&](const T& x) { return x.uuid == uuid; });
  return found == list.end() ? nullptr : &*found;
}

class examiner {
public:
  examiner(const evidence& of, const rules_off& off) : of_(of), off_(off) {}

  examined run() {
    for (const auto& rule : table) {
      if (!off_.contains(rule.name))
        apply(rule);
    }
    return std::move(out_);
  }

private:
  void apply(const integrity_rule& rule) {
    switch (rule.source) { // no default: the compiler reports a missing case
    case rule_source::workload:
      for (const auto& bounds : of_.yardsticks)
        look(rule, bounds);
      break;
    case rule_source::candidate:
      note(rule, "", rules::specialised(of_));
      break;
    case rule_source::reported:
    case rule_source::reported_if_right:
      reported(rule);
      break;
    }
  }

  void look(const integrity_rule& rule, const workload_yardstick& bounds) {
    const auto* measured = find_uuid(of_.measured.workloads, bounds.uuid);
    const auto* judged = find_uuid(of_.judged.workloads, bounds.uuid);
    note(rule, bounds.uuid, rules::apply(rule.name, {of_, bounds, measured, judged}));
  }

  void note(const integrity_rule& rule, const std::string& workload, rules::said what) {
    out_.accounts.push_back({rule.name, rule.level, workload, what.fired, what.text});
    // What a judge found wrong is its status; only the way to find it may be news.
    if (what.fired && rule.name != "wrong_output")
      add({std::string(rule.name), workload, std::move(what.text), false}, rule.level);
  }

  /// What others found under the rule's name; one finding for each workload.
  void reported(const integrity_rule& rule) {
    std::vector<finding> found;
    for (const auto* list : {&of_.measured.findings, &of_.compiled})
      for (const auto& each : *list)
        if (each.rule == rule.name)
          found.push_back(each);
    if (found.empty())
      out_.accounts.push_back({rule.name, rule.level, "", false, "nothing was reported"});
    for (auto& each : found) {
      const auto level = level_of(rule, each.workload);
      out_.accounts.push_back({rule.name, level, each.workload, true, each.detail});
      add(std::move(each), level);
    }
  }

  rule_level level_of(const integrity_rule& rule, const std::string& workload) const {
    const auto* judged = find_uuid(of_.judged.workloads, workload);
    const bool is_wrong = judged != nullptr && judged->status != verdict_status::passed;
    return rule.source == rule_source::reported_if_right && is_wrong ? rule_level::note
                                                                     : rule.level;
  }

  void add(finding found, rule_level level) {
    found.fatal = level == rule_level::proof;
    out_.retrial |= level == rule_level::suspicion && of_.retrials == 0;
    out_.findings.push_back(std::move(found));
  }

  const evidence& of_;
  const rules_off& off_;
  examined out_;
};

} // namespace

std::string to_string(rule_level level) {
  switch (level) { // no default: the compiler reports a missing case
  case rule_level::note:
    return "note";
  case rule_level::suspicion:
    return "suspicion";
  case rule_level::refusal:
    return "refusal";
  case rule_level::proof:
    return "proof";
  }
  return "unknown";
}

std::span<const integrity_rule> integrity_rules() {
  return table;
}

const integrity_rule* find_rule(std::string_view name) {
  const auto found = std::find_if(
    std::begin(table), std::end(table), [&](const integrity_rule& r) { return r.name == name; });
  return found == std::end(table) ? nullptr : found;
}

std::string_view wrong_rule(std::string_view call) {
  if (call.find("timed") != std::string_view::npos)
    return "wrong_when_timed";
  if (call.starts_with("held-out"))
    return "wrong_held_out";
  if (call.starts_with("neighbour"))
    return "wrong_neighbour";
  return "wrong_output";
}

examined examine(const evidence& of, const rules_off& off) {
  auto out = examiner(of, off).run();
  // Rules that a runner or compiler of a later build has: kept as they were said.
  for (const auto* list : {&of.measured.findings, &of.compiled})
    for (const auto& each : *list)
      if (find_rule(each.rule) == nullptr && !off.contains(each.rule))
        out.findings.push_back(each);
  return out;
}

} // namespace gristmill
