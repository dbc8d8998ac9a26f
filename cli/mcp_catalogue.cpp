// What `gristmill mcp` offers: the tools with their schemas, and the texts.

#include "cli/mcp_tools.hpp"

#include <fmt/format.h>

namespace gristmill {

namespace {

ordered_json text_field(const std::string& description, size_t bytes_max, size_t bytes_min = 0) {
  ordered_json out{{"type", "string"}, {"description", description}, {"maxLength", bytes_max}};
  if (bytes_min > 0)
    out["minLength"] = bytes_min;
  return out;
}

ordered_json object_of(ordered_json properties, std::vector<std::string> required) {
  ordered_json out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty())
    out["required"] = std::move(required);
  out["additionalProperties"] = false;
  return out;
}

/// Results grow with the version: what is promised stands here, and more may come.
ordered_json promised(ordered_json properties, std::vector<std::string> required) {
  return {
    {"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}

const ordered_json a_text{{"type", "string"}};
const ordered_json a_list{{"type", "array"}};

} // namespace

mcp_catalogue mcp_tools::catalogue() {
  mcp_catalogue out;
  out.version = GRISTMILL_VERSION;
  const auto& rules = run_.program->rules;
  auto problem_field = text_field("name of a problem of this run (list_problems)", 256, 1);
  problem_field["enum"] = ordered_json::array();
  for (const auto& [name, p] : run_.context->problems)
    problem_field["enum"].push_back(name);
  ordered_json code{{"problem", problem_field},
    {"source",
      text_field("the whole CUDA C++ file: __global__ and __device__ code, no host code",
        rules.source_bytes_max, 1)},
    {"plan",
      text_field(
        "the launch plan as JSON text, schema gristmill.plan/1", rules.plan_bytes_max, 1)}};
  auto some = code;
  some["workloads"] = {{"type", "array"}, {"items", text_field("uuid of a workload", 256, 1)},
    {"maxItems", 64}, {"description", "only these workloads; all when left out"}};
  auto attempt = code;
  attempt["hypothesis"] =
    text_field("what this candidate tests and why it should be faster, in one or two sentences",
      rules.hypothesis_bytes_max, rules.hypothesis_required ? rules.hypothesis_bytes_min : 0);
  attempt["parent"] = text_field(
    "hash of the candidate that it was made from, as `evaluate` told it; left out for none", 64);
  std::vector<std::string> needed{"problem", "source", "plan"};
  auto needed_to_evaluate = needed;
  if (rules.hypothesis_required)
    needed_to_evaluate.emplace_back("hypothesis");
  const auto status = promised({{"status", a_text}}, {"status"});

  out.tools = {
    {"list_problems", "List the problems",
      "The problems of this run: what each computes, its plain kernel's time, the best so far.",
      object_of(ordered_json::object(), {}), promised({{"problems", a_list}}, {"problems"}), true},
    {"show_problem", "Show a problem",
      "All that is to be known of a problem: signature, shapes, tolerance, reference code, the "
      "device, what a candidate is and which rules it must keep. Read it before the first "
      "candidate.",
      object_of({{"problem", problem_field}}, {"problem"}),
      promised({{"problem", a_text}, {"definition", {{"type", "object"}}}}, {"problem"}), true},
    {"compile", "Compile only",
      "Compiles a candidate for the device: errors with their lines, or the entries and what the "
      "assembler says of registers and spills. Uses up nothing.",
      object_of(code, needed), status, true},
    {"emulate", "Run on the mock GPU",
      "Runs a candidate on the mock GPU without an attempt: faults with their PTX line, and where "
      "the MODELLED time of each workload goes. Does not look at results. Uses up nothing.",
      object_of(some, needed), status, true},
    {"check", "Check the results",
      "Runs a candidate on the mock GPU and compares its results with the reference: how many "
      "elements miss, by how much, where. Says nothing of times. Uses up nothing.",
      object_of(some, needed), status, true},
    {"evaluate", "Evaluate: one attempt",
      "One attempt: the candidate is compiled, waits for a GPU lease, is measured and judged; the "
      "verdict with times, what limits it and what is wrong comes back and goes into the run's "
      "log. "
      "Uses up an attempt of the budget. The same candidate is never tried twice.",
      object_of(attempt, needed_to_evaluate), status, false},
    {"leaderboard", "Leaderboard",
      "The best candidate of each problem against its plain kernel and its lower bound.",
      object_of(ordered_json::object(), {}), promised({{"problems", a_list}}, {"problems"}), true},
    {"history", "History of a problem",
      "All attempts on a problem so far: hypothesis, verdict, time, what changed against the best.",
      object_of({{"problem", problem_field}}, {"problem"}),
      promised({{"attempts", a_list}}, {"attempts"}), true},
    {"hand_in", "Hand in",
      "The final answer for a problem: marks its best candidate in the log and writes it as files "
      "(solution.json, traces, torch operator).",
      object_of({{"problem", problem_field},
                  {"note", text_field("for the log: why this is the answer", 400)}},
        {"problem"}),
      promised({{"candidate", a_text}, {"folder", a_text}}, {"candidate", "folder"}), false}};
  if (run_.docs)
    out.tools.push_back({"docs", "Search the documentation",
      fmt::format(
        "Searches the {} documents that were supplied with this run, such as the manual of "
        "an API; answers with passages, file and line. Ask in plain words.",
        run_.docs->file_count()),
      object_of({{"question", text_field("what you want to know", 400, 1)},
                  {"passages",
                    {{"type", "integer"}, {"minimum", 1}, {"maximum", 10},
                      {"description", "how many passages; 4 when left out"}}}},
        {"question"}),
      promised({{"hits", a_list}}, {"hits"}), true});

  out.instructions =
    "Gristmill runs a benchmark of GPU kernels. Read show_problem first. A candidate is one CUDA "
    "file "
    "of device code plus a launch plan in JSON; there is no host code. Try it with compile, "
    "emulate "
    "and check, which cost nothing, then evaluate it: that alone counts. Make one focused change "
    "at a "
    "time and say in the hypothesis what it tests; read what limits it, improve, evaluate again. "
    "hand_in at the end. Times: "
    + times_are() + ".";
  out.resources.push_back(
    {"gristmill://program.md", "program.md", "The protocol file: the rules of this run.",
      "text/markdown", [program = run_.program] { return program->text; }});
  for (const auto& [name, of] : run_.context->problems)
    out.resources.push_back(
      {"gristmill://problem/" + name, name, "Problem " + name + ", as show_problem tells it.",
        "text/markdown", [this, target = &of] { return problem_page(*target); }});
  out.prompts.push_back({"optimise", "The contract and a problem: how to begin.",
    {{"problem", "name of a problem of this run", true}},
    [this](const std::string& name) -> result<std::string> {
      auto of = find_problem(name);
      if (!of)
        return pass(of);
      return problem_page(**of)
        + "\nMake this kernel as fast as it can be with the tools of this server.\n";
    }});
  return out;
}

} // namespace gristmill
