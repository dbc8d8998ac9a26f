#include "actors/llm_proposer.hpp"

#include "actors/candidate.hpp"
#include "actors/device_lines.hpp"
#include "actors/run_events.hpp"
#include "actors/template_proposer.hpp"
#include "llm/mind/problem_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

mind_settings settings_of(const llm_proposer_config& config) {
  mind_settings out;
  out.program = config.mind.program;
  out.book = config.mind.book;
  out.agent = config.agent;
  out.pause_first = config.mind.pause_first;
  out.read = [blobs = config.context->blobs](const blob_ref& what) { return blobs->get(what); };
  auto offer = [&](const char* name, const char* what) {
    if (config.mind.program->rules.find_tool(name) != nullptr)
      out.tools.emplace_back(name, what);
  };
  if (config.compiler)
    offer("compile",
      "compiles the code of the same reply and shows what the compiler says, "
      "resources included; takes no arguments");
  if (config.compiler && config.child_front)
    offer("emulate",
      "runs the code of the same reply on the device model and says where its time "
      "goes; {\"workloads\": [\"UUID\"]} or {} for all");
  if (config.mind.docs)
    offer("docs", "searches the documentation of this run; {\"query\": \"words\"}");
  return out;
}

/// A member of the arguments, which a model wrote: anything else than an object of this form has
/// none.
nlohmann::json member(const std::string& arguments, const char* name) {
  auto parsed = nlohmann::json::parse(arguments, nullptr, false);
  if (!parsed.is_object() || !parsed.contains(name))
    return {};
  return parsed[name];
}

} // namespace

mind_problem describe_problem(
  const run_context& context, const problem& of, const std::string& graph_json) {
  mind_problem out;
  out.text = prompt_problem_of(of);
  out.device = device_lines(context);
  out.operators = operators_of(of);
  if (auto graph = parse_op_graph(graph_json))
    out.structure = structure_of(*graph);
  return out;
}

llm_proposer::llm_proposer(caf::actor_config& actor, llm_proposer_config config)
  : llm_proposer_actor::base(actor), config_(std::move(config)), mind_(settings_of(config_)) {}

void llm_proposer::on_exit() {
  drop("the proposer has ended");
  if (tools_)
    caf::anon_send_exit(tools_, caf::exit_reason::user_shutdown);
  tools_ = nullptr;
  config_.models = nullptr;
  config_.compiler = nullptr;
  config_.child_front = nullptr;
  config_.events.close();
}

llm_proposer_actor::behavior_type llm_proposer::make_behavior() {
  seam::end_on_exception(this);
  return {
    [this](const propose_request& request) -> caf::result<proposal> { return start(request.work); },
    [this](const tick& due) {
      if (due.generation == generation_)
        happened(pause_over{});
    },
  };
}

caf::result<proposal> llm_proposer::start(const assignment& work) {
  drop("another attempt was begun");
  const bool search = config_.mind.search_when_closed && config_.mind.closed->load();
  if (work.given || work.kind == attempt_kind::baseline || search) {
    auto out = propose_for(*config_.context, work, *config_.library, search_strategy::guided);
    if (!out)
      return to_error(out.error());
    return *out;
  }
  if (!config_.context->problems.contains(work.id.problem))
    return to_error({errc::not_found, "no problem is called '" + work.id.problem + "'"});
  work_ = work;
  ++generation_;
  auto promise = make_response_promise<proposal>();
  waiting_ = promise;
  carry_out_all(mind_.begin(problem_of(work), work_));
  return promise;
}

const mind_problem& llm_proposer::problem_of(const assignment& work) {
  auto [at, fresh] = problems_.try_emplace(work.id.problem);
  if (!fresh)
    return at->second;
  const auto& of = config_.context->problems.at(work.id.problem);
  auto graph = config_.context->blobs->get(work.graph);
  at->second = describe_problem(*config_.context, of, graph ? *graph : std::string{});
  return at->second;
}

void llm_proposer::drop(const std::string& why) {
  if (mind_.open_call() != 0 && config_.models)
    caf::anon_send(config_.models, llm_cancel{config_.agent, mind_.open_call()});
  mind_.forget();
  ++generation_;
  if (waiting_)
    waiting_->deliver(to_error({errc::shutting_down, why}));
  waiting_.reset();
}

