#include "actors/agent_tools.hpp"

#include "actors/child_job.hpp"
#include "actors/run_jobs.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/feedback.hpp"
#include "protocol/shrink.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

using nlohmann::json;

namespace {

constexpr size_t text_bytes_max = 8192;
constexpr size_t feedback_text_max = 4096;

constexpr size_t hottest_lines_max = 6;

/// Marks the compiler's events of questions: the language of no attempt.
constexpr const char* no_attempt = "tool";

std::string dumped(const json& data) {
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string in_whole_lines(std::string text) {
  if (text.size() <= text_bytes_max)
    return text;
  auto end = text.rfind('\n', text_bytes_max - 16);
  return text.substr(0, end == std::string::npos ? text_bytes_max - 16 : end + 1) + "[cut]\n";
}

json findings_of(const std::vector<finding>& findings) {
  auto out = json::array();
  for (const auto& f : findings)
    out.push_back(
      {{"rule", f.rule}, {"workload", f.workload}, {"detail", f.detail}, {"fatal", f.fatal}});
  return out;
}

/// The first that is not passed, in order.
verdict_status worst(const std::vector<workload_verdict>& workloads) {
  for (const auto& w : workloads)
    if (w.status != verdict_status::passed)
      return w.status;
  return workloads.empty() ? verdict_status::not_checked : verdict_status::passed;
}

/// What the runner saw, as the part of a verdict that a runner can know.
verdict ran(const measurement& measured) {
  verdict out;
  out.origin = measured.origin;
  out.findings = measured.findings;
  for (const auto& w : measured.workloads) {
    workload_verdict one;
    one.uuid = w.uuid;
    one.status = w.status;
    one.time_ns = w.time_ns;
    one.detail = w.detail;
    out.workloads.push_back(std::move(one));
  }
  out.status = worst(out.workloads);
  auto fatal = std::find_if(
    out.findings.begin(), out.findings.end(), [](const finding& f) { return f.fatal; });
  if (fatal != out.findings.end()) {
    out.status = verdict_status::reward_hack;
    out.reason = fatal->rule + ": " + fatal->detail;
  }
  return out;
}

/// Without the line that speaks of a verdict: this is none.
std::string body_of(const feedback& what) {
  auto text = to_text(what, feedback_text_max);
  auto first = text.find('\n');
  return first == std::string::npos ? std::string{} : text.substr(first + 1);
}

tool_answer answer_of_compile(const compiled_candidate& compiled, const std::string& source) {
  tool_answer out;
  out.status = compiled.status;
  json data{{"status", to_string(compiled.status)}, {"toolchain", compiled.toolchain},
    {"cached", compiled.cached}, {"log", compiled.log}, {"units", json::array()}};
  if (!compiled.findings.empty())
    data["findings"] = findings_of(compiled.findings);
  if (compiled.status == verdict_status::passed) {
    out.text =
      fmt::format("It compiles with {}: {} unit(s).\n", compiled.toolchain, compiled.units.size());
    for (const auto& unit : compiled.units) {
      auto entries = json::array();
      out.text += fmt::format("- unit {}: {} bytes of device code",
        unit.key.empty() ? "(no defines)" : unit.key, unit.code.bytes);
      for (const auto& entry : unit.entries) {
        entries.push_back(entry.expression);
        out.text += "; entry " + entry.expression;
      }
      out.text += "\n";
      data["units"].push_back(
        {{"key", unit.key}, {"entries", entries}, {"code_bytes", unit.code.bytes}});
    }
    if (!compiled.log.empty())
      out.text += compiled.log + (compiled.log.ends_with('\n') ? "" : "\n");
    for (const auto& f : compiled.findings)
      out.text += fmt::format("- note {}: {}\n", f.rule, f.detail);
  } else {
    auto said = feedback_of_refusal(compiled, {}, source);
    out.text = to_text(said, feedback_text_max);
    data["feedback"] = json::parse(to_json(said));
  }
  out.text = in_whole_lines(out.text);
  out.json = dumped(data);
  return out;
}

json row_of(const workload_measurement& w) {
  json row{{"uuid", w.uuid}, {"status", to_string(w.status)}, {"shrunken", w.shrunken}};
  if (!w.detail.empty())
    row["detail"] = w.detail;
  return row;
}

/// The document of gristmill-emulate (docs/emulate.md) in what the child printed; null when it did
/// not say it whole.
json profile_in(const std::string& log) {
  auto begin = log.find('{');
  auto end = log.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    return nullptr;
  auto out = json::parse(log.substr(begin, end - begin + 1), nullptr, false);
  return out.is_object() && out.value("schema", std::string{}) == "gristmill.emulate/1" ? out
                                                                                        : json();
}

/// Sentences and hottest lines of the profile, for text and result.
void add_profile(tool_answer& out, json& data, const json& profile, const std::string& workload) {
  if (profile.is_null())
    return;
  json shown{{"workload", workload}, {"words", json::array()}, {"hottest", json::array()}};
  std::string text = fmt::format("Profile of workload {} (kernel.cu is your source):\n", workload);
  for (const auto& word : profile.value("words", json::array())) {
    shown["words"].push_back(word);
    text += "- " + word.get<std::string>() + "\n";
  }
  for (const auto& launch : profile.value("launches", json::array())) {
    size_t lines = 0;
    for (const auto& line : launch.value("lines", json::array())) {
      if (++lines > hottest_lines_max)
        break;
      auto source = line.value("source", json());
      auto place = source.is_object()
        ? fmt::format("{}:{}", source.value("file", std::string{}), source.value("line", 0))
        : fmt::format("PTX line {}", line.value("ptx_line", 0));
      auto said = fmt::format("{}: {:.1f} % of the instructions at {}: {}",
        launch.value("entry", std::string{}), 100 * line.value("share", 0.0), place,
        line.value("instruction", std::string{}));
      if (auto passes = line.value("passes", 0.0); line.value("memory", std::string{}) != "")
        said += fmt::format(" [{} memory: {:.1f} passes, {:.1f} ideal]",
          line.value("memory", std::string{}), passes, line.value("passes_ideal", 0.0));
      shown["hottest"].push_back(said);
      text += "- " + said + "\n";
    }
  }
  data["profile"] = std::move(shown);
  out.text += text;
}

tool_answer answer_of_emulation(const run_context& context, const measurement& measured,
  const json& profile, const std::string& profiled) {
  tool_answer out;
  out.what = agent_tool::emulate;
  auto seen = ran(measured);
  out.status = seen.status;
  auto said = feedback_of_verdict(seen, measured, {}, {});
  json data{{"status", to_string(seen.status)}, {"origin", to_string(measured.origin)},
    {"device", "mock:" + context.device_model}, {"results_checked", false},
    {"workloads", json::array()}};
  for (const auto& w : measured.workloads) {
    auto row = row_of(w);
    if (w.time_ns > 0) {
      row["time_ns"] = w.time_ns;
      row["limited_by"] = w.bound;
      for (const auto& term : w.terms)
        row["terms_ns"][term.name] = double(term.ns);
    }
    data["workloads"].push_back(std::move(row));
  }
  if (!measured.findings.empty())
    data["findings"] = findings_of(measured.findings);
  out.text = seen.status == verdict_status::passed
    ? fmt::format("It runs to its end on the mock GPU (mock:{}); results were not compared. Times "
                  "are MODELLED.\n",
      context.device_model)
    : fmt::format("{} on the mock GPU (mock:{}).\n", to_string(seen.status), context.device_model);
  out.text += body_of(said);
  add_profile(out, data, profile, profiled);
  out.text = in_whole_lines(out.text);
  out.json = dumped(data);
  return out;
}

std::vector<int64_t> compared_shape(const run_context& context, const problem& of,
  const std::string& uuid, const std::string& output, bool shrunken) {
  for (const auto& work : of.workloads) {
    if (work.uuid != uuid)
      continue;
    auto axes = shrunken ? shrink_axes(of.def, work, context.check_elements_max)
                         : resolve_axes(of.def, work.axes);
    for (const auto& spec : of.def.outputs)
      if (axes && spec.name == output)
        if (auto shape = resolve_shape(spec, *axes))
          return *shape;
  }
  return {};
}

tool_answer answer_of_check(const run_context& context, const problem& of,
  const measurement& measured, const evaluation& judged) {
  tool_answer out;
  out.what = agent_tool::check;
  auto seen = ran(measured);
  for (auto& one : seen.workloads) {
    one.time_ns = 0; // This tool says nothing of times.
    for (const auto& w : judged.workloads)
      if (w.uuid == one.uuid && one.status == verdict_status::passed) {
        one.status = w.status;
        one.detail = w.detail;
      }
  }
  if (seen.status == verdict_status::passed)
    seen.status = worst(seen.workloads);
  out.status = seen.status;
  auto said = feedback_of_verdict(
    seen, measured, judged, [&](const std::string& uuid, const std::string& output, bool shrunken) {
      return compared_shape(context, of, uuid, output, shrunken);
    });
  json data{{"status", to_string(seen.status)}, {"device", "mock:" + context.device_model},
    {"workloads", json::array()}, {"feedback", json::parse(to_json(said))}};
  size_t right = 0;
  double worst_error = 0;
  for (size_t i = 0; i < seen.workloads.size(); ++i) {
    auto row = row_of(measured.workloads[i]);
    row["status"] = to_string(seen.workloads[i].status);
    right += seen.workloads[i].status == verdict_status::passed ? 1 : 0;
    for (const auto& w : judged.workloads)
      for (const auto& o : w.outputs)
        if (w.uuid == seen.workloads[i].uuid) {
          row["outputs"].push_back({{"output", o.output}, {"elements", o.elements},
            {"mismatches", o.mismatches}, {"max_absolute_error", double(o.max_absolute_error)}});
          worst_error = std::max(worst_error, double(o.max_absolute_error));
        }
    data["workloads"].push_back(std::move(row));
  }
  out.text =
    fmt::format("{}: {} of {} workloads right on one secret set of inputs, largest absolute "
                "error {:.3g}. Not a verdict: `evaluate` decides.\n",
      to_string(seen.status), right, seen.workloads.size(), worst_error);
  if (seen.status != verdict_status::passed)
    out.text += body_of(said);
  out.text = in_whole_lines(out.text);
  out.json = dumped(data);
  return out;
}

} // namespace

struct agent_tools::question {
  tool_question asked;
  caf::typed_response_promise<tool_answer> reply;
  measure_request measure;
  /// Of the runner; holds its outputs until they are compared.
  std::shared_ptr<job_directory> outputs;
  measurement measured;
  /// Child that works on it; 0 for none.
  uint64_t child = 0;
};

agent_tools::agent_tools(caf::actor_config& actor, agent_tools_config config)
  : agent_tools_actor::base(actor), config_(std::move(config)) {}

void agent_tools::on_exit() {
  auto end = [this](const question_ptr& work) {
    if (work->child != 0)
      seam::post(config_.child_front, child_cancel{work->child});
    work->reply.deliver(to_error({errc::shutting_down, "the tools have ended"}));
  };
  std::for_each(waiting_.begin(), waiting_.end(), end);
  std::for_each(running_.begin(), running_.end(), end);
  waiting_.clear();
  running_.clear();
  config_.compiler = nullptr;
  config_.child_front = nullptr;
}

agent_tools_actor::behavior_type agent_tools::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const tool_question& asked) -> caf::result<tool_answer> {
      if (!config_.context->problems.contains(asked.problem))
        return to_error(
          {errc::not_found, fmt::format("the run has no problem '{}'", asked.problem)});
      if (waiting_.size() >= config_.waiting_max)
        return to_error(
          {errc::queue_full, fmt::format("{} questions wait already", waiting_.size())});
      auto work = std::make_shared<question>();
      work->asked = asked;
      work->reply = make_response_promise<tool_answer>();
      waiting_.push_back(work);
      serve();
      return work->reply;
    },
    [this](const peer_restarted& peer, const caf::strong_actor_ptr& handle) {
      if (peer.which == role::compiler)
        config_.compiler = caf::actor_cast<compiler_actor>(handle);
    },
  };
}

