#pragma once

#include "actors/llm_gateway.hpp"
#include "actors/supervisor.hpp"
#include "llm/traffic/gateway_core.hpp"
#include "messages/event.hpp"
#include "messages/result.hpp"
#include "planning/nested_budget.hpp"
#include "protocol/docs_search.hpp"
#include "protocol/model_file.hpp"
#include "protocol/program/program.hpp"
#include "protocol/proposer_text.hpp"
#include "protocol/run_settings.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gristmill {

/// Where the calls of models are written to, or read from instead of being made.
struct cassette_setting {
  bool replay = false;
  /// Empty: recorded in the run directory.
  std::string file;
};

/// What the models of a run have come to; written by the gateway's thread.
struct model_end {
  /// Nothing can be asked any more.
  std::atomic<bool> closed = false;
  /// A provider refuses: key, quota, unknown model.
  std::atomic<bool> refused = false;
};

/// What the settings of models come to. In a run that asks no model only `program` is there, and
/// only when somebody reads it.
struct model_setup {
  bool asks = false;
  model_file models;
  nested_budget::limits limits;
  bool allow_unpriced = false;
  cassette_setting cassette;
  /// For every proposer that is told the rules; null for the others.
  std::shared_ptr<const protocol_program> program;
  /// Of its text; empty without one.
  std::string program_sha256;
  /// Null without --docs.
  std::shared_ptr<const docs_index> docs;
  /// Of a run that goes on.
  std::vector<spending> spent_before;
  std::shared_ptr<model_end> end = std::make_shared<model_end>();
};

/// Reads files of models, program and documentation, and checks what can be checked without
/// asking anybody. `invalid_input` names the flag and the nearest valid choice.
result<model_setup> make_model_setup(
  const run_settings& settings, const std::vector<proposer_choice>& mix);

/// Keys that are named and not set; to be called before a run that asks. A replay needs none.
result<void> check_keys(const model_setup& models);

/// What `--dry-run` prints: the worst case in calls, tokens and USD. `invalid_input` for a run
/// without models, and where nothing limits the money.
result<std::string> dry_run_text(
  const model_setup& models, uint64_t attempts, uint64_t problems, uint64_t workers);

/// What a start of the gateway needs besides.
struct gateway_start {
  uint64_t seed = 0;
  std::filesystem::path run_directory;
  /// The run goes on: its cassette is added to.
  bool resumed = false;
  /// Called once nothing can be asked any more, and once the run's budget did not hold a call.
  std::function<void(const failure&)> on_stop;
  /// The run cannot be replayed.
  std::function<void(std::string)> on_miss;
};

/// Makes the gateway of a run: with the real transport and a recorder in front of it, or with a
/// cassette. `io_failed` and `invalid_input` of the cassette. Null transport never: what cannot be
/// made ends the run before it begins, so this is called twice, first with `probe`.
llm_gateway_actor make_gateway(caf::actor_system& system, const run_peers& peers,
  const model_setup& models, const gateway_start& start);

/// Whether the cassette can be written or read; makes its folder.
result<void> check_cassette(const model_setup& models, const gateway_start& start);

} // namespace gristmill
