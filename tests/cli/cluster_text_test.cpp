// What `gristmill cluster status` says about a cluster, in its three forms.

#include "cli/cluster_text.hpp"

#include <doctest/doctest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

using namespace gristmill;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

node_device device(const char* name, const char* label) {
  node_device out;
  out.name = name;
  out.label = label;
  out.sm_count = 132;
  return out;
}

cluster_snapshot two_nodes() {
  cluster_snapshot now;
  now.run = "20261201-rmsnorm";
  now.incarnation = 2;
  now.workers_here = 1;
  now.compile_slots_here = 2;
  now.up = 192s;
  node_snapshot busy;
  busy.node = "box-1";
  busy.boot = "f00d";
  busy.state = "ready";
  busy.devices = {device("mock:h200#0", "mock:h200"), device("mock:h200#1", "mock:h200"),
    device("cuda:0", "cuda:h200")};
  busy.compile_slots = 4;
  busy.compiles_running = 1;
  busy.workers = 8;
  busy.workers_max = 10;
  busy.tasks_open = 3;
  busy.tasks_done = 120;
  busy.tasks_failed = 5;
  busy.losses = 2;
  busy.returns = 2;
  busy.handed_in = 7;
  busy.blob_bytes_in = 3 << 20;
  busy.blob_bytes_out = 1536;
  busy.age = 61500ms;
  node_snapshot gone;
  gone.node = "box \"2\"\\";
  gone.state = "lost";
  gone.reason = "nothing heard for 15 s";
  gone.losses = 1;
  gone.age = 2h;
  now.nodes = {busy, gone};
  return now;
}

/// What a scraper reads: the value of each sample, by name and labels.
std::map<std::string, double> samples_of(const std::string& text) {
  std::map<std::string, double> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#'))
      continue;
    const auto blank = line.rfind(' ');
    REQUIRE(blank != std::string::npos);
    CHECK_MESSAGE(
      out.emplace(line.substr(0, blank), std::stod(line.substr(blank))).second, "twice: ", line);
  }
  return out;
}

TEST_SUITE_BEGIN("cluster text");

TEST_CASE("the table has a line a node and says why one is lost") {
  const auto table = cluster_table(two_nodes());
  CHECK(table.find(
          "run 20261201-rmsnorm, start 2, up 3m12s; here: 1 worker, 0 devices, 2 compile slots\n")
    == 0);
  for (const char* part : {"box-1", "1 cuda:h200, 2 mock:h200", "1/4", "8/10", "3/120/5",
         "3.0 MiB/1.5 KiB", "61s", "(nothing heard for 15 s)", "2h00m", "1 (back 0)"})
    CHECK_MESSAGE(table.find(part) != std::string::npos, part);
  std::istringstream lines(table);
  std::string line;
  size_t count = 0;
  while (std::getline(lines, line)) {
    ++count;
    CHECK_FALSE(line.ends_with(' '));
  }
  CHECK(count == 4);
}

TEST_CASE("a cluster without nodes says so") {
  CHECK(cluster_table({}).find("no node has joined") != std::string::npos);
  CHECK(json::parse(cluster_json({}))["nodes"].empty());
  CHECK(samples_of(cluster_metrics({})).at("gristmill_cluster_nodes{state=\"ready\"}") == 0);
}

