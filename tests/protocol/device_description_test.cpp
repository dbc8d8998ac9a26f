// What a runner says about a device: written, read, and refused where it is not what it should be.

#include "protocol/device_description.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

device_description described() {
  device_description out;
  out.device = "cuda:0";
  out.model = "h200";
  out.title = "NVIDIA H200";
  out.arch = "sm_90a";
  out.sm_count = 132;
  out.shared_per_block = 232448;
  out.shared_per_sm = 233472;
  out.l2_bytes = 52428800;
  out.memory_bytes = 150754820096;
  out.threads_per_block = 1024;
  out.origin = time_origin::measured;
  out.time_label = "measured on NVIDIA H200";
  out.uuid = "GPU-1234";
  out.driver = "580.159.04";
  out.cuda_version = 13000;
  out.pageable_memory_access = true;
  out.libraries = {{"cupti", true, ""}, {"nvml", false, "libnvidia-ml.so.1: no such file"}};
  return out;
}

health_report healthy() {
  return {"cuda:0", "GPU-1234", {{4711, 1 << 20}}, 600 << 20, uint64_t{140} << 30, 2, 45, 4};
}

} // namespace

TEST_CASE("a description survives being written and read") {
  const auto what = described();
  const auto read = description_from_json(to_json(what).dump());
  REQUIRE_MESSAGE(read, read.error().what);
  CHECK(*read == what);
  auto mock = what;
  mock.origin = time_origin::modelled;
  mock.uuid.clear();
  mock.libraries.clear();
  const auto both =
    descriptions_from_text("\n" + to_json(what).dump() + "\n \n" + to_json(mock).dump());
  REQUIRE_MESSAGE(both, both.error().what);
  CHECK(*both == std::vector{what, mock});
  CHECK(descriptions_from_text("")->empty());
}

TEST_CASE("so does a look at its health") {
  const auto read = health_from_json(to_json(healthy()).dump());
  REQUIRE_MESSAGE(read, read.error().what);
  CHECK(*read == healthy());
}

TEST_CASE("what is missing, unknown or of the wrong kind is named") {
  const auto refused = [](const char* key, const ordered_json& value, const char* word) {
    auto line = to_json(described());
    if (value.is_null())
      line.erase(key);
    else
      line[key] = value;
    const auto read = description_from_json(line.dump());
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::invalid_input);
    CHECK_MESSAGE(read.error().what.find(word) != std::string::npos, read.error().what);
  };
  refused("sm_count", nullptr, "sm_count");
  refused("sm_count", 0, "sm_count");
  refused("sm_count", "132", "sm_count");
  refused("model", "", "model");
  refused("origin", "guessed", "origin");
  refused("line", "health", "line");
  refused("colour", "green", "colour");
  refused("libraries", ordered_json::array({{{"name", "cupti"}}}), "found");
  CHECK_FALSE(description_from_json("[]"));
  CHECK_FALSE(description_from_json("{"));
  CHECK_FALSE(health_from_json(to_json(described()).dump()));
  const auto second = descriptions_from_text(to_json(described()).dump() + "\nno driver\n");
  REQUIRE_FALSE(second);
  CHECK(second.error().what.find("line 2") == 0);
}
