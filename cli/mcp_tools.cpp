#include "cli/mcp_tools.hpp"

#include "actors/candidate.hpp"
#include "actors/device_lines.hpp"
#include "cli/mcp_ask.hpp"
#include "cli/read_run.hpp"
#include "llm/mind/problem_text.hpp"
#include "protocol/feedback.hpp"
#include "protocol/nearest.hpp"
#include "protocol/program/prompt.hpp"
#include "protocol/shrink.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace gristmill {

namespace {

using namespace std::chrono_literals;

constexpr size_t feedback_text_max = 4096;
constexpr auto prepared_within = 10min;
constexpr auto summary_seen_within = 2s;

mcp_outcome refused(std::string why) {
  return {std::move(why), nullptr, true};
}

mcp_outcome refused(const failure& why) {
  return refused(fmt::format("{} ({})", why.what, to_string(why.code)));
}

std::string microseconds(uint64_t ns) {
  return fmt::format("{:.2f} us", static_cast<double>(ns) / 1e3);
}

/// "-3.1 %": against the best before; negative is faster.
std::string change_of(uint64_t now, uint64_t before) {
  if (now == 0 || before == 0)
    return {};
  return fmt::format(
    "{:+.1f} %", 100 * (static_cast<double>(now) / static_cast<double>(before) - 1));
}

std::string text_of(const ordered_json& arguments, const char* key) {
  auto found = arguments.find(key);
  return found == arguments.end() ? std::string{} : found->get<std::string>();
}

/// The headline of feedback on a candidate that passed says what the verdict has said.
std::string details_of(const feedback& what) {
  auto text = to_text(what, feedback_text_max);
  return what.what == feedback_class::slow ? text.substr(std::min(text.find('\n') + 1, text.size()))
                                           : text;
}

} // namespace

mcp_outcome mcp_tools::call(const mcp_call& what, call_control& control) {
  const auto& a = what.arguments;
  if (what.tool == "list_problems")
    return list_problems();
  if (what.tool == "show_problem")
    return show_problem(a);
  if (what.tool == "compile")
    return ask_tool(agent_tool::compile, a, control);
  if (what.tool == "emulate")
    return ask_tool(agent_tool::emulate, a, control);
  if (what.tool == "check")
    return ask_tool(agent_tool::check, a, control);
  if (what.tool == "evaluate")
    return evaluate(a, control);
  if (what.tool == "leaderboard")
    return leaderboard();
  if (what.tool == "history")
    return history(a);
  if (what.tool == "docs")
    return search_docs(a);
  if (what.tool == "hand_in")
    return hand_in(a);
  return refused("no such tool: " + what.tool);
}

template <class Reply, class Handle, class Request>
result<Reply> mcp_tools::ask(const Handle& whom, const Request& request, call_control& control,
  const std::function<void()>& meanwhile) const {
  if (!whom)
    return fail(errc::shutting_down, "the run is over: " + run_.over());
  return ask_actor<Reply>(*run_.system, whom, request, control.cancelled, meanwhile);
}

result<const problem*> mcp_tools::find_problem(const std::string& name) const {
  const auto& all = run_.context->problems;
  if (auto found = all.find(name); found != all.end())
    return &found->second;
  std::vector<std::string> known;
  for (const auto& [each, p] : all)
    known.push_back(each);
  return fail(
    errc::invalid_input, "the run has no problem '" + name + "'" + suggestion(name, known));
}

std::string mcp_tools::times_are() const {
  return run_.setup->time_note;
}

