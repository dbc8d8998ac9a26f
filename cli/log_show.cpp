#include "cli/read_run.hpp"
#include "cli/verb.hpp"
#include "journal/event_line.hpp"
#include "protocol/budget.hpp"
#include "protocol/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <set>

namespace gristmill {

namespace {

struct log_show_arguments {
  std::string run;
  bool json = false;
  std::vector<std::string> kinds;
  std::vector<std::string> problems;
  std::string attempt;
  std::string gpu;
  std::string since;
  std::string until;
  std::string last;
};

/// "12s" or "1.5m": time since the start of the run.
result<std::optional<std::chrono::nanoseconds>> time_of(
  const std::string& flag, const std::string& text) {
  if (text.empty() || text == "0" || text == "0s")
    return text.empty() ? std::nullopt : std::optional{std::chrono::nanoseconds{0}};
  auto parsed = parse_budget({text});
  if (!parsed || !parsed->wall_ns)
    return fail(
      errc::invalid_input, flag + " " + text + ": must be a time such as 90s, 10m or 1.5h");
  return std::optional{std::chrono::nanoseconds{static_cast<int64_t>(*parsed->wall_ns)}};
}

result<std::optional<size_t>> count_of(const std::string& text) {
  if (text.empty())
    return std::optional<size_t>{};
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(errc::invalid_input, "--last " + text + ": must be a whole number");
  return std::optional{value};
}

/// Every name that is asked for must occur in the log: a misspelling would show nothing.
result<void> check_known(const char* flag, const std::vector<std::string>& asked,
  const std::vector<event>& events, std::string event::*member) {
  std::set<std::string> known;
  for (const auto& e : events)
    if (!(e.*member).empty())
      known.insert(e.*member);
  for (const auto& name : asked)
    if (!known.contains(name))
      return fail(errc::invalid_input,
        std::string(flag) + " " + name + ": the log has no such event"
          + suggestion(name, {known.begin(), known.end()}));
  return {};
}

std::string text_line(const event& e) {
  auto out = fmt::format(
    "{:>7} {:>12.6f} s  {:<19}", e.seq, std::chrono::duration<double>(e.t).count(), e.kind);
  out += " " + (e.attempt.empty() ? e.problem : e.attempt);
  if (!e.gpu.empty())
    out += " " + e.gpu + (e.token == 0 ? "" : fmt::format(" token {}", e.token));
  if (!e.candidate.empty())
    out += " " + e.candidate.substr(0, 12);
  if (!e.reason.empty())
    out += ": " + e.reason;
  if (e.data != "{}")
    out += "  " + (e.data.size() <= 160 ? e.data : e.data.substr(0, 160) + "...");
  for (auto& c : out) // One event, one line; nothing that moves a terminal's cursor.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  return out;
}

exit_code log_show_command(const log_show_arguments& a) {
  auto since = time_of("--since", a.since);
  auto until = time_of("--until", a.until);
  auto last = count_of(a.last);
  for (const failure* wrong : {since ? nullptr : &since.error(), until ? nullptr : &until.error(),
         last ? nullptr : &last.error()})
    if (wrong != nullptr)
      return complain(*wrong);
  auto events = read_events(a.run);
  if (!events)
    return complain(events.error());
  for (auto known : {check_known("--kind", a.kinds, *events, &event::kind),
         check_known("--problem", a.problems, *events, &event::problem),
         check_known("--attempt",
           a.attempt.empty() ? std::vector<std::string>{} : std::vector<std::string>{a.attempt},
           *events, &event::attempt),
         check_known("--gpu",
           a.gpu.empty() ? std::vector<std::string>{} : std::vector<std::string>{a.gpu}, *events,
           &event::gpu)})
    if (!known)
      return complain(known.error());
  auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<const event*> chosen;
  for (const auto& e : *events)
    if (among(a.kinds, e.kind) && among(a.problems, e.problem)
      && (a.attempt.empty() || a.attempt == e.attempt) && (a.gpu.empty() || a.gpu == e.gpu)
      && (!*since || e.t >= **since) && (!*until || e.t <= **until))
      chosen.push_back(&e);
  size_t from = *last && chosen.size() > **last ? chosen.size() - **last : 0;
  for (size_t i = from; i < chosen.size(); ++i) {
    auto line = a.json ? canonical_line(*chosen[i]) : text_line(*chosen[i]);
    std::fputs((line + "\n").c_str(), stdout);
  }
  return exit_code::ok;
}

} // namespace

void add_log_show_verb(CLI::App& root, verbs& all) {
  auto* app = verb_group(root, "log", "the event log of a run")
                .add_subcommand("show", "print the events of a run, one a line");
  auto a = std::make_shared<log_show_arguments>();
  app->add_option("run", a->run, "run directory")->required();
  app->add_flag("--json", a->json, "canonical lines, the exchange format");
  for (auto [flag, list, what] :
    {std::tuple{"--kind", &a->kinds, "only events of this kind; may be given several times"},
      std::tuple{"--problem", &a->problems, "only of this problem; may be given several times"}})
    app->add_option(flag, *list, what)->expected(1)->allow_extra_args(false)->take_all();
  app->add_option("--attempt", a->attempt, "only of this attempt, PROBLEM/LANGUAGE/NUMBER");
  app->add_option("--gpu", a->gpu, "only of this GPU");
  app->add_option("--since", a->since, "from this time of the run on, such as 90s");
  app->add_option("--until", a->until, "up to this time of the run");
  app->add_option("--last", a->last, "only so many, the newest");
  all.push_back({app, [a] { return log_show_command(*a); }});
}

} // namespace gristmill
