#include "kernels/families/attention.hpp"

#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

/// Widest heads whose accumulators fit the registers of a thread.
constexpr int64_t head_max = 256;

struct attention_pattern {
  const graph_node* scores = nullptr;
  const graph_node* softmax = nullptr;
  const graph_node* product = nullptr;
};

bool is_product(const graph_node& node) {
  return node.op == "bmm" || node.op == "mm";
}

/// Queries a block and keys a step. Each query has `lanes` threads, which share the head's columns.
struct attention_point {
  int64_t queries = 32;
  int64_t keys = 32;
};

constexpr int64_t block_threads = 128;

class attention_writer {
public:
  attention_writer(const problem& target, const op_graph& graph, const size_formulas& sizes)
    : target_(target), graph_(graph), writer_(target, graph, sizes) {
    find_pattern();
  }

  generated_kernel write(const attention_point& point) {
    index_pool& pool = writer_.pool();
    const graph_value& q = operand(*pattern_.scores, 0);
    const graph_value& k = operand(*pattern_.scores, 1);
    const graph_value& v = operand(*pattern_.product, 1);
    const bool has_batch = q.shape.size() == 3;
    const auto q_shape = traced_shape(q);
    const auto v_shape = traced_shape(v);
    const size_pair batch_size = has_batch ? q_shape[0] : size_pair{1, 1};
    const index_id batches = pool.size(batch_size);
    const index_id rows = pool.size(q_shape[q_shape.size() - 2]);
    const index_id depth = pool.size(q_shape.back());
    const index_id keys = pool.size(v_shape[v_shape.size() - 2]);
    const index_id width = pool.size(v_shape.back());
    const int64_t head = pool.number(depth);
    const int64_t columns = pool.number(width);
    if (head < 1 || columns < 1 || head > head_max || columns > head_max)
      throw no_template{fmt::format("heads wider than {} or of a width that varies belong to no "
                                    "attention kernel yet",
        head_max)};
    const index_id batch = pool.variable("batch", batches);
    const auto at = [&](std::initializer_list<index_id> tail) {
      std::vector<index_id> index;
      if (has_batch)
        index.push_back(batch);
      index.insert(index.end(), tail);
      return index;
    };
    const int64_t lanes = block_threads / point.queries;
    const int64_t own = (columns + lanes - 1) / lanes;
    const std::string rows_text = writer_.text(rows);
    const std::string keys_text = writer_.text(keys);

    writer_.line(
      fmt::format("const index_t tiles = ({} + query_rows - 1) / query_rows;", rows_text));
    writer_.line("const index_t batch = index_t(blockIdx.x) / tiles;");
    writer_.line("const index_t first_row = index_t(blockIdx.x) % tiles * query_rows;");
    writer_.line("extern __shared__ float tiles_memory[];");
    writer_.line("float* const queries = tiles_memory; // [query_rows][head + 1]");
    writer_.line("float* const keys = queries + query_rows * (head + 1); // [key_rows][head + 1]");
    writer_.line("float* const values = keys + key_rows * (head + 1); // [key_rows][columns]");
    writer_.line(
      "float* const scores = values + key_rows * columns; // [query_rows][key_rows + 1]");
    tile_load("queries", "query_rows", "head", "head + 1", "first_row", rows, q, at, false, depth);
    writer_.line("const int mine = threadIdx.x / lanes;");
    writer_.line("const int lane = threadIdx.x % lanes;");
    writer_.line("float top = -INFINITY;");
    writer_.line("float sum = 0.0f;");
    writer_.line(fmt::format("float acc[{}] = {{}};", own));
    writer_.open(
      fmt::format("for (index_t first_key = 0; first_key < {}; first_key += key_rows)", keys_text));
    writer_.line("__syncthreads();");
    tile_load("keys", "key_rows", "head", "head + 1", "first_key", keys, k, at, true, depth);
    tile_load("values", "key_rows", "columns", "columns", "first_key", keys, v, at, false, width);
    writer_.line("__syncthreads();");
    score_tile(point, rows_text, keys_text, at, rows, keys);
    writer_.line("__syncthreads();");
    softmax_step(own);
    writer_.close();
    output_tile(point, own, at, rows, width, rows_text);
    const std::string body = writer_.take();

    generated_kernel out;
    out.source = fmt::format("// Attention: {} queries a block, {} keys a step; the scores stay in "
                             "shared memory.\n",
                   point.queries, point.keys)
      + writer_.preamble(body)
      + fmt::format("constexpr int query_rows = {};\nconstexpr int key_rows = {};\n"
                    "constexpr int head = {};\nconstexpr int columns = {};\n"
                    "constexpr int lanes = {};\n\nextern \"C\" __global__ void "
                    "__launch_bounds__({}) attention(\n  {}) {{\n",
        point.queries, point.keys, head, columns, lanes, block_threads,
        writer_.parameters().declarations())
      + indented_sizes(writer_.parameters()) + body + "}\n";
    json step = {{"op", "launch"}, {"entry", "attention"}};
    step["grid"] = {fmt::format("ceil_div({}, {}) * {}", pool.plan_text(rows), point.queries,
                      pool.plan_text(batches)),
      1, 1};
    step["block"] = {block_threads, 1, 1};
    step["shared"] = shared_bytes(point, head, columns);
    step["args"] = writer_.parameters().arguments();
    out.plan = single_variant_plan(
      {{free_name(target_.def, "WIDE"), writer_.wide_expression()}}, json::array({step}), {});
    return out;
  }

