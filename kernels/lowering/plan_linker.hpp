#pragma once

#include "kernels/lowering/linker.hpp"
#include "kernels/lowering/source_linker.hpp"
#include "kernels/lowering/stage_names.hpp"

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// The work of `link`, for one call.
class plan_linker {
public:
  plan_linker(const program_graph& program, const std::vector<program_code>& programs)
    : program_(program), programs_(programs) {}

  result<generated_kernel> run();

private:
  using json = nlohmann::ordered_json;

  /// What one define of a stage is in each of its variants.
  struct stage_define {
    std::string name;
    /// As text; empty where the variant has no such define.
    std::vector<std::string> values;
    bool is_literal = false;
  };

  /// One stage's source in the common one; stages with equal text and macros share it.
  struct linked_part {
    source_part source;
    /// Programs that use it.
    std::set<size_t> programs;
    /// What the plan must define for it: name and expression.
    std::vector<std::pair<std::string, std::string>> defines;
  };

  result<void> add_program(size_t index);
  result<void> add_scratch(size_t index, std::map<int64_t, program_buffer>& buffers);
  result<void> add_stage(size_t program, const stage_code& code,
    const std::map<int64_t, program_buffer>& buffers, json& steps);
  result<void> add_own_scratch(
    const json& plan, size_t program, const std::string& prefix, stage_names& names);
  result<void> add_tensor_maps(const json& plan, const std::string& prefix, stage_names& names);
  result<void> add_options(const json& plan);

  /// Index of the part that holds the stage's code.
  result<size_t> add_part(size_t program, const std::string& source,
    const std::vector<stage_define>& defines, const std::string& choice);
  result<std::vector<stage_define>> defines_of(const json& variants, const stage_names& names);

  result<json> step_of(
    const json& step, const std::string& prefix, const linked_part& part, stage_names& names);
  result<json> argument_of(const json& argument, const stage_names& names);
  result<std::string> buffer_of(const json& name, const stage_names& names);
  result<json> expression_of(const json& value, const stage_names& names);
  result<std::string> text_of(const json& value, const stage_names& names);

  /// A name that neither the problem nor the plan has yet.
  std::string fresh(const std::string& wanted);
  /// The name of a `let` with that value; equal values have one name.
  std::string let_for(const std::string& text, const std::string& wanted);
  std::string size_text(const symbolic_size& size);
  /// Only in the variant of that program.
  std::string guarded(size_t program, const std::string& condition) const;

  const program_graph& program_;
  const std::vector<program_code>& programs_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> lets_;
  json let_ = json::object();
  json scratch_ = json::object();
  json maps_ = json::object();
  json options_;
  std::vector<std::string> domain_;
  std::vector<linked_part> parts_;
  std::map<std::string, size_t> part_by_text_;
  /// Name of the define with that expression.
  std::map<std::string, std::string> define_by_text_;
  /// Of each program.
  std::vector<std::map<std::string, std::string>> defines_;
  std::vector<json> steps_;
  /// The name of the `let` that says which program runs, and of its macro; empty for one program.
  std::string choice_;
  std::string choice_macro_;
  size_t stages_ = 0;
};

} // namespace gristmill
