#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gristmill {

/// What can run out.
enum class budget_kind : uint8_t { money = 0, tokens, calls, gpu_time, attempts };

std::string to_string(budget_kind kind);

/// So much of each kind; money in 10^-9 USD, GPU time in nanoseconds under lease.
struct budget_amounts {
  uint64_t nano_usd = 0;
  uint64_t tokens = 0;
  uint64_t calls = 0;
  uint64_t gpu_ns = 0;
  uint64_t attempts = 0;

  uint64_t of(budget_kind kind) const;
  /// Sums stop at the largest number instead of starting again at 0.
  budget_amounts& operator+=(const budget_amounts& more);
  friend budget_amounts operator+(budget_amounts a, const budget_amounts& b) { return a += b; }
  friend bool operator==(const budget_amounts&, const budget_amounts&) = default;
};

/// What is absent does not limit.
struct budget_limits {
  std::optional<uint64_t> nano_usd;
  std::optional<uint64_t> tokens;
  std::optional<uint64_t> calls;
  std::optional<uint64_t> gpu_ns;
  std::optional<uint64_t> attempts;

  const std::optional<uint64_t>& of(budget_kind kind) const;
  bool any() const;
  friend bool operator==(const budget_limits&, const budget_limits&) = default;
};

/// Where one budget stands.
struct budget_account {
  /// Known to be used.
  budget_amounts spent;
  /// Perhaps used, never to be known: the worst case of what was held.
  budget_amounts held;
  /// Worst cases of what is under way.
  budget_amounts reserved;

  friend bool operator==(const budget_account&, const budget_account&) = default;
};

/// Which budget does not hold what was asked for.
struct budget_refusal {
  /// "the run", "problem 'softmax'" or "agent 'worker-3'".
  std::string whose;
  budget_kind kind = budget_kind::money;
  uint64_t limit = 0;
  uint64_t asked = 0;
  /// By so much the limit is too small, what is under way counted in its worst case.
  uint64_t missing = 0;
  /// True: it does not fit even if everything under way should cost nothing. False: it may fit
  /// once something under way has ended.
  bool for_good = true;
  bool of_run = false;

  /// The sentence for a person, with units.
  std::string text() const;
};

/// Three levels of budgets, each of which must hold what is used: of the run, of each problem, of
/// each agent. Use is reserved before it happens, in its worst case, so no budget is ever
/// overspent; afterwards the reservation is settled with the exact amount, held when nobody knows
/// it, or released when nothing happened.
///
/// Pure and deterministic. Invariant: for every account, spent + held + reserved <= limit, unless
/// something was settled with more than had been reserved for it.
class nested_budget {
public:
  struct limits {
    budget_limits run;
    budget_limits each_problem;
    budget_limits each_agent;
  };

  nested_budget() = default;
  explicit nested_budget(limits given) : limits_(given) {}

  /// The refusal that would come, or nothing: the run first, then the problem, then the agent. A
  /// refusal for good comes before one for now.
  std::optional<budget_refusal> would_refuse(
    const std::string& problem, const std::string& agent, const budget_amounts& worst) const;

  /// Reserves on all three levels or on none. The ticket is never 0 and never used twice; 0 when
  /// `would_refuse` says so.
  uint64_t reserve(
    const std::string& problem, const std::string& agent, const budget_amounts& worst);

  /// It used exactly this, also when that is more than was reserved. False, and nothing changes,
  /// for a ticket that is not open: nothing is counted twice.
  bool settle(uint64_t ticket, const budget_amounts& used);
  /// Nobody knows what it used: `worst`, or the reservation where that is larger, stays taken, and
  /// what is known (such as the call itself) is spent. False as in `settle`.
  bool hold(uint64_t ticket, const budget_amounts& known = {}, const budget_amounts& worst = {});
  /// It never happened. False as in `settle`.
  bool release(uint64_t ticket);

  /// From an earlier process: used or held already.
  void restore(const std::string& problem, const std::string& agent, const budget_amounts& spent,
    const budget_amounts& held);

  /// A resumed run may have larger ones.
  void set_limits(limits given) { limits_ = given; }
  const limits& given() const { return limits_; }

  const budget_account& run() const { return run_; }
  budget_account problem(const std::string& name) const;
  budget_account agent(const std::string& name) const;
  /// Reservations that are neither settled, held nor released.
  size_t open() const { return open_.size(); }

private:
  struct reservation {
    std::string problem;
    std::string agent;
    budget_amounts worst;
  };
  std::optional<reservation> take(uint64_t ticket);
  void count_reserved_again();
  template <class F>
  void each(const std::string& problem, const std::string& agent, F change);

  limits limits_;
  budget_account run_;
  std::map<std::string, budget_account> problems_;
  std::map<std::string, budget_account> agents_;
  std::map<uint64_t, reservation> open_;
  uint64_t next_ = 1;
};

} // namespace gristmill