  static int64_t shared_bytes(const attention_point& point, int64_t head, int64_t columns) {
    return 4
      * (point.queries * (head + 1) + point.keys * (head + 1) + point.keys * columns
        + point.queries * (point.keys + 1));
  }

  /// Widths of a head: of queries and keys, and of values.
  std::pair<int64_t, int64_t> widths() {
    const auto number = [&](const graph_value& value) {
      return writer_.pool().number(writer_.pool().size(traced_shape(value).back()));
    };
    return {number(operand(*pattern_.scores, 0)), number(operand(*pattern_.product, 1))};
  }

private:
  using index_maker = std::function<std::vector<index_id>(std::initializer_list<index_id>)>;

  const graph_value& operand(const graph_node& node, size_t position) const {
    if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
      refuse_node(node, "has no two tensors");
    return writer_.value(node.inputs[position].value);
  }

  /// The product that a value is, seen through operators that keep every element.
  const graph_node* product_above(int64_t id) const {
    for (int steps = 0; steps < 64; ++steps) {
      const auto [node, output] = writer_.origin(id);
      if (node == nullptr)
        return nullptr;
      if (is_product(*node))
        return node;
      const graph_operand* next = nullptr;
      for (const auto& given : node->inputs) {
        // Of a mask's `where` or a sum the operand that leads to a product counts.
        if (given.kind == operand_kind::value && leads_to_product(given.value, 0)) {
          next = &given;
          break;
        }
      }
      if (next == nullptr)
        return nullptr;
      id = next->value;
    }
    return nullptr;
  }

  bool leads_to_product(int64_t id, int depth) const {
    const auto [node, output] = writer_.origin(id);
    if (node == nullptr || depth > 40)
      return false;
    if (is_product(*node))
      return true;
    if (node->op == "_softmax" || !is_written_operator(node->op))
      return false;
    return std::any_of(node->inputs.begin(), node->inputs.end(), [&](const graph_operand& given) {
      return given.kind == operand_kind::value && leads_to_product(given.value, depth + 1);
    });
  }

