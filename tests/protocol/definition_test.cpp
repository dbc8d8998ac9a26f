#include "protocol/definition.hpp"
#include "protocol/json_document.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

ordered_json sample() {
  return ordered_json::parse(R"({"name":"op","op_type":"norm",
    "axes":{"N":{"type":"var"},"K":{"type":"const","value":8},"E":{"expression":"N*K"}},
    "inputs":{"x":{"shape":["N","K"],"dtype":"bfloat16","description":"d"},
              "eps":{"shape":null,"dtype":"float32"}},
    "outputs":{"y":{"shape":["E","2"],"dtype":"float32"}},
    "reference":"def run(x, eps):\n  return x"})");
}

result<definition> with(const char* pointer, const ordered_json& value) {
  auto document = sample();
  document[ordered_json::json_pointer{pointer}] = value;
  return parse_definition(document.dump(), "definition.json");
}

std::string refusal(const char* pointer, const ordered_json& value) {
  auto def = with(pointer, value);
  CAPTURE(pointer);
  REQUIRE_FALSE(def);
  return def.error().what;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a definition keeps the order of its file") {
  auto def = parse_definition(sample().dump(), "definition.json");
  REQUIRE(def);
  CHECK(def->name == "op");
  CHECK(def->op_type == "norm");
  REQUIRE(def->axes.size() == 3);
  CHECK(def->axes[1] == axis{"K", axis_kind::constant, 8, "", ""});
  CHECK(def->axes[2] == axis{"E", axis_kind::expression, 0, "N*K", ""});
  REQUIRE(def->inputs.size() == 2);
  CHECK(def->inputs[0] == tensor_spec{"x", dtype::bfloat16, false, {"N", "K"}, "d"});
  CHECK(def->inputs[1].is_scalar);
  CHECK(def->outputs[0].shape == std::vector<std::string>{"E", "2"});
  CHECK(def->find_input("eps") == &def->inputs[1]);
  CHECK(def->find_output("x") == nullptr);
  CHECK(def->find_axis("Z") == nullptr);
}

TEST_CASE("all field errors come at once, each with its path") {
  auto document = sample();
  document["name"] = "";
  document["axes"]["K"]["value"] = -1;
  document["inputs"]["x"]["dtype"] = "bfloat15";
  document["inputs"]["x"]["shape"][1] = 8;
  document.erase("reference");
  const auto what = parse_definition(document.dump(), "definition.json").error().what;
  for (const char* path : {"definition.json:1: name: ", "axes.K.value: ", "inputs.x.dtype: ",
         "inputs.x.shape.1: ", "reference: "})
    CHECK(contains(what, path));
  CHECK(contains(what, "did you mean `bfloat16`?"));
}

TEST_CASE("the cross-field rules name what breaks them") {
  CHECK(contains(refusal("/reference", "def run(x): pass"), "(x), but the inputs are (x, eps)"));
  CHECK(contains(refusal("/reference", "class run: pass"), "no top-level `def run`"));
  CHECK(contains(refusal("/reference", "def run(x, eps: pass"), "never closed"));
  CHECK(contains(refusal("/custom_inputs_entrypoint", "gen"), "no top-level `def gen`"));
  CHECK(contains(refusal("/custom_inputs_entrypoint", "a b"), "not a name"));
  CHECK(with("/custom_inputs_entrypoint", "run"));
  CHECK(contains(refusal("/axes/x", ordered_json::object()), "inputs.x: an axis"));
  CHECK(contains(refusal("/outputs/x", sample()["outputs"]["y"]), "outputs.x: an input"));
  CHECK(contains(refusal("/outputs/y/shape/0", "EE"), "no axis `EE`; did you mean `E`?"));
}

TEST_CASE("ignored keys and an empty hf_id become warnings") {
  auto document = sample();
  document["hf_id"] = "";
  document["optype"] = "x";
  document["axes"]["N"]["value"] = 4;
  document["inputs"]["x"]["optional"] = true;
  std::vector<std::string> warnings;
  auto def = parse_definition(document.dump(), "definition.json", &warnings);
  REQUIRE(def);
  CHECK(def->find_axis("N")->kind == axis_kind::variable);
  REQUIRE(warnings.size() == 4);
  std::string all;
  for (const auto& each : warnings)
    all += each + "\n";
  CHECK(contains(all, "definition.json:1: hf_id"));
  CHECK(contains(all, "`optype`; did you mean `op_type`?"));
  CHECK(contains(all, "`axes.N.value`"));
  CHECK(contains(all, "`inputs.x.optional`"));
}

TEST_CASE("documents of another kind are refused, not misread") {
  CHECK_FALSE(parse_definition("[]", "definition.json"));
  CHECK_FALSE(parse_definition("", "definition.json"));
  CHECK(contains(refusal("/axes", ordered_json::array()), "axes: must be an object"));
  CHECK(contains(refusal("/axes/N", 5), "axes.N: must be an object"));
  CHECK(contains(refusal("/axes/N/type", "varr"), "did you mean `var`?"));
  CHECK(contains(refusal("/inputs/x", nullptr), "inputs.x: must be an object"));
  CHECK(contains(refusal("/inputs/x/shape", "N"), "inputs.x.shape"));
}

TEST_CASE("digits of every script mean the same literal, and other numerals are none") {
  const auto with = [](const std::string& entry) {
    return parse_definition(R"({"name":"d","axes":{},"inputs":{"x":{"shape":[")" + entry
        + R"("],"dtype":"int8"}},"outputs":{},"reference":"def run(x): return x"})",
      "d");
  };
  const auto def = with("\u0661\uff12\u0967");
  REQUIRE_MESSAGE(def, (def ? "" : def.error().what));
  CHECK(def->inputs[0].shape == std::vector<std::string>{"121"});
  CHECK_FALSE(with("\u00b2"));
  CHECK_FALSE(with("1\u0661x"));
}

TEST_CASE("a constant beyond 64 bits is refused also without its type") {
  for (const std::string value : {"9223372036854775808", "18446744073709551616"}) {
    CAPTURE(value);
    const auto def = parse_definition(R"({"name":"d","axes":{"K":{"value":)" + value
        + R"(}},"inputs":{},"outputs":{},"reference":"def run(): pass"})",
      "d");
    REQUIRE_FALSE(def);
    CHECK(def.error().what.find("axes.K.value") != std::string::npos);
  }
}
