#include "protocol/child_answers.hpp"
#include "protocol/child_program.hpp"
#include "tensors/compare.hpp"
#include "tensors/miss_pattern.hpp"
#include "tensors/nan_places.hpp"
#include "tensors/tensor_file.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

output_evaluation to_evaluation(const std::string& name, const comparison& compared) {
  output_evaluation output;
  output.output = name;
  output.passed = compared.passed;
  output.has_nan = compared.has_nan;
  output.has_inf = compared.has_inf;
  output.elements = compared.elements;
  output.mismatches = compared.mismatches;
  output.matched_ratio = compared.matched_ratio;
  output.max_absolute_error = compared.max_absolute_error;
  output.max_relative_error = compared.max_relative_error;
  output.all_zero = compared.all_zero_output;
  output.miss_tiles.assign(compared.miss_tiles.begin(), compared.miss_tiles.end());
  output.ulp_histogram = compared.ulp_bins;
  output.relative_rms_error = compared.relative_rms_error;
  return output;
}

std::string reason_of(const output_evaluation& output) {
  if (output.has_nan)
    return fmt::format("`{}` holds NaN", output.output);
  if (output.has_inf)
    return fmt::format("`{}` holds an infinity", output.output);
  if (output.all_zero)
    return fmt::format("`{}` is all zero, and the reference is not", output.output);
  if (output.mismatches == 0)
    return fmt::format("`{}`: the largest error, {:.6g}, is above the cap", output.output,
      static_cast<double>(output.max_absolute_error));
  const auto pattern = describe_misses(output.miss_tiles);
  return fmt::format("`{}`: {} of {} elements miss the tolerance, largest error {:.6g}{}{}",
    output.output, output.mismatches, output.elements,
    static_cast<double>(output.max_absolute_error), pattern.empty() ? "" : "; ", pattern);
}

std::string misplaced_nans(const std::string& name, const nan_places& places) {
  return fmt::format(
    "`{}` must hold NaN exactly where the reference does: {} are lost, {} are made "
    "up, {} are in their places",
    name, places.only_second, places.only_first, places.both);
}

/// Beside the verdict, which the official rule gives: it cannot see the low bits of an integer.
std::string integer_warning(const std::string& name, const comparison& compared) {
  return compared.mismatches == 0
    ? fmt::format("warning: `{}` holds integers that differ from the reference by less than the "
                  "official rule, which compares them as float32, can see or minds",
      name)
    : fmt::format("warning: `{}` holds integers that differ from the reference; {} of {} miss even "
                  "the tolerance",
      name, compared.mismatches, compared.elements);
}

/// One call's outputs against the references of its case.
workload_evaluation judge_call_of(
  const child_context& context, const judge_workload& work, const judge_call& call) {
  workload_evaluation evaluated;
  evaluated.uuid = work.uuid;
  evaluated.shrunken = work.shrunken;
  evaluated.status = verdict_status::passed;
  evaluated.call = call.label;
  evaluated.calls = 1;
  std::string warnings;
  auto end = [&](verdict_status status, std::string detail) {
    evaluated.status = status;
    evaluated.detail = std::move(detail);
  };
  for (const auto& output : call.outputs) {
    const auto& what = output.solution;
    auto reference = mapped_file::open(context.path(output.reference_file), what.bytes);
    if (!reference) {
      end(verdict_status::infrastructure, reference.error().what);
      return evaluated;
    }
    auto solution = mapped_file::open(context.path(what.file), what.bytes);
    if (!solution) {
      // Only the name: the message with the path goes to people who may read logs.
      const auto* fault =
        solution.error().code == errc::invalid_input ? "has the wrong size" : "was not written";
      end(verdict_status::runtime_error, fmt::format("output `{}` {}", what.name, fault));
      return evaluated;
    }
    comparison found;
    nan_places places;
    if (call.nan_positions) {
      places = find_nans(what.type, solution->bytes(), reference->bytes());
      found = compare(what.type, what.shape, places.first, places.second, work.allowed);
    } else {
      found = compare(what.type, what.shape, solution->bytes(), reference->bytes(), work.allowed,
        [&](uint64_t done) {
          solution->release(done);
          reference->release(done);
        });
    }
    auto compared = to_evaluation(what.name, found);
    if (!places.same()) {
      compared.passed = false;
      compared.has_nan = true;
      end(verdict_status::incorrect_numerical, misplaced_nans(what.name, places));
    }
    if (!compared.passed && evaluated.status == verdict_status::passed)
      end(verdict_status::incorrect_numerical, reason_of(compared));
    if (found.integer_exact_mismatch)
      warnings += (warnings.empty() ? "" : "; ") + integer_warning(what.name, found);
    evaluated.outputs.push_back(std::move(compared));
  }
  if (!warnings.empty())
    evaluated.detail += (evaluated.detail.empty() ? "" : "; ") + warnings;
  return evaluated;
}

double largest_error(const workload_evaluation& of) {
  double largest = 0;
  for (const auto& output : of.outputs)
    largest = std::max(largest, static_cast<double>(output.max_absolute_error));
  return largest;
}

/// The first call that failed speaks for the workload, else the one with the largest error.
workload_evaluation judge(const child_context& context, const judge_workload& work) {
  workload_evaluation out;
  out.uuid = work.uuid;
  out.shrunken = work.shrunken;
  for (const auto& call : work.calls) {
    auto one = judge_call_of(context, work, call);
    one.calls = out.calls + 1;
    if (out.calls == 0 || one.status != verdict_status::passed
      || largest_error(one) > largest_error(out))
      out = std::move(one);
    else
      out.calls = one.calls;
    if (out.status != verdict_status::passed)
      break;
  }
  if (work.calls.size() > 1 && !out.detail.empty())
    out.detail = out.call + ": " + out.detail;
  return out;
}

result<void> judge_all(child_context& context) {
  for (const auto& work : context.what.judge.workloads)
    context.channel.sample(to_json(judge(context, work)));
  return {};
}

} // namespace

} // namespace gristmill

int main(int argc, char** argv) {
  return gristmill::child_main(
    argc, argv, "gristmill-judge", gristmill::job_kind::judge, gristmill::judge_all);
}
