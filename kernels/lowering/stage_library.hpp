#pragma once

#include "kernels/lowering/sub_problem.hpp"
#include "kernels/stage.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// A stage with what the families can write for it.
struct read_stage {
  sub_problem sub;
  /// Indices into `stage_families()`, ascending, and the space of each.
  std::vector<size_t> families;
  std::vector<stage_space_ptr> spaces;
  /// Why no family reads it; empty where one does.
  std::string reason;

  bool is_readable() const { return !spaces.empty(); }
  bool is_good() const { return !families.empty() && stage_families()[families.front()].is_good; }
  size_t points() const;
};

/// Reads every different stage of a program once.
class stage_library {
public:
  /// `is_plain` leaves out the families whose points depend on the workloads' sizes: what they
  /// write is no measure that may stay as it is.
  explicit stage_library(const program_graph& program, bool is_plain = false)
    : program_(program), is_plain_(is_plain) {}

  /// Only the good families are asked, and only the first that reads it is kept.
  bool is_good(const stage_cut& cut);
  /// A problem as it stands, with its own graph, under a key that no cut has.
  std::shared_ptr<const read_stage> whole(const problem& target, const op_graph& graph);
  /// All families are asked.
  std::shared_ptr<const read_stage> full(const stage_cut& cut);

  /// How often a family was asked; a bound on it bounds the work.
  size_t questions() const { return questions_; }

private:
  enum class asked : uint8_t { first_good, all };

  std::shared_ptr<const read_stage> get(const stage_cut& cut, asked which);
  void read(read_stage& stage, asked which);

  const program_graph& program_;
  bool is_plain_;
  std::map<std::string, std::shared_ptr<const read_stage>> known_;
  size_t questions_ = 0;
};

} // namespace gristmill
