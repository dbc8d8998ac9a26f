// Every message survives serialisation with a value other than the default in every field, and no
// field of a struct is missing from its inspect function: a field that is added to a struct and
// forgotten there turns this red.

#include "actors/system_config.hpp"
#include "messages/inspect_agent_tool.hpp"
#include "messages/inspect_attempt.hpp"
#include "messages/inspect_child.hpp"
#include "messages/inspect_lease.hpp"
#include "messages/inspect_measure.hpp"
#include "messages/inspect_plant.hpp"
#include "messages/inspect_runtime.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

using namespace gristmill;

namespace {

// ---- how many fields a struct has, counted by the compiler
// ---------------------------------------

struct anything {
  template <class T>
  operator T() const; // never defined: only used where nothing is evaluated
};

template <class T, class... Values>
constexpr size_t field_count() {
  if constexpr (requires { T{Values{}..., anything{}}; })
    return field_count<T, Values..., anything>();
  else
    return sizeof...(Values);
}

// ---- an inspector that gives every field a value of its own
// --------------------------------------

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

class filler {
public:
  using result_type = void;
  static constexpr bool reads_state = false;
  static constexpr bool writes_state = true;

  /// Fields of the outermost struct, by address.
  std::set<const void*> fields;

  template <class... Ts>
  void operator()(Ts&&... xs) {
    ++depth_;
    (field(std::forward<Ts>(xs)), ...);
    --depth_;
  }

  template <class T>
  void fill(T& x) {
    if constexpr (std::is_same_v<T, bool>)
      x = true;
    else if constexpr (std::is_enum_v<T>)
      x = static_cast<T>(1);
    else if constexpr (std::is_integral_v<T>)
      x = static_cast<T>(++next_);
    else if constexpr (std::is_same_v<T, std::string>)
      x = "text " + std::to_string(++next_);
    else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>)
      x = std::chrono::nanoseconds{++next_};
    else if constexpr (is_vector<T>::value) {
      x.resize(2);
      for (auto& element : x)
        fill(element);
    } else
      inspect(*this, x);
  }

private:
  template <class T>
  void field(T&& x) {
    using plain = std::remove_cvref_t<T>;
    if constexpr (!caf::meta::is_annotation<plain>::value) {
      if (depth_ == 1)
        fields.insert(&x);
      fill(x);
    }
  }

  int depth_ = 0;
  int64_t next_ = 100;
};

struct system_with_types {
  caf::actor_system_config config;
  caf::actor_system sys;

  system_with_types() : sys(configured()) {}

private:
  caf::actor_system_config& configured() {
    configure(config, 1);
    return config;
  }
};

template <class T>
std::vector<char> bytes_of(caf::actor_system& system, T& x) {
  std::vector<char> out;
  caf::binary_serializer sink{system, out};
  REQUIRE_FALSE(sink(x));
  return out;
}

template <class T>
constexpr bool is_registered = caf::has_type_id<T>::value;

} // namespace

TEST_CASE_TEMPLATE("every message survives a round trip with every field set", T,
  // attempt
  attempt_id, candidate_ref, trial, assignment, attempt_summary, work_request, work_reply,
  claim_request, claim_reply, drain_request, planner_query, planner_snapshot, propose_request,
  proposal,
  // lease
  lease, lease_flow, lease_request, lease_ticket, lease_command, lease_ack, lease_granted,
  lease_ended, lease_revoke, probe_report, adopted_lease, device_report, probe_order, gpu_snapshot,
  waiter_snapshot, broker_alarm, flow_usage, broker_query, broker_snapshot, broker_command,
  // measure
  compile_request, compiled_entry, compiled_unit, compiled_candidate, measure_request, time_term,
  workload_measurement, measurement, judge_request, refused_request, output_evaluation,
  workload_evaluation, evaluation, finding, workload_verdict, verdict, prepare_request, draw_over,
  axis_value, prepared_workload, prepared_problem,
  // child and journal
  child_request, child_cancel, device_quiet_query, device_quiet, child_result, event,
  journal_append, journal_ack,
  // candidates and questions from outside
  plant_request, plant_reply, plant_withdrawal, plant_close, tool_question, tool_answer,
  // runtime
  tick, peer_restarted, start_working, run_ended,
  // parts
  blob_ref) {
  system_with_types with;
  T in;
  filler fill;
  inspect(fill, in);
  CHECK_MESSAGE(fill.fields.size() == field_count<T>(), "inspect does not visit every field once");

  auto bytes = bytes_of(with.sys, in);
  T out;
  caf::binary_deserializer source{with.sys, bytes};
  REQUIRE_FALSE(source(out));
  CHECK(source.remaining() == 0);
  CHECK(caf::deep_to_string(out) == caf::deep_to_string(in));
  CHECK(bytes_of(with.sys, out) == bytes);
  if constexpr (field_count<T>() != 0) {
    T untouched;
    CHECK(caf::deep_to_string(untouched) != caf::deep_to_string(in));
  }
}

TEST_CASE_TEMPLATE("what actors say to each other travels as a message of its registered name", T,
  attempt_summary, work_request, work_reply, claim_request, claim_reply, drain_request,
  planner_query, planner_snapshot, propose_request, proposal, lease_request, lease_ticket,
  lease_command, lease_ack, lease_granted, lease_ended, lease_revoke, device_report, probe_order,
  broker_query, broker_snapshot, broker_command, compile_request, compiled_candidate,
  measure_request, measurement, judge_request, refused_request, verdict, prepare_request, draw_over,
  prepared_problem, child_request, child_cancel, device_quiet_query, device_quiet, child_result,
  journal_append, journal_ack, plant_request, plant_reply, plant_withdrawal, plant_close,
  tool_question, tool_answer, tick, peer_restarted, start_working, run_ended) {
  static_assert(is_registered<T>);
  system_with_types with;
  T value;
  filler fill;
  inspect(fill, value);
  auto in = caf::make_message(value);
  auto bytes = bytes_of(with.sys, in);
  caf::message out;
  caf::binary_deserializer source{with.sys, bytes};
  REQUIRE_FALSE(source(out));
  REQUIRE(out.match_elements<T>());
  CHECK(caf::deep_to_string(out.get_as<T>(0)) == caf::deep_to_string(value));
}

TEST_CASE("infinity, NaN, negative zero and the smallest numbers travel as they are") {
  system_with_types with;
  for (double value :
    {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
      std::nan(""), -0.0, std::numeric_limits<double>::denorm_min(), 1.0 / 3}) {
    CAPTURE(value);
    f64 in = value;
    auto bytes = bytes_of(with.sys, in);
    f64 out;
    caf::binary_deserializer source{with.sys, bytes};
    REQUIRE_FALSE(source(out));
    CHECK(out == in);
  }
}

TEST_CASE("an absent value stays absent") {
  system_with_types with;
  maybe<candidate_ref> in;
  auto bytes = bytes_of(with.sys, in);
  maybe<candidate_ref> out{candidate_ref{}};
  caf::binary_deserializer source{with.sys, bytes};
  REQUIRE_FALSE(source(out));
  CHECK_FALSE(out);
}

TEST_CASE("an error keeps its code and its whole text") {
  system_with_types with;
  failure told{errc::queue_full, "1024 requests wait already"};
  auto error = to_error(told);
  auto bytes = bytes_of(with.sys, error);
  caf::error back;
  caf::binary_deserializer source{with.sys, bytes};
  REQUIRE_FALSE(source(back));
  CHECK(back == errc::queue_full);
  CHECK(from_error(with.sys, back) == told);
  CHECK(seam::show(with.sys, back) == "queue full: 1024 requests wait already");
}
