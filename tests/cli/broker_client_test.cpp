// The C++ client of the broker, against a broker of its own process.

#include "gpu/broker/client.hpp"
#include "tests/cli/broker_fixture.hpp"

#include <utility>

using namespace gristmill;
using gristmill::test::broker_process;
using gristmill::test::eventually;
using namespace std::chrono_literals;

TEST_CASE("a process gets a GPU for itself, sees that it is valid, and gives it back once") {
  broker_process b({"--gpus", "sleep:1"});
  lease_wish wish;
  wish.as = "alice/x";
  wish.cap = 20s;
  auto gpu = broker_lease::acquire(wish, b.socket());
  REQUIRE_MESSAGE(gpu.has_value(), gpu.error().what);
  CHECK(gpu->gpu() == "sleep#0");
  CHECK(gpu->visible() == "0");
  CHECK(gpu->token() == 1);
  CHECK(gpu->valid());
  CHECK(gpu->left() > 10s);
  CHECK(b.status()["gpus"][0]["user"] == "alice");
  wish.patience = 50ms;
  auto second = broker_lease::acquire(wish, b.socket());
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == errc::timed_out);
  auto cost = gpu->release(lease_outcome::fine, "done", 5s);
  REQUIRE_MESSAGE(cost.has_value(), cost.error().what);
  CHECK(cost->held > 0ns);
  CHECK_FALSE(gpu->valid());
  CHECK_FALSE(gpu->release().has_value());
  CHECK(b.all_free());
}

TEST_CASE("a handle that is dropped or moved gives back exactly one lease") {
  broker_process b({"--gpus", "sleep:1"});
  {
    auto gpu = broker_lease::acquire({}, b.socket());
    REQUIRE(gpu.has_value());
    auto moved = std::move(*gpu);
    CHECK(moved.valid());
    CHECK(b.status()["gpus"][0]["phase"] == "active");
  }
  CHECK(b.all_free());
}

TEST_CASE("a lease outlives the broker's restart, under the same token") {
  broker_process b({"--gpus", "sleep:1"});
  auto gpu = broker_lease::acquire({}, b.socket());
  REQUIRE(gpu.has_value());
  b.kill_it();
  CHECK(gpu->valid());
  b.start();
  CHECK(eventually([&] { return gpu->valid() && b.status()["gpus"][0]["phase"] == "active"; }));
  CHECK(b.status()["gpus"][0]["token"] == gpu->token());
  CHECK(gpu->release(lease_outcome::fine, "done", 5s).has_value());
  CHECK(b.all_free());
}

TEST_CASE("without a broker the error says how to start one") {
  auto gpu = broker_lease::acquire({}, "/no/such/socket");
  REQUIRE_FALSE(gpu.has_value());
  CHECK(gpu.error().code == errc::not_found);
  CHECK(gpu.error().what.find("gristmill broker") != std::string::npos);
}
