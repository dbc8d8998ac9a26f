#include "kernels/families/attention_units.hpp"

#include "kernels/families/attention.hpp"
#include "kernels/families/attention_units_code.hpp"
#include "kernels/families/family_common.hpp"
#include "kernels/families/value_writer.hpp"
#include "kernels/plan_text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace gristmill {

namespace {

using json = nlohmann::ordered_json;

constexpr double binary_logarithm_of_e = 1.4426950408889634;
/// Half of the queries of a block.
constexpr int64_t rows_least = 64;

/// What the kernel needs to know of a stage, as texts of a launch plan.
struct attention_facts {
  std::string query;
  std::string key;
  std::string value;
  std::string output;
  dtype type = dtype::bfloat16;
  std::string heads;
  std::string rows;
  std::string keys;
  int head = 128;
  double scale = 1.0;
};

/// Follows the strict form of attention through a graph.
class attention_units_reader {
public:
  attention_units_reader(const problem& target, const op_graph& graph, const size_formulas& sizes)
    : target_(target), graph_(graph), writer_(target, graph, sizes) {}

  attention_facts read() {
    const graph_node* softmax = nullptr;
    for (const auto& node : graph_.nodes)
      if (node.op == "_softmax") {
        if (softmax != nullptr)
          throw no_template{"two softmaxes are no attention for the warpgroup units"};
        softmax = &node;
      }
    if (softmax == nullptr)
      throw no_template{"there is no softmax for an attention kernel"};
    const graph_value& scaled = operand(*softmax, 0);
    const int64_t dim = integer_argument(*softmax, 1, "dim", -1);
    if (dim != -1 && dim != static_cast<int64_t>(scaled.shape.size()) - 1)
      refuse_node(*softmax, "over another dimension than the last is no attention");
    attention_facts facts;
    const graph_node& scores = scores_of(scaled.id, facts.scale);
    const graph_node& product = product_behind(softmax->outputs.at(0));
    const graph_value& q = operand(scores, 0);
    const graph_value& k = operand(scores, 1);
    const graph_value& v = operand(product, 1);
    if (q.shape.size() != 3 || k.shape.size() != 3 || v.shape.size() != 3)
      throw no_template{"attention of a single head belongs to no warpgroup kernel yet"};
    for (const graph_value* one : {&q, &k, &v})
      if (one->dtype != "float32")
        throw no_template{
          "products in 16 bits round the scores, which the warpgroup kernel does not"};
    const graph_value& queries = input_of(q, false);
    const graph_value& keys = input_of(k, true);
    const graph_value& values = input_of(v, false);
    if (keys.dtype != queries.dtype || values.dtype != queries.dtype)
      throw no_template{"the inputs of the attention are of two types"};
    facts.query = queries.name;
    facts.key = keys.name;
    facts.value = values.name;
    facts.type = queries.dtype == "bfloat16" ? dtype::bfloat16 : dtype::float16;
    const auto q_shape = traced_shape(q);
    const auto v_shape = traced_shape(v);
    auto& pool = writer_.pool();
    const int64_t head = pool.number(pool.size(q_shape[2]));
    if ((head != 64 && head != 128) || pool.number(pool.size(v_shape[2])) != head)
      throw no_template{"the warpgroup kernel has heads of 64 and 128 only"};
    facts.head = static_cast<int>(head);
    facts.heads = pool.plan_text(pool.size(q_shape[0]));
    facts.rows = pool.plan_text(pool.size(q_shape[1]));
    facts.keys = pool.plan_text(pool.size(v_shape[1]));
    follow_output(product, facts);
    return facts;
  }

private:
  const graph_value& operand(const graph_node& node, size_t position) const {
    if (position >= node.inputs.size() || node.inputs[position].kind != operand_kind::value)
      refuse_node(node, "has no tensor where one is needed");
    return writer_.value(node.inputs[position].value);
  }

  static bool keeps_elements(std::string_view op) {
    return op == "view" || op == "_unsafe_view" || op == "reshape" || op == "_reshape_alias"
      || op == "expand" || op == "clone" || op == "contiguous" || op == "detach" || op == "alias"
      || op == "_to_copy";
  }

  /// Two dimensions at the end stay, those before them are at most merged: rows keep their order.
  void need_kept_rows(
    const graph_node& node, const graph_value& from, const graph_value& to) const {
    const auto a = traced_shape(from);
    const auto b = traced_shape(to);
    const auto count = [](const std::vector<size_pair>& shape) {
      size_pair all{1, 1};
      for (const size_pair& size : shape)
        all = all * size;
      return all;
    };
    if (a.size() < 2 || b.size() < 2 || a.back() != b.back() || a[a.size() - 2] != b[b.size() - 2]
      || count(a) != count(b))
      refuse_node(node, "moves rows, which the warpgroup kernel does not follow");
  }

