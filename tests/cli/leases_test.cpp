#include "tests/cli/program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace gristmill::test;

TEST_CASE("`leases` tells from the log what the broker of a run has done") {
  scratch folder;
  auto run = (folder / "rehearsal").string();
  program rehearse(
    {"run", "softmax", "--gpus", "sleep:5ms:2", "--proposer", "sleep", "--workers", "6", "--budget",
      "100attempts", "--seed", "1", "--lease-policy", "stride(by=problem)/fifo", "--out", run});
  rehearse.wait();
  INFO(rehearse.err());
  program leases({"leases", run, "--json"});
  REQUIRE(leases.wait() == 0);
  auto log = nlohmann::json::parse(leases.out());
  CHECK(log.at("ended") == true);
  CHECK(log.at("policy") == "stride(by=problem)/fifo");
  CHECK(log.at("counts").at("grants") == 100);
  CHECK(log.at("counts").at("releases") == 100);
  CHECK(log.at("gpus").size() == 2);
  for (const auto& gpu : log.at("gpus"))
    CHECK_MESSAGE(gpu.at("phase") == "ended", "its executor ended with the run");
  CHECK(log.at("counts").at("gpus_lost") == 0);
  CHECK(log.at("hold").at("p50_ns") >= 5'000'000);
  CHECK(log.at("queue").empty());
  CHECK(log.at("usage").size() == 6);

  program text({"leases", run});
  CHECK(text.wait() == 0);
  CHECK(text.out().find("sleep#0") != std::string::npos);

  program wrong({"leases", (folder / "rehearsel").string()});
  CHECK(wrong.wait() == 2);
  CHECK(wrong.out().empty());
  CHECK(wrong.err().find("did you mean `" + run + "`") != std::string::npos);
}

TEST_CASE("a lease policy that does not exist is refused with the nearest one") {
  scratch folder;
  program p({"run", "softmax", "--lease-policy", "strode", "--out", (folder / "run").string()});
  CHECK(p.wait() == 2);
  CHECK(p.err().find("stride") != std::string::npos);
}
