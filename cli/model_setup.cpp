#include "cli/model_setup.hpp"

#include "actors/llm_gateway.hpp"
#include "journal/hash.hpp"
#include "llm/cassette/cassette.hpp"
#include "llm/dialects/dialect.hpp"
#include "llm/money/dry_run.hpp"
#include "llm/transport/curl_port.hpp"
#include "llm/transport/key.hpp"
#include "protocol/budget.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace gristmill {

namespace {

/// "record=FILE" or "replay=FILE".
result<cassette_setting> parse_cassette(const std::string& text) {
  cassette_setting out;
  if (text.empty())
    return out;
  auto equals = text.find('=');
  auto word = text.substr(0, equals);
  if (word != "record" && word != "replay")
    return fail(errc::invalid_input,
      "--cassette " + text + ": must be record=FILE or replay=FILE"
        + suggestion(word, {"record", "replay"}));
  out.replay = word == "replay";
  out.file = equals == std::string::npos ? std::string{} : text.substr(equals + 1);
  if (out.file.empty())
    return fail(errc::invalid_input, "--cassette " + text + ": the file is missing");
  std::error_code error;
  if (out.replay && !std::filesystem::is_regular_file(out.file, error))
    return fail(errc::invalid_input, "--cassette " + text + ": no such file");
  return out;
}

budget_limits limits_of(const budget& given) {
  return {given.nano_usd, given.tokens, given.calls, given.gpu_ns, given.attempts};
}

result<nested_budget::limits> read_limits(const run_settings& s) {
  nested_budget::limits out;
  auto run = parse_budget(s.budget);
  auto problem = parse_share_budget(s.problem_budget, "--problem-budget");
  auto agent = parse_share_budget(s.agent_budget, "--agent-budget");
  for (const auto* one : {&run, &problem, &agent})
    if (!*one)
      return pass(*one);
  out.run = limits_of(*run);
  out.each_problem = limits_of(*problem);
  out.each_agent = limits_of(*agent);
  return out;
}

/// What a flag means that goes with another one.
result<void> check_flags(const run_settings& s, const std::vector<proposer_choice>& mix,
  const cassette_setting& cassette) {
  if (!s.models.empty() && (!s.model_endpoint.empty() || !s.model.empty()))
    return fail(errc::invalid_input,
      "--models " + s.models
        + ": a file of models and --model-endpoint or --model exclude each other");
  if (s.model_endpoint.empty() != s.model.empty())
    return fail(errc::invalid_input,
      s.model.empty() ? "--model-endpoint " + s.model_endpoint + ": --model NAME is missing"
                      : "--model " + s.model + ": --model-endpoint URL is missing");
  const bool replays = std::any_of(mix.begin(), mix.end(),
    [](const proposer_choice& c) { return c.kind == proposer_kind::replay; });
  if (replays && !cassette.replay)
    return fail(errc::invalid_input,
      "--proposer " + s.proposer + ": needs the cassette that it replays: --cassette replay=FILE");
  if (asks_models(mix) && s.models.empty() && s.model.empty())
    return fail(errc::invalid_input,
      "--proposer " + s.proposer
        + ": needs --model-endpoint URL and --model NAME, or --models FILE.toml");
  return {};
}

result<model_file> read_models(const run_settings& s) {
  if (s.models.empty())
    return model_file_from_flags(
      s.model_endpoint, s.model, s.model_dialect, s.model_key_env, known_dialects());
  auto file = load_model_file(s.models, known_dialects());
  if (!file)
    return fail(errc::invalid_input, "--models: " + file.error().what);
  return file;
}

std::filesystem::path cassette_file(const model_setup& models, const gateway_start& start) {
  return models.cassette.file.empty() ? start.run_directory / "llm" / "cassette.jsonl"
                                      : std::filesystem::path(models.cassette.file);
}

/// The most bytes that a prompt can have, which bounds its tokens.
uint64_t prompt_bytes_max(const protocol_program& program) {
  const auto& rules = program.rules;
  uint64_t tools = 0;
  for (const auto& tool : rules.tools)
    tools += tool.calls_max;
  // The problem, its reference, the best, the parent, and a card.
  const uint64_t sections = 5 + rules.inspirations + tools;
  return program.text.size() + sections * rules.section_bytes + rules.feedback_bytes
    + uint64_t{512} * (rules.history_rows + rules.insight_lines + rules.notes);
}

result<std::unique_ptr<http_port>> make_port(
  const model_setup& models, const gateway_start& start, http_sink sink) {
  const auto file = cassette_file(models, start);
  if (models.cassette.replay) {
    replay_options options;
    options.file = file;
    options.secret_environment = key_variables(models.models);
    options.on_miss = start.on_miss;
    return make_replay_port(std::move(options), std::move(sink));
  }
  recording_options options;
  options.file = file;
  options.secret_environment = key_variables(models.models);
  options.on_failure = [](const std::string& why) {
    spdlog::warn("the calls of models are recorded no more: {}", why);
  };
  // A resumed run sends what it asks: an answer from the tape would be counted in the books again.
  options.answer_known = false;
  curl_port_options transport;
  // Each server's own: what one may do without TLS, or who vouches for it, is no rule for another.
  for (const auto& d : models.models.deployments)
    transport.servers.push_back({d.endpoint, d.ca_file, d.allow_plain_http});
  auto real = [transport](http_sink to) { return make_curl_port(transport, std::move(to)); };
  return start.resumed ? make_append_port(std::move(options), real, std::move(sink))
                       : make_recording_port(std::move(options), real, std::move(sink));
}

/// Fails every call with the reason why there is no transport.
class no_port final : public http_port {
public:
  no_port(http_sink sink, std::string why) : sink_(std::move(sink)), why_(std::move(why)) {}
  void start(http_call call) override {
    http_report over;
    over.id = call.id;
    over.ended = true;
    over.how = http_end::not_sent;
    over.why = why_;
    sink_(std::move(over));
  }
  void cancel(uint64_t) override {}
  void finished(uint64_t) override {}

private:
  http_sink sink_;
  std::string why_;
};

llm_gateway_config gateway_config_of(const model_setup& models, const gateway_start& start) {
  llm_gateway_config out;
  out.core.models = models.models;
  out.core.limits = models.limits;
  // Attempts and time under lease are the planner's to count.
  for (auto* limits :
    {&out.core.limits.run, &out.core.limits.each_problem, &out.core.limits.each_agent}) {
    limits->gpu_ns.reset();
    limits->attempts.reset();
  }
  out.core.allow_unpriced = models.allow_unpriced;
  out.core.seed = start.seed;
  out.core.spent_before = models.spent_before;
  out.utc = [] {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  };
  return out;
}

} // namespace

