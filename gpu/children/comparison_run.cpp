#include "gpu/children/comparison_run.hpp"

#include "gpu/children/block_jobs.hpp"
#include "gpu/children/block_order.hpp"
#include "gpu/children/helper_process.hpp"
#include "gpu/children/job_directory.hpp"
#include "gpu/cuda/measured_call.hpp"
#include "protocol/child_answers.hpp"
#include "tensors/tensor_file.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// Beyond the limits of what it measures: context, modules, copies.
constexpr std::chrono::seconds grace{120};

/// One process that has ended, read.
struct part_answer {
  std::vector<workload_measurement> workloads;
  std::vector<finding> findings;
  /// Why it did not end well; empty when it did.
  std::string broke;
};

/// What a process said before it broke off.
part_answer read_part(const helper_end& ended, const std::string& nonce) {
  part_answer out;
  auto lines = ended.lines;
  if (ended.end != helper_end::how::done) {
    out.broke = describe(ended);
    const auto last = parse_child_line(lines.empty() ? "" : lines.back(), nonce);
    if (!last || last->kind != child_line_kind::done)
      lines.push_back(ordered_json{{"line", "done"}, {"nonce", nonce}}.dump());
  }
  auto said = read_run_answers(lines, nonce);
  if (!said) {
    out.broke += (out.broke.empty() ? "" : "; ") + said.error().what;
    return out;
  }
  out.workloads = std::move(said->workloads);
  out.findings = std::move(said->findings);
  return out;
}

bool are_equal(const std::string& a, const std::string& b) {
  auto x = mapped_file::open(a);
  auto y = mapped_file::open(b);
  return x && y && x->bytes().size() == y->bytes().size()
    && (x->bytes().empty()
      || std::memcmp(x->bytes().data(), y->bytes().data(), x->bytes().size()) == 0);
}

class comparison_run {
public:
  explicit comparison_run(child_context& context)
    : context_(context),
      jobs_(context.what, [&context](const std::string& file) { return context.path(file); }) {}

  result<void> run();

private:
  result<part_answer> run_part(const job& what, const std::string& folder);
  result<void> check();
  result<void> block(uint32_t number, bool rival);
  void take_candidate(const part_answer& said, uint32_t number, const std::string& folder);
  void take_rival(const part_answer& said, uint32_t number);
  result<void> take_written(size_t workload, const workload_measurement& measured, uint32_t number,
    const std::string& folder);
  bool keep_call(size_t workload, uint32_t check_in_block, const std::string& call,
    const std::string& label, const std::string& folder);
  void blame(size_t workload, verdict_status status, std::string detail);
  void add_findings(const std::vector<finding>& more);
  void answer();

  child_context& context_;
  block_jobs jobs_;
  /// One a workload, in the order of the job.
  std::vector<workload_measurement> measured_;
  std::vector<block_sums> sums_;
  std::vector<finding> findings_;
  /// The candidate has failed: no more blocks.
  std::string failed_;
  /// The incumbent has: nothing can be compared.
  std::string cannot_compare_;
};

result<part_answer> comparison_run::run_part(const job& what, const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!fs::create_directory(folder, error) || error)
    return fail(errc::io_failed, folder + ": cannot be made");
  if (auto written = write_tensor_file(
        fs::path(folder) / "job.json", std::as_bytes(std::span(std::string_view(to_json(what)))));
      !written)
    return pass(written);
  uint64_t passes = 1;
  for (const auto& work : what.run.workloads)
    passes += work.cases.size() + 2;
  const auto& timing = what.run.timing;
  helper_limits limits;
  limits.deadline = grace
    + std::chrono::nanoseconds(passes * (timing.limit_ns + warm_up_stretch * timing.warm_up_ns));
  auto ended = run_helper(folder, what.nonce, limits, [&](auto kind, const std::string& line) {
    // What a person reads in the log; the lines of the helper are not ours to repeat.
    if (kind == child_line_kind::fault)
      fmt::print("{}: {}\n", fs::path(folder).filename().string(), line);
  });
  if (!ended)
    return pass(ended);
  return read_part(*ended, what.nonce);
}