  void find_pattern() {
    for (const auto& node : graph_.nodes) {
      if (node.op == "_softmax") {
        if (pattern_.softmax != nullptr)
          throw no_template{"two softmaxes belong to no attention kernel"};
        pattern_.softmax = &node;
      } else if (!is_product(node) && !is_written_operator(node.op)) {
        throw no_template{fmt::format("operator '{}' belongs to no attention kernel", node.op)};
      }
    }
    if (pattern_.softmax == nullptr)
      throw no_template{"there is no softmax for an attention kernel"};
    if (graph_.outputs.size() != 1)
      throw no_template{"an attention kernel with more than one output is not written yet"};
    const graph_value& weights = operand(*pattern_.softmax, 0);
    const int64_t dim = integer_argument(*pattern_.softmax, 1, "dim", -1);
    if (dim != -1 && dim != static_cast<int64_t>(weights.shape.size()) - 1)
      refuse_node(*pattern_.softmax, "over another dimension than the last is no attention");
    pattern_.scores = product_above(weights.id);
    size_t products = 0;
    for (const auto& node : graph_.nodes) {
      if (!is_product(node))
        continue;
      ++products;
      if (&node != pattern_.scores)
        pattern_.product = &node;
    }
    if (products != 2 || pattern_.scores == nullptr || pattern_.product == nullptr)
      throw no_template{"an attention kernel needs a product before the softmax and one behind it"};
    if (operand(*pattern_.scores, 0).shape.size() != operand(*pattern_.product, 0).shape.size())
      throw no_template{"the two products of an attention kernel have other dimensions"};
  }

