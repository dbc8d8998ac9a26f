#include "report/baseline_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <tuple>

namespace gristmill {

namespace {

std::string text_of(const ordered_json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

/// "1980/3201 MHz, 34 C, 128 W, throttle reasons 0x4".
std::string state_text(const ordered_json& answer, const char* key) {
  const auto found = answer.find(key);
  if (found == answer.end() || !found->is_object() || text_of(*found, "sm_mhz").empty())
    return {};
  return fmt::format("{}/{} MHz, {} C, {} W, throttle reasons {}", text_of(*found, "sm_mhz"),
    text_of(*found, "memory_mhz"), text_of(*found, "celsius"), text_of(*found, "watts"),
    text_of(*found, "reasons"));
}

uint64_t rate_of(const ordered_json& rates, const char* kind) {
  const auto found = rates.find(kind);
  if (found == rates.end() || !found->is_number() || found->get<double>() <= 0
    || found->get<double>() >= static_cast<double>(std::numeric_limits<uint64_t>::max()))
    return 0;
  return static_cast<uint64_t>(found->get<double>());
}

/// The fastest call of all modes in whole nanoseconds; 0 when none was timed.
uint64_t shortest_call(const baseline_record& record) {
  double out = 0;
  for (const auto& mode : record.modes)
    if (mode.device && (out == 0 || mode.counted().min < out))
      out = mode.counted().min;
  return out == 0 ? 0 : std::max<uint64_t>(1, static_cast<uint64_t>(out));
}

/// The rates of a roofline, and where modes of the table were faster, what these reached. A floor
/// above a time that was measured would be none.
class reached_rates {
public:
  explicit reached_rates(const device_rates& measured) : rates_(measured) {}

  void add(const baseline_table::row& what, const baseline_record& record) {
    const auto ns = shortest_call(record);
    if (ns == 0)
      return;
    const auto& work = what.work;
    const auto by = fmt::format("by {} {}", what.problem, what.uuid);
    if (const auto took = time_of({0, work.flops, {}}); took > ns) {
      rates_.flops_per_second = raised(rates_.flops_per_second, took, ns);
      said_["flops"] =
        fmt::format("{:.1f} T flops/s {}", static_cast<double>(rates_.flops_per_second) / 1e12, by);
    }
    if (const auto took = time_of({0, 0, work.macs}); took > ns)
      for (size_t i = 0; i < mac_classes; ++i)
        if (work.macs[i] > 0) {
          rates_.macs_per_second[i] = raised(rates_.macs_per_second[i], took, ns);
          said_[std::string(mac_class_names[i])] = fmt::format("{} {:.1f} T multiply-adds/s {}",
            mac_class_names[i], static_cast<double>(rates_.macs_per_second[i]) / 1e12, by);
        }
    if (const auto took = time_of({work.bytes, 0, {}}); took > ns) {
      const auto rate = raised(rates_.bytes_per_second, took, ns);
      bandwidths_.push_back({work.bytes, rate});
      said_["bytes " + by] =
        fmt::format("{:.3f} TB/s {}, which counts for what moves no more bytes",
          static_cast<double>(rate) / 1e12, by);
    }
  }

  /// A cache serves a workload that moves fewer bytes at least as well; the larger ones have to go
  /// to memory.
  device_rates of(const work_amount& work) const {
    auto out = rates_;
    for (const auto& each : bandwidths_)
      if (each.bytes >= work.bytes)
        out.bytes_per_second = std::max(out.bytes_per_second, each.rate);
    return out;
  }

  /// Empty when no mode was faster.
  std::string words() const {
    std::string out;
    for (const auto& [kind, text] : said_)
      out += (out.empty() ? "; modes of this table were faster, so there: " : "; ") + text;
    return out;
  }

private:
  struct bandwidth {
    uint64_t bytes;
    uint64_t rate;
  };

  /// 0 for a rate that is missing, which the floor itself tells.
  uint64_t time_of(const work_amount& part) const {
    const auto floor = stated_floor(part, rates_);
    return floor ? floor->ns : 0;
  }
  /// Rounded up, so that the time at it is not above `ns`.
  static uint64_t raised(uint64_t rate, uint64_t took, uint64_t ns) {
    using wide = unsigned __int128;
    const wide out = (wide{rate} * took + ns - 1) / ns;
    return static_cast<uint64_t>(std::min(out, wide{std::numeric_limits<uint64_t>::max()}));
  }

  device_rates rates_;
  std::vector<bandwidth> bandwidths_;
  std::map<std::string, std::string> said_;
};

} // namespace

namespace {

using named_words = std::vector<std::pair<std::string, std::string>>;

std::optional<std::string> words_of(const named_words& provenance, const std::string& name) {
  for (const auto& [key, words] : provenance)
    if (key == name)
      return words;
  return std::nullopt;
}

/// "driver: 580.1 here, 570.2 there" for the first field in which two machines differ.
std::string difference_of(const baseline_machine& here, const baseline_machine& there) {
  for (const auto& [field, ours, theirs] :
    {std::tuple{"device", &here.device, &there.device},
      std::tuple{"driver", &here.driver, &there.driver},
      std::tuple{"torch", &here.torch, &there.torch}, std::tuple{"cuda", &here.cuda, &there.cuda},
      std::tuple{"python", &here.python, &there.python}})
    if (*ours != *theirs)
      return fmt::format("{}: {} here, {} there", field, ours->empty() ? "unknown" : *ours,
        theirs->empty() ? "unknown" : *theirs);
  return "no field";
}

} // namespace

result<baseline_answer> read_baseline_answer(const ordered_json& answer, const std::string& mode) {
  baseline_answer out;
  out.mode.name = mode;
  out.machine = {text_of(answer, "device"), "", text_of(answer, "torch"), text_of(answer, "cuda"),
    text_of(answer, "python")};
  if (const auto before = answer.find("before"); before != answer.end() && before->is_object())
    out.machine.driver = text_of(*before, "driver");
  const auto before = state_text(answer, "before");
  const auto after = state_text(answer, "after");
  if (!before.empty())
    out.circumstances = after.empty() ? before : before + " before, " + after + " after";
  if (text_of(answer, "status") != "timed") {
    out.mode.reason = text_of(answer, "reason");
    if (out.mode.reason.empty())
      out.mode.reason = "the measuring script gives no reason";
    return out;
  }
  field_reader fields;
  const auto read = [&](const char* key) -> std::optional<time_summary> {
    const auto found = answer.find(key);
    if (found == answer.end())
      return std::nullopt;
    return read_summary(*found, key, fields);
  };
  out.mode.choice = text_of(answer, "choice");
  out.mode.device = read("device_ns");
  out.mode.span = read("span_ns");
  out.mode.activity = read("activity_ns");
  if (const auto copy = answer.find("copy"); copy != answer.end() && copy->is_object())
    for (const char* key : {"device_ns", "activity_ns"}) // The second counts where it is there.
      if (const auto times = copy->find(key); times != copy->end())
        out.copy = read_summary(*times, std::string("copy.") + key, fields);
  if (!out.mode.device)
    fields.error("device_ns", "is missing from a mode that was timed");
  if (fields.failed())
    return tl::unexpected(fields.collected("answer of mode " + mode));
  return out;
}

result<device_rates> read_baseline_rates(const ordered_json& answer) {
  if (text_of(answer, "status") != "timed")
    return fail(errc::child_failed, "rates: " + text_of(answer, "reason"));
  const auto rates = answer.find("rates");
  if (rates == answer.end() || !rates->is_object() || !rates->contains("macs_per_second")
    || !(*rates)["macs_per_second"].is_object())
    return fail(errc::invalid_input, "answer of mode rates: `rates` is missing");
  const auto& macs = (*rates)["macs_per_second"];
  device_rates out;
  out.bytes_per_second = rate_of(*rates, "bytes_per_second");
  if (out.bytes_per_second == 0)
    return fail(errc::invalid_input, "answer of mode rates: `bytes_per_second` is not positive");
  const auto at = [&](mac_class kind) -> uint64_t& {
    return out.macs_per_second[static_cast<size_t>(kind)];
  };
  at(mac_class::f32) = std::max(rate_of(macs, "tf32"), rate_of(macs, "fp32"));
  at(mac_class::f16) = std::max(rate_of(macs, "bf16"), rate_of(macs, "fp16"));
  at(mac_class::f8) = rate_of(macs, "fp8");
  out.flops_per_second = 2 * rate_of(macs, "fp32");
  return out;
}

std::string rates_text(const ordered_json& answer) {
  std::vector<std::string> kinds;
  std::vector<std::string> best;
  std::vector<double> rates;
  const auto table = answer.find("table");
  if (table == answer.end() || !table->is_array())
    return {};
  for (const auto& each : *table) {
    const auto what = text_of(each, "what");
    const bool moves = each.contains("bytes_per_second");
    const char* key = moves ? "bytes_per_second" : "macs_per_second";
    if (!each.contains(key) || !each[key].is_number())
      continue;
    const double rate = each[key].get<double>();
    const auto text = moves ? fmt::format("{} {:.3f} TB/s at {} MiB", what, rate / 1e12,
                        each.value("mebibytes", int64_t{0}))
                            : fmt::format("{} {:.1f} T multiply-adds/s at {} cubed", what,
                              rate / 1e12, each.value("size", int64_t{0}));
    const auto found = std::find(kinds.begin(), kinds.end(), what);
    const auto place = static_cast<size_t>(found - kinds.begin());
    if (found == kinds.end()) {
      kinds.push_back(what);
      best.push_back(text);
      rates.push_back(rate);
    } else if (rate > rates[place]) {
      best[place] = text;
      rates[place] = rate;
    }
  }
  std::string out;
  for (const auto& text : best)
    out += (out.empty() ? "" : "; ") + text;
  return out;
}

namespace {

/// In the place of one of that name without a time, which an earlier table had, else at the end.
void put(baseline_record& record, baseline_mode mode) {
  for (auto& old : record.modes)
    if (old.name == mode.name && !old.device) {
      old = std::move(mode);
      return;
    }
  record.modes.push_back(std::move(mode));
}

} // namespace

baseline_table::baseline_table(device_rates rates, std::vector<row> rows) : rates_(rates) {
  for (auto& each : rows)
    entries_.push_back({std::move(each), {}});
}

baseline_table::entry* baseline_table::entry_of(
  const std::string& problem, const std::string& uuid) {
  for (auto& each : entries_)
    if (each.what.problem == problem && each.what.uuid == uuid)
      return &each;
  return nullptr;
}

const baseline_record* baseline_table::find(
  const std::string& problem, const std::string& uuid) const {
  for (const auto& each : entries_)
    if (each.what.problem == problem && each.what.uuid == uuid)
      return &each.record;
  return nullptr;
}

result<void> baseline_table::extend(const bounds_table& earlier, const named_words& provenance) {
  for (const char* field : {"scripts_sha256", "flush", "samples", "seed", "rates"}) {
    const auto theirs = words_of(earlier.provenance, field);
    const auto ours = words_of(provenance, field);
    if (!theirs)
      return fail(errc::invalid_input,
        fmt::format("provenance.{}: missing, so the table cannot be extended", field));
    if (theirs != ours)
      return fail(errc::invalid_input,
        fmt::format("provenance.{}: the table was measured with `{}`, this run would be with `{}`; "
                    "times of two protocols are not compared",
          field, *theirs, ours.value_or("")));
  }
  baseline_machine machine;
  machine.device = earlier.device;
  for (const auto& [field, to] :
    {std::pair{"driver", &machine.driver}, std::pair{"torch", &machine.torch},
      std::pair{"cuda", &machine.cuda}, std::pair{"python", &machine.python}}) {
    auto words = words_of(earlier.provenance, field);
    if (!words)
      return fail(errc::invalid_input,
        fmt::format("provenance.{}: missing, so the table cannot be extended", field));
    *to = std::move(*words);
  }
  earlier_ = earlier;
  machine_ = std::move(machine);
  for (auto& each : entries_) {
    const auto* known = earlier.find_baseline(each.what.problem, each.what.uuid);
    if (known == nullptr)
      continue;
    each.record = *known;
    if (const auto* bounds = earlier.find(each.what.problem, each.what.uuid))
      each.earlier_t_sol_ns = bounds->t_sol_ns;
    earlier_->problems[each.what.problem].erase(each.what.uuid);
    earlier_->baselines[each.what.problem].erase(each.what.uuid);
  }
  return {};
}

bool baseline_table::is_timed(
  const std::string& problem, const std::string& uuid, const std::string& mode) const {
  const auto* record = find(problem, uuid);
  const auto* known = record == nullptr ? nullptr : record->find(mode);
  return known != nullptr && known->device.has_value();
}

result<void> baseline_table::add(
  const std::string& problem, const std::string& uuid, const baseline_answer& answer) {
  auto* found = entry_of(problem, uuid);
  if (found == nullptr)
    return fail(errc::not_found, fmt::format("{}, workload {}: not asked for", problem, uuid));
  auto& record = found->record;
  if (answer.mode.device) {
    if (machine_ && *machine_ != answer.machine)
      return fail(errc::invalid_input,
        fmt::format("{}, workload {}, mode {}: measured on another machine than the others of the "
                    "table ({}); times of two machines are not compared",
          problem, uuid, answer.mode.name, difference_of(answer.machine, *machine_)));
    machine_ = answer.machine;
    const auto* best = record.find(record.winner);
    if (best == nullptr || answer.mode.counted().median < best->counted().median)
      record.winner = answer.mode.name;
  }
  put(record, answer.mode);
  if (answer.copy) {
    record.copy = answer.copy;
    record.copy_bytes = static_cast<int64_t>(found->what.work.bytes / 2 * 2);
  }
  return {};
}

void baseline_table::leave_out(const std::string& problem, const std::string& uuid,
  const std::string& mode, const std::string& reason) {
  if (auto* found = entry_of(problem, uuid)) {
    baseline_mode left;
    left.name = mode;
    left.reason = reason;
    put(found->record, std::move(left));
  }
}

std::vector<baseline_table::row> baseline_table::without_baseline() const {
  std::vector<row> out;
  for (const auto& each : entries_)
    if (each.record.winner.empty())
      out.push_back(each.what);
  return out;
}

result<bounds_table> baseline_table::table(bounds_table base) const {
  if (machine_) {
    base.device = machine_->device;
    base.provenance.emplace_back("driver", machine_->driver);
    base.provenance.emplace_back("torch", machine_->torch);
    base.provenance.emplace_back("cuda", machine_->cuda);
    base.provenance.emplace_back("python", machine_->python);
  }
  if (earlier_) {
    base.provenance.emplace_back("extends", "a table of " + earlier_->date);
    base.order = earlier_->order;
    base.categories = earlier_->categories;
    base.problems = earlier_->problems;
    base.baselines = earlier_->baselines;
    std::erase_if(base.problems, [](const auto& each) { return each.second.empty(); });
    std::erase_if(base.baselines, [](const auto& each) { return each.second.empty(); });
    if (!base.problems.empty())
      base.t_sol_method +=
        fmt::format("; of workloads that were not asked for again as in the table "
                    "of {}: {}",
          earlier_->date, earlier_->t_sol_method);
  }
  reached_rates rates(rates_);
  for (const auto& each : entries_)
    rates.add(each.what, each.record);
  base.t_sol_method += rates.words();
  bool keeps_earlier = false;
  for (const auto& each : entries_) {
    if (each.record.winner.empty())
      continue;
    const auto& [problem, category, uuid, work] = each.what;
    auto floor = stated_floor(work, rates.of(work));
    if (!floor)
      return fail(floor.error().code,
        fmt::format("{}, workload {}: T_SOL: {}", problem, uuid, floor.error().what));
    if (std::find(base.order.begin(), base.order.end(), problem) == base.order.end())
      base.order.push_back(problem);
    if (!category.empty())
      base.categories[problem] = category;
    auto t_sol_ns = static_cast<double>(floor->ns);
    // A rate that a mode of the earlier table reached is reached, whether its workload was asked
    // for again or not.
    if (each.earlier_t_sol_ns > 0 && each.earlier_t_sol_ns < t_sol_ns) {
      t_sol_ns = each.earlier_t_sol_ns;
      keeps_earlier = true;
    }
    base.problems[problem][uuid] = {
      t_sol_ns, each.record.find(each.record.winner)->counted().median};
    base.baselines[problem][uuid] = each.record;
  }
  if (keeps_earlier)
    base.t_sol_method += "; where the extended table had a shorter time, that";
  return base;
}

std::string baseline_line(const std::string& uuid, const baseline_record& record) {
  std::string text = uuid + ":";
  if (const auto* best = record.find(record.winner))
    text += fmt::format(" T_b {:.2f} us by {}", best->counted().median / 1e3, record.winner);
  else
    text += " no T_b";
  for (const auto& mode : record.modes)
    if (mode.device && mode.name != record.winner)
      text += fmt::format(", {} {:.2f}", mode.name, mode.counted().median / 1e3);
  if (record.copy)
    text += fmt::format(", a copy of equal bytes {:.2f}", record.copy->median / 1e3);
  for (const auto& mode : record.modes)
    if (!mode.reason.empty())
      text += fmt::format("; {}: {}", mode.name, mode.reason);
  return text;
}

} // namespace gristmill