void comparison_run::blame(size_t workload, verdict_status status, std::string detail) {
  auto& one = measured_[workload];
  one.status = status;
  one.detail = std::move(detail);
  if (failed_.empty())
    failed_ = one.uuid;
}

void comparison_run::add_findings(const std::vector<finding>& more) {
  for (const auto& found : more) {
    const bool is_known = std::any_of(findings_.begin(), findings_.end(),
      [&](const finding& one) { return one.rule == found.rule && one.workload == found.workload; });
    if (!is_known)
      findings_.push_back(found);
  }
}

result<void> comparison_run::check() {
  context_.channel.phase("checks of the candidate");
  const auto folder = context_.path("checks");
  auto said = run_part(jobs_.check(), folder);
  if (!said)
    return pass(said);
  add_findings(said->findings);
  const auto& workloads = context_.what.run.workloads;
  for (size_t i = 0; i < workloads.size(); ++i) {
    if (i < said->workloads.size() && said->workloads[i].uuid == workloads[i].uuid) {
      measured_.push_back(std::move(said->workloads[i]));
      if (measured_.back().status != verdict_status::passed && failed_.empty())
        failed_ = workloads[i].uuid;
      continue;
    }
    workload_measurement lost;
    lost.uuid = workloads[i].uuid;
    lost.shrunken = workloads[i].shrunken;
    measured_.push_back(std::move(lost));
    if (failed_.empty()) {
      blame(i, verdict_status::runtime_error,
        fmt::format("the process that checked it broke off: {}", said->broke));
    } else {
      measured_.back().status = verdict_status::not_checked;
      measured_.back().detail = fmt::format("not run: workload {} failed", failed_);
    }
  }
  std::error_code error;
  fs::remove_all(folder, error);
  return {};
}

/// Moves the outputs of a call of a block to where the judge looks. False when they are not there.
bool comparison_run::keep_call(size_t workload, uint32_t check_in_block, const std::string& call,
  const std::string& label, const std::string& folder) {
  const auto check = jobs_.case_of(workload, check_in_block);
  const auto& buffers = context_.what.run.workloads[workload].cases[check].pass.buffers;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].what.kind != resolved_buffer::role::output)
      continue;
    const auto from =
      folder + "/" + written_file(block_jobs::output_name(workload, check_in_block, b), call);
    std::error_code error;
    fs::rename(from, context_.path(written_file(buffers[b].file, label)), error);
    if (error)
      return false;
  }
  measured_[workload].written.push_back({check, label});
  return true;
}

result<void> comparison_run::take_written(size_t workload, const workload_measurement& measured,
  uint32_t number, const std::string& folder) {
  const auto& cases = context_.what.run.workloads[workload].cases;
  for (const auto& call : measured.written) {
    const auto check = jobs_.case_of(workload, call.check);
    if (call.call == "check") {
      const auto& buffers = cases[check].pass.buffers;
      bool same = true;
      for (size_t b = 0; same && b < buffers.size(); ++b)
        if (buffers[b].what.kind == resolved_buffer::role::output)
          same = are_equal(context_.path(buffers[b].file),
            folder + "/" + block_jobs::output_name(workload, call.check, b));
      if (same)
        continue;
    }
    const auto label = block_jobs::call_in_block(number, call.call);
    if (!keep_call(workload, call.check, call.call, label, folder))
      return fail(errc::io_failed,
        fmt::format("workload {}: the outputs of {} cannot be kept", measured.uuid, label));
  }
  return {};
}

