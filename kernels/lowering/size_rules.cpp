#include "kernels/lowering/size_rules.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace gristmill {

namespace {

using answer = std::vector<std::optional<symbolic_size>>;

class rule_reader {
public:
  explicit rule_reader(const size_question& question)
    : q_(question), node_(question.node), out_(question.traced.size()) {}

  answer run() {
    const std::string_view op = node_.op;
    static const std::set<std::string_view> reshapes = {
      "view", "_unsafe_view", "reshape", "_reshape_alias", "flatten", "unflatten"};
    if (reshapes.contains(op))
      reshape();
    else if (op == "cat" || op == "concat")
      concatenate();
    else if (op == "slice" || op == "narrow")
      slice();
    else if (op == "split" || op == "chunk" || op == "split_with_sizes")
      split();
    else if (op.ends_with("_pad_nd") || op.starts_with("reflection_pad")
      || op.starts_with("replication_pad"))
      pad();
    else if (op == "repeat" || op == "tile")
      repeat();
    else if (op == "convolution" || op == "_convolution" || op == "cudnn_convolution")
      convolve();
    else if (op.starts_with("max_pool") || op.starts_with("avg_pool"))
      pool(op.starts_with("avg_pool"));
    return std::move(out_);
  }

private:
  const sized_value* tensor(size_t position) const {
    if (position >= node_.inputs.size() || node_.inputs[position].kind != operand_kind::value)
      return nullptr;
    return q_.value(node_.inputs[position].value);
  }

  std::optional<int64_t> integer(size_t position, int64_t fallback) const {
    if (position >= node_.inputs.size() || node_.inputs[position].kind == operand_kind::none)
      return fallback;
    const graph_operand& operand = node_.inputs[position];
    if (operand.kind != operand_kind::integer || operand.varies)
      return std::nullopt;
    return operand.integer;
  }

  /// A list argument of the operator, for each of `count` dimensions; one number stands for all.
  std::vector<int64_t> list(size_t position, size_t count, int64_t fallback) const {
    std::vector<int64_t> numbers;
    if (position < node_.inputs.size()) {
      const graph_operand& operand = node_.inputs[position];
      if (operand.kind == operand_kind::integers)
        numbers = operand.list;
      else if (operand.kind == operand_kind::integer)
        numbers = {operand.integer};
    }
    if (numbers.size() == 1)
      numbers.resize(count, numbers.front());
    if (numbers.empty())
      numbers.resize(count, fallback);
    numbers.resize(count, fallback);
    return numbers;
  }

  std::optional<size_t> dimension(std::optional<int64_t> dim, size_t count) const {
    if (!dim)
      return std::nullopt;
    const int64_t from_front = *dim < 0 ? *dim + static_cast<int64_t>(count) : *dim;
    if (from_front < 0 || from_front >= static_cast<int64_t>(count))
      return std::nullopt;
    return static_cast<size_t>(from_front);
  }

  /// All dimensions but one are those of the operand.
  void copy_but(const sized_value& from, size_t dim) {
    for (size_t i = 0; i < out_.size() && i < from.sizes.size(); ++i) {
      if (i != dim)
        out_[i] = from.sizes[i];
    }
  }

  void reshape() {
    const sized_value* from = tensor(0);
    if (from == nullptr)
      return;
    size_t i = 0;
    size_t j = 0;
    const size_t in_count = from->sizes.size();
    const auto is_one = [](const traced_size& size) { return size.first == 1 && size.again == 1; };
    while (i < in_count || j < out_.size()) {
      // Dimensions of size 1 come and go on their own.
      if (j < out_.size() && is_one(q_.traced[j])) {
        out_[j++] = symbolic_size::number(1);
        continue;
      }
      if (i < in_count && is_one(from->traced[i])) {
        ++i;
        continue;
      }
      if (i >= in_count || j >= out_.size())
        return;
      const size_t in_begin = i;
      const size_t out_begin = j;
      int64_t left = from->traced[i++].first;
      int64_t right = q_.traced[j++].first;
      while (left != right) {
        if (left == 0 || right == 0)
          return;
        if (left < right) {
          if (i >= in_count)
            return;
          left *= from->traced[i++].first;
        } else {
          if (j >= out_.size())
            return;
          right *= q_.traced[j++].first;
        }
        // Traced shapes are small; a product beyond this is a hostile graph.
        if (left > (int64_t{1} << 40) || right > (int64_t{1} << 40))
          return;
      }
      regroup(*from, in_begin, i, out_begin, j);
    }
  }

