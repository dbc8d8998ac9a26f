#pragma once

#include "cli/commands.hpp"
#include "protocol/convert.hpp"

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// One thing that a reader says about a file, in its parts.
struct reader_message {
  std::string file;
  /// From 1; 0 when the message is about the file as a whole.
  size_t line = 0;
  /// "inputs.x.dtype", or empty.
  std::string field;
  /// What is wrong, and the nearest valid choice.
  std::string rule;

  /// "file:line: field: rule".
  std::string text() const;
};

/// The messages in a failure or warning about a file, one for each line of the text.
std::vector<reader_message> split_messages(std::string_view text, const std::string& file);

/// What a check found out about one path that the user named, or one below it.
struct checked_path {
  std::string path;
  /// "problem", "definition", "workloads", "solution" or "traces".
  std::string kind;
  std::vector<reader_message> errors;
  std::vector<reader_message> warnings;
  /// For a person: "14 workloads".
  std::string summary;
  /// For a program: the same facts by name.
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();

  void refuse(const failure& why, const std::string& file);
  /// The texts that a reader gave, each with the name of the file in front.
  void warn(const std::vector<std::string>& texts, const std::string& file);
};

/// One line a path on stdout, errors and warnings on stderr; or all of it as one JSON document on
/// stdout. Answers `usage` when a path was refused.
exit_code print_checked(const std::vector<checked_path>& all, bool json);

/// One of them as JSON.
nlohmann::ordered_json checked_to_json(const checked_path& checked);

/// JSON with two blanks of indentation, whatever bytes are in it.
void print_json(const nlohmann::ordered_json& document);

/// A text of a file as it may go to a terminal: control characters but newlines are escaped.
std::string printable(std::string_view text);

/// Why that path cannot be read as a document, before it is: missing (names the nearest
/// neighbour), a folder (names the files in it that would do, those that end in `ending`), a
/// device, or binary. Nothing when it can.
std::optional<failure> unreadable(const std::filesystem::path& path, std::string_view ending);

/// For a file that was refused: when its keys are those of another kind of document, all messages
/// give way to one that names the right verb.
void hint_other_kind(std::string_view text, document_kind expected, checked_path& refused);

/// A path that does not exist, with the nearest name where the first wrong component is.
failure missing_path(const std::filesystem::path& path);

} // namespace gristmill
