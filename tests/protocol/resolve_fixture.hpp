#pragma once

#include "protocol/json_document.hpp"
#include "protocol/resolve.hpp"

#include <doctest/doctest.h>
#include <string>

/// A problem with one of everything: x[M, K] bfloat16, w[K] float16, bits[M] bool and the scalars
/// eps float32, count int32, flag bool, wide float64; y[M, K] float32. K is 64.
struct resolve_fixture {
  gristmill::definition def;
  gristmill::axis_values axes{{"K", 64}, {"M", 100}};
  std::vector<std::pair<std::string, gristmill::scalar_value>> scalars;
  gristmill::device_facts device{132, 232448, 233472, 50u << 20, 90};
  gristmill::occupancy_function occupancy;
  /// Every key of a plan but the schema and the variants.
  gristmill::ordered_json head = gristmill::ordered_json::object();
  gristmill::ordered_json variant = {{"name", "v"}, {"steps", gristmill::ordered_json::array()}};

  resolve_fixture() {
    using gristmill::axis_kind;
    using gristmill::dtype;
    using gristmill::make_scalar;
    def.axes = {{"M", axis_kind::variable, 0, "", ""}, {"K", axis_kind::constant, 64, "", ""}};
    def.inputs = {{"x", dtype::bfloat16, false, {"M", "K"}, ""},
      {"w", dtype::float16, false, {"K"}, ""}, {"bits", dtype::boolean, false, {"M"}, ""},
      {"eps", dtype::float32, true, {}, ""}, {"count", dtype::int32, true, {}, ""},
      {"flag", dtype::boolean, true, {}, ""}, {"wide", dtype::float64, true, {}, ""}};
    def.outputs = {{"y", dtype::float32, false, {"M", "K"}, ""}};
    scalars = {{"eps", *make_scalar(dtype::float32, 0.5)},
      {"count", *make_scalar(dtype::int32, int64_t{7})},
      {"flag", *make_scalar(dtype::boolean, true)}, {"wide", *make_scalar(dtype::float64, 0.1)}};
  }

  void add_step(const char* json) {
    variant["steps"].push_back(gristmill::ordered_json::parse(json));
  }

  /// A launch of one block with these arguments.
  void add_launch(const char* id, const gristmill::ordered_json& args, const char* entry = "k") {
    variant["steps"].push_back({{"op", "launch"}, {"id", id}, {"entry", entry}, {"grid", {1, 1, 1}},
      {"block", {32, 1, 1}}, {"args", args}});
  }

  gristmill::ordered_json& step(size_t index) { return variant["steps"][index]; }

  gristmill::result<gristmill::resolved_workload> resolved() const {
    auto document = head;
    document["schema"] = "gristmill.plan/1";
    document["variants"] = gristmill::ordered_json::array({variant});
    return resolved(document);
  }

  gristmill::result<gristmill::resolved_workload> resolved(
    const gristmill::ordered_json& document) const {
    auto parsed = gristmill::parse_plan(document.dump());
    REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().what));
    return gristmill::resolve(*parsed, def, axes, scalars, device, occupancy);
  }

  gristmill::resolved_workload good() const {
    auto out = resolved();
    REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
    return *out;
  }

  gristmill::failure bad() const {
    auto out = resolved();
    REQUIRE_FALSE(out);
    return out.error();
  }

  /// True when the failure's text has all these parts.
  bool refuses(std::initializer_list<const char*> parts) const {
    const auto what = bad().what;
    INFO(what);
    for (const char* part : parts) {
      const bool found = what.find(part) != std::string::npos;
      CAPTURE(part);
      CHECK(found);
      if (!found)
        return false;
    }
    return true;
  }
};