  /// Input dimensions [in_begin, in_end) become the output dimensions [out_begin, out_end).
  void regroup(
    const sized_value& from, size_t in_begin, size_t in_end, size_t out_begin, size_t out_end) {
    symbolic_size total = symbolic_size::number(1);
    for (size_t i = in_begin; i < in_end; ++i)
      total = total * from.sizes[i];
    if (out_end - out_begin == 1) {
      out_[out_begin] = total;
      return;
    }
    std::vector<size_t> open;
    symbolic_size rest = symbolic_size::number(1);
    for (size_t j = out_begin; j < out_end; ++j) {
      for (size_t i = in_begin; i < in_end && !out_[j]; ++i) {
        if (from.traced[i] == q_.traced[j])
          out_[j] = from.sizes[i];
      }
      if (!out_[j])
        out_[j] = q_.guess(q_.traced[j]);
      if (out_[j])
        rest = rest * *out_[j];
      else
        open.push_back(j);
    }
    if (open.size() != 1)
      return;
    if (auto exact = total.divided_by(rest))
      out_[open.front()] = *exact;
    else if (const auto number = rest.as_number(); number && *number > 0)
      out_[open.front()] = total.quotient(*number);
  }

  void concatenate() {
    if (node_.inputs.empty() || node_.inputs[0].kind != operand_kind::values)
      return;
    const auto dim = dimension(integer(1, 0), out_.size());
    if (!dim)
      return;
    symbolic_size sum;
    for (int64_t id : node_.inputs[0].list) {
      const sized_value* part = q_.value(id);
      // An old rule of torch: an empty tensor of one dimension joins anything.
      if (part == nullptr || part->sizes.size() != out_.size())
        return;
      sum = sum + part->sizes[*dim];
    }
    if (const sized_value* first = q_.value(node_.inputs[0].list.front()))
      copy_but(*first, *dim);
    out_[*dim] = sum;
  }

  void slice() {
    const sized_value* from = tensor(0);
    if (from == nullptr || from->sizes.size() != out_.size())
      return;
    const auto dim = dimension(integer(1, 0), out_.size());
    if (!dim)
      return;
    copy_but(*from, *dim);
    const symbolic_size& whole = from->sizes[*dim];
    const traced_size& traced = from->traced[*dim];
    if (q_.traced[*dim] == traced) {
      out_[*dim] = whole;
      return;
    }
    const auto begin = integer(2, 0);
    const auto end = integer(3, INT64_MAX);
    const auto step = node_.op == "slice" ? integer(4, 1) : 1;
    if (node_.op != "slice" || !begin || !end || !step || *step < 1)
      return; // `narrow` says its length: the guess knows it.
    const symbolic_size first =
      *begin < 0 ? whole + symbolic_size::number(*begin) : symbolic_size::number(*begin);
    symbolic_size last = whole;
    if (*end < 0)
      last = whole + symbolic_size::number(*end);
    else if (*end < std::min(traced.first, traced.again))
      last = symbolic_size::number(*end);
    out_[*dim] = (last - first + symbolic_size::number(*step - 1)).quotient(*step);
  }

  void split() {
    const sized_value* from = tensor(0);
    if (from == nullptr || from->sizes.size() != out_.size())
      return;
    const auto dim = dimension(integer(2, 0), out_.size());
    if (!dim)
      return;
    copy_but(*from, *dim);
    const auto parts = static_cast<int64_t>(node_.outputs.size());
    const traced_size& whole = from->traced[*dim];
    const traced_size& part = q_.traced[*dim];
    if (part.first * parts == whole.first && part.again * parts == whole.again)
      out_[*dim] = from->sizes[*dim].quotient(parts);
  }

