#include "protocol/json_document.hpp"
#include "protocol/plan.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

/// The whole form of the contract, once.
const char* full = R"plan({ "schema": "gristmill.plan/1",
  "options": {"std":"c++17","fast_math":true,"maxrregcount":128,"headers":["cccl"]},
  "domain": "K % 64 == 0",
  "let": {"tiles":"ceil_div(M,128)*ceil_div(N,256)", "splits":"clamp(sm_count//tiles,1,16)"},
  "scratch": {
    "part": {"dtype":"float32","shape":["splits","M","N"],"init":"zero","align":512},
    "lock": {"dtype":"int32","shape":["tiles"],"init":"restored"} },
  "tensor_maps": {
    "map_w": {"of":"weight","offset":"0","dtype":"auto","dims":["K","N"],"strides":["K*2"],
      "box":["64","128"],"element_strides":["1","1"],"swizzle":"128B","interleave":"none",
      "l2":"128B","oob":"zero","im2col":null,"count":"1"} },
  "variants": [
    {"name":"big","when":"M > 16",
     "defines": {"BM":128,"STAGES":4,"T":"ctype(weight)","CAUSAL":"true"},
     "steps": [
      {"op":"launch","id":"gemm","entry":"gemm<BM, STAGES, T>","when":"true",
       "grid":["min(tiles*splits, sm_count*occupancy(gemm))",1,1],"block":[384,1,1],
       "cluster":[2,1,1],"shared":"STAGES*49152+1024","cooperative":true,"pdl":false,
       "carveout":50,"after":[],
       "args":["weight","output","part","lock","M","N:i64","eps","sm_scale*1.44:f32",
               {"ptr":"weight","offset":"K*2"},{"map":"map_w"},
               {"struct":["M","N:i64",{"map":"map_w"}]},"null",7]},
      {"op":"memset","dst":"part","offset":"0","bytes":"bytes(part)","width":4,"value":0},
      {"op":"copy","dst":"output","src":"part","dst_offset":"0","src_offset":"0","bytes":"M*N*4",
       "after":["gemm"]},
      {"op":"read","from":"cu_seqlens","at":["batch_size"],"as":["total"]},
      {"op":"repeat","var":"r","count":"ilog2(N)","steps":[]} ] } ] })plan";

/// The smallest plan, with one place changed.
result<plan> with(const char* pointer, const ordered_json& value) {
  auto document = ordered_json::parse(full);
  document[ordered_json::json_pointer{pointer}] = value;
  return parse_plan(document.dump());
}

result<plan> without(const char* parent, const char* key) {
  auto document = ordered_json::parse(full);
  document[ordered_json::json_pointer{parent}].erase(key);
  return parse_plan(document.dump());
}

std::string refusal(const char* pointer, const ordered_json& value) {
  auto parsed = with(pointer, value);
  CAPTURE(pointer);
  CAPTURE(value.dump());
  REQUIRE_FALSE(parsed);
  return parsed.error().what;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the whole form parses into its parts") {
  auto parsed = parse_plan(full);
  REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().what));
  CHECK(parsed->options == plan_options{"c++17", true, 128, {"cccl"}});
  CHECK(parsed->domain.text() == "K % 64 == 0");
  CHECK(parsed->let[1].first == "splits");
  REQUIRE(parsed->scratch.size() == 2);
  CHECK(parsed->scratch[0].init == scratch_init::zero);
  CHECK(parsed->scratch[0].align == 512);
  CHECK(parsed->scratch[1].type == dtype::int32);
  CHECK(parsed->tensor_maps[0].swizzle == "128B");
  const auto& variant = parsed->variants[0];
  CHECK(variant.name == "big");
  CHECK(variant.defines[0].second.text() == "128");
  REQUIRE(variant.steps.size() == 5);
  const auto& launch = variant.steps[0];
  CHECK(launch.entry == "gemm<BM, STAGES, T>");
  CHECK(launch.after->empty());
  CHECK(launch.cooperative);
  CHECK(launch.carveout == 50);
  CHECK((*launch.cluster)[0].text() == "2");
  REQUIRE(launch.args.size() == 13);
  CHECK(launch.args[5].type == "i64");
  CHECK(launch.args[7].type == "f32");
  CHECK(launch.args[8].what == plan_argument::form::pointer);
  CHECK(launch.args[9].map == "map_w");
  CHECK(launch.args[10].fields.size() == 3);
  CHECK(launch.args[11].what == plan_argument::form::null);
  CHECK(variant.steps[1].width == 4);
  CHECK_FALSE(variant.steps[1].after);
  CHECK(*variant.steps[2].after == std::vector<std::string>{"gemm"});
  CHECK(variant.steps[3].as == std::vector<std::string>{"total"});
  CHECK(variant.steps[4].variable == "r");
}

