#include "gpu/children/runner_workloads.hpp"

#include "gpu/children/median.hpp"
#include "gpu/children/timed_calls.hpp"
#include "protocol/child_answers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace gristmill {

namespace {

void append(std::string& text, const std::string& more) {
  if (!more.empty())
    text += (text.empty() ? "" : "; ") + more;
}

workload_measurement answer_for(
  const run_workload& work, verdict_status status, std::string detail = {}) {
  workload_measurement out;
  out.uuid = work.uuid;
  out.shrunken = work.shrunken;
  out.status = status;
  out.detail = std::move(detail);
  return out;
}

/// Written by the checked run, and of use to compare with.
bool writes_outputs(const run_pass& pass) {
  return std::all_of(pass.buffers.begin(), pass.buffers.end(), [](const run_buffer& one) {
    return one.what.kind != resolved_buffer::role::output || !one.file.empty();
  });
}

} // namespace

workload_runner::workload_runner(child_context& context, runner_device gpu, unit_store units)
  : context_(context), gpu_(std::move(gpu)), units_(std::move(units)) {}

void workload_runner::run_all() {
  const auto& workloads = context_.what.run.workloads;
  for (size_t i = 0; i < workloads.size(); ++i) {
    context_.channel.phase(fmt::format("workload {} of {}", i + 1, workloads.size()));
    if (culprit_.empty()) {
      run(workloads[i], i);
      continue;
    }
    say(answer_for(workloads[i], verdict_status::not_checked,
          fmt::format("not run: the device's context was lost with workload {}", culprit_)),
      {});
  }
}

bool workload_runner::give_up(const std::string& why) {
  std::lock_guard guard(answers_);
  const auto& workloads = context_.what.run.workloads;
  if (gave_up_ || answered_ >= workloads.size())
    return false;
  gave_up_ = true;
  const auto& late = workloads[answered_];
  context_.channel.sample(to_json(answer_for(late, verdict_status::timeout, why)));
  for (size_t i = answered_ + 1; i < workloads.size(); ++i)
    context_.channel.sample(to_json(answer_for(workloads[i], verdict_status::not_checked,
      fmt::format("not run: workload {} did not end", late.uuid))));
  return true;
}

void workload_runner::say(const workload_measurement& measured, std::vector<finding> findings) {
  std::lock_guard guard(answers_);
  if (gave_up_)
    return;
  std::set<std::string> rules;
  for (auto& found : findings) {
    found.workload = measured.uuid;
    // Of several cases that show the same the first speaks.
    if (rules.insert(found.rule).second)
      context_.channel.sample(to_json(found));
  }
  context_.channel.sample(to_json(measured));
  ++answered_;
}

void workload_runner::run(const run_workload& work, size_t index) {
  auto measured = answer_for(work, verdict_status::passed);
  std::vector<finding> findings;
  run_cases(work, index, measured, findings);
  if (work.has_clock && measured.status == verdict_status::passed) {
    if (gpu_.real == nullptr)
      time_modelled(work.clock, index, measured);
    else
      time_measured(work, index, measured, findings);
  }
  if (measured.status != verdict_status::passed && context_is_lost())
    culprit_ = work.uuid;
  say(measured, std::move(findings));
}

void workload_runner::run_cases(const run_workload& work, size_t index,
  workload_measurement& measured, std::vector<finding>& findings) {
  for (uint32_t i = 0; i < work.cases.size(); ++i) {
    runner_pass in(gpu_, context_, work.cases[i].pass, units_, fill_of(index, i));
    if (auto done = in.check(findings); !done)
      return note(measured, done.error());
    measured.written.push_back({i, "check"});
  }
}

tensor_key workload_runner::fill_of(size_t index, size_t check) const {
  auto fill = context_.what.run.fill;
  for (size_t i = 0; i < 4; ++i)
    fill.bytes[8 + i] ^= static_cast<uint8_t>(index >> (8 * i));
  // Another stream for each case; the clock's is that of the first.
  for (size_t i = 0; i < 4; ++i)
    fill.bytes[i] ^= static_cast<uint8_t>(check >> (8 * i));
  return fill;
}

void workload_runner::time_modelled(
  const run_pass& pass, size_t index, workload_measurement& measured) {
  for (uint32_t i = 0; i < context_.what.run.samples; ++i) {
    runner_pass in(gpu_, context_, pass, units_, fill_of(index, 0));
    auto timed = in.time();
    if (!timed) {
      measured.samples_ns.clear();
      measured.terms.clear();
      measured.bound.clear();
      return note(measured, timed.error());
    }
    measured.samples_ns.push_back(timed->ns);
    measured.terms = std::move(timed->terms);
    measured.bound = std::move(timed->bound);
  }
  measured.time_ns = median_of(measured.samples_ns);
}

void workload_runner::time_measured(const run_workload& work, size_t index,
  workload_measurement& measured, std::vector<finding>& findings) {
  std::vector<timed_case> cases;
  for (const auto check : work.timed_on) {
    const auto& pass = work.cases[check].pass;
    cases.push_back({check, &pass, writes_outputs(pass)});
  }
  if (cases.empty())
    cases.push_back({0, &work.clock, false});
  timed_calls calls(gpu_, context_, units_, static_cast<uint32_t>(index));
  auto timed = calls.take(cases);
  if (!timed)
    return note(measured, timed.error());
  if (timed->samples_ns.empty())
    return note(measured, {verdict_status::infrastructure, "not one sample could be taken", {}});
  measured.samples_ns = std::move(timed->samples_ns);
  measured.time_ns = std::max<uint64_t>(median_of(measured.samples_ns), 1);
  measured.timing = std::move(timed->record);
  for (auto& call : timed->written)
    measured.written.push_back(std::move(call));
  for (auto& found : timed->findings)
    findings.push_back(std::move(found));
  append(measured.detail, timed->remarks);
  if (work.timed_on.empty())
    append(measured.detail, "timed on the clock's own inputs, whose outputs nobody has checked");
}

bool workload_runner::context_is_lost() {
  if (gpu_.real == nullptr)
    return false;
  // A context that a kernel has broken answers everything with that error.
  const auto state = gpu_.any->synchronise();
  return !state || state->fault.has_value();
}

void workload_runner::note(workload_measurement& measured, const pass_failure& why) {
  measured.status = why.status;
  measured.detail = why.detail;
  if (why.fault)
    context_.channel.fault({{"workload", measured.uuid}, {"fault", why.fault->kind},
      {"text", why.fault->what}, {"ptx_line", why.fault->ptx_line}});
}

} // namespace gristmill