  /// Brings rows of a matrix to shared memory; rows that do not exist become zeros.
  void tile_load(const std::string& memory, const std::string& tile_rows,
    const std::string& tile_columns, const std::string& pitch, const std::string& first,
    index_id limit, const graph_value& from, const index_maker& at, bool is_transposed,
    index_id depth) {
    const std::string place = writer_.fresh("place");
    const std::string row = writer_.fresh("row");
    const std::string column = writer_.fresh("column");
    const std::string value = writer_.fresh("loaded");
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1} * {2}; {0} += {3})", place,
      tile_rows, tile_columns, block_threads));
    writer_.line(fmt::format("const index_t {} = {} + {} / {};", row, first, place, tile_columns));
    writer_.line(fmt::format("const index_t {} = {} % {};", column, place, tile_columns));
    writer_.line(fmt::format("float {} = 0.0f;", value));
    writer_.open(fmt::format("if ({} < {})", row, writer_.text(limit)));
    const index_id r = writer_.pool().variable(row, limit);
    const index_id c = writer_.pool().variable(column, depth);
    writer_.line(fmt::format("{} = {};", value,
      writer_.read_as(from.id, is_transposed ? at({c, r}) : at({r, c}), number_kind::number)));
    writer_.close();
    writer_.line(fmt::format(
      "{}[{} / {} * ({}) + {}] = {};", memory, place, tile_columns, pitch, column, value));
    writer_.close();
  }

  /// Scores of the tile, with all that stands between the product and the softmax. Each thread has
  /// a few keys of its query.
  void score_tile(const attention_point& point, const std::string& rows_text,
    const std::string& keys_text, const index_maker& at, index_id rows, index_id keys) {
    const int64_t lanes = block_threads / point.queries;
    writer_.line(fmt::format("float dots[{}] = {{}};", point.keys / lanes));
    writer_.open("for (int d = 0; d < head; ++d)");
    writer_.line("const float q = queries[mine * (head + 1) + d];");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int j = 0; j < {}; ++j)", point.keys / lanes));
    writer_.line("  dots[j] += q * keys[(lane + j * lanes) * (head + 1) + d];");
    writer_.close();
    writer_.line("const index_t row = first_row + mine;");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int j = 0; j < {}; ++j)", point.keys / lanes));
    writer_.line("const index_t key = first_key + lane + j * lanes;");
    writer_.line("float score = -INFINITY;");
    writer_.open(fmt::format("if (row < {} && key < {})", rows_text, keys_text));
    const index_id r = writer_.pool().variable("row", rows);
    const index_id c = writer_.pool().variable("key", keys);
    const auto expected = at({r, c});
    writer_.set_hook([&](const graph_node& node, size_t,
                       const std::vector<index_id>& index) -> std::optional<written_value> {
      if (&node != pattern_.scores)
        return std::nullopt;
      if (index != expected)
        refuse_node(node, "is read at another place than its own, which is no attention");
      return writer_.rounded(
        writer_.value(node.outputs[0]).dtype, {"dots[j]", number_kind::number});
    });
    // The softmax's own index in terms of the product's: follow the dimensions that both have.
    const graph_value& weights = operand(*pattern_.softmax, 0);
    const auto split = index_of(weights, operand(*pattern_.product, 0), expected);
    writer_.line(
      fmt::format("score = {};", writer_.read_as(weights.id, split, number_kind::number)));
    writer_.close();
    writer_.line("scores[mine * (key_rows + 1) + lane + j * lanes] = score;");
    writer_.close();
    writer_.set_hook({});
  }

  /// Where an element of the second product's left matrix lies in a tensor that it is a view of.
  std::vector<index_id> index_of(
    const graph_value& target, const graph_value& from, const std::vector<index_id>& index) {
    int64_t id = from.id;
    std::vector<index_id> at = index;
    for (int steps = 0; steps < 32; ++steps) {
      const auto [node, output] = writer_.origin(id);
      if (node == nullptr)
        break;
      const std::string_view op = plain_op(node->op);
      if (node == pattern_.softmax) {
        if (operand(*node, 0).id != target.id)
          break;
        return at;
      }
      if (node->inputs.empty() || node->inputs[0].kind != operand_kind::value)
        break;
      const graph_value& base = writer_.value(node->inputs[0].value);
      const graph_value& what = writer_.value(id);
      if (op == "view" || op == "_unsafe_view" || op == "reshape" || op == "unsqueeze"
        || op == "squeeze" || op == "_reshape_alias")
        at = through_view(writer_.pool(), traced_shape(base), traced_shape(what), at);
      else if (op == "expand" && base.shape != what.shape)
        break;
      else if (op != "expand" && op != "clone" && op != "_to_copy" && op != "contiguous"
        && op != "detach" && op != "alias")
        break;
      id = base.id;
    }
    throw no_template{"something else than views stands between the softmax and the product behind "
                      "it"};
  }

  void softmax_step(int64_t own) {
    writer_.line("const float* const line = scores + mine * (key_rows + 1);");
    writer_.line("float highest = top;");
    writer_.line("for (int j = 0; j < key_rows; ++j)");
    writer_.line("  highest = fmaxf(highest, line[j]);");
    // Where everything so far is masked there is nothing to scale.
    writer_.line("const float base = highest == -INFINITY ? 0.0f : highest;");
    writer_.line("const float shrink = expf(top - base);");
    writer_.line("sum *= shrink;");
    writer_.line("#pragma unroll");
    writer_.line(fmt::format("for (int c = 0; c < {}; ++c)", own));
    writer_.line("  acc[c] *= shrink;");
    writer_.open("for (int j = 0; j < key_rows; ++j)");
    writer_.line("const float weight = expf(line[j] - base);");
    writer_.line("sum += weight;");
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int c = 0; c < {}; ++c)", own));
    writer_.line("const int column = lane + c * lanes;");
    writer_.line("acc[c] += weight * (column < columns ? values[j * columns + column] : 0.0f);");
    writer_.close();
    writer_.close();
    writer_.line("top = highest;");
  }

  /// Follows an element of the second product forward to the output, then writes the output there.
  void output_tile(const attention_point&, int64_t own, const index_maker& at, index_id rows,
    index_id width, const std::string& rows_text) {
    writer_.line("const float inverse = 1.0f / sum;");
    writer_.line("const index_t row = first_row + mine;");
    writer_.line(fmt::format("if (row >= {})\n    return;", rows_text));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int c = 0; c < {}; ++c)", own));
    writer_.line("const index_t column = lane + c * lanes;");
    writer_.open("if (column < columns)");
    const index_id r = writer_.pool().variable("row", rows);
    const index_id c = writer_.pool().variable("column", width);
    const auto expected = at({r, c});
    writer_.set_hook([&](const graph_node& node, size_t,
                       const std::vector<index_id>& index) -> std::optional<written_value> {
      if (&node != pattern_.product)
        return std::nullopt;
      if (index != expected)
        refuse_node(node, "is read at another place than its own, which is no attention");
      return writer_.rounded(
        writer_.value(node.outputs[0]).dtype, {"(acc[c] * inverse)", number_kind::number});
    });
    const auto place = forward(expected);
    const graph_value& output = writer_.value(graph_.outputs[0]);
    const std::string position =
      writer_.text(writer_.pool().flat(place, writer_.pool().shape(traced_shape(output))));
    writer_.store(0, position, writer_.read(output.id, place));
    writer_.close();
    writer_.close();
    writer_.set_hook({});
  }

  std::vector<index_id> forward(std::vector<index_id> index) {
    int64_t id = pattern_.product->outputs[0];
    for (int steps = 0; steps < 64 && id != graph_.outputs[0]; ++steps) {
      const graph_node* user = nullptr;
      for (const auto& node : graph_.nodes) {
        for (const auto& given : node.inputs) {
          if (given.kind == operand_kind::value && given.value == id) {
            if (user != nullptr && user != &node)
              throw no_template{"the result of attention is used twice, which is not written yet"};
            user = &node;
          }
        }
      }
      if (user == nullptr || user->outputs.size() != 1)
        throw no_template{"the output does not depend on the product alone"};
      const graph_value& from = writer_.value(id);
      const graph_value& to = writer_.value(user->outputs[0]);
      const std::string_view op = plain_op(user->op);
      if (op == "view" || op == "_unsafe_view" || op == "reshape" || op == "unsqueeze"
        || op == "squeeze" || op == "_reshape_alias") {
        index = through_view(writer_.pool(), traced_shape(to), traced_shape(from), index);
      } else if (op == "permute") {
        std::vector<index_id> next;
        for (int64_t dim : user->inputs.at(1).list)
          next.push_back(index.at(front_dimension(*user, dim, index.size())));
        index = next;
      } else if (op == "transpose" || op == "t") {
        const int64_t a = op == "t" ? 0 : integer_argument(*user, 1, "dim0", 0);
        const int64_t b = op == "t" ? 1 : integer_argument(*user, 2, "dim1", 1);
        std::swap(index.at(front_dimension(*user, a, index.size())),
          index.at(front_dimension(*user, b, index.size())));
      } else if (from.shape != to.shape) {
        refuse_node(*user, "stands behind attention, where it is not read yet");
      }
      id = to.id;
    }
    return index;
  }

  const problem& target_;
  const op_graph& graph_;
  value_writer writer_;
  attention_pattern pattern_;
};