TEST_CASE("what the contract gives a default may be left out") {
  auto parsed = parse_plan(R"({"schema":"gristmill.plan/1","variants":[{"steps":[
    {"op":"launch","entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[]}]}]})");
  REQUIRE(parsed);
  CHECK(parsed->options == plan_options{});
  CHECK(parsed->domain.text() == "true");
  CHECK(parsed->variants[0].name == "variant 0");
  const auto& launch = parsed->variants[0].steps[0];
  CHECK(launch.id.empty());
  CHECK_FALSE(launch.cluster);
  CHECK(launch.shared.text() == "0");
  CHECK(launch.carveout == -1);
  CHECK_FALSE(launch.after);
}

TEST_CASE("what the contract gives no default must be there") {
  for (const char* key : {"schema", "variants"})
    CHECK_FALSE(without("", key));
  CHECK_FALSE(without("/variants/0", "steps"));
  for (const char* key : {"op", "entry", "grid", "block", "args"})
    CHECK_FALSE(without("/variants/0/steps/0", key));
  for (const char* key : {"dst", "offset", "bytes", "width", "value"})
    CHECK_FALSE(without("/variants/0/steps/1", key));
  for (const char* key : {"dst", "src", "dst_offset", "src_offset", "bytes"})
    CHECK_FALSE(without("/variants/0/steps/2", key));
  for (const char* key : {"from", "at", "as"})
    CHECK_FALSE(without("/variants/0/steps/3", key));
  for (const char* key : {"var", "count", "steps"})
    CHECK_FALSE(without("/variants/0/steps/4", key));
  for (const char* key : {"dtype", "shape"})
    CHECK_FALSE(without("/scratch/part", key));
  for (const char* key : {"of", "box"})
    CHECK_FALSE(without("/tensor_maps/map_w", key));
  CHECK_FALSE(without("/variants/0/steps/0/args/8", "offset"));
}

TEST_CASE("an unknown key is an error at every level, with the nearest known one") {
  for (const char* place :
    {"", "/options", "/scratch/part", "/tensor_maps/map_w", "/variants/0", "/variants/0/steps/0",
      "/variants/0/steps/1", "/variants/0/steps/2", "/variants/0/steps/3", "/variants/0/steps/4",
      "/variants/0/steps/0/args/8", "/variants/0/steps/0/args/9", "/variants/0/steps/0/args/10"})
    CHECK(
      contains(refusal((std::string{place} + "/bogus_key").c_str(), 1), "unknown key `bogus_key`"));
  CHECK(contains(refusal("/variants/0/steps/0/gird", 1), "did you mean `grid`?"));
  CHECK(contains(refusal("/variants/0/steps/0/gird", 1), "variants.0.steps.0"));
}

TEST_CASE("a failure names the place in the document") {
  CHECK(contains(refusal("/variants/0/steps/0/grid/0", "1 +"), "variants.0.steps.0.grid.0"));
  CHECK(
    contains(refusal("/variants/0/steps/0/grid", ordered_json::array({1, 1})), "three entries"));
  CHECK(contains(refusal("/variants/0/steps/0/block/0", nullptr), "block.0"));
  CHECK(contains(refusal("/variants/0/defines/CAUSAL", true), "as a string"));
  CHECK(contains(refusal("/variants/0/steps/0/op", "lunch"), "did you mean `launch`?"));
  CHECK(contains(refusal("/variants/0/steps/0/args/5", "N:i46"), "did you mean `i64`?"));
  CHECK(contains(refusal("/variants/0/steps/2/after/0", "gem"), "did you mean `gemm`?"));
  CHECK(contains(refusal("/variants/0/steps/0/args/8", ordered_json::object()), "`ptr`"));
  CHECK(contains(refusal("/options/headers/0", "cutlas"), "did you mean `cutlass`?"));
  CHECK(contains(refusal("/schema", "gristmill.plan/2"), "gristmill.plan/1"));
}

TEST_CASE("occupancy stands only where the contract allows it") {
  CHECK(with("/variants/0/steps/0/args/4", "occupancy(gemm)"));
  CHECK(with("/scratch/part/shape/0", "occupancy(gemm)"));
  for (const char* place : {"/domain", "/let/tiles", "/variants/0/when", "/variants/0/defines/BM",
         "/variants/0/steps/0/block/0", "/variants/0/steps/0/shared", "/variants/0/steps/0/when",
         "/variants/0/steps/1/bytes", "/variants/0/steps/4/count"})
    CHECK(contains(refusal(place, "occupancy(gemm)"), "`occupancy` may stand only"));
}

TEST_CASE("names that the plan gives are plain and hide nothing of the language") {
  for (const char* wrong : {"a b", "1a", "", "min", "sm_count", "true", "axis", "a-b"}) {
    CHECK_FALSE(with("/let", {{wrong, 1}}));
    CHECK_FALSE(with("/scratch", {{wrong, {{"dtype", "int32"}, {"shape", {1}}}}}));
  }
  for (const char* wrong : {"_X", "__x", "gm_x", "GM_X"})
    CHECK_FALSE(with("/variants/0/defines", {{wrong, 1}}));
  CHECK_FALSE(with("/variants/0/steps/1/id", "gemm"));
  CHECK_FALSE(with("/variants/0/name", "a|b"));
}

TEST_CASE("an entry cannot carry more than a name with template arguments") {
  for (const char* fine : {"k", "ns::k<T, 4>", "k<(A > B), int*>", "k<1'000>"})
    CHECK(with("/variants/0/steps/0/entry", fine));
  for (const char* wrong : {"", "k; }", "k // x", "k /* x */", "k\"", "k{}", "k\n", "k#"})
    CHECK_FALSE(with("/variants/0/steps/0/entry", wrong));
  CHECK_FALSE(with("/variants/0/steps/0/entry", std::string(513, 'k')));
}

TEST_CASE("a plan is bounded in every direction") {
  CHECK_FALSE(parse_plan(std::string(65537, ' ')));
  CHECK_FALSE(parse_plan(std::string(1000, '[')));
  CHECK_FALSE(parse_plan(R"({"schema":"gristmill.plan/1","schema":"gristmill.plan/1"})"));
  auto document = ordered_json::parse(full);
  const ordered_json step{{"op", "launch"}, {"entry", "k"}, {"grid", {1, 1, 1}},
    {"block", {1, 1, 1}}, {"args", ordered_json::array()}};
  const ordered_json variant{{"steps", ordered_json::array({step})}};
  document["variants"] = std::vector<ordered_json>(16, variant);
  CHECK(parse_plan(document.dump()));
  document["variants"] = std::vector<ordered_json>(17, variant);
  CHECK_FALSE(parse_plan(document.dump()));
  document["variants"] = ordered_json::array();
  CHECK_FALSE(parse_plan(document.dump()));
  document["variants"] = ordered_json::array({{{"steps", std::vector<ordered_json>(257, step)}}});
  CHECK_FALSE(parse_plan(document.dump()));
  ordered_json nested = step;
  for (int i = 0; i < 4; ++i)
    nested = {{"op", "repeat"}, {"var", std::string(1, static_cast<char>('p' + i))}, {"count", 1},
      {"steps", ordered_json::array({nested})}};
  document["variants"] = ordered_json::array({{{"steps", ordered_json::array({nested})}}});
  CHECK(parse_plan(document.dump()));
  nested = {{"op", "repeat"}, {"var", "z"}, {"count", 1}, {"steps", ordered_json::array({nested})}};
  document["variants"] = ordered_json::array({{{"steps", ordered_json::array({nested})}}});
  CHECK_FALSE(parse_plan(document.dump()));
}

TEST_CASE("numbers outside of their range are refused") {
  CHECK_FALSE(with("/variants/0/steps/1/width", 3));
  CHECK_FALSE(with("/variants/0/steps/1/width", 8));
  CHECK_FALSE(with("/variants/0/steps/1/value", -1));
  CHECK(with("/variants/0/steps/1/value", 4294967295u));
  CHECK_FALSE(with("/variants/0/steps/1/value", 4294967296u));
  CHECK_FALSE(with("/scratch/part/align", 100));
  CHECK_FALSE(with("/scratch/part/dtype", "float33"));
  CHECK_FALSE(with("/options/maxrregcount", 256));
  CHECK_FALSE(with("/variants/0/steps/0/carveout", 101));
  CHECK_FALSE(with("/variants/0/steps/0/cooperative", 1));
}
