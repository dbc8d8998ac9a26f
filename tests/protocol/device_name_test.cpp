#include "protocol/device_name.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

const std::vector<std::string> models{"h200", "b200", "l4"};

std::string refusal(const char* text) {
  auto read = parse_devices(text, models);
  CAPTURE(text);
  REQUIRE_FALSE(read);
  return read.error().what;
}

} // namespace

TEST_CASE("devices are named by kind, model and count") {
  using kind = device_group::kind;
  CHECK(
    *parse_devices("mock:h200", models) == std::vector<device_group>{{kind::mock, "h200", 1, 0}});
  CHECK(*parse_devices("mock:h200:2,mock:l4,sleep:100ms:27", models)
    == std::vector<device_group>{
      {kind::mock, "h200", 2, 0}, {kind::mock, "l4", 1, 0}, {kind::sleep, "", 27, 100'000'000}});
  CHECK(parse_devices("sleep:2s", models)->at(0).count == 1);
}

TEST_CASE("a real GPU is refused by saying that this build has none") {
  for (const char* text : {"cuda:0", "cuda:all", "cuda"}) {
    auto read = parse_devices(text, models);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::unsupported);
    CHECK(read.error().what.find("not in this build yet") != std::string::npos);
  }
}

TEST_CASE("a wrong device names the nearest right one") {
  CHECK(refusal("mock:h20").find("did you mean `h200`?") != std::string::npos);
  CHECK(refusal("mokc:h200").find("did you mean `mock`?") != std::string::npos);
  CHECK(refusal("mock:zzzzzz").find("known: h200, b200, l4") != std::string::npos);
}

TEST_CASE("counts and durations are bounded") {
  for (const char* text : {"", "mock", "mock:h200:0", "mock:h200:-1", "mock:h200:99999",
         "mock:h200:2:3", "sleep", "sleep:fast", "sleep:0s", "mock:h200,", "mock:h200:x",
         "mock:h200:4096,mock:l4", "mock:h200:2x"})
    CHECK_FALSE(refusal(text).empty());
}