void agent_tools::serve() {
  while (running_.size() < config_.slots && !waiting_.empty()) {
    auto work = waiting_.front();
    waiting_.pop_front();
    running_.push_back(work);
    compile(work);
  }
}

void agent_tools::answer(const question_ptr& work, tool_answer what) {
  what.what = work->asked.what;
  std::erase(running_, work);
  work->reply.deliver(std::move(what));
  serve();
}

void agent_tools::fail_question(const question_ptr& work, const failure& why) {
  std::erase(running_, work);
  work->reply.deliver(to_error(why));
  serve();
}

void agent_tools::compile(const question_ptr& work) {
  const attempt_id id{work->asked.problem, no_attempt, next_++};
  work->measure.attempt = id;
  work->measure.candidate = work->asked.candidate;
  work->measure.workloads = work->asked.workloads;
  seam::ask(this, config_.compiler,
    compile_request{id, work->asked.candidate, config_.context->device_model})
    .then(
      [this, work](const compiled_candidate& compiled) {
        bool refused = compiled.status != verdict_status::passed;
        if (compiled.status == verdict_status::infrastructure) {
          fail_question(work, {errc::child_failed, "compiler: " + compiled.log});
        } else if (refused || work->asked.what == agent_tool::compile) {
          auto source = config_.context->blobs->get(work->asked.candidate.source);
          answer(work, answer_of_compile(compiled, source.value_or(std::string{})));
        } else {
          work->measure.units = compiled.units;
          emulate(work);
        }
      },
      [this, work](const caf::error& error) { fail_question(work, from_error(system(), error)); });
}

