#pragma once

#include "messages/result.hpp"
#include "protocol/baseline_record.hpp"
#include "protocol/bounds.hpp"
#include "scoring/floor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// What the measuring script says about the machine; the same in every answer of one table.
struct baseline_machine {
  std::string device;
  std::string driver;
  std::string torch;
  std::string cuda;
  std::string python;

  friend bool operator==(const baseline_machine&, const baseline_machine&) = default;
};

/// One answer of `baseline_mode.py` for a mode. A failed mode is a `baseline_mode` with a reason.
struct baseline_answer {
  baseline_mode mode;
  std::optional<time_summary> copy;
  baseline_machine machine;
  /// Clocks, temperature, power and throttle reasons before and after, in words; may be empty.
  std::string circumstances;
};

/// Reads an answer; the mode's name is ours. Errors: `invalid_input` for what the script never says
/// (a field of another kind, times that are not positive).
result<baseline_answer> read_baseline_answer(const ordered_json& answer, const std::string& mode);

/// The rates that the script measured, for a floor. Types that the library or the GPU lack have the
/// rate 0. `half` is the faster of bf16 and fp16, fp32 the faster of tf32 and fp32, vectors run at
/// twice the multiply-adds of fp32. Errors: `invalid_input`.
result<device_rates> read_baseline_rates(const ordered_json& answer);

/// "copy 4.29 TB/s at 1024 MiB; …": the best of each kind, for the provenance.
std::string rates_text(const ordered_json& answer);

/// Puts a table together, mode by mode.
class baseline_table {
public:
  /// A workload with what it must at least do. `problem` and `uuid` name it in the table.
  struct row {
    std::string problem;
    std::string category;
    std::string uuid;
    work_amount work;
  };

  baseline_table(device_rates rates, std::vector<row> rows);

  /// Begins with what an earlier table of this kind holds: modes that were timed there stay, and
  /// what it says about problems that have no row here stays as it is. `provenance` is that of the
  /// answers to come. Errors: `invalid_input` with the field in which the two differ (the hash of
  /// the scripts, flush, samples, seed, rates), or which the table lacks.
  result<void> extend(const bounds_table& earlier,
    const std::vector<std::pair<std::string, std::string>>& provenance);
  /// True for a mode that has a time already.
  bool is_timed(const std::string& problem, const std::string& uuid, const std::string& mode) const;

  /// An answer of a mode. Errors: `invalid_input` when the machine is another one than before, with
  /// the field in which it is.
  result<void> add(
    const std::string& problem, const std::string& uuid, const baseline_answer& answer);
  /// A mode that could not be measured for a reason of our own (the time was over).
  void leave_out(const std::string& problem, const std::string& uuid, const std::string& mode,
    const std::string& reason);

  /// Workloads without any mode that was timed: they have no T_b and are not in the table.
  std::vector<row> without_baseline() const;

  /// The table so far, of the workloads that have a T_b. `base` brings source, date, clock and
  /// whatever provenance the caller knows; the machine is added.
  ///
  /// A rate of T_SOL is the highest that any measurement of the table reached: that of the
  /// roofline, or what the fastest call of a mode makes of it, which `t_sol_method` then says. So
  /// no timed mode is below its T_SOL (by more than the nanoseconds of rounding where classes of
  /// multiply-adds are mixed). A bandwidth that a mode reached counts for workloads that move no
  /// more bytes, since a cache may have helped.
  ///
  /// Errors: those of `stated_floor` with the workload's name in front.
  result<bounds_table> table(bounds_table base) const;

  const baseline_record* find(const std::string& problem, const std::string& uuid) const;
  const std::optional<baseline_machine>& machine() const { return machine_; }

private:
  struct entry {
    row what;
    baseline_record record;
    /// T_SOL in the table that was extended; 0 where it had none.
    double earlier_t_sol_ns = 0;
  };
  entry* entry_of(const std::string& problem, const std::string& uuid);

  device_rates rates_;
  std::vector<entry> entries_;
  std::optional<baseline_machine> machine_;
  /// What `extend` was given, without the workloads that have an entry.
  std::optional<bounds_table> earlier_;
};

/// The words of one workload's result on a terminal: the winner, eager beside it, and what failed.
std::string baseline_line(const std::string& uuid, const baseline_record& record);

} // namespace gristmill
