#include "planning/cluster/prepare_fan.hpp"

#include <doctest/doctest.h>

using namespace gristmill;

namespace {

prepared_problem ready(verdict_status status = verdict_status::passed, std::string reason = "") {
  prepared_problem out;
  out.problem = "softmax";
  out.status = status;
  out.reason = std::move(reason);
  return out;
}

const failure broken{errc::io_failed, "the disk is full"};

} // namespace

TEST_CASE("a fan is over when every place has answered or is gone") {
  prepare_fan fan{{1, 2, 3}};
  CHECK_FALSE(fan.over());
  fan.answered(1, ready());
  fan.lost(2);
  CHECK_FALSE(fan.over());
  fan.failed(3, broken);
  CHECK(fan.over());
  REQUIRE(fan.outcome());
  CHECK(fan.winner() == 1);
}

TEST_CASE("the first that passed wins; who could not is unfit, with the reason") {
  prepare_fan fan{{1, 2, 3}};
  fan.answered(1, ready(verdict_status::infrastructure, "no interpreter"));
  fan.failed(3, broken);
  fan.answered(2, ready());
  CHECK(fan.winner() == 2);
  auto unfit = fan.unfit();
  REQUIRE(unfit.size() == 2);
  CHECK(unfit[0] == std::pair<session_id, std::string>{3, "the disk is full"});
  CHECK(unfit[1] == std::pair<session_id, std::string>{1, "no interpreter"});
}

TEST_CASE("what the coordinator itself found counts before all others") {
  prepare_fan fan{{0, 1}};
  fan.answered(1, ready());
  fan.answered(0, ready(verdict_status::invalid_reference, "it raises"));
  CHECK(fan.winner() == 0);
  CHECK(fan.outcome()->status == verdict_status::invalid_reference);
  CHECK(fan.unfit().empty());
}

TEST_CASE("a problem that is wrong everywhere makes nobody unfit") {
  prepare_fan fan{{1, 2}};
  fan.answered(1, ready(verdict_status::invalid_reference, "it raises"));
  fan.answered(2, ready(verdict_status::invalid_reference, "it raises"));
  CHECK(fan.outcome()->status == verdict_status::invalid_reference);
  CHECK(fan.unfit().empty());
}

TEST_CASE("with every node lost it is to be made elsewhere") {
  prepare_fan fan{{1, 2}};
  fan.lost(1);
  fan.lost(2);
  REQUIRE(fan.over());
  REQUIRE_FALSE(fan.outcome());
  CHECK(fan.outcome().error().code == errc::node_lost);
}

TEST_CASE("an answer that is not awaited, or comes twice, changes nothing") {
  prepare_fan fan{{1, 2}};
  fan.answered(7, ready());
  fan.answered(1, ready(verdict_status::invalid_reference));
  fan.answered(1, ready());
  CHECK_FALSE(fan.over());
  fan.lost(2);
  CHECK(fan.outcome()->status == verdict_status::invalid_reference);
}

TEST_CASE("a draw is another thing than its problem") {
  CHECK(prepare_key({"softmax", "", {}}) == "softmax");
  CHECK(prepare_key({"softmax", "softmax/cuda/3#1", {}}) == "softmax @ softmax/cuda/3#1");
}
