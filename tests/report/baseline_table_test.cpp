#include "report/baseline_table.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

constexpr device_rates rates{
  1'000'000'000'000, 10'000'000'000'000, {0, 5'000'000'000'000, 50'000'000'000'000, 0, 0, 0}};

ordered_json times(double median) {
  return {
    {"median", median}, {"mad", 1.0}, {"min", median - 2}, {"max", median + 9}, {"samples", 50}};
}

ordered_json timed(double median) {
  return {{"status", "timed"}, {"reason", ""}, {"device", "NVIDIA H200"}, {"torch", "2.11.0"},
    {"cuda", "13.0"}, {"python", "3.12.3"}, {"before", {{"driver", "580.159.04"}}},
    {"device_ns", times(median)}, {"span_ns", times(median + 50)}};
}

baseline_answer answer(const ordered_json& from, const std::string& mode) {
  auto read = read_baseline_answer(from, mode);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
  return *read;
}

baseline_table small_table() {
  return {rates, {{"rmsnorm", "normalisation", "u1", {2'000'000, 0, {}}}}};
}

bounds_table base() {
  bounds_table out;
  out.source = "gristmill baseline";
  out.date = "2026-12-01";
  out.clock = "not locked";
  out.t_sol_method = "measured roofline";
  out.provenance = {{"flush", "official"}};
  return out;
}

} // namespace

TEST_CASE("the fastest timed mode is the baseline, and the table says what the others took") {
  auto table = small_table();
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(9000), "eager")));
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(4000), "compile")));
  REQUIRE(
    table.add("rmsnorm", "u1", answer({{"status", "failed"}, {"reason", "wrong: y"}}, "cublaslt")));
  table.leave_out("rmsnorm", "u1", "max-autotune", "not measured: the deadline was over");
  const auto made = table.table(base());
  REQUIRE(made);
  CHECK(made->device == "NVIDIA H200");
  CHECK(*made->find("rmsnorm", "u1") == workload_bounds{2000, 4000});
  CHECK(made->t_sol_method == "measured roofline");
  const auto* record = made->find_baseline("rmsnorm", "u1");
  REQUIRE(record != nullptr);
  CHECK(record->winner == "compile");
  REQUIRE(record->modes.size() == 4);
  CHECK(record->find("eager")->device->median == 9000);
  CHECK(record->find("cublaslt")->reason == "wrong: y");
  CHECK(record->find("max-autotune")->reason.find("deadline") != std::string::npos);

  const auto text = to_json(*made);
  const auto again = parse_bounds(text, "b.json");
  REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
  CHECK(to_json(*again) == text);
  CHECK(*again->find_baseline("rmsnorm", "u1") == *record);
}

TEST_CASE("activities count where the profiler saw them, as for candidates") {
  auto table = small_table();
  auto traced = timed(9000);
  traced["activity_ns"] = times(3000);
  traced["copy"] = {{"device_ns", times(2500)}, {"activity_ns", times(2100)}};
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(4000), "compile")));
  REQUIRE(table.add("rmsnorm", "u1", answer(traced, "eager")));
  const auto made = table.table(base());
  REQUIRE(made);
  CHECK(made->find("rmsnorm", "u1")->t_b_ns == 3000);
  CHECK(made->find_baseline("rmsnorm", "u1")->winner == "eager");
  CHECK(made->find_baseline("rmsnorm", "u1")->copy->median == 2100);
  CHECK(made->find_baseline("rmsnorm", "u1")->copy_bytes == 2'000'000);
}

