#include "protocol/bounds.hpp"
#include "protocol/json_document.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

const char* good = R"({"schema":"gristmill.bounds/1","source":"solar","date":"2026-08-11",
  "device":"mock:h200","problems":{"rmsnorm":{"u1":{"t_sol_ns":0.06,"t_b_ns":1200}}}})";

/// The good table with one member replaced, or removed when the value is discarded.
std::string changed(const char* pointer, const ordered_json& value) {
  auto document = ordered_json::parse(good);
  document[ordered_json::json_pointer{pointer}] = value;
  return document.dump();
}

std::string refusal(const std::string& text) {
  auto table = parse_bounds(text, "b.json");
  REQUIRE_FALSE(table);
  return table.error().what;
}

} // namespace

TEST_CASE("a bounds table gives fractions of a nanosecond and its provenance") {
  auto table = parse_bounds(good, "b.json");
  REQUIRE(table);
  CHECK(table->source == "solar");
  CHECK(table->date == "2026-08-11");
  CHECK(table->device == "mock:h200");
  REQUIRE(table->find("rmsnorm", "u1") != nullptr);
  CHECK(*table->find("rmsnorm", "u1") == workload_bounds{0.06, 1200});
  CHECK(table->find("rmsnorm", "u2") == nullptr);
  CHECK(table->find("gemm", "u1") == nullptr);
}

TEST_CASE("a table without source, date or device is refused") {
  for (const char* key : {"source", "date", "device", "schema", "problems"}) {
    auto document = ordered_json::parse(good);
    document.erase(key);
    CHECK(refusal(document.dump()).find(std::string{"b.json: "} + key) != std::string::npos);
  }
  CHECK(refusal(changed("/source", "")).find("source") != std::string::npos);
  CHECK(refusal(changed("/date", "yesterday")).find("YYYY-MM-DD") != std::string::npos);
  CHECK(refusal(changed("/schema", "gristmill.bounds/4")).find("schema") != std::string::npos);
}

TEST_CASE("times must be positive numbers and keys known") {
  for (const ordered_json& wrong : {ordered_json(0), ordered_json(-1), ordered_json("5"),
         ordered_json(nullptr), ordered_json(true)})
    CHECK(
      refusal(changed("/problems/rmsnorm/u1/t_sol_ns", wrong)).find("problems.rmsnorm.u1.t_sol_ns")
      != std::string::npos);
  CHECK(
    refusal(changed("/problems/rmsnorm/u1/t_sol_ms", 1)).find("`t_sol_ns`") != std::string::npos);
  CHECK(refusal(changed("/sorce", 1)).find("did you mean `source`?") != std::string::npos);
  CHECK(refusal(changed("/problems/rmsnorm", 1)).find("problems.rmsnorm") != std::string::npos);
  CHECK_FALSE(parse_bounds("[]", "b.json"));
  CHECK(load_bounds("/no/such/file").error().code == errc::not_found);
}

namespace {

const char* second = R"({"schema":"gristmill.bounds/2","source":"site","date":"2026-08-11",
  "device":"NVIDIA B200","clock":"locked at 1500/3996 MHz","t_sol_method":"fused","t_b_method":"optimised",
  "problems":{"b":{"category":"L1","sol_is_dummy":false,"workloads":{"u":{"t_sol_ns":0.06,"t_b_ns":1200}}},
  "a":{"workloads":{"v":{"t_sol_ns":1,"t_b_ns":2}}}}})";

std::string changed_second(const char* pointer, const ordered_json& value) {
  auto document = ordered_json::parse(second);
  document[ordered_json::json_pointer{pointer}] = value;
  return document.dump();
}

} // namespace

TEST_CASE("schema 2 also says clocks, methods and categories, and keeps the order of the file") {
  const auto table = parse_bounds(second, "b.json");
  REQUIRE_MESSAGE(table, (table ? "" : table.error().what));
  CHECK(table->clock == "locked at 1500/3996 MHz");
  CHECK(table->t_sol_method == "fused");
  CHECK(table->t_b_method == "optimised");
  CHECK(table->order == std::vector<std::string>{"b", "a"});
  CHECK(table->categories.at("b") == "L1");
  CHECK(table->categories.count("a") == 0);
  CHECK(*table->find("b", "u") == workload_bounds{0.06, 1200});
  const auto again = parse_bounds(to_json(*table), "again");
  REQUIRE(again);
  CHECK(to_json(*again) == to_json(*table));
  CHECK(again->order == table->order);
}

TEST_CASE("schema 2 is refused without clocks, with a placeholder for a bound, or a row twice") {
  auto document = ordered_json::parse(second);
  document.erase("clock");
  CHECK(refusal(document.dump()).find("b.json: clock") != std::string::npos);
  const auto dummy = refusal(changed_second("/problems/b/sol_is_dummy", true));
  CHECK(dummy.find("problems.b.sol_is_dummy") != std::string::npos);
  CHECK(dummy.find("placeholder") != std::string::npos);
  CHECK(refusal(changed_second("/problems/b/sol_is_dummy", 1)).find("true or false")
    != std::string::npos);
  CHECK(
    refusal(changed_second("/problems/a/t_sol_ns", 1)).find("unknown key") != std::string::npos);
  CHECK(refusal(changed_second("/problems/a", ordered_json::object())).find("problems.a.workloads")
    != std::string::npos);
  std::string twice = second;
  twice.replace(twice.find("\"u\":"), 4, R"("u":{"t_sol_ns":1,"t_b_ns":2},"u":)");
  CHECK_FALSE(parse_bounds(twice, "b.json"));
}

TEST_CASE("a table of schema 1 is still read, and says nothing about clocks") {
  const auto table = parse_bounds(good, "b.json");
  REQUIRE(table);
  CHECK(table->clock.empty());
  CHECK(table->order == std::vector<std::string>{"rmsnorm"});
}
