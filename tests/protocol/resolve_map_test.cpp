#include "tests/protocol/resolve_fixture.hpp"

using namespace gristmill;

namespace {

struct map_fixture : resolve_fixture {
  map_fixture() {
    head["tensor_maps"] = {{"m", {{"of", "x"}, {"box", {32, 8}}}}};
    add_launch("a", ordered_json::array({ordered_json{{"map", "m"}}}));
  }

  ordered_json& map() { return head["tensor_maps"]["m"]; }
  /// The words of the refusal.
  std::string refusal() const {
    const auto out = resolved();
    return out ? "" : out.error().what;
  }
  bool refuses_with(const std::string& words) const {
    const std::string what = refusal();
    CAPTURE(what);
    CHECK(what.find("tensor_maps.m: ") != std::string::npos);
    CHECK(what.find(words) != std::string::npos);
    return what.find(words) != std::string::npos;
  }
};

} // namespace

TEST_CASE_FIXTURE(map_fixture, "a map without dims shows the whole tensor, innermost first") {
  const auto out = resolved();
  REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
  const auto& argument = out->steps[0].args[0];
  CHECK(argument.what == resolved_argument::kind::maps);
  CHECK(argument.buffer == 0);
  REQUIRE(argument.maps.size() == 1);
  const tensor_map_spec& spec = argument.maps[0].spec;
  CHECK(spec.type == tensor_map_type::bfloat16);
  CHECK(spec.dims == std::vector<uint64_t>{64, 100});
  CHECK(spec.strides == std::vector<uint64_t>{128});
  CHECK(spec.box == std::vector<uint32_t>{32, 8});
  CHECK(spec.element_strides == std::vector<uint32_t>{1, 1});
  CHECK(out->unit.entries[0].parameter_abi == std::vector<std::string>{"tensor_map"});
}

TEST_CASE_FIXTURE(map_fixture, "every field of a map is evaluated, also for an array of maps") {
  map() = {{"of", "y"}, {"offset", "i * K * 4"}, {"dtype", "tf32"}, {"dims", {"K", "M - 2", 1}},
    {"strides", {"K * 4", "M * K * 4"}}, {"box", {8, 4, 1}}, {"element_strides", {1, 2, 1}},
    {"swizzle", "32B"}, {"l2", "256B"}, {"oob", "nan"}, {"count", "3"}};
  const auto out = resolved();
  REQUIRE_MESSAGE(out, (out ? "" : out.error().what));
  const auto& argument = out->steps[0].args[0];
  REQUIRE(argument.maps.size() == 3);
  CHECK(argument.maps[2].offset == 512);
  const tensor_map_spec& spec = argument.maps[2].spec;
  CHECK(spec.type == tensor_map_type::tfloat32);
  CHECK(spec.dims == std::vector<uint64_t>{64, 98, 1});
  CHECK(spec.strides == std::vector<uint64_t>{256, 25600});
  CHECK(spec.element_strides == std::vector<uint32_t>{1, 2, 1});
  CHECK(spec.swizzle == tensor_map_swizzle::by_32);
  CHECK(spec.l2 == tensor_map_l2::by_256);
  CHECK(spec.oob_nan);
  CHECK(out->unit.entries[0].parameter_abi == std::vector<std::string>{"tensor_map[3]"});
}

TEST_CASE_FIXTURE(map_fixture, "each rule of the encoder is named with its field") {
  const auto good = map();
  const auto wrong = [&](const char* field, const ordered_json& value, const char* words) {
    map() = good;
    map()[field] = value;
    CAPTURE(field);
    CHECK(refuses_with(words));
  };
  wrong("box", {32, 257}, "box.1: 257 is not from 1 to 256");
  wrong("box", {0, 8}, "box.0: 0 is not from 1 to 256");
  wrong("box", {4, 8}, "box.0: 8 bytes are not a multiple of 16");
  wrong("box", ordered_json::array({32}), "box: 1 numbers where 2 are needed");
  wrong("dims", {64, 0}, "dims.1: 0 is not from 1 to 2^32");
  wrong("dims", {64, "2 * M"}, "dims: the map reaches 25600 bytes");
  wrong("strides", ordered_json::array({24}), "strides.0: 24 bytes are not a multiple of 16");
  wrong("strides", ordered_json::array({"1099511627776"}), "strides.0: 1099511627776 bytes");
  wrong("strides", {128, 128}, "strides: 2 numbers where 1 are needed");
  wrong("element_strides", {1, 9}, "element_strides.1: 9 is not from 1 to 8");
  wrong("element_strides", {0, 1}, "element_strides.0: 0 is not from 1 to 8");
  wrong("swizzle", "32B", "box.0: 64 bytes are more than the 32 of the swizzle");
  wrong("offset", 8, "offset: the address is not a multiple of 16");
  wrong("offset", -16, "offset: -16 is outside of x");
  wrong("count", 0, "count: 0 is not from 1 to 255");
  wrong("count", 256, "count: 256 is not from 1 to 255");
  wrong("of", "M", "of: ");
  map() = {{"of", "bits"}, {"box", ordered_json::array({16})}, {"oob", "nan"}};
  CHECK(refuses_with("oob: nan needs a floating type"));
}

TEST_CASE_FIXTURE(map_fixture, "what no device of this build can do is unsupported, by its name") {
  const auto good = map();
  map()["interleave"] = "16B";
  CHECK(refuses_with("interleave: 16B"));
  map() = good;
  map()["dtype"] = "fp4_align8";
  CHECK(refuses_with("architecture 100"));
  map() = good;
  map()["im2col"] = {{"lower", {0}}, {"upper", {0}}, {"channels", 8}, {"pixels", 8}};
  CHECK(refuses_with("im2col"));
  map() = good;
  device.arch = 80;
  CHECK(refusal().find("needs architecture 90") != std::string::npos);
}

TEST_CASE_FIXTURE(map_fixture, "an unknown map names the nearest, and an unused one does no harm") {
  map()["box"] = {0, 0};
  step(0)["args"][0] = ordered_json{{"map", "n"}};
  CHECK(refusal().find("there is no tensor map") != std::string::npos);
  step(0)["args"][0] = 0;
  CHECK(resolved());
}
