// How long the lease table itself takes: a grant on a free GPU, and a verified GPU to its next
// grant with many waiting. usage: gristmill-bench-lease-table [POLICY [WAITERS [GPUS]]]

#include "gpu/lease/table.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <string>

using namespace gristmill;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using wall = std::chrono::steady_clock;

namespace {

void show(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  auto at = [&](double q) { return us[static_cast<size_t>(q * double(us.size() - 1))]; };
  fmt::print("{:42} n {:6}  p50 {:7.1f} us  p99 {:7.1f} us  max {:7.1f} us\n", what, us.size(),
    at(0.5), at(0.99), at(1.0));
}

double since(wall::time_point start) {
  return std::chrono::duration<double, std::micro>(wall::now() - start).count();
}

struct bench {
  lease_table table;
  lease_actions out;
  nanoseconds now{0};
  uint64_t requests = 0;

  bench(const std::string& policy, uint32_t gpus) : table({}, *policy_by_name(policy)) {
    for (uint32_t i = 0; i < gpus; ++i) {
      table.add_gpu({fmt::format("mock:h200#{}", i), "h200"}, now, out);
      store();
      table.on_device_up(i, now, out);
    }
    out.clear();
  }

  void store() {
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i].kind == lease_action_kind::reserve)
        table.on_block_reserved(out[i].reserve.gpu, out[i].reserve.last, now, out);
  }

  void ask() {
    lease_request r;
    r.request = ++requests;
    r.flow = {fmt::format("problem-{}", requests % 235), fmt::format("agent-{}", requests % 500)};
    r.need = "h200";
    r.attempt = "problem/cuda/1";
    table.on_request(1 + requests % 500, r, now, out);
  }

  lease granted() const {
    for (const auto& a : out)
      if (a.kind == lease_action_kind::grant)
        return a.granted.granted;
    fmt::print(stderr, "nothing was granted\n");
    std::exit(1);
  }

  void end(const lease& l) {
    table.on_activated(l.gpu, l.token, now, out);
    table.on_release(l.gpu, l.token, "done", now, out);
  }
};

} // namespace

int main(int argc, char** argv) {
  std::string policy = argc > 1 ? argv[1] : "stride";
  auto waiters = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 500;
  auto gpus = static_cast<uint32_t>(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 27);
  if (!policy_by_name(policy) || gpus == 0) {
    fmt::print(stderr, "usage: gristmill-bench-lease-table [POLICY [WAITERS [GPUS]]]\n");
    return 2;
  }
  constexpr int rounds = 20'000;
  fmt::print("policy {}, {} waiters, {} GPUs\n", policy, waiters, gpus);
  {
    bench b(policy, gpus);
    std::vector<double> us;
    for (int i = 0; i < rounds; ++i) {
      b.now += 1ms;
      auto start = wall::now();
      b.ask();
      us.push_back(since(start));
      auto l = b.granted();
      b.end(l);
      b.table.on_verified(l.gpu, l.token, b.now, b.out);
      b.store();
      b.out.clear();
    }
    show("request to grant, a GPU is free", us);
  }
  bench b(policy, gpus);
  for (uint64_t i = 0; i < waiters + gpus; ++i)
    b.ask();
  std::vector<lease> running;
  for (const auto& a : b.out)
    if (a.kind == lease_action_kind::grant)
      running.push_back(a.granted.granted);
  b.out.clear();
  std::vector<double> next;
  std::vector<double> line;
  for (int i = 0; i < rounds; ++i) {
    // 27 GPUs with holds of 100 ms: an end each 3.7 ms.
    b.now += 3'700us;
    auto& l = running[static_cast<size_t>(i) % running.size()];
    b.end(l);
    b.out.clear();
    auto start = wall::now();
    b.table.on_verified(l.gpu, l.token, b.now, b.out);
    next.push_back(since(start));
    l = b.granted();
    b.store();
    b.out.clear();
    start = wall::now();
    b.ask();
    line.push_back(since(start));
    b.out.clear();
    b.table.on_tick(b.now, b.out);
  }
  show("verified to the next grant", next);
  show("request to ticket, with place and estimate", line);
  return 0;
}