class attention_space : public parameter_space {
public:
  attention_space(const problem& target, const op_graph& graph, size_formulas sizes,
    std::vector<std::vector<int64_t>> points, std::vector<int64_t> first)
    : parameter_space("attention",
      {{"q", "queries a block", "keys and values are read less often", "more blocks"},
        {"k", "keys a step", "fewer barriers", "less shared memory"}},
      std::move(points), std::move(first)),
      target_(target), graph_(graph), sizes_(std::move(sizes)) {}

  generated_kernel generate(size_t point) const override {
    return attention_writer(target_, graph_, sizes_).write({values(point)[0], values(point)[1]});
  }

private:
  problem target_;
  op_graph graph_;
  size_formulas sizes_;
};

} // namespace

result<stage_space_ptr> read_attention_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    const auto [head, columns] = attention_writer(target, graph, sizes).widths();
    std::vector<std::vector<int64_t>> points;
    for (int64_t queries : {16, 32, 64}) {
      for (int64_t keys : {16, 32, 64}) {
        // Shared memory that a block has everywhere.
        if (keys % (block_threads / queries) == 0
          && attention_writer::shared_bytes({queries, keys}, head, columns) <= 96 * 1024)
          points.push_back({queries, keys});
      }
    }
    if (points.empty())
      throw no_template{"heads as wide as these need more shared memory than a block has"};
    auto space =
      std::make_unique<attention_space>(target, graph, sizes, points, std::vector<int64_t>{32, 32});
    (void)space->generate(0);
    return space;
  });
}

} // namespace gristmill
