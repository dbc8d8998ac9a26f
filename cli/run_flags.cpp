#include "cli/verb.hpp"
#include "cli/whole_number.hpp"
#include "gpu/lease/policy.hpp"
#include "planning/allocation/allocation_text.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

namespace gristmill {

namespace {

/// Values of the flags of `run`; what was not given stays empty, so that the layers below show.
struct run_flags {
  run_settings given;
  // As texts: CLI11 takes a number that is too large, or negative, for another one.
  std::string workers;
  std::string rounds;
  std::string check_elements;
  std::string samples;
  std::string seed;
  std::string config;
  bool json = false;
  bool keep_going = false;
  bool allow_unpriced = false;
  bool dry_run = false;
};

void add_models(CLI::App& app, run_flags& flags) {
  auto& s = flags.given;
  app.add_option("--model-endpoint", s.model_endpoint, "a model server: http://127.0.0.1:8080/v1");
  app.add_option("--model", s.model, "the model, as its server calls it");
  app.add_option("--model-dialect", s.model_dialect,
    "openai-chat, openai-responses or anthropic-messages; default: by the endpoint");
  app.add_option("--model-key-env", s.model_key_env,
    "name of the environment variable that holds the key; a key itself is never given");
  app.add_option("--models", s.models, "a TOML file of models and their roles (docs/models.md)");
  app.add_flag("--allow-unpriced", flags.allow_unpriced, "use models whose price is not known");
  app.add_flag(
    "--dry-run", flags.dry_run, "tell the worst case of the run in calls, tokens and USD");
  app.add_option("--problem-budget", s.problem_budget, "as --budget, for each problem")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app.add_option("--agent-budget", s.agent_budget, "as --budget, for each worker")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app.add_option(
    "--cassette", s.cassette, "record=FILE or replay=FILE; default: recorded in the run directory");
  app.add_option("--program", s.program, "the protocol file; default: the one that comes along");
  app.add_option("--docs", s.docs, "a folder of documentation that models may search");
}

/// "fifo: …" a line for each policy or rule, with its parameters.
template <class Catalogue>
std::string catalogue_text(const Catalogue& all) {
  std::string out;
  for (const auto& policy : all) {
    out += "  " + policy.name;
    for (size_t i = 0; i < policy.parameters.size(); ++i) {
      const auto& p = policy.parameters[i];
      out += (i == 0 ? "(" : ", ") + p.name;
      if (!p.fallback.empty())
        out += "=" + p.fallback;
    }
    if constexpr (requires { policy.has_inner; })
      out += policy.has_inner ? ", RULE" : "";
    out += (policy.parameters.empty() ? "" : ")") + std::string(": ") + policy.what + "\n";
  }
  return out;
}

void add_run(CLI::App& app, run_flags& flags) {
  auto& s = flags.given;
  app.add_option("problem", s.problems,
    "names of built-in problems or folders in SOL-ExecBench form; the one word \"built-in\" takes "
    "all "
    "built-in ones; default: three of them");
  app.add_flag("--keep-going", flags.keep_going,
    "go on without problems that cannot be loaded; the exit code is 1 then");
  app.add_option("--gpus", s.gpus,
    "mock:MODEL[:COUNT], cuda:N, cuda:all, cuda:GPU-UUID or sleep:TIME:COUNT, several with commas; "
    "nodes:mock:MODEL, nodes:cuda:MODEL or nodes:sleep:TIME: only those of nodes that join");
  app.add_option("--workers", flags.workers, "agents that work at once");
  app
    .add_option("--budget", s.budget,
      "10m, 500attempts, 600gpu-s, 5usd, 2000000tokens or 1000calls; once for each kind")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app.add_option("--seed", flags.seed, "makes inputs and search repeatable");
  app.add_option("--out", s.out, "the run directory; default: runs/<time>-<name>");
  app.add_flag("--json", flags.json, "the table as JSON");
  app.add_option("--proposer", s.proposer,
    "template, random, exhaustive, scripted, sleep, llm, replay, 'command: CMD' or "
    "'mixed(llm=3, template=1)'");
  app.add_option("--candidate", s.candidates, "[PROBLEM=]FILE.cu with FILE.plan.json beside it")
    ->expected(1)
    ->allow_extra_args(false)
    ->take_all();
  app.add_option("--bounds", s.bounds, "baselines and floors from a file");
  app.add_option("--oracle", s.oracle, "auto, native or torch");
  app.add_option("--python", s.python, "interpreter of the torch oracle");
  app.add_option("--toolchain", s.toolchain, "auto, nvrtc or clang");
  app.add_option("--lease-policy", s.lease_policy,
    "who gets a free GPU: one policy, or a tree such as 'stride(by=problem)/fifo' "
    "(docs/lease-policies.md)\n"
      + catalogue_text(policy_catalogue()));
  app.add_option("--planner", s.planner,
    "which problem gets the next attempt: one rule, or one within others such as "
    "'gate(0.05, floor(0.5, ucb))' (docs/planner.md)\n"
      + catalogue_text(allocation_catalogue()));
  app.add_option("--rounds", flags.rounds, "sets of inputs that a workload is checked on");
  app.add_option(
    "--check-elements", flags.check_elements, "larger workloads are checked on a smaller twin");
  app.add_option("--promote", s.promote,
    "auto, on or off: held-out inputs and a comparison with the incumbent before a candidate "
    "leads");
  app.add_option("--samples", flags.samples, "samples of a timing on a real GPU");
  app.add_option("--flush", s.flush, "what L2 holds before each timed call: official or clean");
  app.add_option("--listen", s.listen,
    "ADDR:PORT where machines join this run with 'gristmill node'; port 0 picks one "
    "(docs/cluster.md)");
  app.add_option("--tls", s.tls, "folder with ca.pem, cert.pem and key.pem, for nodes elsewhere");
  app.add_option("--heartbeat", s.heartbeat, "between two signs of life; the same on all nodes");
  app.add_option("--node-timeout", s.node_timeout,
    "a node that is not heard for so long is lost; the same on all nodes");
  add_models(app, flags);
  app.add_option("--config", flags.config, "settings from a TOML file");
}

result<std::string> text_of(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return fail(errc::invalid_input, "--config " + file + ": a folder, where a file is expected");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return fail(errc::not_found, "--config " + file + ": cannot be read");
  return text.str();
}

/// Flag over environment over file over default.
result<run_arguments> layered(const CLI::App& app, const run_flags& flags) {
  run_arguments out;
  out.json = flags.json;
  out.dry_run = flags.dry_run;
  auto& s = out.settings;
  if (!flags.config.empty()) {
    auto text = text_of(flags.config);
    if (!text)
      return pass(text);
    if (auto applied = apply_toml(s, *text, flags.config); !applied)
      return pass(applied);
  }
  if (auto applied = apply_environment(s, [](const char* name) { return std::getenv(name); });
      !applied)
    return pass(applied);
  const auto& g = flags.given;
  auto take = [&app](const char* flag, auto& to, const auto& from) {
    if (app.count(flag) != 0)
      to = from;
  };
  take("problem", s.problems, g.problems);
  if (flags.keep_going)
    s.keep_going = true;
  take("--gpus", s.gpus, g.gpus);
  take("--budget", s.budget, g.budget);
  take("--out", s.out, g.out);
  take("--proposer", s.proposer, g.proposer);
  take("--candidate", s.candidates, g.candidates);
  take("--bounds", s.bounds, g.bounds);
  take("--oracle", s.oracle, g.oracle);
  take("--python", s.python, g.python);
  take("--toolchain", s.toolchain, g.toolchain);
  take("--lease-policy", s.lease_policy, g.lease_policy);
  take("--planner", s.planner, g.planner);
  take("--model-endpoint", s.model_endpoint, g.model_endpoint);
  take("--model", s.model, g.model);
  take("--model-dialect", s.model_dialect, g.model_dialect);
  take("--model-key-env", s.model_key_env, g.model_key_env);
  take("--models", s.models, g.models);
  if (flags.allow_unpriced)
    s.allow_unpriced = true;
  take("--problem-budget", s.problem_budget, g.problem_budget);
  take("--agent-budget", s.agent_budget, g.agent_budget);
  take("--cassette", s.cassette, g.cassette);
  take("--program", s.program, g.program);
  take("--docs", s.docs, g.docs);
  if (app.count("--workers") != 0) {
    auto workers = whole_number("--workers", flags.workers, 0, UINT32_MAX);
    if (!workers)
      return pass(workers);
    if (*workers == 0)
      return fail(errc::invalid_input, "--workers 0: at least one worker is needed");
    s.workers = static_cast<uint32_t>(*workers);
  }
  take("--promote", s.promote, g.promote);
  take("--flush", s.flush, g.flush);
  take("--listen", s.listen, g.listen);
  take("--tls", s.tls, g.tls);
  take("--heartbeat", s.heartbeat, g.heartbeat);
  take("--node-timeout", s.node_timeout, g.node_timeout);
  const auto take_number = [&app](const char* flag, const std::string& text, uint64_t most,
                             auto& to) -> result<void> {
    if (app.count(flag) == 0)
      return {};
    auto value = whole_number(flag, text, 1, most);
    if (!value)
      return pass(value);
    using number = std::remove_reference_t<decltype(to)>;
    to = static_cast<number>(*value);
    return {};
  };
  for (auto taken : {take_number("--rounds", flags.rounds, 100, s.rounds),
         take_number("--samples", flags.samples, 10'000, s.samples)})
    if (!taken)
      return pass(taken);
  if (app.count("--check-elements") != 0) {
    auto elements = whole_number("--check-elements", flags.check_elements, 1, UINT64_MAX);
    if (!elements)
      return pass(elements);
    s.check_elements = *elements;
  }
  if (app.count("--seed") != 0) {
    auto seed = whole_number("--seed", flags.seed, 0, UINT64_MAX);
    if (!seed)
      return pass(seed);
    s.seed = *seed;
  }
  return out;
}

} // namespace

void add_run_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand("run", "the main job: find correct, faster kernels");
  auto flags = std::make_shared<run_flags>();
  add_run(*app, *flags);
  all.push_back({app, [app, flags] {
                   auto arguments = layered(*app, *flags);
                   return arguments ? run_command(*arguments) : complain(arguments.error());
                 }});
}

} // namespace gristmill
