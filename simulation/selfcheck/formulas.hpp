#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace gristmill {

// What queueing theory says exactly, to hold a simulation against. All of it is textbook: the
// source stands with each. Times are in whatever unit the arguments have.

// --- the closed queue --------------------------------------------------------------------------

/// `agents` who think (exponential, mean `think`), ask for one of `servers`, hold it (exponential,
/// mean `hold`) and think again: the machine repairman, M/M/c//N (Kleinrock, Queueing Systems I,
/// 3.8; p_n is proportional to the product over k = 1..n of (N - k + 1)/think : min(k, c)/hold).
class closed_queue {
public:
  /// `agents` and `servers` at least 1, `think` and `hold` above 0.
  closed_queue(uint32_t agents, uint32_t servers, double think, double hold);

  /// Chance that n are waiting or served.
  double at(uint32_t n) const { return n < seen_.size() ? seen_[n] : 0; }
  /// Leases in a unit of time: (N - L)/think.
  double throughput() const { return throughput_; }
  /// Share of the servers' time that is busy: X S/c.
  double utilisation() const;
  /// Mean number waiting or served.
  double in_system() const { return in_system_; }
  /// Mean wait, the ones of 0 included: L_q/X.
  double mean_wait() const { return mean_wait_; }

  /// P(W > t). Who arrives sees the same queue with one agent less in equilibrium (arrival theorem:
  /// Sevcik and Mitrani 1981; Lavenberg and Reiser 1980), and who sees n >= c waits for n - c + 1
  /// ends of a Poisson process of rate c/hold.
  double wait_tail(double t) const;
  /// Chance to wait at all.
  double waits_at_all() const { return wait_tail(0); }
  /// The t with P(W <= t) = q, by bisection; 0 where that many do not wait.
  double wait_quantile(double q) const;

private:
  uint32_t servers_;
  double hold_;
  std::vector<double> seen_;
  /// Of N - 1 agents: what an arrival sees.
  std::vector<double> seen_by_arrival_;
  double throughput_ = 0;
  double in_system_ = 0;
  double mean_wait_ = 0;
};

/// What no closed queue passes, whatever holds and thinking are distributed like: min(c/S,
/// N/(Z + S)) leases in a unit of time (asymptotic bounds: Denning and Buzen 1978).
double throughput_bound(uint32_t agents, uint32_t servers, double think, double hold);

// --- open queues -------------------------------------------------------------------------------

/// M/M/c of load r per server, below 1 (Erlang 1917; Kleinrock I, 3.5).
class open_queue {
public:
  open_queue(uint32_t servers, double load, double hold);

  /// Erlang's C: chance to wait, C = B/(1 - r (1 - B)), B from the recursion of Erlang's loss
  /// formula.
  double waits_at_all() const { return chance_; }
  /// C S/(c (1 - r)).
  double mean_wait() const;
  /// C exp(-c (1 - r) t/S).
  double wait_tail(double t) const;
  double wait_quantile(double q) const;

private:
  uint32_t servers_;
  double load_;
  double hold_;
  double chance_ = 0;
};

/// Mean wait of M/G/1, first come first served: r S (1 + CV^2)/(2 (1 - r)) (Pollaczek 1930,
/// Khinchine 1932).
double pollaczek_khinchine(double load, double mean, double cv2);

/// How long a service takes, as the formulas by size need it.
struct service_law {
  double mean = 1;
  double second_moment = 2;
  std::function<double(double)> density;
  /// Share of services of at most x.
  std::function<double(double)> up_to;
  /// E[S; S <= x] and E[S^2; S <= x].
  std::function<double(double)> mean_up_to;
  std::function<double(double)> square_up_to;
  /// Where the density is integrated to.
  double longest = 60;
};

service_law exponential_service(double mean);
/// Two exponentials with balanced means (each brings half of the work): CV^2 above 1.
service_law hyperexponential_service(double mean, double cv2);
/// The chance of the shorter of the two, p = (1 + sqrt((CV^2 - 1)/(CV^2 + 1)))/2; their means are
/// mean/(2p) and mean/(2(1 - p)). Above 0.5.
double balanced_chance(double cv2);

/// Mean wait of M/G/1 when the shortest goes first and nobody is interrupted: (lambda E[S^2]/2)
/// times the integral of f(x)/(1 - r(x))^2, r(x) = lambda E[S; S <= x] (Phipps 1956; Conway,
/// Maxwell and Miller, Theory of Scheduling, 8-4). `law` has a density.
double shortest_first_wait(double load, const service_law& law);

