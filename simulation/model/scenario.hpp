#pragma once

#include "messages/lease.hpp"
#include "simulation/model/problem_curve.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gristmill {

enum class draw_kind : uint8_t {
  /// Always the mean.
  constant = 0,
  exponential,
  /// With `sigma`, around the mean (not the median).
  lognormal,
  /// A mixture of two exponentials with balanced means, for a squared coefficient of variation
  /// `cv2` above 1.
  hyperexponential,
};

/// How a time is drawn.
struct time_law {
  draw_kind kind = draw_kind::exponential;
  double mean_s = 0;
  /// Of `lognormal`: standard deviation of the logarithm.
  double sigma = 0;
  /// Of `hyperexponential`.
  double cv2 = 1;
  /// A draw above this is drawn as this; 0 for none. Part of the law, so the mean of what is drawn
  /// is smaller than `mean_s`.
  double cap_s = 0;
};

/// What an agent does between two leases.
struct think_law {
  /// Language model calls between two leases: 1 + geometric with mean `calls_mean` - 1. With 1
  /// there is always one.
  double calls_mean = 1;
  /// Of each call.
  time_law call;
  /// A call takes `tail_factor` times as long with this probability.
  double tail_chance = 0;
  double tail_factor = 1;
};

struct compile_law {
  /// A mean of 0: there is nothing to compile.
  time_law time{draw_kind::constant, 0, 0, 1, 0};
  /// Compilers that work at the same time, first come first served; 0 for as many as needed.
  uint32_t slots = 0;
  /// On the lease: the GPU waits for the compiler.
  bool on_lease = false;
};

struct hold_law {
  /// Of one lease, useful work only.
  time_law time;
  /// Each agent's mean is drawn once: lognormal around `time.mean_s` with this sigma, so that the
  /// mean over agents is `time.mean_s`. 0: all agents are alike.
  double agent_sigma = 0;
  /// From the grant to the first launch, and from the end of the work to a GPU that is proven
  /// free. Both are held.
  double launch_s = 0;
  double verify_s = 0;
};

/// What becomes of a measurement that has started; the rest are right or wrong by `learning_law`.
struct fate_law {
  /// The work never ends by itself: the lease runs to its cap, then `hang_cleanup_s` more.
  double hang = 0;
  double hang_cleanup_s = 0;
  /// An illegal access: ends after a part of its hold that is drawn evenly.
  double fault = 0;
};

struct gpu_group {
  std::string name = "gpu";
  std::string model = "b200";
  uint32_t count = 0;
  /// A hold takes 1/speed as long here.
  double speed = 1;
  /// Node of each: `per_node` in a row share one; 0 for all on one node. Names are "<name>-<n>".
  uint32_t per_node = 8;
};

struct agent_group {
  std::string name = "agent";
  uint32_t count = 0;
  lease_class what = lease_class::timing;
  uint32_t weight = 1;
  /// As in `lease_request`.
  std::string need;
  /// Multiplies their holds and their thinking.
  double hold_factor = 1;
  double think_factor = 1;
};

/// Work that comes from outside instead of from agents who think: for closed forms of open queues.
struct arrival_law {
  /// Jobs a second, Poisson; 0 for none.
  double rate = 0;
  /// Leases that a job needs one after the other: geometric with this mean.
  double leases_mean = 1;
  lease_class what = lease_class::timing;
  /// More jobs than this at once end the run with an error: the queue is not stable.
  uint32_t jobs_max = 100'000;
};

enum class incident_kind : uint8_t {
  /// GPU `what` is gone for a time, as after an Xid; its lease is lost.
  gpu_down = 0,
  /// All GPUs of node `what` are.
  node_down,
  /// Calls make no progress: the model does not answer.
  model_outage,
  /// Calls take 1/`pace` as long: a rate limit.
  rate_limit,
};

struct incident {
  incident_kind kind = incident_kind::gpu_down;
  /// Seconds from the start of the run.
  double at_s = 0;
  double for_s = 0;
  /// Name of the GPU ("gpu#3": group and number) or of the node ("gpu-0").
  std::string what;
  /// Of `rate_limit`, above 0 and below 1.
  double pace = 1;
};

/// Incidents that come by chance.
struct incident_law {
  incident_kind kind = incident_kind::gpu_down;
  /// For each GPU, for each node, or for the model: exponential time between.
  double mean_between_s = 0;
  double mean_for_s = 0;
  double pace = 1;
};

enum class hold_estimate : uint8_t {
  /// Requests say nothing of their hold.
  none = 0,
  /// The agent's mean.
  mean,
  /// What it will be.
  exact,
};

/// A run of a lab: who is there, what they do, who decides. Every number of a scenario file stands
/// here, checked (`check_scenario`); docs/lab-model.md has the file's keys and where the numbers of
/// the presets are from.
struct scenario {
  std::string name;
  double duration_s = 0;
  /// Not counted in the metrics of waits and shares, so that the start is forgotten. Outcomes count
  /// from the start.
  double warm_up_s = 0;

  std::vector<gpu_group> gpus;
  std::vector<agent_group> agents;
  arrival_law arrivals;

  think_law think;
  compile_law compile;
  hold_law hold;
  fate_law fate;
  hold_estimate estimate = hold_estimate::mean;

  /// 0 problems: leases bring nothing, and there is no planner.
  uint32_t problems = 0;
  learning_law learning;
  final_law outcome;
  /// Every problem begins with its first correct kernel.
  bool starts_solved = false;
  /// Points of the curve of outcomes over GPU hours, evenly spaced in time.
  uint32_t curve_points = 100;

  std::vector<incident> incidents;
  std::vector<incident_law> chance_incidents;

  /// As `policy_from_text` reads it.
  std::string lease_policy = "stride";
  /// As `allocation_from_text` reads it, or "oracle".
  std::string planner = "equal";

  /// Longest term of each class, as in `lease_table_config`.
  std::array<double, 5> caps_s = {60, 120, 300, 600, 600};
  double patience_s = 86'400;
};

} // namespace gristmill