mcp_outcome mcp_tools::list_problems() {
  ordered_json rows = ordered_json::array();
  std::string text = fmt::format("Device {}. Times: {}.\n", run_.setup->settings.gpus, times_are());
  for (const auto& [name, of] : run_.context->problems) {
    auto seen = run_.watch->problem(name);
    auto state = !seen.failed.empty() ? seen.failed
      : !seen.finished.empty()        ? "finished: " + seen.finished
      : !seen.prepared                ? "inputs and references are being made"
      : seen.baseline_ns == 0         ? "its plain kernel is being measured"
                                      : "open";
    auto about = of.def.description.substr(0, of.def.description.find('\n'));
    rows.push_back({{"problem", name}, {"description", about}, {"workloads", of.workloads.size()},
      {"state", state}, {"baseline_ns", seen.baseline_ns}, {"best_ns", seen.best_ns},
      {"best_candidate", seen.best_candidate}});
    text += fmt::format("- {}: {} ({} workloads; {}", name, about, of.workloads.size(), state);
    if (seen.baseline_ns > 0)
      text += fmt::format(
        "; plain kernel {}, best {}", microseconds(seen.baseline_ns), microseconds(seen.best_ns));
    text += ")\n";
  }
  if (auto over = run_.over(); !over.empty())
    text += "The run is over: " + over + "\n";
  return {text,
    {{"problems", rows}, {"device", run_.setup->settings.gpus}, {"times_are", times_are()},
      {"over", run_.over()}},
    false};
}

std::string mcp_tools::problem_page(const problem& of) const {
  auto shown = prompt_problem_of(of);
  const auto& program = *run_.program;
  auto out = fmt::format("# Problem {}\n\n{}\n\n## Signature\n\n{}\n## Workloads\n\n{}\n", of.name,
    shown.description, shown.signature, shown.workloads);
  out += fmt::format("## Reference (Python)\n\n```python\n{}{}```\n\n", shown.reference,
    shown.reference.ends_with('\n') ? "" : "\n");
  std::string twins;
  for (const auto& w : of.workloads) {
    auto whole = resolve_axes(of.def, w.axes);
    auto twin = shrink_axes(of.def, w, run_.context->check_elements_max);
    if (!whole || !twin || *whole == *twin)
      continue;
    twins += "- " + w.uuid + ":";
    for (const auto& [name, value] : *twin)
      twins += fmt::format(" {}={}", name, value);
    twins += "\n";
  }
  if (!twins.empty())
    out +=
      "Too large to interpret in full, these are checked for correctness on smaller twins, and a "
      "plan has to hold for those shapes too:\n\n"
      + twins + "\n";
  out += "## Device\n\n";
  for (const auto& line : device_lines(*run_.context))
    out += "- " + line + "\n";
  out += fmt::format("- compiler: {}\n- times: {}\n\n", run_.setup->compiler.version, times_are());
  out +=
    "## Contract\n\nWhat agents that answer in one text are told. Here `source`, `plan` and "
    "`hypothesis` are arguments of the tools, so no blocks, no HYPOTHESIS and no STRATEGY line are "
    "needed, and limits of tools, repairs and strategies in one attempt do not bind you.\n\n";
  prompt_facts facts;
  facts.problem = shown;
  facts.device = device_lines(*run_.context);
  out += render_prompt(program, facts).instructions;
  return out;
}

mcp_outcome mcp_tools::show_problem(const json& arguments) {
  auto of = find_problem(text_of(arguments, "problem"));
  if (!of)
    return refused(of.error());
  const auto& facts = run_.context->facts;
  auto definition = json::parse((*of)->definition_text, nullptr, false);
  auto workloads = json::array();
  for (const auto& w : (*of)->workloads) {
    json axes = json::object();
    if (auto resolved = resolve_axes((*of)->def, w.axes))
      for (const auto& [name, value] : *resolved)
        axes[name] = value;
    workloads.push_back({{"uuid", w.uuid}, {"axes", axes},
      {"tolerance",
        {{"max_atol", w.allowed.atol}, {"max_rtol", w.allowed.rtol},
          {"matched_ratio", w.allowed.matched_ratio}}}});
  }
  return {problem_page(**of),
    {{"problem", (*of)->name}, {"definition", definition.is_object() ? definition : json::object()},
      {"workloads", workloads},
      {"device",
        {{"model", run_.context->device_model}, {"arch", run_.context->arch},
          {"sm_count", facts.sm_count}, {"smem_per_block", facts.smem_per_block},
          {"smem_per_sm", facts.smem_per_sm}, {"l2_bytes", facts.l2_bytes}}},
      {"times_are", times_are()}},
    false};
}

