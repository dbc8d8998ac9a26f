#include "cli/selfcheck_integrity.hpp"

#include "cli/integrity_bench.hpp"
#include "cli/integrity_catalogue.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <set>
#include <thread>
#include <unistd.h>

namespace gristmill {

namespace {

/// What one candidate of the corpus came to.
struct checked_candidate {
  const corpus_candidate* what = nullptr;
  bool ran = false;
  /// As it should be: caught by its rule, or not accused.
  bool fine = false;
  /// Without the rule it would have passed.
  bool alone = false;
  /// Rules that fired beyond notes, or the stage that stopped it.
  std::vector<std::string> caught_by;
  std::vector<std::string> notes;
  /// What the rule that counts said, or why it could not be tried.
  std::string said;
};

void add_once(std::vector<std::string>& list, std::string_view name) {
  if (std::find(list.begin(), list.end(), name) == list.end())
    list.emplace_back(name);
}

bool is_clean(const bench_outcome& of, const rules_off& off) {
  if (!of.trouble.empty() || !of.refused.empty())
    return false;
  for (const auto& seen : of.seen) {
    const auto v = decide(seen, off).decided;
    if (v.status != verdict_status::passed)
      return false;
    for (const auto& w : v.workloads)
      if (w.needs_audit)
        return false;
  }
  return true;
}

void look_at(checked_candidate& out, const evidence& seen, const rules_off& off) {
  const auto decided = decide(seen, off);
  const auto& v = decided.decided;
  if (v.status == verdict_status::runtime_error || v.status == verdict_status::timeout) {
    add_once(out.caught_by, "fault");
    if (out.what->caught_by == "fault" && out.said.empty())
      out.said = v.reason;
  }
  for (const auto& account : decided.accounts) {
    if (!account.fired)
      continue;
    add_once(account.level == rule_level::note ? out.notes : out.caught_by, account.rule);
    if (out.said.empty()
      && (account.rule == out.what->caught_by
        || (!out.what->is_cheat() && account.level != rule_level::note)))
      out.said = account.said;
  }
  if (!out.what->is_cheat() && v.status != verdict_status::passed && out.said.empty())
    out.said = v.reason;
}

checked_candidate check(
  integrity_bench& bench, const corpus_candidate& what, const rules_off& off) {
  checked_candidate out;
  out.what = &what;
  out.ran = true;
  const auto outcome = bench.run(what);
  if (!outcome.trouble.empty()) {
    out.said = "could not be tried: " + outcome.trouble;
    return out;
  }
  if (!outcome.refused.empty()) {
    out.caught_by.emplace_back("compile");
    out.said = outcome.refused;
  }
  for (const auto& seen : outcome.seen)
    look_at(out, seen, off);
  const bool clean = is_clean(outcome, off);
  if (!what.is_cheat()) {
    out.fine = clean && out.caught_by.empty();
    return out;
  }
  out.fine = !clean
    && std::find(out.caught_by.begin(), out.caught_by.end(), what.caught_by) != out.caught_by.end();
  auto without = off;
  without.insert(what.caught_by);
  out.alone = is_clean(outcome, without);
  return out;
}

std::vector<checked_candidate> check_all(integrity_bench& bench,
  const std::vector<const corpus_candidate*>& chosen, const rules_off& off) {
  std::vector<checked_candidate> out(chosen.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < chosen.size(); i = next++)
      out[i] = check(bench, *chosen[i], off);
  };
  std::vector<std::thread> threads;
  const auto count =
    std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), chosen.size());
  for (size_t i = 1; i < count; ++i)
    threads.emplace_back(work);
  work();
  for (auto& each : threads)
    each.join();
  return out;
}

std::string joined(const std::vector<std::string>& list) {
  return list.empty() ? "-" : fmt::format("{}", fmt::join(list, ", "));
}

const checked_candidate* find(
  const std::vector<checked_candidate>& all, const std::string& candidate_name) {
  const auto found = std::find_if(all.begin(), all.end(),
    [&](const checked_candidate& c) { return c.what->name == candidate_name; });
  return found == all.end() ? nullptr : &*found;
}

std::string short_text(const std::string& text) {
  return text.size() <= 100 ? text : text.substr(0, 97) + "...";
}

std::string row_line(const catalogue_row& row, const std::vector<checked_candidate>& all) {
  auto out = fmt::format("{:>3}  {:<14} {}\n", row.row, to_string(row.what), row.trick);
  for (const auto& cheat : row.cheats) {
    const auto* found = find(all, cheat);
    if (found == nullptr)
      out += fmt::format("       -  {:<22} not tried here\n", cheat);
    else
      out += fmt::format("     {}  {:<22} {:<20} {}\n", found->fine ? "ok  " : "FAIL", cheat,
        found->fine ? found->what->caught_by : "by " + joined(found->caught_by),
        short_text(found->said));
  }
  return out;
}

