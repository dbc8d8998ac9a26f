#pragma once

#include "kernels/families/size_formulas.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace gristmill {

/// An index or a size in a pool.
using index_id = int;

/// Symbolic indices of elements, each different one once, with what is known about them folded:
/// merging dimensions and splitting them again gives back what was there. All are non-negative
/// wherever they are evaluated.
class index_pool {
public:
  explicit index_pool(const size_formulas& sizes) : sizes_(sizes) {}

  index_id constant(int64_t number);
  /// A size of a dimension. Throws `no_template` when no formula explains it.
  index_id size(size_pair traced);
  /// A variable of the kernel: its C++ text, and the size that it stays below; -1 when unknown.
  index_id variable(const std::string& text, index_id bound = -1);

  index_id add(index_id a, index_id b);
  /// a - b with b <= a. `bound` as for a variable.
  index_id minus(index_id a, index_id b, index_id bound = -1);
  index_id times(index_id a, index_id b);
  /// Rounded down.
  index_id over(index_id a, index_id b);
  index_id rest(index_id a, index_id b);

  /// Row-major position of an element in a shape.
  index_id flat(const std::vector<index_id>& index, const std::vector<index_id>& shape);
  /// Takes a position apart again.
  std::vector<index_id> unflat(index_id position, const std::vector<index_id>& shape);
  std::vector<index_id> shape(const std::vector<size_pair>& traced);
  index_id product(const std::vector<index_id>& sizes);

  /// By how much an index grows when the variable grows by 1, where its form shows that: 0 when it
  /// does not depend on it. Nothing when it grows in another way.
  std::optional<int64_t> step_of(index_id id, index_id variable) const;
  /// The index where the variable is 0; the variable must have a step.
  index_id without(index_id id, index_id variable);
  bool uses(index_id id, index_id variable) const;
  /// True when the form of an index shows that it is a multiple of the number.
  bool is_multiple(index_id id, int64_t number);

  bool is_constant(index_id id, int64_t number) const;
  /// The number of a constant, or -1.
  int64_t number(index_id id) const;

  /// C++ text; `size_text` gives the name of a size that is no constant.
  std::string text(
    index_id id, const std::function<std::string(const std::string& formula)>& size_text) const;
  /// The launch-plan expression of a size made of constants, sizes, sums and products.
  std::string plan_text(index_id id) const;

private:
  enum class kind : uint8_t { constant, size, variable, add, minus, times, over, rest };
  struct node {
    kind what = kind::constant;
    int64_t number = 0;
    std::string text;
    index_id a = -1;
    index_id b = -1;
    index_id bound = -1;
  };

  index_id insert(node one);
  const node& at(index_id id) const { return nodes_[static_cast<size_t>(id)]; }
  /// True when `id` surely stays below `limit`.
  bool is_below(index_id id, index_id limit) const;
  /// a / b when a is a multiple of b by its form; -1 otherwise.
  index_id exact_quotient(index_id a, index_id b);

  const size_formulas& sizes_;
  std::vector<node> nodes_;
  std::map<std::tuple<kind, int64_t, std::string, index_id, index_id>, index_id> known_;
};

/// The index of an element in the tensor that a `view` was made of. Dimensions are merged and split
/// group by group. Throws `no_template` when the shapes do not fit together.
std::vector<index_id> through_view(index_pool& pool, const std::vector<size_pair>& from,
  const std::vector<size_pair>& to, const std::vector<index_id>& index_in_to);

} // namespace gristmill