result<void> mcp_tools::await_prepared(const std::string& name, call_control& control) const {
  const auto begun = std::chrono::steady_clock::now();
  for (double step = 0;; step += 0.01) {
    auto seen = run_.watch->problem(name);
    if (seen.prepared)
      return {};
    if (!seen.failed.empty())
      return fail(errc::refused, seen.failed);
    if (auto over = run_.over(); !over.empty())
      return fail(errc::shutting_down, "the run is over: " + over);
    if (control.cancelled)
      return fail(errc::refused, "cancelled");
    if (std::chrono::steady_clock::now() - begun > prepared_within)
      return fail(errc::timed_out, "inputs and references were not made in time");
    control.progress(step, "inputs and references of the problem are being made");
    run_.watch->wait_for_event(100ms);
  }
}

result<candidate_ref> mcp_tools::take_candidate(const json& arguments, bool question) {
  auto source = text_of(arguments, "source");
  auto plan = text_of(arguments, "plan");
  auto hypothesis = text_of(arguments, "hypothesis");
  auto program = *run_.program;
  if (question)
    program.rules.hypothesis_required = false;
  if (auto kept = check_candidate(program, source, plan, hypothesis); !kept)
    return pass(kept);
  auto stored = store_candidate(
    *run_.context->blobs, source, plan, "", text_of(arguments, "parent"), hypothesis);
  if (stored)
    stored->key = "agent/" + stored->hash.substr(0, 16);
  return stored;
}

mcp_outcome mcp_tools::ask_tool(agent_tool what, const json& arguments, call_control& control) {
  auto of = find_problem(text_of(arguments, "problem"));
  if (!of)
    return refused(of.error());
  auto candidate = take_candidate(arguments, true);
  if (!candidate)
    return refused("Refused by a rule of this run; nothing was tried.\n" + candidate.error().what);
  if (what != agent_tool::compile)
    if (auto ready = await_prepared((*of)->name, control); !ready)
      return refused(ready.error());
  tool_question asked{what, (*of)->name, *candidate, {}};
  if (auto some = arguments.find("workloads"); some != arguments.end())
    asked.workloads = some->get<std::vector<std::string>>();
  agent_tools_actor tools;
  {
    std::lock_guard lock(run_.peers->mutex);
    tools = run_.peers->tools;
  }
  double step = 1;
  auto said = ask<tool_answer>(
    tools, asked, control, [&] { control.progress(step += 1, to_string(what) + " is at work"); });
  if (!said)
    return refused(said.error());
  auto structured = json::parse(said->json, nullptr, false);
  structured["candidate"] = candidate->hash;
  return {said->text, structured, false};
}

mcp_outcome mcp_tools::evaluate(const json& arguments, call_control& control) {
  auto of = find_problem(text_of(arguments, "problem"));
  if (!of)
    return refused(of.error());
  const auto& name = (*of)->name;
  auto candidate = take_candidate(arguments, false);
  if (!candidate)
    return refused(
      "Refused by a rule of this run; no attempt was used.\n" + candidate.error().what);
  const auto source = text_of(arguments, "source");
  const auto plan = text_of(arguments, "plan");
  {
    std::lock_guard lock(mutex_);
    const auto& earlier = evaluated_[name];
    auto same = [&](const earlier_source& e) { return e.source == source && e.plan == plan; };
    // The very same one is answered with its verdict, by the planner.
    if (std::none_of(earlier.begin(), earlier.end(), same))
      if (auto fresh = check_duplicate(run_.program->rules, source, plan, earlier); !fresh)
        return refused("Refused; no attempt was used.\n" + fresh.error().what);
  }
  planner_actor planner;
  {
    std::lock_guard lock(run_.peers->mutex);
    planner = run_.peers->planner;
  }
  auto reply = ask<plant_reply>(planner, plant_request{name, *candidate}, control, [&] {
    auto [heard, words] = run_.watch->stage(candidate->hash);
    control.progress(heard, words);
  });
  if (control.cancelled && planner)
    seam::post(planner, plant_withdrawal{name, candidate->hash, "cancelled by the client"});
  if (!reply)
    return refused(reply.error());
  return judged(**of, *candidate, *reply);
}