TEST_CASE("the JSON holds every field of the snapshot") {
  const auto out = json::parse(cluster_json(two_nodes()));
  CHECK(out["schema"] == "gristmill.cluster-status/1");
  CHECK(out["run"] == "20261201-rmsnorm");
  CHECK(out["incarnation"] == 2);
  CHECK(out["up_ns"] == 192'000'000'000);
  CHECK(out["workers_here"] == 1);
  CHECK(out["devices_here"] == 0);
  CHECK(out["compile_slots_here"] == 2);
  const auto& busy = out["nodes"][0];
  const json expected{{"node", "box-1"}, {"boot", "f00d"}, {"state", "ready"}, {"reason", ""},
    {"age_ns", 61'500'000'000}, {"compile_slots", 4}, {"compiles_running", 1}, {"workers", 8},
    {"workers_max", 10}, {"tasks_open", 3}, {"tasks_done", 120}, {"tasks_failed", 5}, {"losses", 2},
    {"returns", 2}, {"handed_in", 7}, {"blob_bytes_in", 3 << 20}, {"blob_bytes_out", 1536}};
  for (const auto& [key, value] : expected.items())
    CHECK_MESSAGE(busy[key] == value, key);
  CHECK(busy["devices"].size() == 3);
  CHECK(busy["devices"][2]["label"] == "cuda:h200");
  CHECK(busy["devices"][2]["sm_count"] == 132);
  CHECK(out["nodes"][1]["reason"] == "nothing heard for 15 s");
}

TEST_CASE("a name that is no UTF-8 does no harm to the JSON") {
  cluster_snapshot now;
  now.nodes.resize(1);
  now.nodes[0].node = "bad\xff";
  CHECK(json::parse(cluster_json(now))["nodes"].size() == 1);
}

TEST_CASE("the metrics hold every figure once, with kinds, helps and escaped labels") {
  const auto text = cluster_metrics(two_nodes());
  const auto samples = samples_of(text);
  const std::map<std::string, double> expected{{"gristmill_run_info{run=\"20261201-rmsnorm\"}", 1},
    {"gristmill_coordinator_start", 2}, {"gristmill_coordinator_up_seconds", 192},
    {"gristmill_coordinator_workers", 1}, {"gristmill_coordinator_devices", 0},
    {"gristmill_coordinator_compile_slots", 2}, {"gristmill_cluster_nodes{state=\"ready\"}", 1},
    {"gristmill_cluster_nodes{state=\"lost\"}", 1},
    {"gristmill_cluster_nodes{state=\"joining\"}", 0}, {"gristmill_node_up{node=\"box-1\"}", 1},
    {R"(gristmill_node_up{node="box \"2\"\\"})", 0},
    {"gristmill_node_state_seconds{node=\"box-1\"}", 61.5},
    {"gristmill_node_devices{node=\"box-1\",label=\"mock:h200\"}", 2},
    {"gristmill_node_devices{node=\"box-1\",label=\"cuda:h200\"}", 1},
    {"gristmill_node_compile_slots{node=\"box-1\"}", 4},
    {"gristmill_node_compiles_running{node=\"box-1\"}", 1},
    {"gristmill_node_workers{node=\"box-1\"}", 8},
    {"gristmill_node_workers_max{node=\"box-1\"}", 10},
    {"gristmill_node_tasks_open{node=\"box-1\"}", 3},
    {"gristmill_node_tasks_done_total{node=\"box-1\"}", 120},
    {"gristmill_node_tasks_failed_total{node=\"box-1\"}", 5},
    {"gristmill_node_losses_total{node=\"box-1\"}", 2},
    {"gristmill_node_returns_total{node=\"box-1\"}", 2},
    {"gristmill_node_handed_in_total{node=\"box-1\"}", 7},
    {"gristmill_node_blob_bytes_in_total{node=\"box-1\"}", 3 << 20},
    {"gristmill_node_blob_bytes_out_total{node=\"box-1\"}", 1536}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    REQUIRE(samples.contains(name));
    CHECK(samples.at(name) == value);
  }
  // Every sample follows the lines about its family.
  std::istringstream lines(text);
  std::string family;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      const auto kind = line.substr(line.rfind(' ') + 1);
      CHECK(kind == (family.ends_with("_total") ? "counter" : "gauge"));
    } else if (!line.starts_with('#')) {
      CHECK(line.substr(0, line.find_first_of("{ ")) == family);
    }
  }
}

TEST_SUITE_END();

} // namespace
