// The closed queue of gristmill-bench-lab-speed as SimGrid actors: agents think, acquire one of the
// GPUs first come first served, hold it, and think again; thinking and holding are exponential.
//
//     simgrid_closed_queue AGENTS GPUS THINK_S HOLD_S DURATION_S SEED
//
// Prints one line: wall_s leases mean_wait_s throughput_per_s

#include <simgrid/s4u.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

namespace sg = simgrid::s4u;

/// SplitMix64: small, and the same everywhere.
struct stream {
  uint64_t state;
  double exponential(double mean) {
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return -mean * std::log((double(z >> 11) + 0.5) * 0x1.0p-53);
  }
};

struct totals {
  uint64_t grants = 0;
  uint64_t leases = 0;
  double waited = 0;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: %s AGENTS GPUS THINK_S HOLD_S DURATION_S SEED\n", argv[0]);
    return 2;
  }
  auto agents = std::atoi(argv[1]);
  auto gpus = std::atoi(argv[2]);
  auto think = std::atof(argv[3]);
  auto hold = std::atof(argv[4]);
  auto duration = std::atof(argv[5]);
  auto seed = static_cast<uint64_t>(std::atoll(argv[6]));

  // Its own options, so that it prints nothing of itself and small stacks do.
  std::string quiet = "--log=root.thres:error";
  std::string stack = "--cfg=contexts/stack-size:32";
  char* options[] = {argv[0], quiet.data(), stack.data(), nullptr};
  int count = 3;
  auto began = std::chrono::steady_clock::now();
  sg::Engine engine(&count, options);
  auto* zone = sg::create_full_zone("zone");
  auto* host = zone->create_host("host", 1e9)->seal();
  zone->seal();
  auto free_gpus = sg::Semaphore::create(static_cast<unsigned>(gpus));
  totals sum;
  for (int i = 0; i < agents; ++i)
    sg::Actor::create("agent", host, [&, i] {
      stream draws{seed * 0xD1342543DE82EF95ull + static_cast<uint64_t>(i) * 0x632BE59BD9B4E019ull};
      for (;;) {
        sg::this_actor::sleep_for(draws.exponential(think));
        auto asked = sg::Engine::get_clock();
        free_gpus->acquire();
        sum.waited += sg::Engine::get_clock() - asked;
        ++sum.grants;
        sg::this_actor::sleep_for(draws.exponential(hold));
        free_gpus->release();
        ++sum.leases;
      }
    })->daemonize();
  sg::Actor::create("end", host, [duration] { sg::this_actor::sleep_for(duration); });
  engine.run();
  auto wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%.6f %llu %.6f %.6f\n", wall, static_cast<unsigned long long>(sum.leases),
    sum.grants == 0 ? 0.0 : sum.waited / double(sum.grants), double(sum.leases) / duration);
}