mcp_outcome mcp_tools::judged(
  const problem& of, const candidate_ref& candidate, const plant_reply& reply) {
  if (reply.kind == plant_kind::refused)
    return refused("Not tried: " + reply.reason);
  const auto& s = reply.summary;
  const bool known = reply.kind == plant_kind::known;
  const auto status = known ? reply.earlier.status : s.status;
  const auto ns = known ? reply.earlier.objective_ns : s.objective_ns;
  const auto share = double(known ? reply.earlier.floor_share : s.floor_share);
  const auto attempt = known ? std::string("tried before") : to_string(s.id);
  if (!known) {
    // What the log tells comes a moment after the planner's answer.
    const auto begun = std::chrono::steady_clock::now();
    while (!run_.watch->has_finished(attempt)
      && std::chrono::steady_clock::now() - begun < summary_seen_within)
      run_.watch->wait_for_event(5ms);
    std::lock_guard lock(mutex_);
    auto source = run_.context->blobs->get(candidate.source);
    auto plan = run_.context->blobs->get(candidate.plan);
    if (source && plan && s.outcome == attempt_outcome::judged)
      evaluated_[of.name].push_back({attempt, *source, *plan});
  }
  const auto seen = run_.watch->problem(of.name);
  const auto attempts = run_.watch->attempts(of.name);
  uint64_t before = 0; // The best that this attempt had to beat.
  bool improved = false;
  std::string reason = known ? std::string{} : s.reason;
  for (const auto& a : attempts) {
    if (a.attempt == attempt || (known && a.candidate == candidate.hash)) {
      improved = a.improved;
      reason = a.reason;
      break;
    }
    if (a.improved)
      before = a.objective_ns;
  }
  ordered_json data{{"status", to_string(status)}, {"attempt", attempt},
    {"candidate", candidate.hash}, {"tried_before", known}, {"times_are", times_are()},
    {"objective_ns", ns}, {"floor_share", share}, {"baseline_ns", seen.baseline_ns},
    {"improved", improved}, {"best_ns", seen.best_ns}, {"best_candidate", seen.best_candidate},
    {"reason", reason}};
  if (!known) {
    data["speedup"] = double(s.speedup);
    data["sol_score"] = double(s.sol_score);
  }
  auto text = fmt::format("{}: {}", attempt, to_string(status));
  if (!known && s.outcome == attempt_outcome::infrastructure)
    text += ": something of ours broke, and the candidate was tried again in vain: " + s.reason;
  if (status == verdict_status::passed) {
    text += fmt::format(": {} (geometric mean of {} workloads, {})", microseconds(ns),
      of.workloads.size(), times_are());
    if (seen.baseline_ns > 0)
      text += fmt::format("; {:.2f}x the plain kernel ({})",
        static_cast<double>(seen.baseline_ns) / static_cast<double>(ns),
        microseconds(seen.baseline_ns));
    text += fmt::format("; {:.0f} % of the speed of light", 100 * share);
    auto change = change_of(ns, before);
    if (known)
      text +=
        candidate.hash == seen.best_candidate ? ". It is the best" : ". It is not the best now";
    else
      text += improved ? fmt::format(". NEW BEST{}", change.empty() ? "" : " (" + change + ")")
                       : fmt::format(". Not the best ({} against it)", change);
  } else if (!reason.empty()) {
    text += ": " + reason;
  }
  text += ".\nCandidate " + candidate.hash + "\n";
  if (known)
    text += "It was tried before; this is its earlier verdict, and no attempt was used.\n";
  const auto& where = known ? reply.earlier.feedback : s.feedback;
  if (!where.sha256.empty())
    if (auto stored = run_.context->blobs->get(where))
      if (auto told = parse_feedback(*stored)) {
        text += details_of(*told);
        data["feedback"] = ordered_json::parse(*stored, nullptr, false);
      }
  const auto& times = known ? reply.earlier.times : s.times;
  auto& rows = data["workloads"] = ordered_json::array();
  for (const auto& t : times)
    rows.push_back({{"uuid", t.uuid}, {"time_ns", t.ns}});
  return {text, data, false};
}