void agent_tools::emulate(const question_ptr& work) {
  if (config_.context->measured) {
    // The sets of such a run have the true sizes, which an interpreter does not come to the end of.
    fail_question(work,
      {errc::unsupported,
        "this run is on a real GPU, where only `compile` answers; hand the candidate in"});
    return;
  }
  auto run =
    build_run_job(*config_.context, work->measure, "mock:" + config_.context->device_model);
  if (!run) {
    fail_question(work, run.error());
    return;
  }
  if (work->asked.what == agent_tool::check)
    for (auto& w : run->workloads) {
      w.has_clock = false;
      w.clock = {};
    }
  job what;
  what.kind = job_kind::run;
  what.run = std::move(*run);
  // As a judge: at most one a core, and never in the place of a lease's runner.
  auto child = make_child_job(
    *config_.context, child_profile::judge, "gristmill-runner", std::move(what), config_.deadline);
  if (!child) {
    fail_question(work, child.error());
    return;
  }
  work->outputs = std::make_shared<job_directory>(std::move(child->folder));
  work->child = child->request.id;
  seam::ask(this, config_.child_front, child->request)
    .then(
      [this, work, nonce = child->request.nonce](const child_result& ended) {
        work->child = 0;
        auto said = ended.end == child_end::done
          ? read_run_answers(ended.lines, nonce)
          : result<run_answers>{fail(errc::child_failed, describe_end("runner", ended))};
        if (!said) {
          fail_question(work, {errc::child_failed, said.error().what});
          return;
        }
        auto& measured = work->measured;
        measured.attempt = work->measure.attempt;
        measured.origin = time_origin::modelled;
        measured.workloads = std::move(said->workloads);
        measured.findings = std::move(said->findings);
        measured.output_folder = work->outputs->path();
        if (work->asked.what == agent_tool::emulate)
          profile(work);
        else
          judge(work);
      },
      [this, work](const caf::error& error) {
        work->child = 0;
        fail_question(work, from_error(system(), error));
      });
}

