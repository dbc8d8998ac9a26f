#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// What a run is asked to do, as texts and numbers, before anything is looked up. A flag wins over
/// the environment, that over the configuration file, that over the defaults here.
struct run_settings {
  std::vector<std::string> problems;
  /// Problems that cannot be loaded are told and left out; else they end the command.
  bool keep_going = false;
  std::string gpus = "mock:h200:2";
  /// 0: chosen from the number of GPUs.
  uint32_t workers = 0;
  /// Empty: the default budget.
  std::vector<std::string> budget;
  std::optional<uint64_t> seed;
  /// The run directory, which must not exist; empty: `runs/<utc>-<name>`.
  std::string out;
  std::string proposer = "template";
  /// "FILE.cu" or "PROBLEM=FILE.cu".
  std::vector<std::string> candidates;
  std::string bounds;
  std::string toolchain = "auto";
  std::string lease_policy = "stride";
  /// Which problem gets the next attempt.
  std::string planner = "equal";
  std::string oracle = "auto";
  std::string python = "/usr/bin/python3";

  // How candidates are checked and timed; docs/promotion.md. 0 and "" stand for what fits the kind
  // of device.

  /// Sets of inputs that a workload is checked on.
  uint32_t rounds = 0;
  /// Workloads with more elements are checked on a smaller twin.
  std::optional<uint64_t> check_elements;
  /// Whether a candidate has to pass a promotion before it leads: "auto" (on real devices), "on" or
  /// "off".
  std::string promote = "auto";
  /// Samples of a timing, and what L2 holds before each call: "official" or "clean". Only on real
  /// devices.
  uint32_t samples = 0;
  std::string flush = "official";

  // Many machines; docs/cluster.md.

  /// Where nodes connect to: "ADDR:PORT"; empty: a run of one process.
  std::string listen;
  /// Folder with ca.pem, cert.pem and key.pem; empty: no TLS, on loopback only.
  std::string tls;
  std::string heartbeat = "1s";
  std::string node_timeout = "15s";

  // Language models; docs/agents.md.

  /// One model server, "http://127.0.0.1:8080/v1"; with `model` the short form of a file of models.
  std::string model_endpoint;
  /// Its name there.
  std::string model;
  /// Empty: found out from the endpoint.
  std::string model_dialect;
  /// Name of the environment variable that holds the key; never the key. Empty: no key.
  std::string model_key_env;
  /// A file of models (protocol/model_file.hpp).
  std::string models;
  /// Go on with models whose price is not in the table.
  bool allow_unpriced = false;
  /// What one problem, and one worker, may use; as `budget`.
  std::vector<std::string> problem_budget;
  std::vector<std::string> agent_budget;
  /// "record=FILE" or "replay=FILE"; empty: recorded in the run directory.
  std::string cassette;
  /// The protocol file; empty: the one that comes with the program.
  std::string program;
  /// Folder of documentation that models can search; empty: none.
  std::string docs;
};

/// Reads `gristmill.toml`:
///
/// ```toml
/// [run]
/// problems = ["softmax"]
/// keep_going = false
/// gpus = "mock:h200:2"
/// workers = 4
/// budget = ["10m", "500attempts"]
/// seed = 1
/// out = "runs/mine"
/// proposer = "template"
/// candidates = ["softmax=mine.cu"]
/// bounds = "bounds.json"
/// toolchain = "auto"
/// lease_policy = "stride"
/// planner = "equal"
/// [oracle]
/// kind = "auto"
/// python = "/usr/bin/python3"
/// [measure]
/// rounds = 10
/// check_elements = 2147483648
/// promote = "auto"
/// samples = 50
/// flush = "official"
/// [cluster]
/// listen = "127.0.0.1:0"
/// tls = "cluster/coordinator"
/// heartbeat = "1s"
/// node_timeout = "15s"
/// [models]
/// endpoint = "http://127.0.0.1:8080/v1"
/// model = "qwen3-coder"
/// dialect = "openai-chat"
/// key_env = "MY_KEY"
/// file = "models.toml"
/// allow_unpriced = false
/// problem_budget = ["2usd"]
/// agent_budget = ["200calls"]
/// cassette = "replay=run.jsonl"
/// program = "program.md"
/// docs = "docs/cute"
/// ```
///
/// A seed of 2^63 or more is written as a string, because TOML has no such number.
///
/// `invalid_input` names file, line and field, and for an unknown key the nearest known one.
/// Nothing is changed then.
result<void> apply_toml(
  run_settings& settings, std::string_view text, const std::string& file_name);

/// `GRISTMILL_KEEP_GOING` (true or false), `GRISTMILL_GPUS`, `GRISTMILL_WORKERS`,
/// `GRISTMILL_BUDGET` (commas between), `GRISTMILL_SEED`, `GRISTMILL_OUT`, `GRISTMILL_PROPOSER`,
/// `GRISTMILL_BOUNDS`, `GRISTMILL_TOOLCHAIN`, `GRISTMILL_LEASE_POLICY`, `GRISTMILL_PLANNER`,
/// `GRISTMILL_ORACLE`, `GRISTMILL_PYTHON`, `GRISTMILL_MODEL_ENDPOINT`, `GRISTMILL_MODEL`,
/// `GRISTMILL_MODEL_DIALECT`, `GRISTMILL_MODEL_KEY_ENV`, `GRISTMILL_MODELS`,
/// `GRISTMILL_ALLOW_UNPRICED`, `GRISTMILL_PROBLEM_BUDGET`, `GRISTMILL_AGENT_BUDGET`,
/// `GRISTMILL_CASSETTE`, `GRISTMILL_PROGRAM`, `GRISTMILL_DOCS`,
/// `GRISTMILL_ROUNDS`, `GRISTMILL_CHECK_ELEMENTS`, `GRISTMILL_PROMOTE`, `GRISTMILL_SAMPLES`,
/// `GRISTMILL_FLUSH`, `GRISTMILL_LISTEN`, `GRISTMILL_TLS`. `lookup` answers null for what is
/// not set.
/// `invalid_input` names the variable.
result<void> apply_environment(
  run_settings& settings, const std::function<const char*(const char*)>& lookup);

/// The resolved settings in the form that `apply_toml` reads.
std::string to_toml(const run_settings& settings);

} // namespace gristmill
