#include "gpu/lease/policy_text.hpp"

#include "gpu/lease/fixed_log.hpp"
#include "tests/gpu/lease/policy_support.hpp"

#include <algorithm>
#include <cmath>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

std::string refusal(const std::string& text) {
  CAPTURE(text);
  auto p = policy_from_text(text);
  REQUIRE_FALSE(p);
  CHECK(p.error().code == errc::invalid_input);
  CHECK(p.error().what.size() < 1000);
  return p.error().what;
}

bool says(const std::string& text, const std::string& part) {
  auto what = refusal(text);
  INFO(what);
  return what.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a text is taken apart into levels with parameters") {
  auto levels =
    parse_policy_text(" a ( x = 1 , order=p>q ) / b(cmd=\"sh -c \\\"a, b\\\" / (c)\")/c()");
  REQUIRE(levels);
  CHECK(*levels
    == std::vector<policy_level_text>{
      {"a", {{"x", "1"}, {"order", "p>q"}}}, {"b", {{"cmd", "sh -c \"a, b\" / (c)"}}}, {"c", {}}});
  for (const char* value : {"plain", "two words", "a\"b\\c,()/", ""}) {
    CAPTURE(value);
    auto again = parse_policy_text(std::string{"p(v="} + quoted_policy_value(value) + ")");
    REQUIRE(again);
    CHECK((*again)[0].parameters[0].second == value);
  }
}

TEST_CASE("a text that is no policy is refused with the place") {
  for (const char* text : {"", " ", "/", "fifo/", "/fifo", "fifo//fifo", "fifo(", "fifo(a",
         "fifo(a=", "fifo(a=)", "fifo(a=1", "fifo(a=1,", "fifo(=1)", "fifo)", "fifo fifo",
         "a(b=\"x)", "a(b=\"x\\", "\n", "fifo\n", "a(b=1)c", "a(b=\"x\"y)"})
    refusal(text);
  CHECK(says("stride(by=problem", "character 18, found the end"));
  CHECK(says("stride(by=problem]", "found the end"));
  CHECK(says("fifo!", "found '!'"));
  CHECK(says("sept(ageing=1,ageing=2)", "given twice"));
}

