// Which GPUs a broker lends.

#include "gpu/broker/broker_devices.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

const std::string two_gpus = "0, GPU-aaaa, NVIDIA H200, 143771, 9.0\n"
                             "1, GPU-bbbb, NVIDIA GeForce RTX 4090, [N/A], 8.9\n";

std::vector<std::string> names(const std::vector<broker_device>& all) {
  std::vector<std::string> out;
  for (const auto& d : all)
    out.push_back(d.name);
  return out;
}

} // namespace

TEST_CASE("wishes are read in every form") {
  auto all = parse_device_wishes("mock:h200:2 sleep:3;cuda:0,2");
  REQUIRE(all.has_value());
  REQUIRE(all->size() == 3);
  CHECK((*all)[0].model == "h200");
  CHECK((*all)[0].count == 2);
  CHECK((*all)[1].count == 3);
  CHECK((*all)[2].indices == std::vector<uint32_t>{0, 2});
  CHECK(parse_device_wishes("cuda:all")->front().indices.empty());
  CHECK(parse_device_wishes("sleep")->front().count == 1);
}

TEST_CASE("wishes that do not hold are refused with the known forms") {
  for (const char* bad :
    {"", " ", "cuda", "cuda:", "cuda:x", "cuda:0,", "mock", "mock:", "mock:H!", "mock:h200:0",
      "mock:h200:x", "sleep:0", "sleep:9999", "sleep:1:2", "hip:0", "sleep:1000;sleep:1000"}) {
    CAPTURE(bad);
    auto out = parse_device_wishes(bad);
    REQUIRE_FALSE(out.has_value());
    CHECK(out.error().what.find("cuda:all") != std::string::npos);
  }
}

TEST_CASE("the list of nvidia-smi gives names, attributes and UUIDs") {
  auto all = parse_smi_list(two_gpus);
  REQUIRE(all.has_value());
  REQUIRE(all->size() == 2);
  CHECK((*all)[0].name == "cuda:0");
  CHECK((*all)[0].visible == "GPU-aaaa");
  CHECK((*all)[0].model == "h200");
  CHECK((*all)[0].arch == "sm_90");
  CHECK((*all)[0].memory_bytes == uint64_t{143771} << 20);
  CHECK((*all)[1].model == "geforce-rtx-4090");
  CHECK((*all)[1].memory_bytes == 0);
  CHECK_FALSE(parse_smi_list("No devices were found").has_value());
  CHECK(parse_smi_list("")->empty());
}

TEST_CASE("wishes become devices; each is lent once") {
  auto cuda = *parse_smi_list(two_gpus);
  CHECK(names(*resolve_wishes(*parse_device_wishes("cuda:all"), cuda))
    == std::vector<std::string>{"cuda:0", "cuda:1"});
  CHECK(names(*resolve_wishes(*parse_device_wishes("cuda:1"), cuda))
    == std::vector<std::string>{"cuda:1"});
  CHECK(names(*resolve_wishes(*parse_device_wishes("mock:a:2 mock:a sleep"), {}))
    == std::vector<std::string>{"mock:a#0", "mock:a#1", "mock:a#2", "sleep#0"});
  auto twice = resolve_wishes(*parse_device_wishes("cuda:0 cuda:all"), cuda);
  REQUIRE_FALSE(twice.has_value());
  CHECK(twice.error().what.find("twice") != std::string::npos);
  auto missing = resolve_wishes(*parse_device_wishes("cuda:7"), cuda);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().what.find("cuda:0, cuda:1") != std::string::npos);
}
