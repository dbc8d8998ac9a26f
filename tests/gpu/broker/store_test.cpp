// What a broker remembers.

#include "gpu/broker/broker_store.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>

using namespace gristmill;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

lease_record record() {
  lease_record r;
  r.gpu = "mock:h200#0";
  r.token = 17;
  r.lease = "abc";
  r.boot = "boot";
  r.granted_at = 5s;
  r.term = 60s;
  r.request.request = 1;
  r.request.what = lease_class::profile;
  r.request.flow = {"alice", "x"};
  r.request.weight = 2;
  r.request.attempt = "python3 \"x\"";
  r.guarded = true;
  r.user = 1000;
  r.pid = 4711;
  r.started = 99;
  r.session = 4712;
  r.session_started = 100;
  return r;
}

} // namespace

TEST_CASE("memory and leases are read as they were written") {
  temporary_folder f;
  broker_memory m;
  m.epoch = 3;
  m.tokens["mock:h200#0"] = 2048;
  m.drained["mock:h200#0"] = "fan";
  m.weights["alice"] = 2;
  m.policy = "stride";
  m.policy_state = "a \"b\"\nc";
  {
    auto store = broker_store::open(f.path);
    REQUIRE(store.has_value());
    CHECK((*store)->memory().epoch == 0);
    CHECK((*store)->save(m, true).has_value());
    CHECK((*store)->save_lease(record()).has_value());
  }
  auto store = broker_store::open(f.path);
  REQUIRE(store.has_value());
  CHECK(broker_memory_text((*store)->memory()) == broker_memory_text(m));
  REQUIRE((*store)->leases().size() == 1);
  CHECK(lease_record_text((*store)->leases()[0]) == lease_record_text(record()));
  (*store)->forget_lease("mock:h200#0");
  store->reset();
  CHECK((*broker_store::open(f.path))->leases().empty());
}

TEST_CASE("two brokers never share a state") {
  temporary_folder f;
  auto one = broker_store::open(f.path);
  REQUIRE(one.has_value());
  auto two = broker_store::open(f.path);
  REQUIRE_FALSE(two.has_value());
  CHECK(two.error().code == errc::refused);
  CHECK(two.error().what.find("--state") != std::string::npos);
}

TEST_CASE("a damaged state is refused with its file, never guessed") {
  for (const char* text :
    {"", "{", "{}", "[]", R"({"schema":"gristmill.broker-state/2"})",
      R"({"schema":"gristmill.broker-state/1","epoch":-1,"tokens":{},"drained":{},"weights":{},"policy":"","policy_state":""})",
      R"({"schema":"gristmill.broker-state/1","epoch":1,"tokens":{"a":-5},"drained":{},"weights":{},"policy":"","policy_state":""})"}) {
    CAPTURE(text);
    temporary_folder f;
    std::ofstream(f.path / "state.json") << text;
    auto store = broker_store::open(f.path);
    REQUIRE_FALSE(store.has_value());
    CHECK(store.error().what.find("state.json") != std::string::npos);
  }
  temporary_folder f;
  std::ofstream(f.path / "lease-x.json") << "{\"schema\":\"gristmill.broker-lease/1\"}";
  CHECK_FALSE(broker_store::open(f.path).has_value());
}

TEST_CASE("the journal is one line a transition, after what was there") {
  temporary_folder f;
  for (int n = 0; n < 2; ++n) {
    auto store = broker_store::open(f.path);
    REQUIRE(store.has_value());
    event e;
    e.kind = "lease_grant";
    e.gpu = "mock:h200#0";
    (*store)->note(e);
  }
  std::ifstream in(f.path / "journal.jsonl");
  std::string line;
  int lines = 0;
  while (std::getline(in, line)) {
    ++lines;
    CHECK(line.find("\"kind\":\"lease_grant\"") != std::string::npos);
  }
  CHECK(lines == 2);
}