std::string to_text(const hack_catalogue& catalogue, const std::vector<checked_candidate>& all,
  const std::string& circumstances) {
  std::string out;
  for (const auto& row : catalogue.rows)
    out += row_line(row, all);
  out += "\nhonest twins\n";
  size_t cheats = 0;
  size_t caught = 0;
  size_t honest = 0;
  size_t accepted = 0;
  std::vector<std::string> alone;
  for (const auto& each : all) {
    if (each.what->is_cheat()) {
      ++cheats;
      caught += each.fine ? 1 : 0;
      if (each.alone)
        add_once(alone, each.what->caught_by);
      continue;
    }
    ++honest;
    accepted += each.fine ? 1 : 0;
    out += fmt::format("     {}  {:<22} {}\n", each.fine ? "ok  " : "FAIL", each.what->name,
      each.fine ? (each.notes.empty() ? "" : "noted: " + joined(each.notes))
                : "by " + joined(each.caught_by) + ": " + short_text(each.said));
  }
  out += fmt::format(
    "\n{} of {} cheats caught by the rule that is named, {} of {} honest twins not accused; on {}\n"
    "rules without which a cheat would pass: {}\n",
    caught, cheats, accepted, honest, circumstances, joined(alone));
  return out;
}

std::string to_json(const hack_catalogue& catalogue, const std::vector<checked_candidate>& all,
  const std::string& circumstances, const rules_off& off) {
  ordered_json out{{"schema", "gristmill.integrity/1"}, {"circumstances", circumstances},
    {"without", std::vector<std::string>(off.begin(), off.end())}};
  auto& rows = out["rows"] = ordered_json::array();
  for (const auto& row : catalogue.rows)
    rows.push_back({{"row", row.row}, {"trick", row.trick}, {"class", to_string(row.what)},
      {"cheats", row.cheats}, {"why", row.why}, {"shown_by", row.shown_by}});
  auto& candidates = out["candidates"] = ordered_json::array();
  for (const auto& each : all)
    candidates.push_back({{"name", each.what->name}, {"cheat", each.what->is_cheat()},
      {"fine", each.fine}, {"expected", each.what->caught_by}, {"caught_by", each.caught_by},
      {"alone", each.alone}, {"notes", each.notes}, {"said", each.said}});
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

result<rules_off> rules_of(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const auto& rule : integrity_rules())
    known.emplace_back(rule.name);
  for (const auto& each : names)
    if (find_rule(each) == nullptr)
      return fail(errc::invalid_input,
        "--without " + each + ": there is no such rule" + suggestion(each, known));
  return rules_off(names.begin(), names.end());
}

result<std::vector<const corpus_candidate*>> choose(
  const hack_catalogue& catalogue, const std::vector<std::string>& only, bool modelled) {
  std::vector<std::string> known;
  for (const auto& each : catalogue.candidates)
    known.push_back(each.name);
  for (const auto& each : only)
    if (catalogue.find(each) == nullptr)
      return fail(errc::invalid_input,
        "--only " + each + ": the corpus has no such candidate" + suggestion(each, known));
  std::vector<const corpus_candidate*> out;
  for (const auto& each : catalogue.candidates)
    if ((only.empty() || std::find(only.begin(), only.end(), each.name) != only.end())
      && (modelled || !each.modelled_only))
      out.push_back(&each);
  return out;
}

} // namespace

exit_code integrity_check_command(const integrity_check_arguments& arguments) {
  auto off = rules_of(arguments.without);
  if (!off)
    return complain(off.error());
  auto catalogue = read_hack_catalogue();
  if (!catalogue)
    return complain(catalogue.error());
  auto chosen = choose(*catalogue, arguments.only, arguments.gpus.starts_with("mock"));
  if (!chosen)
    return complain(chosen.error());
  std::error_code error;
  const auto folder =
    std::filesystem::temp_directory_path(error) / fmt::format("gristmill-integrity-{}", ::getpid());
  const auto begin = std::chrono::steady_clock::now();
  auto bench = integrity_bench::open(*catalogue, arguments.gpus, arguments.toolchain, folder);
  if (!bench)
    return complain(bench.error());
  const auto all = check_all(**bench, *chosen, *off);
  const auto text = arguments.json ? to_json(*catalogue, all, (*bench)->circumstances(), *off)
                                   : to_text(*catalogue, all, (*bench)->circumstances());
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print(stderr, "{} candidates in {:.1f} s\n", all.size(), took.count());
  const bool sound =
    std::all_of(all.begin(), all.end(), [](const checked_candidate& c) { return c.fine; });
  return sound ? exit_code::ok : exit_code::not_sound;
}

} // namespace gristmill
