// A lease policy of one's own, whole: of the problems that wait, the one with the fewest waiting
// requests goes first, and within it the oldest request. docs/lease-policies.md says how to add it.

#include "examples/lease_policy/shortest_queue.hpp"

#include <map>

namespace {

using namespace gristmill;

class shortest_queue final : public lease_policy {
public:
  std::string_view name() const override { return "shortest_queue"; }

  void on_request(const waiter& w) override {
    problem_of_[w.ticket] = w.flow.problem;
    queues_[w.flow.problem][w.ticket] = w.need;
  }
  void on_cancel(uint64_t ticket) override { leave(ticket); }
  void on_grant(uint64_t ticket, uint32_t, std::chrono::nanoseconds) override { leave(ticket); }
  void on_release(const lease_usage&, std::string_view, std::chrono::nanoseconds) override {}

  std::optional<uint64_t> pick(const gpu_offer& offer, std::chrono::nanoseconds) override {
    std::optional<std::pair<size_t, uint64_t>> best; // Length of the queue, then age.
    for (const auto& [problem, queue] : queues_)
      for (const auto& [ticket, need] : queue)
        if ((offer.fits >> need & 1) != 0) {
          best =
            std::min(best.value_or(std::pair{SIZE_MAX, ticket}), std::pair{queue.size(), ticket});
          break; // The younger ones of this problem come later.
        }
    return best ? std::optional{best->second} : std::nullopt;
  }

  std::unique_ptr<lease_policy> clone() const override {
    return std::make_unique<shortest_queue>(*this);
  }
  std::string save() const override { return "shortest_queue 1\n"; } // It remembers nobody's past.
  result<void> load(std::string_view text) override {
    return text == save() ? result<void>{}
                          : fail(errc::invalid_input, "not a shortest_queue state");
  }

private:
  void leave(uint64_t ticket) {
    auto problem = problem_of_.extract(ticket);
    if (!problem.empty() && queues_[problem.mapped()].erase(ticket) == 1
      && queues_[problem.mapped()].empty())
      queues_.erase(problem.mapped());
  }

  std::map<uint64_t, std::string> problem_of_;
  std::map<std::string, std::map<uint64_t, need_id>> queues_;
};

} // namespace

std::unique_ptr<gristmill::lease_policy> make_shortest_queue() {
  return std::make_unique<shortest_queue>();
}