void llm_proposer::answer(proposal what) {
  if (waiting_)
    waiting_->deliver(std::move(what));
  waiting_.reset();
}

void llm_proposer::happened(const mind_event& what) {
  carry_out_all(mind_.step(what));
}

void llm_proposer::carry_out_all(std::vector<mind_command> todo) {
  for (const auto& command : todo)
    std::visit([this](const auto& c) { carry_out(c); }, command);
}

void llm_proposer::carry_out(const llm_request& command) {
  // An answer to a call that is not open any more changes nothing: the mind knows.
  seam::ask(this, config_.models, command)
    .then([this](const llm_reply& reply) { happened(reply); },
      [this, call = command.call](const caf::error& error) {
        happened(model_failed{call, from_error(system(), error)});
      });
}

void llm_proposer::carry_out(const mind_pause& command) {
  seam::tell_later(this, command.time, llm_proposer_actor{this}, tick{generation_});
}

void llm_proposer::carry_out(const tool_call& command) {
  if (command.what.name == "compile")
    return ask_device_tool(command, agent_tool::compile);
  if (command.what.name == "emulate")
    return ask_device_tool(command, agent_tool::emulate);
  auto query = member(command.what.arguments, "query");
  if (!query.is_string() || !config_.mind.docs)
    return happened(tool_answered{"Write the arguments as {\"query\": \"words to look for\"}.\n"});
  happened(tool_answered{to_text(config_.mind.docs->search(query.get<std::string>()))});
}

void llm_proposer::ask_device_tool(const tool_call& command, agent_tool which) {
  auto candidate = store_candidate(
    *config_.context->blobs, command.source, command.plan, "tool", "", "asked of a tool");
  if (!candidate)
    return happened(tool_answered{candidate.error().what});
  if (!tools_) {
    agent_tools_config config;
    config.context = config_.context;
    config.compiler = config_.compiler;
    config.child_front = config_.child_front;
    config.toolchain = config_.mind.toolchain;
    config.slots = 1;
    tools_ = system().spawn<agent_tools>(std::move(config));
  }
  tool_question question{which, work_.id.problem, *candidate, {}};
  if (auto workloads = member(command.what.arguments, "workloads"); workloads.is_array())
    for (const auto& one : workloads)
      if (one.is_string())
        question.workloads.push_back(one.get<std::string>());
  seam::ask(this, tools_, question)
    .then(
      [this, generation = generation_](const tool_answer& said) {
        if (generation == generation_)
          happened(tool_answered{said.text});
      },
      [this, generation = generation_](const caf::error& error) {
        if (generation == generation_)
          happened(tool_answered{"The tool has no answer: " + from_error(system(), error).what});
      });
}

void llm_proposer::carry_out(const idea& command) {
  auto stored = store_candidate(
    *config_.context->blobs, command.source, command.plan, "", command.parent, command.hypothesis);
  if (!stored) {
    proposal none;
    none.kind = proposal_kind::failed;
    none.reason = stored.error().what;
    return answer(std::move(none));
  }
  proposal out;
  out.kind = proposal_kind::candidate;
  out.candidate = std::move(*stored);
  out.candidate.key = model_key(command.strategy, out.candidate.hash);
  mind_.proposed(out.candidate, command);
  answer(std::move(out));
}

void llm_proposer::carry_out(const no_idea& command) {
  const bool closed =
    command.code == errc::budget_exhausted || command.code == errc::provider_refused;
  if (closed && config_.mind.search_when_closed) {
    spdlog::debug("{} searches on without models: {}", config_.agent, command.reason);
    auto out = propose_for(*config_.context, work_, *config_.library, search_strategy::guided);
    if (out)
      return answer(std::move(*out));
  }
  proposal out;
  // A budget that is gone stays gone, so the problem has nothing more to expect. Where it is this
  // worker's own, others may go on; its pauses keep it from using up their attempts.
  const bool own = command.reason.find("agent '" + config_.agent + "'") != std::string::npos;
  out.kind = closed && !own ? proposal_kind::exhausted : command.kind;
  out.reason = command.reason;
  answer(std::move(out));
}

void llm_proposer::carry_out(const insights_written& command) {
  config_.events.note(this,
    {.kind = "insight",
      .problem = command.problem,
      .attempt = to_string(work_.id),
      .data = text_of({{"agent", config_.agent}, {"lines", command.lines}})});
}

} // namespace gristmill
