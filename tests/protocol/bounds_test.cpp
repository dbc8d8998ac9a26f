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
  CHECK(refusal(changed("/schema", "gristmill.bounds/2")).find("schema") != std::string::npos);
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
