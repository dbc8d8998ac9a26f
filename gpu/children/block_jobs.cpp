#include "gpu/children/block_jobs.hpp"

#include "gpu/children/median.hpp"
#include "gpu/children/runner_devices.hpp"
#include "gpu/cuda/weather_log.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

tensor_key for_block(tensor_key key, uint32_t number) {
  for (size_t i = 0; i < 4; ++i)
    key.bytes[4 + i] ^= static_cast<uint8_t>((number + 1) >> (8 * i));
  return key;
}

uint32_t share_of(uint32_t whole, uint32_t parts) {
  return (whole + parts - 1) / std::max(parts, 1U);
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void add(timing_record& to, const timing_record& block) {
  if (!to.taken()) {
    to = block;
    return;
  }
  // One block by events makes the whole a figure by events: the worse word stands.
  if (block.method == "events" && to.method != "events") {
    to.method = block.method;
    to.fallback = block.fallback;
  }
  to.warm_up_calls += block.warm_up_calls;
  append(to.span_ns, block.span_ns);
  append(to.device_ns, block.device_ns);
  to.taken_again += block.taken_again;
  to.canary_khz_after = block.canary_khz_after;
  cuda::add_weather(to.weather, block.weather);
  to.digested += block.digested;
  to.digests_equal += block.digests_equal;
  to.written_out += block.written_out;
}

} // namespace

block_jobs::block_jobs(const job& of, std::function<std::string(const std::string&)> path)
  : of_(of), path_(std::move(path)), is_modelled_(!cuda_ordinal(of.run.device)) {}

std::string block_jobs::output_name(size_t workload, size_t check, size_t buffer) {
  return fmt::format("w{}.c{}.b{}.bin", workload, check, buffer);
}

std::string block_jobs::call_in_block(uint32_t number, std::string_view call) {
  constexpr std::string_view timed = "timed ";
  const auto within = call.starts_with(timed) ? std::string(call.substr(timed.size())) : "999999";
  return fmt::format("{}{}{:0>6}", timed, number + 1, within);
}

uint32_t block_jobs::case_of(size_t workload, uint32_t check_in_block) const {
  return of_.run.workloads[workload].timed_on[check_in_block];
}

run_pass block_jobs::absolute(run_pass pass) const {
  for (auto& buffer : pass.buffers)
    if (!buffer.file.empty())
      buffer.file = path_(buffer.file);
  return pass;
}

job block_jobs::part(const run_job& side, uint32_t number) const {
  job out;
  out.kind = job_kind::run;
  out.token = of_.token;
  out.nonce = fmt::format("{}-{}", of_.nonce, number);
  out.run = side;
  out.run.against.clear();
  out.run.blocks = 0;
  for (auto& unit : out.run.units)
    unit.file = path_(unit.file);
  for (auto& work : out.run.workloads) {
    for (auto& each : work.cases)
      each.pass = absolute(std::move(each.pass));
    work.clock = absolute(std::move(work.clock));
  }
  return out;
}

job block_jobs::check() const {
  auto out = part(of_.run, 0);
  for (auto& work : out.run.workloads) {
    work.has_clock = false;
    work.clock = {};
    work.timed_on.clear();
  }
  return out;
}

job block_jobs::block(uint32_t number, bool rival, const std::vector<bool>& wanted) const {
  auto out = part(rival ? of_.run.against.front() : of_.run, number + 1);
  out.run.fill = for_block(out.run.fill, number);
  // The job's secret, not the side's: both sides meet the same kind of luck.
  out.run.timing = of_.run.timing;
  out.run.timing.order = for_block(of_.run.timing.order, number);
  out.run.timing.written_max = share_of(of_.run.timing.written_max, of_.run.blocks);
  out.run.samples = share_of(of_.run.samples, of_.run.blocks);
  auto& workloads = out.run.workloads;
  for (size_t w = 0; w < workloads.size(); ++w) {
    auto& work = workloads[w];
    if (!wanted[w]) {
      work.cases.clear();
      work.timed_on.clear();
      work.has_clock = false;
      work.clock = {};
      continue;
    }
    std::vector<run_case> timed;
    for (const auto check : std::exchange(work.timed_on, {})) {
      auto& one = work.cases[check];
      for (size_t b = 0; b < one.pass.buffers.size(); ++b)
        if (one.pass.buffers[b].what.kind == resolved_buffer::role::output)
          one.pass.buffers[b].file = output_name(w, timed.size(), b);
      timed.push_back(one);
    }
    // A modelled time does not depend on the inputs, and has been checked.
    work.cases.clear();
    if (is_modelled_)
      continue;
    work.cases = std::move(timed);
    for (uint32_t i = 0; i < work.cases.size(); ++i)
      work.timed_on.push_back(i);
  }
  return out;
}

void block_sums::add(bool rival, const workload_measurement& measured) {
  blocks_.push_back({rival, measured.time_ns, deviation_of(measured.samples_ns),
    static_cast<uint32_t>(measured.samples_ns.size())});
  if (!measured.detail.empty())
    remarks_.push_back(fmt::format(
      "block {}{}: {}", blocks_.size(), rival ? " (the incumbent's)" : "", measured.detail));
  if (rival)
    return;
  append(samples_ns_, measured.samples_ns);
  gristmill::add(record_, measured.timing);
  terms_ = measured.terms;
  bound_ = measured.bound;
}

void block_sums::finish(workload_measurement& into) const {
  into.samples_ns = samples_ns_;
  into.time_ns = median_of(samples_ns_);
  into.blocks = blocks_;
  into.timing = record_;
  into.terms = terms_;
  into.bound = bound_;
  for (const auto& remark : remarks_)
    into.detail += (into.detail.empty() ? "" : "; ") + remark;
}

} // namespace gristmill