result<model_setup> make_model_setup(
  const run_settings& settings, const std::vector<proposer_choice>& mix) {
  model_setup out;
  out.asks = asks_models(mix);
  out.allow_unpriced = settings.allow_unpriced;
  auto cassette = parse_cassette(settings.cassette);
  if (!cassette)
    return pass(cassette);
  out.cassette = *cassette;
  auto limits = read_limits(settings);
  if (!limits)
    return pass(limits);
  out.limits = *limits;
  if (auto fine = check_flags(settings, mix, out.cassette); !fine)
    return pass(fine);
  const bool told_rules = out.asks || std::any_of(mix.begin(), mix.end(), [](const auto& choice) {
    return choice.kind == proposer_kind::command;
  });
  if (told_rules || !settings.program.empty()) {
    auto program = settings.program.empty() ? result<protocol_program>(default_program())
                                            : load_program(settings.program);
    if (!program)
      return fail(errc::invalid_input, "--program: " + program.error().what);
    out.program_sha256 = sha256_hex(program->text);
    out.program = std::make_shared<const protocol_program>(std::move(*program));
  }
  if (!settings.docs.empty()) {
    auto docs = docs_index::read(settings.docs);
    if (!docs)
      return fail(errc::invalid_input, "--docs " + settings.docs + ": " + docs.error().what);
    for (const auto& left_out : docs->left_out())
      spdlog::warn("--docs {}: left out: {}", settings.docs, left_out);
    out.docs = std::make_shared<const docs_index>(std::move(*docs));
  }
  if (!out.asks)
    return out;
  auto models = read_models(settings);
  if (!models)
    return pass(models);
  out.models = std::move(*models);
  const auto cap = out.program->rules.output_tokens_max;
  for (const auto& role : model_roles()) {
    const auto& places = out.models.role(role);
    if (std::none_of(places.begin(), places.end(),
          [&](size_t p) { return out.models.deployments[p].output_tokens_max >= cap; }))
      return fail(errc::invalid_input,
        fmt::format("--models: no deployment of the role '{}' writes {} tokens, which the program "
                    "asks for (turn.output_tokens_max): raise output_tokens_max of '{}', or give a "
                    "--program with less",
          role, cap, out.models.deployments[places.front()].name));
  }
  if (auto fine = check_gateway(gateway_config_of(out, {})); !fine)
    return pass(fine);
  return out;
}

