#pragma once

#include "gpu/lease/flow_rule.hpp"
#include "gpu/lease/policy.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// How the value of a parameter is written.
enum class value_kind : uint8_t {
  /// Not negative, at most three places: "0.5".
  decimal = 0,
  /// "10s", "50ms".
  time,
  /// 0 to 2^64 - 1.
  natural,
  /// Names with '>' between them, the first one first.
  order,
  /// class, problem or agent; user and project are other words for the last two.
  part,
  /// Anything.
  text,
};

struct policy_parameter {
  std::string name;
  value_kind kind = value_kind::text;
  /// As one would write it. Empty: must be given, unless `optional`.
  std::string fallback;
  std::string what;
  bool optional = false;
};

/// The parameters of one level: each as it was written or its fallback, checked for its kind.
class policy_values {
public:
  explicit policy_values(std::map<std::string, std::string> texts) : texts_(std::move(texts)) {}

  const std::string& text(const std::string& name) const { return texts_.at(name); }
  uint64_t thousandths(const std::string& name) const;
  std::chrono::nanoseconds time(const std::string& name) const;
  uint64_t natural(const std::string& name) const;
  /// Empty where it was not given.
  std::vector<std::string> order(const std::string& name) const;

private:
  std::map<std::string, std::string> texts_;
};

/// Where a policy may stand in a tree.
enum class policy_place : uint8_t {
  /// Innermost: it orders requests.
  inner = 0,
  /// It orders flows, and another policy orders the requests of each.
  flows,
  /// By itself only.
  alone,
};

/// A policy that a text may name.
struct policy_kind {
  using policy_factory = std::function<result<std::unique_ptr<lease_policy>>(const policy_values&)>;
  using rule_factory =
    std::function<result<std::shared_ptr<const flow_rule>>(const policy_values&)>;

  std::string name;
  /// One line.
  std::string what;
  policy_place place = policy_place::inner;
  /// A rule over flows has the parameter `by` besides these.
  std::vector<policy_parameter> parameters;
  /// For `inner` and `alone`.
  policy_factory make_policy;
  /// For `flows`.
  rule_factory make_rule;
  /// For `flows`: what a level without `by` stands for, such as "problem" and "agent" in this
  /// order.
  std::vector<std::string> by_fallback = {"problem", "agent"};
};

} // namespace gristmill