TEST_CASE("no timed mode is below its floor: what a mode reached is part of the roofline") {
  mac_counts large{};
  mac_counts small{};
  large[static_cast<size_t>(mac_class::f16)] = 5'000'000'000; // 100 us at the measured rate.
  small[static_cast<size_t>(mac_class::f16)] = 1'000'000'000;
  baseline_table table(
    rates, {{"gemm", "", "large", {1000, 0, large}}, {"gemm", "", "small", {1000, 0, small}}});
  REQUIRE(table.add("gemm", "large", answer(timed(80'000), "compile")));
  REQUIRE(table.add("gemm", "large", answer(timed(60'000), "eager"))); // At best 59998 ns.
  REQUIRE(table.add("gemm", "small", answer(timed(30'000), "eager")));
  const auto made = table.table(base());
  REQUIRE(made);
  CHECK(*made->find("gemm", "large") == workload_bounds{59'998, 60'000});
  CHECK(*made->find("gemm", "small") == workload_bounds{12'000, 30'000}); // Not 20000.
  CHECK(made->t_sol_method
    == "measured roofline; modes of this table were faster, so there: 16-bit 83.3 T "
       "multiply-adds/s by gemm large");
}

TEST_CASE("a bandwidth that a mode reached counts for workloads that move no more bytes") {
  baseline_table table(rates,
    {{"p", "", "large", {20'000'000, 0, {}}}, {"p", "", "middle", {2'000'000, 0, {}}},
      {"p", "", "small", {1'000'000, 0, {}}}});
  REQUIRE(table.add("p", "large", answer(timed(30'000), "eager")));
  REQUIRE(table.add("p", "middle", answer(timed(1'002), "eager"))); // At best 1000 ns, not 2000.
  REQUIRE(table.add("p", "small", answer(timed(5'000), "eager")));
  const auto made = table.table(base());
  REQUIRE(made);
  CHECK(made->find("p", "large")->t_sol_ns == 20'000);
  CHECK(made->find("p", "middle")->t_sol_ns == 1'000);
  CHECK(made->find("p", "small")->t_sol_ns == 500);
  CHECK(made->t_sol_method.find("2.000 TB/s by p middle") != std::string::npos);
}

TEST_CASE("a workload that no mode could time has no baseline and is not in the table") {
  auto table = small_table();
  REQUIRE(table.add("rmsnorm", "u1", answer({{"status", "failed"}}, "eager")));
  REQUIRE(table.without_baseline().size() == 1);
  CHECK(table.without_baseline()[0].uuid == "u1");
  const auto made = table.table(base());
  REQUIRE(made);
  CHECK(made->problems.empty());
}

TEST_CASE("times of two machines do not come into one table") {
  auto table = small_table();
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(9000), "eager")));
  auto other = timed(100);
  other["before"]["driver"] = "570.1";
  const auto added = table.add("rmsnorm", "u1", answer(other, "compile"));
  REQUIRE_FALSE(added);
  CHECK(added.error().what.find("570.1") != std::string::npos);
  CHECK(table.find("rmsnorm", "u1")->winner == "eager");
}

namespace {

/// What stands in the provenance of every table of the verb.
bounds_table full_base() {
  auto out = base();
  out.provenance = {{"scripts_sha256", "12ab"}, {"flush", "official"}, {"samples", "50"},
    {"seed", "0"}, {"rates", "copy 4.2 TB/s"}};
  return out;
}

/// A table with eager timed and compile left out, and another problem beside it.
bounds_table earlier_table() {
  baseline_table table(rates,
    {{"rmsnorm", "normalisation", "u1", {2'000'000, 0, {}}},
      {"softmax", "softmax", "u2", {1'000'000, 0, {}}}});
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(9000), "eager")));
  REQUIRE(table.add("softmax", "u2", answer(timed(3000), "eager")));
  table.leave_out("rmsnorm", "u1", "compile", "not measured: the deadline was over");
  const auto made = table.table(full_base());
  REQUIRE(made);
  return *made;
}

} // namespace

TEST_CASE("a table is extended by modes that it lacks, and keeps what it has") {
  auto table = small_table();
  REQUIRE(table.extend(earlier_table(), full_base().provenance));
  CHECK(table.is_timed("rmsnorm", "u1", "eager"));
  CHECK_FALSE(table.is_timed("rmsnorm", "u1", "compile"));
  CHECK_FALSE(table.is_timed("rmsnorm", "u1", "graph"));
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(4000), "compile")));
  const auto made = table.table(full_base());
  REQUIRE(made);
  const auto* record = made->find_baseline("rmsnorm", "u1");
  REQUIRE(record != nullptr);
  CHECK(record->winner == "compile");
  // In the place of the one without a time.
  REQUIRE(record->modes.size() == 2);
  CHECK(record->modes[0].name == "eager");
  CHECK(record->modes[1].reason.empty());
  // A problem that was not asked for stays as it was.
  CHECK(*made->find("softmax", "u2") == *earlier_table().find("softmax", "u2"));
  CHECK(made->find_baseline("softmax", "u2")->winner == "eager");
  CHECK(made->order == std::vector<std::string>{"rmsnorm", "softmax"});
  CHECK(made->t_sol_method.find("as in the table of 2026-12-01") != std::string::npos);
  // What is written can be read and extended again.
  const auto again = parse_bounds(to_json(*made), "again.json");
  REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
  CHECK(small_table().extend(*again, full_base().provenance));
}

TEST_CASE(
  "T_SOL of a workload does not rise because the one that showed a rate is not asked again") {
  const std::vector<baseline_table::row> asked{
    {"a", "", "u1", {1'000'000, 0, {}}}, {"b", "", "u2", {1'000'000, 0, {}}}};
  baseline_table first(rates, asked);
  REQUIRE(first.add("a", "u1", answer(timed(9000), "eager")));
  REQUIRE(first.add("b", "u2", answer(timed(100), "eager"))); // Faster than the measured rates.
  const auto earlier = first.table(full_base());
  REQUIRE(earlier);
  const double was = earlier->find("a", "u1")->t_sol_ns;
  baseline_table second(rates, {asked[0]});
  REQUIRE(second.extend(*earlier, full_base().provenance));
  REQUIRE(second.add("a", "u1", answer(timed(8000), "compile")));
  const auto made = second.table(full_base());
  REQUIRE(made);
  CHECK(made->find("a", "u1")->t_sol_ns == was);
  CHECK(
    made->t_sol_method.find("where the extended table had a shorter time") != std::string::npos);
  // By the rates alone it would have.
  baseline_table alone(rates, {asked[0]});
  REQUIRE(alone.add("a", "u1", answer(timed(9000), "eager")));
  CHECK(alone.table(full_base())->find("a", "u1")->t_sol_ns > was);
}

TEST_CASE("a table of another protocol or machine is not extended, and the field is named") {
  for (const char* field : {"scripts_sha256", "flush", "samples", "seed", "rates"}) {
    CAPTURE(field);
    auto changed = full_base().provenance;
    for (auto& [name, words] : changed)
      if (name == field)
        words = "another";
    auto table = small_table();
    const auto refused = table.extend(earlier_table(), changed);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find(std::string("provenance.") + field) != std::string::npos);
    CHECK(refused.error().what.find("another") != std::string::npos);
    auto lacking = earlier_table();
    std::erase_if(lacking.provenance, [&](const auto& each) { return each.first == field; });
    const auto unknown = table.extend(lacking, full_base().provenance);
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().what.find(std::string("provenance.") + field + ": missing")
      != std::string::npos);
  }
  auto table = small_table();
  REQUIRE(table.extend(earlier_table(), full_base().provenance));
  auto newer = timed(4000);
  newer["before"]["driver"] = "590.1";
  const auto refused = table.add("rmsnorm", "u1", answer(newer, "compile"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what.find("driver: 590.1 here, 580.159.04 there") != std::string::npos);
}

TEST_CASE("an answer with times that cannot be is refused with its field") {
  for (const char* key : {"median", "min", "max", "samples"}) {
    auto wrong = timed(100);
    wrong["device_ns"][key] = -1;
    const auto read = read_baseline_answer(wrong, "eager");
    REQUIRE_FALSE(read);
    CHECK(read.error().what.find(std::string("device_ns.") + key) != std::string::npos);
  }
  auto without = timed(100);
  without.erase("device_ns");
  CHECK_FALSE(read_baseline_answer(without, "eager"));
}

TEST_CASE("rates of types that were not measured are 0, and a floor that needs them is refused") {
  const ordered_json measured{{"status", "timed"},
    {"rates",
      {{"bytes_per_second", 4e12}, {"macs_per_second", {{"bf16", 3.9e14}, {"fp32", 2.5e13}}}}}};
  const auto read = read_baseline_rates(measured);
  REQUIRE(read);
  CHECK(read->bytes_per_second == 4'000'000'000'000);
  CHECK(read->flops_per_second == 50'000'000'000'000);
  CHECK(read->macs_per_second[static_cast<size_t>(mac_class::f16)] == 390'000'000'000'000);
  CHECK(read->macs_per_second[static_cast<size_t>(mac_class::f8)] == 0);
  mac_counts macs{};
  macs[static_cast<size_t>(mac_class::f8)] = 1;
  baseline_table table(*read, {{"fp8", "", "u1", {1, 0, macs}}});
  REQUIRE(table.add("fp8", "u1", answer(timed(9000), "eager")));
  const auto made = table.table(base());
  REQUIRE_FALSE(made);
  CHECK(made.error().what.find("fp8, workload u1: T_SOL") != std::string::npos);
  CHECK_FALSE(read_baseline_rates({{"status", "failed"}, {"reason", "no GPU"}}));
}

TEST_CASE("a table that contradicts itself is refused") {
  auto table = small_table();
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(9000), "eager")));
  REQUIRE(table.add("rmsnorm", "u1", answer(timed(4000), "compile")));
  const auto good = ordered_json::parse(to_json(*table.table(base())));
  const auto refusal = [&](const char* pointer, const ordered_json& value) {
    auto changed = good;
    changed[ordered_json::json_pointer{pointer}] = value;
    const auto read = parse_bounds(changed.dump(), "b.json");
    return read ? std::string{} : read.error().what;
  };
  const std::string row = "/problems/rmsnorm/workloads/u1";
  CHECK(
    refusal((row + "/t_b_ns").c_str(), 3999.0).find("`compile` took 4000") != std::string::npos);
  CHECK(refusal((row + "/baseline/winner").c_str(), "eager") != "");
  CHECK(refusal((row + "/baseline/winner").c_str(), "complie").find("did you mean `compile`?")
    != std::string::npos);
  CHECK(refusal((row + "/baseline/modes/0/reason").c_str(), "why").find("modes[0]")
    != std::string::npos);
  CHECK(refusal((row + "/baseline/modse").c_str(), 1).find("`modes`") != std::string::npos);
  CHECK(refusal("/provenance", ordered_json::object()).find("provenance") != std::string::npos);
  CHECK(refusal("/provenance/torch", 2.11).find("provenance.torch") != std::string::npos);
  auto without = good;
  without["problems"]["rmsnorm"]["workloads"]["u1"].erase("baseline");
  CHECK_FALSE(parse_bounds(without.dump(), "b.json"));
}