result<void> check_keys(const model_setup& models) {
  if (!models.asks || models.cassette.replay)
    return {};
  for (const auto& variable : key_variables(models.models))
    if (auto key = read_key(variable); !key)
      return fail(errc::invalid_input, key.error().what);
  return {};
}

result<std::string> dry_run_text(
  const model_setup& models, uint64_t attempts, uint64_t problems, uint64_t workers) {
  if (!models.asks)
    return fail(errc::invalid_input, "--dry-run: the run asks no model, so it costs nothing");
  const auto& rules = models.program->rules;
  dry_run_settings settings;
  settings.limits = models.limits;
  settings.problems = problems;
  settings.agents = workers;
  settings.allow_unpriced = models.allow_unpriced;
  uint64_t tools = 0;
  for (const auto& tool : rules.tools)
    tools += tool.calls_max;
  auto role = [&](const char* name, uint64_t calls_per_attempt) {
    dry_run_role out;
    out.role = name;
    if (attempts > 0)
      out.calls = attempts * calls_per_attempt;
    out.prompt_tokens_max = prompt_bytes_max(*models.program);
    out.output_tokens_max = rules.output_tokens_max;
    settings.roles.push_back(out);
  };
  // The first question, one after a refusal, one in short, one after a tool that was turned down,
  // and one after each answer of a tool.
  role("propose", 4 + tools);
  role("repair", rules.format_repairs);
  role("reflect", 2);
  auto table = worst_case_cost(models.models, settings);
  if (!table)
    return pass(table);
  return table->text();
}

result<void> check_cassette(const model_setup& models, const gateway_start& start) {
  if (!models.asks)
    return {};
  if (!models.cassette.replay) {
    auto folder = cassette_file(models, start).parent_path();
    std::error_code error;
    if (!folder.empty())
      std::filesystem::create_directories(folder, error);
    if (error)
      return fail(errc::io_failed, folder.string() + ": " + error.message());
    const auto file = cassette_file(models, start);
    if (!start.resumed && std::filesystem::exists(file, error)
      && std::filesystem::file_size(file, error) > 0)
      return fail(errc::invalid_input,
        "--cassette record=" + file.string() + ": is there already, and nothing is overwritten");
    return {};
  }
  auto port = make_port(models, start, [](const http_report&) {});
  return port ? result<void>{} : result<void>{pass(port)};
}

llm_gateway_actor make_gateway(caf::actor_system& system, const run_peers& peers,
  const model_setup& models, const gateway_start& start) {
  if (auto safe = forbid_core_files(); !safe)
    spdlog::warn("a crash may leave keys in a core file: {}", safe.error().what);
  auto config = gateway_config_of(models, start);
  config.events = peers.events;
  config.make_port = [models, start](http_sink sink) -> std::unique_ptr<http_port> {
    auto port = make_port(models, start, sink);
    if (port)
      return std::move(*port);
    // Checked before the run began; something has changed since.
    spdlog::error("{}", port.error().what);
    return std::make_unique<no_port>(std::move(sink), port.error().what);
  };
  config.on_stop = [end = models.end, tell = start.on_stop](const failure& why) {
    end->closed = true;
    if (why.code == errc::provider_refused)
      end->refused = true;
    if (tell)
      tell(why);
  };
  return system.spawn<llm_gateway>(std::move(config));
}

} // namespace gristmill