/// Mean time from arrival to end in M/G/1 when the least remaining work always runs (Schrage and
/// Miller 1966): lambda (m2(x) + x^2 (1 - F(x)))/(2 (1 - r(x))^2) + the integral of 1/(1 - r(t))
/// from 0 to x, over all x. No policy has a smaller mean (Schrage 1968).
double least_remaining_response(double load, const service_law& law);

/// Mean time from arrival to end in M/M/1 under every policy that does not look at sizes and
/// never idles: S/(1 - r). First come first served, processor sharing and least attained service
/// agree for exponential service, whose remainder does not depend on its past (Kleinrock II,
/// 4.4 and 4.6).
double exponential_response(double load, double mean);

/// A class of M/G/1 with priorities.
struct priority_class {
  /// Arrivals in a unit of time.
  double rate = 0;
  double mean = 0;
  double second_moment = 0;
};

/// Mean wait of each class, the first the most urgent, nobody interrupted (Cobham 1954): W0/((1 -
/// s_{k-1})(1 - s_k)), s_k the load of the first k, W0 = sum of rate E[S^2]/2.
std::vector<double> cobham_waits(const std::vector<priority_class>& classes);

// --- shares ------------------------------------------------------------------------------------

/// How far the share of a flow that always has somebody waiting may lie from its weight: (c + 1)
/// longest/all service (docs/lease-policies.md, Bounds; for one server the bound of start-time fair
/// queueing, Goyal, Vin and Cheng 1996). `slack` is the quantum of deficit round robin.
double share_bound(uint32_t servers, double longest, double all_service, double slack = 0);
/// Standard deviation of the share that `draws` lots give to a flow of share w: sqrt(w (1 -
/// w)/draws).
double lottery_deviation(double share, double draws);

// --- what leases bring -------------------------------------------------------------------------

/// E[g^-gamma] after n leases of problem_curve.hpp's law with ease z: 1 + gamma n p_c p_0 z/(b -
/// gamma), exact while p_0 z g^gamma stays below 1. Of E[g'^-gamma | g] = g^-gamma (1 + p (E[(1 -
/// B)^-gamma] - 1)) with B ~ Beta(1, b), for which E[(1 - B)^-gamma] = b/(b - gamma), and p in
/// proportion to g^gamma. The variance is finite for b > 2 gamma.
double mean_inverse_gap(
  double gamma, double leases, double correct, double improve, double ease, double b);

/// A problem as the oracle knows it: what can be gained, and how fast the gap closes.
struct gain_curve {
  /// L - x0.
  double reach = 0;
  /// rho: the gap is (1 + gamma rho n)^(-1/gamma).
  double rate = 0;
};

/// What the next lease gains in the mean after n: reach rho (1 + gamma rho n)^(-(1 + gamma)/gamma).
double marginal_gain(const gain_curve& problem, double gamma, double n);
/// What n leases gain.
double total_gain(const gain_curve& problem, double gamma, double n);

/// How many leases each problem has when the next one would gain `level` everywhere, above 0: n_i =
/// max(0, ((reach rho/level)^(gamma/(1 + gamma)) - 1)/(gamma rho)) (water filling: equal marginal
/// gains; Boyd and Vandenberghe, Convex Optimization, 5.5.3).
std::vector<double> leases_at_level(
  const std::vector<gain_curve>& problems, double gamma, double level);
/// The same at the level, by bisection, at which they add up to the budget: no other division
/// gains more.
std::vector<double> water_filling(
  const std::vector<gain_curve>& problems, double gamma, double budget);

/// Budget of successive halving over `count` with `first` for each in the first rung, keeping one
/// in `eta`, and `eta` times as much for each in the next: count first (floor(log_eta count) + 1)
/// where count is a power of eta (Jamieson and Talwalkar 2016); else with the survivors rounded
/// down, rung by rung.
uint64_t halving_budget(uint64_t count, uint64_t first, uint64_t eta);

// --- chance ------------------------------------------------------------------------------------

/// The largest distance of the distribution of `sample` (sorted) from `distribution`, which is
/// continuous above 0 and may have an atom at 0.
double kolmogorov_distance(
  const std::vector<double>& sample, const std::function<double(double)>& distribution);
/// Chance that the distance of `count` independent ones is larger than that (Kolmogorov 1933, with
/// Stephens' correction of 1970 for small counts).
double kolmogorov_chance(double distance, double count);

} // namespace gristmill
