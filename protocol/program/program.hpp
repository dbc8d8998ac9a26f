#pragma once

#include "messages/result.hpp"
#include "protocol/program/program_rules.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A way to make a kernel faster, with an example that compiles and runs.
struct strategy_card {
  /// The title in lower case with hyphens: "cp-async-pipeline". What history tables and replies
  /// call it.
  std::string id;
  std::string title;
  /// When it applies: the paragraph that begins with "When:".
  std::string when;
  /// The other paragraphs, as Markdown.
  std::string text;
  /// Of the example: "cuda" or "cute_dsl".
  std::string language = "cuda";
  std::string source;
  std::string plan;
  /// What the example solves (the line "Problem: `name`"): a built-in problem, or a folder of
  /// tests/corpus/strategy_cards.
  std::string problem;
  size_t line = 0;
  /// Why the card is not offered: its example breaks a rule of the file. Empty when it is offered.
  std::string withheld;
};

/// A sentence of the file that no typed rule stands behind: read by the model, enforced by nobody.
struct advisory_sentence {
  size_t line = 0;
  std::string section;
  std::string text;
};

/// A protocol file: one Markdown text with typed front matter and fixed sections, from which every
/// prompt is rendered (docs/program.md).
struct protocol_program {
  std::string file_name;
  std::string name;
  program_rules rules;
  /// Markdown of the sections, without their headings.
  std::string goal;
  std::string hardware;
  std::string contract;
  std::string allowed;
  std::string forbidden;
  std::string feedback;
  /// What stands before the first card.
  std::string cards_preface;
  std::vector<strategy_card> cards;
  std::string tests;
  std::string stop;
  std::vector<advisory_sentence> advisory;
  /// The bytes as read. Their SHA-256 stamps results; whoever stores results computes it.
  std::string text;

  /// Null when there is none of that id.
  const strategy_card* find_card(std::string_view id) const;
};

/// Most bytes of a protocol file.
constexpr size_t program_bytes_max = size_t{1} << 20;

/// Reads a protocol file. `invalid_input` says file, line, field and cure; all errors of the front
/// matter come in one message, a line each. The rules are checked against each other as well: two
/// that contradict, or one that can never matter, are errors.
result<protocol_program> parse_program(std::string_view text, const std::string& file_name);

/// The same from a file; `not_found` when there is none.
result<protocol_program> load_program(const std::filesystem::path& path);

/// The file that comes with the program, `protocol/program.md`.
std::string_view default_program_text();

/// The same, parsed.
const protocol_program& default_program();

} // namespace gristmill
