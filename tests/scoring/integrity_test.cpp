#include "scoring/integrity.hpp"

#include "scoring/floor.hpp"
#include "scoring/verdict.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <functional>
#include <map>

using namespace gristmill;

namespace {

/// An honest measurement on a real device: every rule has something to look at.
evidence honest() {
  evidence e;
  e.attempt = {"gemm", "cuda", 7};
  e.toolchain = "nvrtc-13.0";
  e.outputs = {{"y", "float32"}};
  e.narrowest_input_bits = 32;
  e.measured.origin = time_origin::measured;
  e.yardsticks = {{"w", 20'000, time_origin::measured, 8'000, 500}};
  workload_measurement m;
  m.uuid = "w";
  m.status = verdict_status::passed;
  m.time_ns = 10'000;
  m.samples_ns.assign(40, 10'000);
  m.timing.method = "cupti";
  m.timing.flush = "official";
  m.timing.span_ns.assign(40, 18'000);
  m.timing.device_ns.assign(40, 10'100);
  m.timing.activities = {{"kernel", "gemm", {8, 8, 1}, {256, 1, 1}, 0}};
  m.timing.canary_khz_before = 1'980'000;
  m.timing.canary_khz_after = 1'979'000;
  m.timing.weather.readings = 5;
  m.timing.digested = 40;
  m.timing.digests_equal = 40;
  m.timing.written_out = 4;
  e.measured.workloads.push_back(m);
  workload_evaluation j;
  j.uuid = "w";
  j.status = verdict_status::passed;
  j.calls = 14;
  j.call = "set 3";
  output_evaluation o;
  o.output = "y";
  o.passed = true;
  o.elements = 1'000'000;
  o.miss_tiles.assign(64, 0);
  o.ulp_histogram = {600'000, 300'000, 80'000, 15'000, 5'000};
  o.relative_rms_error = 1e-7;
  j.outputs.push_back(o);
  e.judged.workloads.push_back(j);
  return e;
}

workload_measurement& measured(evidence& e) {
  return e.measured.workloads.at(0);
}
workload_evaluation& judged(evidence& e) {
  return e.judged.workloads.at(0);
}
output_evaluation& output(evidence& e) {
  return judged(e).outputs.at(0);
}

void fail_on(evidence& e, const std::string& call) {
  judged(e).status = verdict_status::incorrect_numerical;
  judged(e).call = call;
  judged(e).detail = "5 of 8 elements miss the tolerance";
  output(e).passed = false;
}

bool fired(const evidence& e, std::string_view rule, const rules_off& off = {}) {
  const auto seen = examine(e, off);
  return std::any_of(seen.accounts.begin(), seen.accounts.end(),
    [&](const rule_account& a) { return a.rule == rule && a.fired; });
}

bool is_clean(const evidence& e, const rules_off& off = {}) {
  const auto v = decide(e, off).decided;
  return v.status == verdict_status::passed
    && std::none_of(
      v.workloads.begin(), v.workloads.end(), [](const auto& w) { return w.needs_audit; });
}

/// What each rule is for, in numbers that only it objects to.
std::map<std::string, std::function<void(evidence&)>> cheats() {
  const auto reported = [](const std::string& rule) {
    return [rule](evidence& e) { e.measured.findings.push_back({rule, "w", "seen", true}); };
  };
  const auto compiled = [](const std::string& rule) {
    return [rule](evidence& e) {
      e.compiled.push_back({rule, "", "the code reads %clock64", false});
    };
  };
  return {
    {"below_physical_floor",
      [](evidence& e) {
        e.yardsticks[0].floor_ns = 0;
        measured(e).time_ns = 499;
      }},
    {"below_floor", [](evidence& e) { measured(e).time_ns = 7'999; }},
    {"wrong_output", [](evidence& e) { fail_on(e, "set 2"); }},
    {"wrong_when_timed", [](evidence& e) { fail_on(e, "set 2, timed 17"); }},
    {"wrong_held_out", [](evidence& e) { fail_on(e, "held-out, large values"); }},
    {"wrong_neighbour", [](evidence& e) { fail_on(e, "neighbour M=4097"); }},
    {"writes_input", reported("writes_input")},
    {"changes_global", reported("changes_global")},
    {"unwritten_output", reported("unwritten_output")},
    {"late_write", reported("late_write")},
    {"extra_activity", reported("extra_activity")},
    {"changing_activity", reported("changing_activity")},
    {"device_limit_changed", reported("device_limit_changed")},
    {"sanitizer", reported("sanitizer")},
    {"unexpected_entry", compiled("unexpected_entry")},
    {"reads_clock", compiled("reads_clock")},
    {"outputs_not_compared",
      [](evidence& e) {
        measured(e).timing.digests_equal = 39;
        measured(e).timing.written_out = 0;
      }},
    {"times_fall",
      [](evidence& e) { std::fill_n(measured(e).samples_ns.begin(), 20, uint64_t{16'000}); }},
    {"span_exceeds_device",
      [](evidence& e) { measured(e).timing.span_ns.assign(40, 10'100 + 121'000); }},
    {"precision_downgrade",
      [](evidence& e) {
        output(e).relative_rms_error = 3e-4; // TF32 operands.
        output(e).ulp_histogram.assign(14, 0);
        output(e).ulp_histogram[11] = 400'000;
        output(e).ulp_histogram[12] = 600'000;
      }},
    {"clustered_misses",
      [](evidence& e) {
        output(e).mismatches = 8'000; // 0.8 % of the elements, all in the last rows.
        output(e).relative_rms_error = 0.12;
        for (size_t i = 56; i < 64; ++i)
          output(e).miss_tiles[i] = 1'000;
      }},
  };
}

} // namespace

TEST_CASE(
  "an output that lacks values is a mistake where it is judged wrong, a cheat where it passes") {
  const auto lacks = [](evidence& e) {
    e.measured.findings.push_back({"unwritten_output", "w", "`y` still holds 4096 bytes", true});
  };
  auto wrong = honest();
  lacks(wrong);
  fail_on(wrong, "set 2");
  CHECK(decide(wrong, {}).decided.status == verdict_status::incorrect_numerical);
  auto passes = honest();
  lacks(passes);
  CHECK(decide(passes, {}).decided.status == verdict_status::reward_hack);
}

TEST_CASE("an honest measurement is clean, and every rule has looked") {
  auto seen = examine(honest());
  CHECK(seen.findings.empty());
  CHECK_FALSE(seen.retrial);
  for (const auto& rule : integrity_rules()) {
    CAPTURE(rule.name);
    CHECK(std::any_of(seen.accounts.begin(), seen.accounts.end(),
      [&](const rule_account& a) { return a.rule == rule.name && !a.said.empty(); }));
  }
  CHECK(is_clean(honest()));
}

TEST_CASE("each rule stops a cheat that no other rule stops") {
  auto all = cheats();
  for (const auto& rule : integrity_rules()) {
    if (rule.level == rule_level::note)
      continue;
    CAPTURE(rule.name);
    auto cheat = all.find(std::string(rule.name));
    REQUIRE(cheat != all.end());
    auto e = honest();
    cheat->second(e);
    CHECK(fired(e, rule.name));
    CHECK_FALSE(is_clean(e));
    CHECK_FALSE(fired(e, rule.name, {std::string(rule.name)}));
    CHECK(is_clean(e, {std::string(rule.name)}));
  }
}

TEST_CASE("only proofs refuse as a hack, and suspicions ask for one more trial") {
  auto all = cheats();
  for (const auto& rule : integrity_rules()) {
    if (rule.level == rule_level::note)
      continue;
    CAPTURE(rule.name);
    auto e = honest();
    all.at(std::string(rule.name))(e);
    const auto decided = decide(e);
    const auto& v = decided.decided;
    CHECK((v.status == verdict_status::reward_hack) == (rule.level == rule_level::proof));
    CHECK(decided.retrial == (rule.level == rule_level::suspicion));
    if (rule.level == rule_level::suspicion) {
      CHECK(v.status == verdict_status::passed);
      CHECK(v.workloads[0].needs_audit);
      CHECK(v.objective_ns == 0);
      CHECK(double(v.sol_score) == 0);
      CHECK(v.reason.find("needs an audit") != std::string::npos);
      e.retrials = 1;
      CHECK_FALSE(decide(e).retrial);
      CHECK(decide(e).decided.workloads[0].needs_audit);
    }
  }
}

TEST_CASE("numbers at the border of a rule accuse nobody") {
  const auto silent = [](const char* rule, const std::function<void(evidence&)>& change) {
    CAPTURE(rule);
    auto e = honest();
    change(e);
    CHECK_FALSE(fired(e, rule));
  };
  silent("below_physical_floor", [](evidence& e) { measured(e).time_ns = 500; });
  silent("below_floor", [](evidence& e) { measured(e).time_ns = 8'000; });
  silent("below_floor", [](evidence& e) { e.yardsticks[0].floor_ns = 0; });
  silent("times_fall",
    [](evidence& e) { std::fill_n(measured(e).samples_ns.begin(), 20, uint64_t{15'000}); });
  silent("times_fall", [](evidence& e) {
    // The clock rose meanwhile.
    std::fill_n(measured(e).samples_ns.begin(), 20, uint64_t{30'000});
    measured(e).timing.canary_khz_before = 900'000;
  });
  silent("times_fall", [](evidence& e) { measured(e).samples_ns = {30'000, 10'000}; });
  silent("span_exceeds_device",
    [](evidence& e) { measured(e).timing.span_ns.assign(40, 10'100 + 120'000); });
  silent("span_exceeds_device", [](evidence& e) {
    // A long kernel and a slow host: less than twice.
    measured(e).timing.device_ns.assign(40, 1'000'000);
    measured(e).timing.span_ns.assign(40, 1'900'000);
  });
  silent("outputs_not_compared", [](evidence& e) { measured(e).timing.digests_equal = 0; });
  silent("precision_downgrade", [](evidence& e) { output(e).relative_rms_error = 1e-3; });
  silent("precision_downgrade", [](evidence& e) {
    // Cancellation: large relative errors in a few elements only.
    output(e).relative_rms_error = 1e-3;
    output(e).ulp_histogram.assign(16, 0);
    output(e).ulp_histogram[2] = 600'000;
    output(e).ulp_histogram[15] = 400'000;
  });
  silent("precision_downgrade", [](evidence& e) {
    cheats().at("precision_downgrade")(e);
    e.narrowest_input_bits = 16; // Handed narrow numbers.
  });
  silent("precision_downgrade", [](evidence& e) {
    cheats().at("precision_downgrade")(e);
    output(e).ulp_histogram.clear(); // A judge that did not count.
  });
  silent("precision_downgrade", [](evidence& e) {
    cheats().at("precision_downgrade")(e);
    e.outputs = {{"y", "int32"}};
  });
  silent("precision_downgrade", [](evidence& e) {
    cheats().at("precision_downgrade")(e);
    fail_on(e, "set 0"); // Wrong is wrong, and no hint at the arithmetic.
  });
  silent("clustered_misses", [](evidence& e) {
    // A hard row, honestly rounded: together, but small.
    cheats().at("clustered_misses")(e);
    output(e).relative_rms_error = 0.002;
  });
  silent("clustered_misses", [](evidence& e) {
    // Spread evenly.
    output(e).mismatches = 6'400;
    output(e).relative_rms_error = 0.12;
    output(e).miss_tiles.assign(64, 100);
  });
  silent("clustered_misses", [](evidence& e) {
    output(e).mismatches = 31;
    output(e).miss_tiles[0] = 31;
    output(e).relative_rms_error = 0.1;
  });
}

TEST_CASE("precision has a row for each width, with inputs at least as wide") {
  struct width {
    const char* type;
    uint32_t input_bits;
    double error;
    size_t bin;
  };
  for (const auto& [type, bits, error, bin] :
    {width{"float64", 64, 6e-8, 28}, width{"float32", 32, 3e-4, 11}, width{"float16", 16, 2e-3, 2},
      width{"bfloat16", 16, 3e-2, 4}}) {
    CAPTURE(type);
    auto e = honest();
    e.outputs = {{"y", type}};
    e.narrowest_input_bits = bits;
    output(e).relative_rms_error = error;
    output(e).ulp_histogram.assign(bin + 1, 0);
    output(e).ulp_histogram[bin] = 1'000'000;
    CHECK(fired(e, "precision_downgrade"));
    output(e).ulp_histogram = {700'000, 300'000}; // Rounded once, as an honest kernel does.
    CHECK_FALSE(fired(e, "precision_downgrade"));
    e.narrowest_input_bits = 8;
    output(e).ulp_histogram.assign(bin + 1, 0);
    output(e).ulp_histogram[bin] = 1'000'000;
    CHECK_FALSE(fired(e, "precision_downgrade"));
  }
}

TEST_CASE("notes decide nothing") {
  auto e = honest();
  e.domain = "M % 64 == 0";
  measured(e).timing.digests_equal = 20;
  measured(e).timing.canary_khz_after = 1'900'000;
  measured(e).timing.weather.foreign_processes = 1;
  e.compiled.push_back({"writable_module_global", "", "the module variable 'x'", false});
  for (const char* rule : {"specialised", "not_deterministic", "unsteady_clock", "foreign_process",
         "writable_module_global"}) {
    CAPTURE(rule);
    CHECK(fired(e, rule));
  }
  const auto decided = decide(e);
  CHECK(decided.decided.status == verdict_status::passed);
  CHECK(decided.decided.findings.size() == 5);
  CHECK_FALSE(decided.retrial);
  CHECK(is_clean(e));
}

TEST_CASE("no workload, one and many: each is looked at by itself") {
  evidence none;
  CHECK(decide(none).decided.status == verdict_status::not_checked);
  auto e = honest();
  for (const char* uuid : {"x", "z"}) {
    auto w = measured(e);
    w.uuid = uuid;
    auto j = judged(e);
    j.uuid = uuid;
    e.measured.workloads.push_back(w);
    e.judged.workloads.push_back(j);
    e.yardsticks.push_back({uuid, 20'000, time_origin::measured, 8'000, 500});
  }
  e.measured.workloads[1].time_ns = 7'000;
  const auto v = decide(e).decided;
  CHECK(v.status == verdict_status::passed);
  CHECK_FALSE(v.workloads[0].needs_audit);
  CHECK(v.workloads[1].needs_audit);
  CHECK_FALSE(v.workloads[2].needs_audit);
  REQUIRE(v.findings.size() == 1);
  CHECK(v.findings[0].workload == "x");
}

TEST_CASE("a workload that was not measured or judged is no reason to accuse") {
  auto e = honest();
  e.measured.workloads.clear();
  e.judged.workloads.clear();
  const auto seen = examine(e);
  CHECK(seen.findings.empty());
  CHECK(decide(e).decided.status == verdict_status::infrastructure);
}

TEST_CASE("findings that no rule of this build knows stay as they were said") {
  auto e = honest();
  e.measured.findings.push_back({"from_the_future", "w", "?", true});
  CHECK(decide(e).decided.status == verdict_status::reward_hack);
  CHECK(is_clean(e, {"from_the_future"}));
}

TEST_CASE("a runner cannot turn a suspicion into a proof") {
  auto e = honest();
  e.measured.findings.push_back({"extra_activity", "w", "a memset of 64 bytes", true});
  CHECK(decide(e).decided.status == verdict_status::passed);
  CHECK(decide(e).decided.workloads[0].needs_audit);
}

TEST_CASE("the physical floor is the shortest kernel or what must be written") {
  CHECK(physical_floor({}, 1'000'000) == 0);
  CHECK(physical_floor({500, 0}, 1'000'000'000) == 500);
  CHECK(physical_floor({500, 10'000'000'000'000}, 1'000'000) == 500);
  CHECK(physical_floor({500, 10'000'000'000'000}, 100'000'000) == 10'000);
  CHECK(physical_floor({0, 1}, UINT64_MAX) == UINT64_MAX);
}