TEST_CASE("the limits on a text hold") {
  CHECK(says(std::string(100'000, 'x'), "longer than 4096 bytes"));
  CHECK(says("a/a/a/a/a/a/a", "more than 6 levels"));
  std::string many = "a(";
  for (int i = 0; i < 17; ++i)
    many += (i == 0 ? "p" : ",p") + std::to_string(i) + "=1";
  CHECK(says(many + ")", "more than 16 parameters"));
  CHECK(says(std::string(4000, '('), "expected"));
}

TEST_CASE("an unknown policy is an error that names the nearest one and all of them") {
  CHECK(says("strid", "did you mean 'stride'?"));
  CHECK(says("fif", "did you mean 'fifo'?"));
  CHECK(says("stride(by=problem)/lotery", "did you mean 'lottery'?"));
  CHECK(
    says("sjf", "backfill, drr, edf, external, fifo, las, lottery, maxmin, priority, rr, sept"));
}

TEST_CASE("an unknown parameter or a wrong value is an error that says what would be right") {
  CHECK(says("sept(aging=1)", "there is no parameter 'aging'; did you mean 'ageing'?"));
  CHECK(says("fifo(by=problem)", "it has none"));
  CHECK(says("stride(by=problm)", "did you mean 'problem'? Known: class, problem, agent"));
  CHECK(says("sept(ageing=-1)", "a decimal such as 0.5"));
  CHECK(says("sept(ageing=0.0001)", "at most three places"));
  CHECK(says("sept(ageing=nan)", "a decimal"));
  CHECK(says("drr(quantum=10)", "a time such as 10s"));
  CHECK(says("drr(quantum=0s)", "above 0"));
  CHECK(says("drr(quantum=300000d)", "a time"));
  CHECK(says("lottery(seed=x)", "a whole number"));
  CHECK(says("lottery(seed=18446744073709551616)", "a whole number"));
  CHECK(policy_from_text("lottery(seed=18446744073709551615)"));
  CHECK(says("las(levels=1)", "from 2 to 1024"));
  CHECK(says("las(levels=1025)", "from 2 to 1024"));
  CHECK(says("las(factor=1)", "above 1"));
  CHECK(says("las(first=0s)", "above 0"));
  CHECK(says("maxmin(half_life=1us)", "at least 1ms"));
  CHECK(says("priority(order=correctnes)", "did you mean 'correctness'?"));
  CHECK(says("priority(order=timing>timing)", "twice"));
  CHECK(says("priority(order=timing>)", "names with '>'"));
  CHECK(says("priority(by=problem)", "order must be given"));
  CHECK(says("backfill(class=profil)", "did you mean 'profile'?"));
  CHECK(says("external", "'cmd' must be given"));
  CHECK(says("external(cmd=\"\")", "cmd must not be empty"));
  CHECK(says("external(cmd=x,timeout=2s)", "from 1ms to 1s"));
}

TEST_CASE("a level stands only where it means something") {
  CHECK(says("fifo/stride", "orders single requests, so 'stride' cannot stand below it"));
  CHECK(says("sept/fifo", "orders single requests"));
  CHECK(says("stride(by=problem)/stride(by=problem)", "by=problem stands on two levels"));
  CHECK(says("stride(by=user)/rr(by=problem)", "by=problem stands on two levels"));
  CHECK(says("stride/rr(by=agent)", "by=agent stands on two levels"));
  CHECK(says("rr(by=agent)/stride", "means problem, then agent"));
  CHECK(says("stride(by=problem)/backfill", "must stand by itself"));
  CHECK(says("external(cmd=x)/fifo", "must stand by itself"));
}

TEST_CASE("user and project are other words for problem and agent") {
  auto a = policy("drr(by=user)/rr(by=project)");
  auto b = policy("drr(by=problem)/rr(by=agent)");
  CHECK(a->save() == b->save());
}

TEST_CASE("times and decimals are read exactly") {
  CHECK(parse_policy_time("10s") == 10s);
  CHECK(parse_policy_time("1.5h") == 90min);
  CHECK(parse_policy_time("0.000001s") == 1us);
  CHECK(parse_policy_time("50ms") == 50ms);
  CHECK(parse_policy_time("0.5ns") == std::nullopt);
  for (const char* text : {"", "s", "1", ".5s", "5.s", "1e3s", "-1s", "1 s", "1x", "1.2.3s",
         "99999999999999d", "99999999999999999999s"})
    CHECK_FALSE(parse_policy_time(text));
  CHECK(parse_thousandths("0.5") == 500u);
  CHECK(parse_thousandths("12") == 12000u);
  CHECK(parse_thousandths("0.001") == 1u);
  for (const char* text : {"", ".", "1.", ".1", "0.0001", "+1", "1e1", "9999999999999999999"})
    CHECK_FALSE(parse_thousandths(text));
}

TEST_CASE("the catalogue names every policy, what it does and what its parameters mean") {
  auto catalogue = policy_catalogue();
  CHECK(catalogue.size() >= 12);
  for (const auto& p : catalogue) {
    CAPTURE(p.name);
    CHECK_FALSE(p.what.empty());
    CHECK(p.what.find('\n') == std::string::npos);
    for (const auto& parameter : p.parameters) {
      CAPTURE(parameter.name);
      CHECK_FALSE(parameter.what.empty());
      CHECK_FALSE(parameter.kind.empty());
      if (!parameter.fallback.empty() && parameter.name != "by")
        CHECK(policy_from_text(p.name + "(" + parameter.name + "=" + parameter.fallback
          + (p.name == "external" ? ",cmd=x)" : ")")));
    }
  }
}

TEST_CASE("the integer logarithm and decay agree with the real ones") {
  for (uint64_t x : {1ul, 2ul, 3ul, 10ul, 1000ul, 123456789ul, 1ul << 40, ~0ul}) {
    CAPTURE(x);
    CHECK(static_cast<double>(log2_q32(x)) / 0x1p32 == doctest::Approx(std::log2(x)).epsilon(1e-9));
  }
  CHECK(log2_q32(static_cast<unsigned __int128>(1) << 100) == int64_t{100} << 32);
  for (uint64_t steps : {0ul, 1ul, 17ul, 63ul, 64ul, 65ul, 640ul, 1000ul}) {
    CAPTURE(steps);
    auto exact = 1e15 * std::exp2(-static_cast<double>(steps) / 64);
    CHECK(std::abs(static_cast<double>(decayed(1'000'000'000'000'000, steps)) - exact)
      <= 2 + 1e-8 * exact);
  }
  CHECK(decayed((__int128{1} << 120), 127 * 64) == 0);
  CHECK(decayed((__int128{1} << 120), UINT64_MAX) == 0);
}
