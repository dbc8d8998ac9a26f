#pragma once

#include "kernels/families/value_writer.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gristmill {

/// What a block of threads combines to one number.
enum class combine_kind : uint8_t {
  sum,
  maximum,
  minimum,
  product,
  place_of_maximum,
  place_of_minimum
};

/// One number a row that an operator needs: the `which`-th of that operator's output.
struct row_number {
  const graph_node* node = nullptr;
  size_t output = 0;
  size_t which = 0;

  friend auto operator<=>(const row_number&, const row_number&) = default;
};

/// Neighbouring dimensions that are all reduced or all kept.
struct dim_run {
  bool is_reduced = false;
  std::vector<size_pair> sizes;

  size_pair product() const;
};

/// What an operator reduces: the shape of its operand, where a dimension may be split in two
/// (groups of channels), cut into runs. Dimensions of size 1 are in no run.
struct reduced_shape {
  std::vector<size_pair> sizes;
  std::vector<bool> is_reduced;

  std::vector<dim_run> runs() const;
  bool has_same_runs(const reduced_shape& other) const;
};

/// True for operators that `reduction_reader` turns into numbers of rows.
bool is_reducing_operator(std::string_view op);

/// Thrown while something is written that needs a number of a row which is not known yet.
struct missing_number {
  row_number what;
};

/// Reads reductions over any dimensions, softmaxes, normalisations and their gradients as
/// combinations of numbers of a row, all over rows of one kind. Methods throw `no_template`.
class reduction_reader {
public:
  /// Hooks itself into the writer, which must outlive it.
  explicit reduction_reader(value_writer& writer);

  /// The shape that an operator's output reduces.
  reduced_shape shape_of(const graph_node& node, size_t output) const;

  /// The rows that all reductions must have, and the element of them that is written at the moment:
  /// an index variable for each run.
  void set_space(reduced_shape space, std::vector<index_id> run_indices);

  void define(const row_number& number, written_value value) { known_[number] = std::move(value); }
  void forget_numbers() { known_.clear(); }
  /// The text of a number that is known.
  const std::string& text_of(const row_number& number) const { return known_.at(number).text; }
  combine_kind kind_of(const row_number& number) const;
  /// Whether it is an integer that is summed, or the place of an extremum.
  bool is_integer(const row_number& number) const;
  /// The element's part of a number. May throw `missing_number`.
  written_value body(const row_number& number);
  /// For a place: the element's position in the reduced dimension.
  index_id place(const row_number& number);

private:
  std::optional<written_value> read(
    const graph_node& node, size_t output, const std::vector<index_id>& index);
  written_value element(const graph_node& node, size_t output, const std::vector<index_id>& index);
  std::string get(const graph_node& node, size_t output, size_t which);
  const graph_value& operand(const graph_node& node, size_t output) const;
  std::string operand_text(
    const graph_node& node, size_t position, const std::vector<index_id>& index);
  /// The element of our rows in a tensor of the shape that an operator reduces.
  std::vector<index_id> index_here(const graph_node& node, size_t output);
  std::string count_text(const graph_node& node, size_t output);
  /// A parameter of a channel, such as a weight; nothing when there is none.
  std::optional<std::string> channel_text(
    const graph_node& node, size_t position, index_id channel);
  void check_row(const graph_node& node, size_t output, const std::vector<index_id>& index);

  value_writer& writer_;
  reduced_shape space_;
  std::vector<index_id> run_indices_;
  std::map<row_number, written_value> known_;
};

} // namespace gristmill
