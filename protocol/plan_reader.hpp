#pragma once

#include "protocol/json_document.hpp"
#include "protocol/plan.hpp"

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// Turns the JSON of a plan into its structs. The first thing that is wrong is kept and everything
/// after it reads as a default, so that the code below needs no check at every line.
class plan_reader {
public:
  const std::optional<failure>& failed() const { return failed_; }
  void refuse(std::string_view path, const std::string& why);

  plan read(const ordered_json& document);

private:
  // plan.cpp
  plan_options read_options(const ordered_json& from);
  std::vector<plan_scratch> read_scratch(const ordered_json& from);
  plan_tensor_map read_map(
    const std::string& map_name, const ordered_json& from, const std::string& path);
  plan_im2col read_im2col(const ordered_json& from, const std::string& path);
  plan_variant read_variant(const ordered_json& from, const std::string& path, size_t index);
  named_expressions read_defines(const ordered_json& from, const std::string& path);

  // plan_step.cpp
  std::vector<plan_step> read_steps(
    const ordered_json& parent, const std::string& path, size_t depth);
  plan_step read_step(const ordered_json& from, const std::string& path, size_t depth);
  void read_launch(const ordered_json& from, const std::string& path, plan_step& out);
  void read_memset(const ordered_json& from, const std::string& path, plan_step& out);
  void read_copy(const ordered_json& from, const std::string& path, plan_step& out);
  void read_read(const ordered_json& from, const std::string& path, plan_step& out);
  void read_repeat(const ordered_json& from, const std::string& path, size_t depth, plan_step& out);
  plan_argument read_argument(const ordered_json& from, const std::string& path, size_t depth);
  void read_value_argument(const ordered_json& from, const std::string& path, plan_argument& out);

  // plan_reader.cpp: single fields. `use` says whether `occupancy` may stand in an expression.
  enum class use : uint8_t { plain, with_occupancy };
  bool is_object(const ordered_json& from, std::string_view path);
  void known_keys(
    const ordered_json& from, std::string_view path, const std::vector<std::string>& known);
  const ordered_json* member(
    const ordered_json& from, std::string_view path, const char* key, bool required);
  expression to_expression(const ordered_json& from, const std::string& path, use where);
  expression read_expression(const ordered_json& from, std::string_view path, const char* key,
    std::string_view fallback, use where = use::plain);
  std::vector<expression> read_list(const ordered_json& from, std::string_view path,
    const char* key, bool required, use where = use::plain);
  std::array<expression, 3> read_triple(
    const ordered_json& from, std::string_view path, const char* key, use where = use::plain);
  std::string read_text(
    const ordered_json& from, std::string_view path, const char* key, std::string_view fallback);
  std::string read_choice(const ordered_json& from, std::string_view path, const char* key,
    std::string_view fallback, const std::vector<std::string>& choices);
  bool read_flag(const ordered_json& from, std::string_view path, const char* key, bool fallback);
  int64_t read_int(const ordered_json& from, std::string_view path, const char* key,
    std::optional<int64_t> fallback, int64_t lowest, int64_t highest);
  /// The name of a tensor, bare or qualified.
  expression_name read_name(const ordered_json& from, std::string_view path, const char* key);
  /// Names that a plan gives must be plain and must not hide a word of the language.
  void check_new_name(std::string_view path, const std::string& name);

  std::optional<failure> failed_;
  /// Of the variant that is being read.
  std::set<std::string> step_ids_;
  size_t step_count_ = 0;
};

} // namespace gristmill
