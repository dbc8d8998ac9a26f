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
  CHECK(*parse_devices("mock:h200", models)
    == std::vector<device_group>{{kind::mock, "h200", 1, 0, ""}});
  CHECK(*parse_devices("mock:h200:2,mock:l4,sleep:100ms:27", models)
    == std::vector<device_group>{{kind::mock, "h200", 2, 0, ""}, {kind::mock, "l4", 1, 0, ""},
      {kind::sleep, "", 27, 100'000'000, ""}});
  CHECK(parse_devices("sleep:2s", models)->at(0).count == 1);
}

TEST_CASE(
  "real GPUs are named by number, all together or by UUID; which there are is asked later") {
  using kind = device_group::kind;
  CHECK(*parse_devices("cuda:0,cuda:17", models)
    == std::vector<device_group>{{kind::cuda, "", 1, 0, "0"}, {kind::cuda, "", 1, 0, "17"}});
  CHECK(parse_devices("cuda:all", models)->at(0).which == "all");
  CHECK(parse_devices("cuda:GPU-2ad4c1f0", models)->at(0).which == "GPU-2ad4c1f0");
  for (const char* text :
    {"cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:0:2", "cuda:GPU-", "cuda:00000"}) {
    CAPTURE(text);
    auto read = parse_devices(text, models);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::invalid_input);
    CHECK(read.error().what.find("cuda:0, cuda:all or cuda:GPU-UUID") != std::string::npos);
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

TEST_CASE("devices of nodes stand alone and have no number") {
  const std::vector<std::string> models{"h200", "l4"};
  auto mock = parse_run_devices("nodes:mock:h200", models);
  REQUIRE(mock);
  REQUIRE(mock->size() == 1);
  CHECK(mock->front().from_nodes);
  CHECK(mock->front().count == 0);
  CHECK(mock->front().model == "h200");
  auto real = parse_run_devices("nodes:cuda:h200", models);
  REQUIRE(real);
  CHECK(real->front().what == device_group::kind::cuda);
  CHECK(real->front().model == "h200");
  auto sleep = parse_run_devices("nodes:sleep:100ms", models);
  REQUIRE(sleep);
  CHECK(sleep->front().sleep_ns == 100'000'000);
  for (const char* bad : {"nodes:", "nodes:mock", "nodes:mock:h200:2", "nodes:mock:h20",
         "nodes:cuda:0", "nodes:nodes:mock:h200", "nodes:mock:h200,mock:h200",
         "mock:h200,nodes:mock:h200", "nodes:sleep:fast"}) {
    auto refused = parse_run_devices(bad, models);
    CHECK_MESSAGE(!refused, bad);
    if (!refused)
      CHECK(refused.error().code == errc::invalid_input);
  }
  CHECK_FALSE(parse_devices("nodes:mock:h200", models));
  CHECK(*parse_run_devices("mock:h200:2", models) == *parse_devices("mock:h200:2", models));
}