void agent_tools::profile(const question_ptr& work) {
  const auto& context = *config_.context;
  const auto& ran = work->measured.workloads;
  auto slowest = std::max_element(
    ran.begin(), ran.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  auto without = [this, work] {
    answer(work, answer_of_emulation(*config_.context, work->measured, nullptr, {}));
  };
  auto source = context.blobs->get(work->asked.candidate.source);
  auto plan = context.blobs->get(work->asked.candidate.plan);
  auto id = context.child_ids->fetch_add(1);
  auto made = job_directory::create(context.jobs().string(), fmt::format("emulate-{}", id));
  if (slowest == ran.end() || slowest->time_ns == 0 || !source || !plan || !made)
    return without();
  auto folder = std::make_shared<job_directory>(std::move(*made));
  const auto& of = context.problems.at(work->asked.problem);
  std::error_code error;
  std::filesystem::create_directory(folder->file("problem"), error);
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"kernel.cu", *source},
         {"plan.json", *plan}, {"problem/definition.json", of.definition_text},
         {"problem/workload.jsonl", of.workload_text}})
    if (!folder->write(name, text))
      return without();
  child_request child;
  child.id = id;
  child.profile = child_profile::judge;
  child.argv = {"gristmill-emulate", folder->file("kernel.cu"), folder->file("plan.json"),
    "--problem", folder->file("problem"), "--workload", slowest->uuid, "--check", "none",
    "--device", context.device_model, "--toolchain", config_.toolchain, "--json"};
  child.job_directory = folder->path();
  child.nonce = "it says nothing on descriptor 3";
  child.deadline = config_.deadline;
  work->child = id;
  seam::ask(this, config_.child_front, child)
    .then(
      [this, work, folder, uuid = slowest->uuid](const child_result& ended) {
        work->child = 0;
        // Our own program and its one document; what the kernel prints is quoted in it.
        answer(
          work, answer_of_emulation(*config_.context, work->measured, profile_in(ended.log), uuid));
      },
      [this, work, folder, without](const caf::error&) {
        work->child = 0;
        without(); // The times are known all the same.
      });
}