  /// The first product, above the factor.
  const graph_node& scores_of(int64_t id, double& scale) const {
    bool is_scaled = false;
    for (int steps = 0; steps < 32; ++steps) {
      const auto [node, output] = writer_.origin(id);
      if (node == nullptr)
        break;
      const auto op = plain_op(node->op);
      if (op == "bmm")
        return *node;
      if ((op == "mul" || op == "div") && !is_scaled && node->inputs.size() >= 2
        && !node->inputs[1].varies
        && (node->inputs[1].kind == operand_kind::number
          || node->inputs[1].kind == operand_kind::integer)) {
        const double number = node->inputs[1].kind == operand_kind::number
          ? node->inputs[1].number
          : static_cast<double>(node->inputs[1].integer);
        scale = op == "mul" ? number : 1.0 / number;
        is_scaled = true;
        if (!std::isfinite(scale) || scale <= 0)
          refuse_node(*node, "by such a factor belongs to no warpgroup kernel");
      } else if (!keeps_elements(op)) {
        refuse_node(*node, "between the product and the softmax belongs to no warpgroup kernel");
      } else {
        need_kept_rows(*node, operand(*node, 0), writer_.value(id));
      }
      if (writer_.value(id).dtype != "float32")
        refuse_node(*node, "rounds the scores, which the warpgroup kernel does not");
      id = operand(*node, 0).id;
    }
    throw no_template{"an attention kernel needs a product before the softmax"};
  }

  const graph_node& only_user(int64_t id) const {
    const graph_node* user = nullptr;
    for (const auto& node : graph_.nodes)
      for (const auto& given : node.inputs)
        if (given.kind == operand_kind::value && given.value == id) {
          if (user != nullptr && user != &node)
            throw no_template{"a value of the attention is used twice"};
          user = &node;
        }
    if (user == nullptr || user->outputs.size() != 1)
      throw no_template{"something of the attention leads nowhere"};
    return *user;
  }

  const graph_node& product_behind(int64_t id) const {
    for (int steps = 0; steps < 32; ++steps) {
      const graph_node& user = only_user(id);
      if (plain_op(user.op) == "bmm") {
        if (operand(user, 0).id != id)
          refuse_node(user, "weighs nothing: the softmax is its right operand");
        return user;
      }
      if (!keeps_elements(plain_op(user.op)))
        refuse_node(user, "behind the softmax belongs to no warpgroup kernel");
      need_kept_rows(user, writer_.value(id), writer_.value(user.outputs[0]));
      id = user.outputs[0];
    }
    throw no_template{"an attention kernel needs a product behind the softmax"};
  }

  /// The input that an operand is, but for conversion and views. Keys are transposed once.
  const graph_value& input_of(const graph_value& from, bool is_transposed) const {
    int64_t id = from.id;
    for (int steps = 0; steps < 32; ++steps) {
      const graph_value& here = writer_.value(id);
      const auto [node, output] = writer_.origin(id);
      if (node == nullptr) {
        if (here.source != graph_source::input || is_transposed)
          break;
        if (here.dtype != "bfloat16" && here.dtype != "float16")
          throw no_template{"the warpgroup kernel needs inputs of 16 bits"};
        return here;
      }
      const auto op = plain_op(node->op);
      const graph_value& above = operand(*node, 0);
      if (op == "transpose" && is_transposed) {
        const size_t rank = above.shape.size();
        const size_t a = front_dimension(*node, integer_argument(*node, 1, "dim0", 0), rank);
        const size_t b = front_dimension(*node, integer_argument(*node, 2, "dim1", 1), rank);
        if (std::min(a, b) + 2 != rank || std::max(a, b) + 1 != rank)
          refuse_node(*node, "turns other dimensions than the last two");
        is_transposed = false;
      } else if (keeps_elements(op)) {
        need_kept_rows(*node, above, here);
      } else {
        refuse_node(*node, "before a product belongs to no warpgroup kernel");
      }
      id = above.id;
    }
    throw no_template{"an operand of the attention is no input in its own order"};
  }

  void follow_output(const graph_node& product, attention_facts& facts) const {
    int64_t id = product.outputs.at(0);
    for (int steps = 0; steps < 32 && id != graph_.outputs.at(0); ++steps) {
      const graph_node& user = only_user(id);
      if (!keeps_elements(plain_op(user.op)))
        refuse_node(user, "behind the attention belongs to no warpgroup kernel");
      need_kept_rows(user, writer_.value(id), writer_.value(user.outputs[0]));
      id = user.outputs[0];
    }
    if (id != graph_.outputs.at(0) || graph_.outputs.size() != 1)
      throw no_template{"the output is not the attention alone"};
    if (target_.def.outputs.at(0).type != facts.type)
      throw no_template{"the output of the attention has another type than its inputs"};
    facts.output = target_.def.outputs[0].name;
  }

