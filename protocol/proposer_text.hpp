#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Who has the ideas of a worker.
enum class proposer_kind : uint8_t {
  template_search = 0,
  random,
  exhaustive,
  scripted,
  sleep,
  /// A conversation with a language model.
  llm,
  /// The same, from a cassette.
  replay,
  /// A coding agent: any command line.
  command,
};

std::string to_string(proposer_kind kind);

struct proposer_choice {
  proposer_kind kind = proposer_kind::template_search;
  /// Of `command`: the command line.
  std::string command;
  /// Its part of the workers.
  uint32_t share = 1;

  bool asks_models() const { return kind == proposer_kind::llm || kind == proposer_kind::replay; }
  friend bool operator==(const proposer_choice&, const proposer_choice&) = default;
};

/// "llm", "template", …, "command: CMD", or "mixed(llm=3, template=1, 'command: CMD'=1)". At least
/// one choice; `invalid_input` names the nearest word. Nothing nests, and neither scripted nor
/// sleep mixes.
result<std::vector<proposer_choice>> parse_proposer(std::string_view text);

/// Which choice a worker gets: by share, evenly spread, the same for equal arguments.
const proposer_choice& proposer_of_worker(const std::vector<proposer_choice>& mix, uint32_t worker);

/// Whether some worker asks a language model.
bool asks_models(const std::vector<proposer_choice>& mix);

} // namespace gristmill