void agent_tools::judge(const question_ptr& work) {
  const auto& of = config_.context->problems.at(work->asked.problem);
  auto judged = build_judge_job(*config_.context,
    {work->measure.attempt, attempt_kind::search, work->asked.candidate, attempt_effort::full,
      work->asked.workloads, work->measured, measure_purpose::screen, {}, {}});
  if (!judged) {
    fail_question(work, judged.error());
    return;
  }
  if (judged->workloads.empty()) { // Nothing ran to its end: nothing to compare.
    answer(work, answer_of_check(*config_.context, of, work->measured, {}));
    return;
  }
  job what;
  what.kind = job_kind::judge;
  what.judge = std::move(*judged);
  auto child = make_child_job(
    *config_.context, child_profile::judge, "gristmill-judge", std::move(what), config_.deadline);
  if (!child) {
    fail_question(work, child.error());
    return;
  }
  work->child = child->request.id;
  auto folder = std::make_shared<job_directory>(std::move(child->folder));
  seam::ask(this, config_.child_front, child->request)
    .then(
      [this, work, folder, &of, nonce = child->request.nonce](const child_result& ended) {
        work->child = 0;
        auto counts = read_judge_result(ended, nonce);
        if (counts)
          answer(work, answer_of_check(*config_.context, of, work->measured, *counts));
        else
          fail_question(work, counts.error());
      },
      [this, work, folder](const caf::error& error) {
        work->child = 0;
        fail_question(work, from_error(system(), error));
      });
}

} // namespace gristmill
