#pragma once

#include "kernels/naive/naive_sizes.hpp"
#include "protocol/definition.hpp"
#include "protocol/op_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// C++ text of an element's index, an `int64_t` expression for each dimension.
using naive_index = std::vector<std::string>;

/// Writes one naive kernel: the text as it grows, the parameters that it turns out to need, and the
/// elements of the graph's values as expressions. Every method may throw `no_template`.
class naive_writer {
public:
  /// `lanes` threads work on one element together: 1, or 32 for a warp.
  naive_writer(const op_graph& graph, const definition& def, naive_sizes& sizes, int lanes);

  // The text.
  void line(const std::string& text);
  /// Opens a block with that head, such as "if (x > 0)"; "" for a bare one.
  void open(const std::string& head);
  void close();
  std::string fresh(std::string_view stem);
  /// A constant with a fresh name; returns the name.
  std::string let(std::string_view type, const std::string& text);
  /// A variable with a fresh name; returns the name.
  std::string variable(std::string_view type, const std::string& text);
  /// Opens a loop over 0 … size-1 that every lane walks in full; returns the loop variable.
  std::string loop(const std::string& size);
  /// The same with the elements dealt out to the lanes of the warp.
  std::string shared_loop(const std::string& size);
  int lanes() const { return lanes_; }

  // Sizes.
  /// C++ text of an integer plan expression: a literal, or a parameter.
  std::string amount(const naive_size& size);
  /// The same for a floating-point plan expression.
  std::string real_amount(const std::string& plan);
  std::string size(int64_t id, size_t dim);
  std::vector<std::string> shape(int64_t id);
  naive_sizes& sizes() { return sizes_; }

  // Elements.
  const graph_value& value(int64_t id) const;
  /// The register type of a value.
  std::string type_of(int64_t id) const;
  /// An element as an expression of the register type.
  std::string read(int64_t id, const naive_index& index);
  /// An element by its row-major number.
  std::string read_linear(int64_t id, const std::string& number);
  /// A number argument as an expression of a C++ type.
  std::string number(const graph_node& node, const graph_operand& operand, std::string_view type);

  /// Row-major number of an element.
  std::string linear(const std::vector<std::string>& shape, const naive_index& index);
  /// Index of the element with that row-major number; adds lines.
  naive_index unravelled(const std::vector<std::string>& shape, const std::string& number);

  /// Pointer parameter of an output, by its place in the definition.
  std::string output(size_t place);

  // What the kernel came to be.
  const std::string& body() const { return body_; }
  std::string declarations() const;
  const std::vector<std::string>& arguments() const { return arguments_; }

private:
  std::string read_input(const graph_value& what, const std::string& number);
  std::string read_scalar(const std::string& name, std::string_view type);
  std::string read_constant(const graph_value& what, const naive_index& index);
  std::string parameter(
    const std::string& declared_type, std::string_view stem, const std::string& argument);

  const op_graph& graph_;
  const definition& def_;
  naive_sizes& sizes_;
  int lanes_ = 1;
  std::string body_;
  size_t indent_ = 1;
  size_t depth_ = 0;
  int counter_ = 0;
  std::map<int64_t, std::pair<const graph_node*, size_t>> origins_;
  /// Names of elements that were read, for each open block.
  std::vector<std::map<std::pair<int64_t, naive_index>, std::string>> known_;
  std::map<std::string, std::string> parameters_;
  std::vector<std::string> declarations_;
  std::vector<std::string> arguments_;
};

} // namespace gristmill
