#pragma once

#include "kernels/lowering/expression_rewriter.hpp"
#include "kernels/lowering/program_graph.hpp"
#include "kernels/lowering/sub_problem.hpp"

#include <functional>
#include <map>
#include <string>

namespace gristmill {

/// Where a value lies in the common plan.
struct program_buffer {
  /// "in.x", "out.y", "scratch.t5".
  std::string text;
};

/// What the names in the plan of one stage become in the common plan.
class stage_names : public name_rewriter {
public:
  /// `buffers` by base value; `size_text` gives an operand for a formula, such as "axis.B" or the
  /// name of a `let`.
  stage_names(const sub_problem& stage, const std::map<int64_t, program_buffer>& buffers,
    std::function<std::string(const symbolic_size&)> size_text)
    : stage_(stage), buffers_(buffers), size_text_(std::move(size_text)) {}

  /// A name that the stage's plan gives: a `let`, a define, the variable of a repeat.
  void set_value(const std::string& name, std::string text) { values_[name] = std::move(text); }
  void set_scratch(const std::string& name, std::string text) { scratch_[name] = std::move(text); }
  void set_map(const std::string& name, std::string text) { maps_[name] = std::move(text); }
  /// The common plan's name of a tensor map of the stage; nothing when it has no such map.
  std::optional<std::string> map(const std::string& name) const {
    const auto found = maps_.find(name);
    return found == maps_.end() ? std::nullopt : std::optional{found->second};
  }
  void set_step(const std::string& id, std::string text) { steps_[id] = std::move(text); }

  /// The buffer that a name stands for; nothing when it stands for none.
  std::optional<std::string> buffer(const expression_name& name) const;
  const std::map<std::string, std::string>& steps() const { return steps_; }

  result<std::string> name(const expression_name& from) const override;
  result<std::string> call(std::string_view function, const expression_name& subject,
    std::optional<int64_t> index, const std::string& index_text) const override;

private:
  const stage_tensor* tensor(const expression_name& name) const;
  bool is_scalar(const expression_name& name) const;

  const sub_problem& stage_;
  const std::map<int64_t, program_buffer>& buffers_;
  std::function<std::string(const symbolic_size&)> size_text_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::string> scratch_;
  std::map<std::string, std::string> steps_;
  std::map<std::string, std::string> maps_;
};

} // namespace gristmill