  const problem& target_;
  const op_graph& graph_;
  value_writer writer_;
};

class attention_units_space : public parameter_space {
public:
  attention_units_space(
    attention_facts facts, generated_kernel elsewhere, std::vector<std::vector<int64_t>> points)
    : parameter_space("attention_units",
      {{"k", "keys a step", "longer products between two softmaxes", "less shared memory"},
        {"st", "steps on their way", "memory is waited for less", "less shared memory"},
        {"turn", "for warpgroups that take turns at the units",
          "products of one run beside the softmax of the other", "nobody waits for a turn"}},
      points, points.front()),
      facts_(std::move(facts)), elsewhere_(std::move(elsewhere)),
      promises_(points_with({{128, 2, 1}, {176, 2, 1}, {64, 4, 1}, {128, 2, 0}})) {}

  std::vector<size_t> promising() const override { return promises_; }

  generated_kernel generate(size_t point) const override {
    const attention_units_point what{static_cast<int>(values(point)[0]),
      static_cast<int>(values(point)[1]), facts_.head, values(point)[2] != 0};
    generated_kernel out;
    out.source = elsewhere_.source + "\n" + attention_units_code(facts_.type, what);
    json document = json::parse(elsewhere_.plan);
    const auto map = [&](const std::string& input, const std::string& rows, int box) {
      return json{{"of", qualified_name("in", input)}, {"dims", {facts_.head, rows, facts_.heads}},
        {"strides", {2 * facts_.head, fmt::format("{} * ({})", 2 * facts_.head, rows)}},
        {"box", {64, box, 1}}, {"swizzle", "128B"}, {"l2", "256B"}};
    };
    document["tensor_maps"] = {{"query_map", map(facts_.query, facts_.rows, 128)},
      {"key_map", map(facts_.key, facts_.keys, what.keys)},
      {"value_map", map(facts_.value, facts_.keys, what.keys)}};
    json step = {{"op", "launch"}, {"entry", "attention_units"}};
    step["grid"] = {fmt::format("(({}) + 127) // 128 * ({})", facts_.rows, facts_.heads), 1, 1};
    step["block"] = {384, 1, 1};
    step["shared"] = what.shared_bytes();
    step["args"] = {json{{"map", "query_map"}}, json{{"map", "key_map"}},
      json{{"map", "value_map"}}, qualified_name("out", facts_.output), facts_.rows, facts_.keys,
      fmt::format("{:.17g}:f32", facts_.scale * binary_logarithm_of_e)};
    // No other condition on lengths: a workload's small twin has to run the same kernel.
    json first = {
      {"name", "warpgroups"}, {"when", fmt::format("arch == 90 and ({}) > 0", facts_.keys)}};
    // One source for all variants, so that its macros are needed here, too.
    if (const auto& variant = document["variants"].front(); variant.contains("defines"))
      first["defines"] = variant["defines"];
    first["steps"] = json::array({step});
    document["variants"].insert(document["variants"].begin(), first);
    out.plan = document.dump(2) + "\n";
    return out;
  }

private:
  attention_facts facts_;
  generated_kernel elsewhere_;
  std::vector<size_t> promises_;
};

} // namespace

result<stage_space_ptr> read_attention_units_stage(const problem& target, const op_graph& graph) {
  return read_family(target, graph, [&](const size_formulas& sizes) -> stage_space_ptr {
    attention_facts facts = attention_units_reader(target, graph, sizes).read();
    auto plain = read_attention_stage(target, graph);
    if (!plain)
      throw no_template{plain.error().what};
    // Of a few rows most of a tile would be empty.
    const bool fits_some =
      std::any_of(target.workloads.begin(), target.workloads.end(), [&](const workload& work) {
        const auto rows = value_at(target, work, facts.rows);
        const auto keys = value_at(target, work, facts.keys);
        return rows && keys && *rows >= rows_least && *keys >= rows_least;
      });
    if (!fits_some)
      throw no_template{fmt::format(
        "no workload has {} queries and keys, below which warpgroup units stand idle", rows_least)};
    std::vector<std::vector<int64_t>> points;
    for (int64_t turn : {1, 0}) {
      for (const auto& [keys, stages] : {std::pair{160, 2}, std::pair{128, 2}, std::pair{176, 2},
             std::pair{64, 4}, std::pair{64, 3}, std::pair{64, 2}})
        points.push_back({keys, stages, turn});
    }
    return std::make_unique<attention_units_space>(
      std::move(facts), (*plain)->generate((*plain)->first()), points);
  });
}

} // namespace gristmill