void comparison_run::take_candidate(
  const part_answer& said, uint32_t number, const std::string& folder) {
  add_findings(said.findings);
  const auto& workloads = context_.what.run.workloads;
  for (size_t i = 0; i < workloads.size(); ++i) {
    if (measured_[i].status != verdict_status::passed)
      continue;
    if (i >= said.workloads.size() || said.workloads[i].uuid != workloads[i].uuid) {
      if (failed_.empty())
        blame(i, verdict_status::runtime_error,
          fmt::format("its process of block {} broke off: {}", number + 1, said.broke));
      return;
    }
    const auto& one = said.workloads[i];
    if (one.status == verdict_status::not_checked)
      return; // The workload before it is to blame.
    if (one.status != verdict_status::passed) {
      blame(i, one.status, fmt::format("block {}: {}", number + 1, one.detail));
      continue;
    }
    if (auto kept = take_written(i, one, number, folder); !kept) {
      blame(i, verdict_status::infrastructure, kept.error().what);
      continue;
    }
    if (workloads[i].has_clock)
      sums_[i].add(false, one);
  }
}

void comparison_run::take_rival(const part_answer& said, uint32_t number) {
  const auto& workloads = context_.what.run.workloads;
  for (size_t i = 0; i < workloads.size(); ++i) {
    const bool is_there = i < said.workloads.size() && said.workloads[i].uuid == workloads[i].uuid;
    if (!is_there || said.workloads[i].status != verdict_status::passed) {
      cannot_compare_ = fmt::format("the incumbent failed in block {} on workload {}: {}",
        number + 1, workloads[i].uuid, is_there ? said.workloads[i].detail : said.broke);
      return;
    }
    if (workloads[i].has_clock && measured_[i].status == verdict_status::passed)
      sums_[i].add(true, said.workloads[i]);
  }
}

result<void> comparison_run::block(uint32_t number, bool rival) {
  const auto folder = context_.path(fmt::format("block-{}", number + 1));
  std::vector<bool> wanted;
  for (const auto& one : measured_)
    wanted.push_back(one.status == verdict_status::passed);
  auto said = run_part(jobs_.block(number, rival, wanted), folder);
  if (!said)
    return pass(said);
  if (rival)
    take_rival(*said, number);
  else
    take_candidate(*said, number, folder);
  std::error_code error; // The job's own folder goes in the end, with all that is in it.
  fs::remove_all(folder, error);
  return {};
}

void comparison_run::answer() {
  const auto& workloads = context_.what.run.workloads;
  for (const auto& found : findings_)
    context_.channel.sample(to_json(found));
  for (size_t i = 0; i < workloads.size(); ++i) {
    auto& one = measured_[i];
    sums_[i].finish(one);
    if (one.status == verdict_status::passed && !cannot_compare_.empty()) {
      one.status = verdict_status::infrastructure;
      one.detail = cannot_compare_;
    } else if (one.status == verdict_status::passed && workloads[i].has_clock
      && !sums_[i].has_time()) {
      one.status = verdict_status::not_checked;
      one.detail = fmt::format("not timed: workload {} failed", failed_);
    }
    context_.channel.sample(to_json(one));
  }
}

result<void> comparison_run::run() {
  sums_.resize(context_.what.run.workloads.size());
  if (auto done = check(); !done)
    return done;
  // One that failed decides the verdict: nothing is left to compare. The others still get a time,
  // without which they would look as if they had not been run.
  const bool has_any = std::any_of(measured_.begin(), measured_.end(),
    [](const auto& one) { return one.status == verdict_status::passed; });
  const auto order = !has_any ? std::vector<bool>{}
    : failed_.empty() ? block_order(context_.what.run.timing.order, context_.what.run.blocks)
                      : std::vector<bool>{false};
  const bool is_comparing = failed_.empty();
  for (uint32_t i = 0; i < order.size(); ++i) {
    context_.channel.phase(
      fmt::format("block {} of {}, {}", i + 1, order.size(), order[i] ? "incumbent" : "candidate"));
    if (auto done = block(i, order[i]); !done)
      return done;
    if ((is_comparing && !failed_.empty()) || !cannot_compare_.empty())
      break;
  }
  answer();
  return {};
}

} // namespace

result<void> run_comparison(child_context& context) {
  return comparison_run(context).run();
}

} // namespace gristmill