  void pad() {
    const sized_value* from = tensor(0);
    if (from == nullptr || from->sizes.size() != out_.size() || node_.inputs.size() < 2
      || node_.inputs[1].kind != operand_kind::integers)
      return;
    const auto& pads = node_.inputs[1].list;
    for (size_t back = 0; back < out_.size(); ++back) {
      const size_t dim = out_.size() - 1 - back;
      out_[dim] = from->sizes[dim];
      if (2 * back + 1 < pads.size())
        out_[dim] = *out_[dim] + symbolic_size::number(pads[2 * back])
          + symbolic_size::number(pads[2 * back + 1]);
    }
  }

  void repeat() {
    const sized_value* from = tensor(0);
    if (from == nullptr || node_.inputs.size() < 2 || node_.inputs[1].kind != operand_kind::integers
      || node_.inputs[1].list.size() != out_.size() || from->sizes.size() > out_.size())
      return;
    const size_t added = out_.size() - from->sizes.size();
    for (size_t i = 0; i < out_.size(); ++i) {
      const auto times = symbolic_size::number(node_.inputs[1].list[i]);
      out_[i] = i < added ? times : from->sizes[i - added] * times;
    }
  }

  void convolve() {
    const sized_value* from = tensor(0);
    const sized_value* weight = tensor(1);
    if (from == nullptr || weight == nullptr || from->sizes.size() != out_.size()
      || weight->sizes.size() != out_.size() || out_.size() < 3 || node_.inputs.size() < 9)
      return;
    const size_t spatial = out_.size() - 2;
    const auto stride = list(3, spatial, 1);
    const auto padding = list(4, spatial, 0);
    const auto dilation = list(5, spatial, 1);
    const bool is_transposed =
      node_.inputs[6].kind == operand_kind::boolean && node_.inputs[6].integer != 0;
    const auto more = list(7, spatial, 0);
    const auto groups = integer(8, 1);
    out_[0] = from->sizes[0];
    if (is_transposed && groups)
      out_[1] = weight->sizes[1] * symbolic_size::number(*groups);
    else if (!is_transposed)
      out_[1] = weight->sizes[0];
    for (size_t i = 0; i < spatial; ++i) {
      const symbolic_size& in = from->sizes[i + 2];
      const symbolic_size reach =
        symbolic_size::number(dilation[i]) * (weight->sizes[i + 2] - symbolic_size::number(1));
      const auto number = [](int64_t value) { return symbolic_size::number(value); };
      if (is_transposed)
        out_[i + 2] = (in - number(1)) * number(stride[i]) - number(2) * number(padding[i]) + reach
          + number(more[i]) + number(1);
      else if (stride[i] > 0)
        out_[i + 2] =
          (in + number(2) * number(padding[i]) - reach - number(1)).quotient(stride[i]) + number(1);
    }
  }

  void pool(bool is_average) {
    const sized_value* from = tensor(0);
    if (from == nullptr || from->sizes.size() != out_.size() || node_.inputs.size() < 2)
      return;
    const std::string_view op = node_.op;
    const size_t spatial = op.find("1d") != std::string_view::npos ? 1
      : op.find("3d") != std::string_view::npos                    ? 3
                                                                   : 2;
    if (spatial > out_.size())
      return;
    const auto kernel = list(1, spatial, 1);
    auto stride = list(2, spatial, 0);
    const auto padding = list(3, spatial, 0);
    const auto dilation = is_average ? std::vector<int64_t>(spatial, 1) : list(4, spatial, 1);
    const size_t ceil_at = is_average ? 4 : 5;
    if (ceil_at < node_.inputs.size() && node_.inputs[ceil_at].integer != 0)
      return; // Rounded up: the guess may still know it.
    const size_t first = out_.size() - spatial;
    for (size_t i = 0; i < first; ++i)
      out_[i] = from->sizes[i];
    for (size_t i = 0; i < spatial; ++i) {
      if (stride[i] <= 0)
        stride[i] = kernel[i];
      if (stride[i] <= 0)
        return;
      const int64_t less = dilation[i] * (kernel[i] - 1) + 1 - 2 * padding[i];
      out_[first + i] = (from->sizes[first + i] - symbolic_size::number(less)).quotient(stride[i])
        + symbolic_size::number(1);
    }
  }

  const size_question& q_;
  const graph_node& node_;
  answer out_;
};

} // namespace

std::vector<std::optional<symbolic_size>> sizes_by_rule(const size_question& question) {
  return rule_reader(question).run();
}

} // namespace gristmill
