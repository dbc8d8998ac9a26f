#include "simulation/core/engine.hpp"
#include "simulation/scenario_file.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace gristmill;

TEST_CASE("the seed run's preset comes to what the published run came to, with gamma 2 and 4") {
  // The parameters were solved from these numbers: this checks the preset and the engine, it is no
  // evidence for the model. 20 seeds are run by `gristmill simulate seed-run --seeds 20`.
  for (double gamma : {2.0, 4.0}) {
    auto what = load_scenario("seed-run");
    REQUIRE(what);
    what->learning.gamma = gamma;
    double wins = 0;
    double above_two = 0;
    double geomean = 0;
    double sol = 0;
    constexpr int seeds = 2;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      lab_options options;
      options.world.seed = seed;
      const auto r = run_core(*what, std::move(options));
      REQUIRE(r);
      CHECK(r->utilisation() > 0.99);
      CHECK(r->holds.mean_s() > 5);
      wins += r->end()->wins / double{seeds};
      above_two += r->end()->above_two / double{seeds};
      geomean += r->end()->geomean / seeds;
      sol += r->end()->median_sol / seeds;
    }
    CAPTURE(gamma);
    CHECK(std::fabs(wins - 149) <= 15);
    CHECK(std::fabs(above_two - 45) <= 12);
    CHECK(std::fabs(geomean - 1.38) <= 0.10);
    CHECK(std::fabs(sol - 0.56) <= 0.04);
  }
}
