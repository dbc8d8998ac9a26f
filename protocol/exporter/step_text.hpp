#pragma once

#include "messages/result.hpp"
#include "protocol/exporter/binding_names.hpp"
#include "protocol/plan.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gristmill {

/// The steps of one variant as C++ inside of the binding's `run`, with the scratch and the tensor
/// maps before them. `names` holds everything but those; what is added to it stays.
class step_text {
public:
  step_text(const plan& source, size_t variant, binding_names& names);
  ~step_text();
  step_text(const step_text&) = delete;
  step_text& operator=(const step_text&) = delete;

  result<std::string> run();

private:
  void collect_ids(const std::vector<plan_step>& steps);
  result<void> add_occupancy();
  result<void> add_scratch();
  result<void> add_maps();
  result<void> add_map(const plan_tensor_map& map, size_t index);
  result<void> add_block(const std::vector<plan_step>& steps, const std::string& path);
  result<void> add_step(const plan_step& step, const std::string& place);
  result<void> add_launch(const plan_step& step, const std::string& place);
  result<void> add_launch_shape(const plan_step& step, const std::string& place, bool with_grid);
  result<void> add_argument(
    const plan_argument& argument, const std::string& place, const std::string& target);
  result<void> add_value_argument(
    const plan_argument& argument, const std::string& place, const std::string& target);
  result<void> add_memset(const plan_step& step, const std::string& place);
  result<void> add_copy(const plan_step& step, const std::string& place);
  result<void> add_read(const plan_step& step, const std::string& place);
  result<void> add_repeat(const plan_step& step, const std::string& place);

  void line(const std::string& what) { text_ += "    " + what + "\n"; }
  result<std::string> code(const expression& what, const std::string& place) const;
  /// Each as an `int64_t`, with commas between.
  result<std::string> codes(const std::vector<expression>& list, const std::string& place) const;
  result<const binding_names::entry*> tensor(
    const expression_name& name, const std::string& place) const;
  const plan_step* find_launch(const std::vector<plan_step>& steps, const std::string& id) const;
  /// Position of an entry among all of the variant, which is what `gm_entry` takes.
  size_t entry_index(const std::string& entry) const;

  const plan& source_;
  const plan_variant& variant_;
  binding_names& names_;
  std::vector<std::string> entries_;
  std::vector<std::string> launch_ids_;
  std::string text_;
  /// Makes the names of locals distinct.
  size_t count_ = 0;
};

} // namespace gristmill
