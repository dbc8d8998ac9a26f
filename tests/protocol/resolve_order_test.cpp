#include "tests/protocol/resolve_fixture.hpp"

using namespace gristmill;

// What runs, in which order, and who waits for whom.

namespace {

using indices = std::vector<uint32_t>;

} // namespace

TEST_CASE_FIXTURE(resolve_fixture, "a step waits for the one before unless it says otherwise") {
  add_launch("a", ordered_json::array());
  add_launch("b", ordered_json::array());
  add_launch("c", ordered_json::array());
  add_launch("d", ordered_json::array());
  step(2)["after"] = ordered_json::array();
  step(3)["after"] = {"b", "c"};
  const auto out = good();
  CHECK(out.steps[0].after == indices{});
  CHECK(out.steps[1].after == indices{0});
  CHECK(out.steps[2].after == indices{});
  CHECK(out.steps[3].after == indices{1, 2});
}

TEST_CASE_FIXTURE(resolve_fixture, "a skipped step hands on what it waited for") {
  add_launch("a", ordered_json::array());
  add_launch("b", ordered_json::array());
  add_launch("c", ordered_json::array());
  step(1)["when"] = "M < 3";
  auto out = good();
  REQUIRE(out.steps.size() == 2);
  CHECK(out.steps[1].id == "c");
  CHECK(out.steps[1].after == indices{0});
  // A grid with a 0 skips as well, before anything else of it is looked at.
  step(1).erase("when");
  step(1)["grid"][1] = 0;
  step(1)["block"][0] = -5;
  CHECK(good().steps.size() == 2);
}

TEST_CASE_FIXTURE(resolve_fixture, "scratch that starts at zero is a memset before everything") {
  head["scratch"] = {{"s", {{"dtype", "float32"}, {"shape", {8}}, {"init", "zero"}}},
    {"r", {{"dtype", "float32"}, {"shape", {8}}, {"init", "restored"}}}};
  add_launch("a", ordered_json::array());
  step(0)["after"] = ordered_json::array();
  const auto out = good();
  REQUIRE(out.steps.size() == 2);
  CHECK(out.steps[0].what == resolved_step::op::memset);
  CHECK(out.steps[0].buffer == 4);
  CHECK(out.steps[0].bytes == 32);
  CHECK(out.steps[0].value == 0);
  CHECK(out.steps[1].after == indices{0});
  CHECK(out.buffers[5].init == "restored");
}

TEST_CASE_FIXTURE(resolve_fixture, "a repeat is unrolled with its variable, round after round") {
  add_step(R"json({"op":"repeat","var":"r","count":"ilog2(K)","steps":[
    {"op":"launch","entry":"k","grid":[1,1,1],"block":["r+1",1,1],"args":["r"]},
    {"op":"launch","entry":"k","grid":[1,1,1],"block":[1,1,1],"args":["r"],"after":[]}]})json");
  add_launch("end", {"M"});
  const auto out = good();
  REQUIRE(out.steps.size() == 13);
  CHECK(out.steps[10].block[0] == 6);
  CHECK(out.steps[10].args[0].bytes[0] == 5);
  CHECK(out.steps[0].after == indices{});
  CHECK(out.steps[1].after == indices{});
  // The second round waits for all of the first, and what follows for all of the last.
  CHECK(out.steps[2].after == indices{0, 1});
  CHECK(out.steps[3].after == indices{0, 1});
  CHECK(out.steps[12].after == indices{10, 11});
}

TEST_CASE_FIXTURE(resolve_fixture, "a repeat of no rounds and its limits") {
  add_step(R"json({"op":"repeat","var":"r","count":"M - 100","steps":[
    {"op":"launch","entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[]}]})json");
  CHECK(good().steps.empty());
  step(0)["count"] = 256;
  CHECK(good().steps.size() == 256);
  step(0)["count"] = 257;
  CHECK(bad().code == errc::refused);
  step(0)["count"] = -1;
  CHECK(bad().code == errc::refused);
  step(0)["count"] = 2;
  step(0)["var"] = "M";
  CHECK(refuses({"var: the name `M` is taken"}));
  step(0)["var"] = "r";
  step(0)["count"] = 200;
  step(0)["steps"].push_back(step(0)["steps"][0]);
  CHECK(refuses({"more than 256 steps"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "the variable of a repeat ends with it") {
  add_step(R"json({"op":"repeat","var":"r","count":1,"steps":[]})json");
  add_launch("a", {"r"});
  CHECK(refuses({"no name `r`"}));
}

TEST_CASE_FIXTURE(resolve_fixture, "memset and copy stay inside of buffers that may be written") {
  head["scratch"] = {{"s", {{"dtype", "float32"}, {"shape", {8}}}}};
  add_step(
    R"json({"op":"memset","dst":"s","offset":8,"bytes":"bytes(s)-8","width":4,"value":7})json");
  add_step(
    R"json({"op":"copy","dst":"y","src":"x","dst_offset":16,"src_offset":0,"bytes":"bytes(x)"})json");
  add_step(R"json({"op":"copy","dst":"y","src":"x","dst_offset":0,"src_offset":0,"bytes":0})json");
  const auto out = good();
  REQUIRE(out.steps.size() == 2); // A copy of nothing is no step.
  CHECK(out.steps[0].offset == 8);
  CHECK(out.steps[0].bytes == 24);
  CHECK(out.steps[0].width == 4);
  CHECK(out.steps[0].value == 7);
  CHECK(out.steps[1].buffer == 3);
  CHECK(out.steps[1].offset == 16);
  CHECK(out.steps[1].src_buffer == 0);
  const std::tuple<size_t, const char*, ordered_json, const char*> wrong[] = {
    {0, "dst", "x", "not to be written"}, {0, "offset", 12, "outside of s"},
    {0, "offset", -4, "outside of s"}, {0, "bytes", "-4", "negative"}, {0, "bytes", 6, "width 4"},
    {0, "dst", "M", "not a tensor"}, {1, "bytes", "bytes(x)+1", "outside of x"},
    {1, "dst", "w", "not to be written"}, {1, "src", "xx", "did you mean `x`?"},
    {1, "src", "y", "overlap"}};
  const auto steps = variant["steps"];
  for (const auto& [index, key, value, part] : wrong) {
    variant["steps"] = steps;
    step(index)[key] = value;
    CAPTURE(value.dump());
    CHECK(refuses({part}));
  }
}

TEST_CASE_FIXTURE(resolve_fixture, "units differ when a workload needs other kernels") {
  add_launch("a", ordered_json::array(), "k");
  add_launch("b", ordered_json::array(), "tail");
  step(1)["when"] = "M % 64 != 0";
  const auto with_tail = good();
  axes[1].second = 128;
  const auto without = good();
  CHECK(with_tail.unit.key == "v|k|tail");
  CHECK(without.unit.key == "v|k");
}

TEST_CASE_FIXTURE(resolve_fixture, "axes of zero give empty buffers and skipped launches") {
  axes[1].second = 0;
  add_launch("a", {"x", "y"});
  step(0)["grid"][0] = "M";
  const auto out = good();
  CHECK(out.buffers[0].bytes == 0);
  CHECK(out.steps.empty());
}