mcp_outcome mcp_tools::history(const json& arguments) {
  auto of = find_problem(text_of(arguments, "problem"));
  if (!of)
    return refused(of.error());
  auto rows = json::array();
  std::string text;
  uint64_t best = 0;
  const auto standing = run_.watch->problem((*of)->name).best_candidate;
  for (const auto& a : run_.watch->attempts((*of)->name)) {
    auto change = change_of(a.objective_ns, best);
    rows.push_back({{"attempt", a.attempt}, {"kind", a.kind}, {"candidate", a.candidate},
      {"parent", a.parent}, {"hypothesis", a.hypothesis}, {"status", a.status},
      {"objective_ns", a.objective_ns}, {"improved", a.improved}, {"reason", a.reason}});
    text += fmt::format("- {} {} {}", a.attempt, a.kind, a.status);
    if (a.objective_ns > 0)
      text += fmt::format(" {}{}{}", microseconds(a.objective_ns),
        change.empty() ? "" : " (" + change + " against the best before)",
        !a.improved                 ? ""
          : a.candidate == standing ? " BEST"
                                    : " (the best then)");
    text += (a.hypothesis.empty() ? "" : ": " + a.hypothesis)
      + (a.reason.empty() || a.objective_ns > 0 ? "" : " -> " + a.reason) + "\n";
    if (a.improved)
      best = a.objective_ns;
  }
  if (text.empty())
    text = "No attempt on " + (*of)->name + " is over yet.\n";
  return {text, {{"problem", (*of)->name}, {"attempts", rows}, {"times_are", times_are()}}, false};
}

mcp_outcome mcp_tools::leaderboard() {
  auto read = read_run(run_.context->directory);
  if (!read)
    return refused(read.error());
  auto rows = json::array();
  std::string text = "Times: " + times_are() + ".\n";
  for (const auto& row : read->table.problems) {
    rows.push_back({{"problem", row.name}, {"status", row.status}, {"baseline_ns", row.baseline_ns},
      {"best_ns", row.best_ns}, {"speedup", row.speedup}, {"floor_share", row.floor_share},
      {"sol_score", row.sol_score}, {"attempts", row.attempts}, {"limited_by", row.limited_by},
      {"best_candidate", row.best_candidate}, {"best_key", row.best_key}});
    text += fmt::format("- {}: {}", row.name, row.status);
    if (row.best_ns > 0)
      text +=
        fmt::format(", best {} ({}), plain kernel {}, {:.2f}x, {:.0f} % of the speed of light "
                    "on the largest workload, limited by {}",
          microseconds(row.best_ns), row.best_key, microseconds(row.baseline_ns), row.speedup,
          100 * row.floor_share, row.limited_by.empty() ? "nothing told" : row.limited_by);
    text += fmt::format("; {} attempts\n", row.attempts);
  }
  const auto& all = read->table.summary;
  return {text,
    {{"problems", rows}, {"faster_count", all.faster_count}, {"times_are", times_are()}}, false};
}

mcp_outcome mcp_tools::search_docs(const json& arguments) {
  auto hits = run_.docs->search(
    text_of(arguments, "question"), static_cast<size_t>(arguments.value("passages", 4)));
  auto rows = json::array();
  for (const auto& hit : hits)
    rows.push_back(
      {{"file", hit.file}, {"line", hit.line}, {"heading", hit.heading}, {"text", hit.text}});
  return {to_text(hits), {{"hits", rows}}, false};
}

} // namespace gristmill
