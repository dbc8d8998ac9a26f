#include "gpu/mock/profile.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace gristmill;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A whole profile; `from` is replaced by `to`.
std::string text_with(const std::string& from, const std::string& to) {
  std::string text =
    R"({"schema": "gristmill.profile/2", "name": "t", "title": "T", "arch": "sm_90a")";
  for (const char* field : {"sm_count", "clock_ghz", "dram_tb_per_s", "dram_write_tb_per_s",
         "dram_mix_cost", "dram_walk_mix_cost", "dram_lone_cost", "l2_tb_per_s",
         "l2_read_requests_per_ns", "l2_write_requests_per_ns", "atomic_ns", "atomic_float_ns",
         "atomics_per_ns", "wgmma_efficiency", "half_latency", "barrier_warp_latency",
         "block_start_ns", "block_turnover_cycles", "event_ns", "memory_bytes", "l2_bytes",
         "l1_and_shared_bytes", "shared_per_sm", "shared_per_block", "warps_per_sm",
         "blocks_per_sm", "registers_per_sm", "issue_rate", "fp32_rate", "integer_rate", "sfu_rate",
         "fp64_rate", "lsu_rate", "tensor_flop_per_cycle", "mma_efficiency", "alu_latency",
         "sfu_latency", "convert_latency", "shared_latency", "l1_latency", "l2_latency",
         "dram_latency", "mma_latency", "barrier_latency", "launch_ns"})
    text += std::string(", \"") + field + R"(": {"value": 1, "source": "assumed"})";
  text += "}";
  if (!from.empty())
    text.replace(text.find(from), from.size(), to);
  return text;
}

} // namespace

TEST_CASE("six GPUs are known, and each number says where it is from") {
  CHECK(
    known_profiles() == std::vector<std::string>{"a100", "b200", "h100", "h200", "l4", "rtx4090"});
  for (const std::string& name : known_profiles()) {
    CAPTURE(name);
    const auto gpu = profile(name);
    REQUIRE_MESSAGE(gpu, (gpu ? "" : gpu.error().what));
    CHECK(gpu->name == name);
    CHECK(gpu->sources.size() == 45);
    CHECK(gpu->shared_per_block < gpu->shared_per_sm);
    CHECK(gpu->shared_per_sm < gpu->l1_and_shared_bytes);
    CHECK(gpu->l2_latency < gpu->dram_latency);
    CHECK(gpu->launch_ns == 1311);
    // Only one of them was ever held against the GPU.
    CHECK(gpu->errors.empty() == (name != "h200"));
    for (const auto& [field, probe] : gpu->probes) {
      CHECK(gpu->sources.at(field) == "measured");
      CHECK_FALSE(probe.empty());
    }
  }
  CHECK(profile("h200")->sm_count == 132);
  CHECK(profile("h200")->sources.at("sm_count") == "datasheet");
  CHECK(profile("h200")->sources.at("dram_tb_per_s") == "measured");
  CHECK(profile("h200")->sources.at("launch_ns") == "measured");
  CHECK(contains(profile("h200")->probes.at("launch_ns"), "launches in a row"));
  CHECK(profile("a100")->sources.at("launch_ns") == "assumed");
}

TEST_CASE("an unknown GPU names the nearest one") {
  const auto gpu = profile("h20");
  REQUIRE_FALSE(gpu);
  CHECK(gpu.error().code == errc::not_found);
  CHECK(contains(gpu.error().what, "h200"));
  CHECK_FALSE(profile(""));
}

TEST_CASE("a data file is refused with the field that is wrong") {
  REQUIRE(parse_profile(text_with("", ""), "t.json"));
  const auto complaint = [](const std::string& from, const std::string& to) {
    const auto read = parse_profile(text_with(from, to), "t.json");
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::invalid_input);
    CHECK(contains(read.error().what, "t.json"));
    return read.error().what;
  };
  CHECK(contains(complaint("\"sm_count\"", "\"sm_counts\""), "sm_counts"));
  CHECK(contains(
    complaint(R"(, "sm_count": {"value": 1, "source": "assumed"})", ""), "sm_count is missing"));
  CHECK(contains(complaint("\"value\": 1", "\"value\": 0"), "sm_count: 0"));
  CHECK(contains(complaint("\"value\": 1", "\"value\": -3"), "sm_count"));
  CHECK(contains(complaint("\"value\": 1", "\"value\": 1.5"), "not an integer"));
  CHECK(contains(complaint("\"value\": 1", "\"value\": 1e300"), "outside"));
  CHECK(contains(complaint("\"value\": 1", "\"value\": \"1\""), "a number"));
  CHECK(contains(complaint("\"source\": \"assumed\"", "\"source\": \"guessed\""), "assumed"));
  CHECK(contains(complaint(", \"source\": \"assumed\"", ""), "`source`"));
  CHECK(contains(complaint("profile/2", "profile/1"), "schema"));
  CHECK(contains(complaint("\"title\": \"T\"", "\"title\": 3"), "title"));
  CHECK_FALSE(parse_profile("", "t.json"));
  CHECK_FALSE(parse_profile("[]", "t.json"));
  CHECK_FALSE(parse_profile("{", "t.json"));
}

TEST_CASE("a device says that its times are modelled") {
  const auto seen = properties_of(*profile("h200"));
  CHECK(seen.origin == time_origin::modelled);
  CHECK(contains(seen.time_label, "MODELLED mock-clock/3, h200, off by "));
  CHECK(contains(seen.time_label, " % on average ("));
  CHECK(properties_of(*profile("a100")).time_label == "MODELLED mock-clock/3, a100, uncalibrated");
  CHECK(seen.model == "h200");
  CHECK(seen.arch == "sm_90a");
  CHECK(seen.sm_count == 132);
  CHECK(seen.shared_per_block == 232448);
}

TEST_CASE("how far the model was off stands in the data file, class by class") {
  const auto read = parse_profile(
    text_with("\"title\"", R"("errors": [{"class": "all", "factor": 1.14, "kernels": 67},
      {"class": "streaming", "factor": 1.05, "kernels": 15}], "title")"),
    "t.json");
  REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
  CHECK(band_of(*read) == "off by 14 % on average (67 kernels)");
  CHECK(bands_of(*read) == "off by 14 % on average (67 kernels; streaming 5 %)");
  const auto without = parse_profile(text_with("", ""), "t.json");
  REQUIRE(without);
  CHECK(band_of(*without) == "uncalibrated");
  CHECK(bands_of(*without) == "uncalibrated");
  for (const char* wrong :
    {"3", "[3]", R"([{"class": "all", "factor": 0.9, "kernels": 1}])",
      R"([{"class": "all", "factor": 1.1, "kernels": 0}])", R"([{"class": "all", "factor": 1.1}])",
      R"([{"class": "mma", "factor": 1.1, "kernels": 1}])"}) {
    CAPTURE(wrong);
    const auto refused = parse_profile(
      text_with("\"title\"", "\"errors\": " + std::string(wrong) + ", \"title\""), "t.json");
    REQUIRE_FALSE(refused);
    CHECK(contains(refused.error().what, "errors"));
  }
}
