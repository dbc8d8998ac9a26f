#include "protocol/run_terms.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace gristmill;

namespace {

const std::string some_hash(64, 'a');

/// No field has its default value.
run_terms full_terms() {
  run_terms t;
  t.run = "2026-12-01-softmax";
  t.rehearsal = true;
  t.bounds = {some_hash, 12};
  // All of them by their places: with one more this does not compile before it has a value here.
  auto& [secret, seed, program, device_model, device_label, device_title, measured, facts,
    floor_bytes_per_second, floor_flops_per_second, floor_macs_per_second, shortest_kernel_ns,
    write_bytes_per_second, arch, toolchain, oracle, check_elements_max, rounds, sets_bytes_max,
    sets_macs_max, promote, samples, flush, instruction_limit] = static_cast<run_rules&>(t);
  for (size_t i = 0; i < secret.size(); ++i)
    secret[i] = static_cast<uint8_t>(7 * i + 1);
  seed = UINT64_MAX;
  program = some_hash;
  device_model = "h200";
  device_label = "cuda:h200";
  device_title = "NVIDIA H200";
  measured = true;
  facts = {132, 232448, 233472, uint64_t{50} << 20, 90};
  floor_bytes_per_second = 4'800'000'000'000;
  floor_flops_per_second = 67'000'000'000'000;
  floor_macs_per_second = {1, 2, 3, 4, 5, UINT64_MAX};
  shortest_kernel_ns = 500;
  write_bytes_per_second = 11;
  arch = "sm_90a";
  toolchain = "nvrtc-13.0";
  oracle = "native";
  check_elements_max = 9;
  rounds = 10;
  sets_bytes_max = 77;
  sets_macs_max = 78;
  promote = true;
  samples = 50;
  flush = "clean";
  instruction_limit = 13;
  t.proposer = "random";
  t.estimated_hold = std::chrono::milliseconds{100};
  t.run_end = std::chrono::hours{2};
  t.problems = {{"softmax", {}},
    {"mine", {{"definition.json", {some_hash, 100}}, {"workload.jsonl", {some_hash, 200}}}}};
  return t;
}

/// Calls `see` with every object in it, the outermost last.
void each_object(ordered_json& in, const std::function<void(ordered_json&)>& see) {
  if (in.is_object() || in.is_array())
    for (auto& value : in)
      each_object(value, see);
  if (in.is_object())
    see(in);
}

failure refused(const ordered_json& document) {
  auto read = run_terms_from_json(document.dump());
  REQUIRE_FALSE(read);
  return read.error();
}

} // namespace

TEST_CASE("the terms of a run arrive as they were sent, and equal terms are equal bytes") {
  auto terms = full_terms();
  auto read = run_terms_from_json(to_json(terms));
  REQUIRE_MESSAGE(read, (read ? "" : read.error().what));
  CHECK(*read == terms);
  CHECK(to_json(*read) == to_json(terms));
}

TEST_CASE("every field of the terms has to be there, and none besides") {
  auto document = ordered_json::parse(to_json(full_terms()));
  // What stands in the file, so that a failure names the key.
  size_t tried = 0;
  each_object(document, [&](ordered_json& object) {
    auto whole = object;
    for (const auto& [key, unused] : whole.items()) {
      CAPTURE(key);
      object.erase(key);
      auto why = refused(document);
      CHECK(why.code == errc::invalid_input);
      CHECK(why.what.find(key) != std::string::npos);
      object = whole;
      ++tried;
    }
    object["surprise"] = 1;
    CHECK(refused(document).what.find("surprise") != std::string::npos);
    object = whole;
  });
  CHECK(tried > 45);
}

TEST_CASE("terms with values that no run has are refused by the name of the field") {
  auto document = ordered_json::parse(to_json(full_terms()));
  auto with = [&](std::string_view place, const ordered_json& value, const std::string& named) {
    auto changed = document;
    changed[ordered_json::json_pointer(std::string(place))] = value;
    CAPTURE(place);
    CHECK(refused(changed).what.find(named) != std::string::npos);
  };
  with("/schema", "gristmill.run-terms/2", "schema");
  with("/secret", "00ff", "secret");
  with("/secret", std::string(64, 'g'), "secret");
  with("/seed", -1, "seed");
  with("/device/floor_macs_per_second", ordered_json{1, 2, 3}, "floor_macs_per_second");
  with("/device/floor_macs_per_second", ordered_json{1, 2, 3, 4, 5, -6}, "floor_macs_per_second");
  with("/measuring/rounds", 0, "rounds");
  with("/measuring/samples", 0, "samples");
  with("/measuring/oracle", "magic", "oracle");
  with("/measuring/flush", "dirty", "flush");
  with("/workers/proposer", "telepathy", "proposer");
  with("/workers/run_end_ns", -1, "run_end_ns");
  with("/problems/1/files/0/sha256", "../../etc/passwd", "definition.json");
  with("/problems/1/files/0/name", "../definition.json", "definition.json");
  with("/problems/0/name", "mine", "mine");
  CHECK_FALSE(run_terms_from_json(""));
  CHECK_FALSE(run_terms_from_json("[]"));
  CHECK_FALSE(run_terms_from_json(std::string(100'000, '[')));
}
