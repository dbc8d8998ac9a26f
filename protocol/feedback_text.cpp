// Feedback as a model reads it.

#include "protocol/feedback.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

/// What the terms of the clock mean to somebody who writes kernels.
std::string words_of(const std::string& term) {
  if (term == "dram")
    return "bandwidth of device memory";
  if (term == "l2")
    return "bandwidth of L2";
  if (term == "shared")
    return "shared memory and its bank conflicts";
  if (term == "load_store")
    return "load/store units (number and width of global accesses)";
  if (term == "tensor")
    return "matrix units";
  if (term == "mma")
    return "matrix units, and the loads of what mma.sync multiplies";
  if (term == "atomics")
    return "atomics, which one address takes one after the other";
  if (term == "blocks")
    return "starting of blocks: fewer, larger ones would help";
  if (term == "arithmetic")
    return "arithmetic units";
  if (term == "issue")
    return "issue of instructions";
  if (term == "latency")
    return "latency: dependent instructions and waits that too few warps hide";
  if (term == "launch")
    return "cost of launches";
  return term.empty() ? "nothing that was told" : term;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (auto n : shape)
    out += (out.size() == 1 ? "" : ", ") + std::to_string(n);
  return out + "]";
}

std::string microseconds(double ns) {
  return fmt::format("{:.2f} us", ns / 1e3);
}

std::string miss_text(const feedback_miss& m) {
  auto text = fmt::format("- workload {}, output `{}`", m.workload, m.output);
  if (!m.shape.empty())
    text += fmt::format(" of shape {}{}", shape_text(m.shape), m.shrunken ? " (a small twin)" : "");
  if (m.has_nan)
    text += ": holds NaN";
  else if (m.has_inf)
    text += ": holds an infinity";
  else if (m.all_zero)
    text += ": is all zero, and the reference is not";
  else
    text += fmt::format(": largest absolute error {:.4g}, relative {:.4g}",
      double(m.max_absolute_error), double(m.max_relative_error));
  text += fmt::format("; {} of {} elements miss the tolerance", m.mismatches, m.elements);
  return text + (m.where.empty() ? "" : "; " + m.where) + "\n";
}

std::string time_text(const feedback_time& t) {
  auto text = fmt::format("- workload {}: {}", t.workload, microseconds(double(t.time_ns)));
  if (t.floor_ns > 0 && t.time_ns > 0)
    text += fmt::format(", {:.0f} % of the speed of light ({})",
      100 * double(t.floor_ns) / double(t.time_ns), microseconds(double(t.floor_ns)));
  if (t.baseline_ns > 0 && t.time_ns > 0)
    text += fmt::format(", {:.2f}x the baseline", double(t.baseline_ns) / double(t.time_ns));
  if (!t.limiter.empty())
    text += "; limited by " + words_of(t.limiter);
  std::string terms;
  for (const auto& term : t.terms)
    if (double(term.ns) > 0)
      terms +=
        fmt::format("{}{} {}", terms.empty() ? "" : ", ", term.name, microseconds(double(term.ns)));
  return text + (terms.empty() ? "" : " (" + terms + ")") + "\n";
}

std::string headline(const feedback& what) {
  switch (what.what) { // no default: the compiler reports a missing case
  case feedback_class::compile:
    return "It did not compile.";
  case feedback_class::wrong:
    return "Its results are wrong.";
  case feedback_class::slow:
    return fmt::format("It is correct. Times are {}.", to_string(what.origin));
  case feedback_class::hang:
    return "It did not come to an end.";
  case feedback_class::fault:
    return "It failed while it ran.";
  case feedback_class::cheat:
    return "It was refused for breaking a rule.";
  }
  return {};
}

} // namespace

std::string to_text(const feedback& what, size_t bytes_max) {
  std::vector<std::string> blocks{headline(what) + "\n"};
  if (what.what != feedback_class::slow && !what.summary.empty())
    blocks.push_back(what.summary + "\n");
  for (const auto& d : what.diagnostics)
    blocks.push_back((d.line > 0 ? fmt::format("- line {}: {}\n", d.line, d.message)
                                 : fmt::format("- {}\n", d.message))
      + d.source);
  for (const auto& m : what.misses)
    blocks.push_back(miss_text(m));
  if (!what.detail.empty())
    blocks.push_back(fmt::format("- workload {}: {}\n", what.workload, what.detail));
  for (const auto& t : what.times)
    blocks.push_back(time_text(t));
  for (const auto& f : what.findings)
    blocks.push_back(fmt::format("- {} {}: {}\n", f.fatal ? "rule" : "note", f.rule, f.detail));
  std::string out;
  auto left = what.left_out;
  for (const auto& block : blocks) {
    if (out.size() + block.size() > bytes_max)
      ++left;
    else
      out += block;
  }
  if (auto more = fmt::format("({} more left out)\n", left);
      left > 0 && out.size() + more.size() <= bytes_max)
    out += more;
  return out;
}

} // namespace gristmill
