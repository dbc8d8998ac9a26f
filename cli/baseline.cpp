#include "cli/baseline_child.hpp"
#include "cli/baseline_jobs.hpp"
#include "cli/baseline_lease.hpp"
#include "cli/verb.hpp"
#include "journal/hash.hpp"
#include "kernels/builtin.hpp"
#include "protocol/duration_text.hpp"
#include "protocol/nearest.hpp"
#include "report/baseline_table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <set>
#include <unistd.h>

namespace gristmill {

namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using steady = std::chrono::steady_clock;

struct baseline_arguments {
  std::vector<std::string> problems;
  std::string gpus;
  std::string modes;
  std::string out;
  std::string rates;
  std::string python = "/usr/bin/python3";
  std::string flush = "official";
  std::string limit = "60s";
  std::string deadline = "1h";
  std::string socket;
  std::string code;
  std::string agent;
  std::string agent_limit = "10m";
  int64_t samples = 50;
  uint64_t seed = 0;
  bool roofline = false;
  bool json = false;
};

/// Longest lease of class `reference` that a broker gives.
constexpr seconds cap_max{600};
/// Importing torch, without a lease.
constexpr seconds ready_limit{180};

/// Gone with all that it holds.
class scratch_folder {
public:
  static result<scratch_folder> create() {
    auto text = (fs::temp_directory_path() / "gristmill-baseline-XXXXXX").string();
    if (mkdtemp(text.data()) == nullptr)
      return fail(errc::io_failed, text + ": no folder for temporary files");
    return scratch_folder(text);
  }
  scratch_folder(scratch_folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  scratch_folder& operator=(scratch_folder&&) = delete;
  ~scratch_folder() {
    std::error_code error;
    if (!path_.empty())
      fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

private:
  explicit scratch_folder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

result<std::vector<problem>> load_all(const std::vector<std::string>& given) {
  std::vector<problem> out;
  std::set<std::string> names;
  for (const auto& each : given) {
    std::error_code error;
    auto loaded = fs::is_directory(each, error) ? load_problem(each) : builtin_problem(each);
    if (!loaded)
      return pass(loaded);
    if (!names.insert(loaded->name).second)
      return fail(errc::invalid_input, each + ": there are two problems called " + loaded->name);
    out.push_back(std::move(*loaded));
  }
  return out;
}

result<nanoseconds> time_of(const std::string& flag, const std::string& text) {
  const auto ns = parse_duration_ns(text);
  if (!ns || *ns == 0)
    return fail(
      errc::invalid_input, flag + " " + text + ": expected a time of more than 0, such as 60s");
  return nanoseconds(*ns);
}

/// "cuda:0", or "cpu" for a trial.
result<void> check_gpus(const std::string& gpus) {
  if (gpus == "cpu")
    return {};
  if (gpus.starts_with("cuda:") && gpus.size() > 5
    && gpus.find_first_not_of("0123456789", 5) == std::string::npos)
    return {};
  if (gpus.starts_with("mock:") || gpus.starts_with("sleep:"))
    return fail(errc::invalid_input,
      "--gpus " + gpus
        + ": PyTorch cannot run on a device that is no GPU, so there is no baseline to measure "
          "there; use cuda:0, or cpu to try everything but the times");
  return fail(errc::invalid_input,
    "--gpus " + gpus
      + ": expected one GPU, such as cuda:0, or cpu to try everything but the times");
}

/// What is still to do, in order, and what it needs.
struct baseline_plan {
  std::vector<problem> problems;
  std::vector<baseline_task> tasks;
  std::vector<baseline_table::row> rows;
};

struct baseline_limits {
  nanoseconds mode{0};
  nanoseconds all{0};
  nanoseconds agent{0};
};

result<std::set<std::string>> chosen_modes(
  const baseline_arguments& arguments, const std::vector<problem>& problems) {
  std::vector<std::string> known = general_baseline_modes();
  for (const auto& target : problems)
    for (const auto& [mode, file] : problem_baseline_modes(target))
      if (std::find(known.begin(), known.end(), mode) == known.end())
        known.push_back(mode);
  if (arguments.modes.empty())
    return std::set<std::string>(known.begin(), known.end());
  std::set<std::string> out;
  std::string rest = arguments.modes;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto mode = rest.substr(0, comma);
    rest.erase(0, std::min(comma + 1, rest.size()));
    if (std::find(known.begin(), known.end(), mode) == known.end())
      return fail(
        errc::invalid_input, "--modes: " + mode + ": unknown mode" + suggestion(mode, known));
    out.insert(mode);
  }
  return out;
}

/// All problems of one mode before the next mode: when the time is over, what is left out is the
/// dearest mode, for all alike.
result<baseline_plan> make_plan(const baseline_arguments& arguments, std::vector<problem> problems,
  const baseline_protocol& how, const fs::path& scratch) {
  baseline_plan plan;
  plan.problems = std::move(problems);
  auto modes = chosen_modes(arguments, plan.problems);
  if (!modes)
    return pass(modes);
  for (const auto& target : plan.problems)
    for (const auto& work : target.workloads) {
      auto row = baseline_row(target, work);
      if (!row)
        return pass(row);
      plan.rows.push_back(std::move(*row));
    }
  const auto bytes_of = [&](const std::string& problem, const std::string& uuid) -> uint64_t {
    for (const auto& row : plan.rows)
      if (row.problem == problem && row.uuid == uuid)
        return row.work.bytes;
    return 0;
  };
  const auto add = [&](const std::string& mode, auto&& code_of) -> result<void> {
    for (const auto& target : plan.problems) {
      const auto code = code_of(target);
      if (!code)
        continue;
      for (const auto& work : target.workloads) {
        const uint64_t copied = mode == "eager" ? bytes_of(target.name, work.uuid) : 0;
        auto task = write_baseline_job(target, work, mode, *code, copied, how, scratch);
        if (!task)
          return pass(task);
        plan.tasks.push_back(std::move(*task));
      }
    }
    return {};
  };
  const auto no_code = [](const problem&) { return std::optional<std::string>{""}; };
  for (const auto& mode : general_baseline_modes()) {
    if (mode == "max-autotune")
      for (const auto& own : *modes) {
        const auto code = [&](const problem& target) -> std::optional<std::string> {
          for (const auto& [name, file] : problem_baseline_modes(target))
            if (name == own)
              return fs::absolute(file).string();
          return std::nullopt;
        };
        if (auto added = add(own, code); !added)
          return pass(added);
      }
    if (modes->count(mode) > 0)
      if (auto added = add(mode, no_code); !added)
        return pass(added);
  }
  if (!arguments.code.empty()) {
    const auto given = [&](const problem&) {
      return std::optional<std::string>{fs::absolute(arguments.code).string()};
    };
    if (auto added = add("agent", given); !added)
      return pass(added);
  }
  return plan;
}

/// Runs tasks one after another, each under a lease of its own; the next one imports torch
/// meanwhile.
class baseline_runner {
public:
  baseline_runner(const baseline_arguments& arguments, std::string script, std::string log,
    std::optional<baseline_leases> leases, const baseline_limits& limits)
    : arguments_(arguments), script_(std::move(script)), log_(std::move(log)),
      leases_(std::move(leases)), limits_(limits), until_(steady::now() + limits.all) {}

  bool is_over() const { return steady::now() >= until_; }

  void prepare(const baseline_task& task) {
    next_file_ = task.job_file;
    next_ = baseline_child::start(arguments_.python, script_, task.job_file, log_);
  }

  /// The answer, or a failed one in the same form: a mode that dies is a mode that is told.
  ordered_json run(const baseline_task& task, const baseline_task* following) {
    if (next_file_ != task.job_file)
      prepare(task);
    auto child = std::move(next_);
    next_file_.clear();
    if (!child)
      return failed(child.error());
    if (auto ready = (*child)->await_ready(ready_limit); !ready)
      return failed(ready.error());
    if (following)
      prepare(*following);
    if (!leases_)
      return answer_of((*child)->measure("", limits_.mode));
    auto lease = leases_->acquire("baseline " + task.problem + " " + task.mode,
      std::min<nanoseconds>(limits_.mode + seconds{30}, cap_max));
    if (!lease)
      return failed(lease.error());
    auto answer = (*child)->measure(lease->visible(), limits_.mode);
    child->reset(); // Nothing of it may be left when the lease ends.
    (void)lease->release(answer ? lease_outcome::fine : lease_outcome::fault,
      answer ? "measured" : answer.error().what);
    return answer_of(std::move(answer));
  }

  const std::optional<baseline_leases>& leases() const { return leases_; }

private:
  ordered_json answer_of(result<ordered_json> answer) const {
    return answer ? std::move(*answer) : failed(answer.error());
  }
  ordered_json failed(const failure& why) const {
    return {{"status", "failed"},
      {"reason",
        why.code == errc::timed_out ? fmt::format("over the limit of {}", arguments_.limit)
                                    : why.what + "; see " + log_}};
  }

  const baseline_arguments& arguments_;
  std::string script_;
  std::string log_;
  std::optional<baseline_leases> leases_;
  baseline_limits limits_;
  steady::time_point until_;
  result<std::unique_ptr<baseline_child>> next_;
  std::string next_file_;
};

result<void> write_text(const std::string& path, const std::string& text) {
  // Whole or not at all: the table is written again after each mode.
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (file)
    fs::rename(part, path, error);
  if (!file || error)
    return fail(errc::io_failed, path + ": cannot be written");
  return {};
}

/// The rates from a file that `--roofline` wrote before, or measured now.
result<ordered_json> rates_answer(const baseline_arguments& arguments, const baseline_protocol& how,
  const fs::path& scratch, baseline_runner& runner) {
  if (!arguments.rates.empty()) {
    auto text = read_text_file(arguments.rates, json_limits{}.bytes);
    if (!text)
      return fail(text.error().code, "--rates " + arguments.rates + ": " + text.error().what);
    return parse_json_object(*text, arguments.rates);
  }
  auto task = write_rates_job(how, scratch);
  if (!task)
    return pass(task);
  return runner.run(*task, nullptr);
}

bounds_table table_base(const baseline_arguments& arguments, const baseline_runner& runner,
  const ordered_json& rates, const std::string& circumstances) {
  const bool on_cpu = arguments.gpus == "cpu";
  bounds_table base;
  base.source = "gristmill baseline";
  base.date = today();
  base.clock = on_cpu       ? "NOT A MEASUREMENT: a trial on the CPU"
    : circumstances.empty() ? "not locked; nvidia-smi tells nothing"
                            : "not locked; " + circumstances;
  base.t_sol_method = fmt::format("measured roofline of {}, {}: the longest of bytes, flops and "
                                  "multiply-adds of the operator graph at measured rates ({})",
    rates.value("device", std::string{"the device"}), base.date, rates_text(rates));
  base.t_b_method =
    "the fastest of the modes beside it, each in a process of its own: median device time of a "
    "call "
    "that was enqueued behind a wait, by the tracer's activities (by events where it lacks some), "
    "with fresh values at moved addresses, flush "
    + arguments.flush;
  if (on_cpu)
    base.t_b_method = "NOT A MEASUREMENT: " + base.t_b_method;
  base.provenance = {{"scripts_sha256", baseline_scripts_hash()}, {"flush", arguments.flush},
    {"samples", fmt::format("{}", arguments.samples)}, {"seed", fmt::format("{}", arguments.seed)},
    {"limit of a mode", arguments.limit},
    {"leases", runner.leases() ? runner.leases()->words() : "none: on the CPU"},
    {"rates", rates_text(rates)}};
  return base;
}

std::string agent_task(const problem& target) {
  return fmt::format(
    "# {}\n\n`reference.py` computes the outputs of this problem with PyTorch:\n\n{}\n\nWrite "
    "`improved.py` beside it: the same function `run` with the same arguments and outputs, as fast "
    "as PyTorch and its libraries can make it (other operators, `torch.compile`, CUDA graphs). No "
    "kernels of your own. Measure with the command in the variable GRISTMILL_MEASURE, which checks "
    "`improved.py` and prints its time beside that of `reference.py`.\n",
    target.name, target.def.description);
}

/// Lets the user's command work on a copy of the reference; answers the file it leaves.
result<std::string> ask_agent(const baseline_arguments& arguments, const problem& target,
  const baseline_runner& runner, const baseline_limits& limits) {
  auto program = program_folder();
  if (!program)
    return pass(program);
  const fs::path folder = fs::absolute(arguments.out + ".agent") / target.name;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(errc::io_failed, folder.string() + ": " + error.message());
  for (const auto& [file, text] : {std::pair{folder / "reference.py", target.def.reference},
         std::pair{folder / "TASK.md", agent_task(target)}})
    if (auto written = write_text(file.string(), text); !written)
      return pass(written);
  const std::string place =
    target.folder.empty() ? target.name : fs::absolute(target.folder).string();
  const std::string measure =
    fmt::format("'{}/gristmill' baseline '{}' --gpus {} --python '{}' --modes eager --code "
                "'{}/improved.py' --limit {} --samples {}",
      *program, place, arguments.gpus, arguments.python, folder.string(), arguments.limit,
      arguments.samples);
  std::vector<std::string> variables{"GRISTMILL_MEASURE=" + measure};
  if (runner.leases())
    variables.push_back("GRISTMILL_LEASE_SOCKET=" + runner.leases()->socket());
  auto ended = run_in_folder(arguments.agent, folder.string(), variables, limits.agent);
  const auto file = folder / "improved.py";
  if (!fs::exists(file, error))
    return fail(errc::child_failed,
      !ended ? ended.error().what
             : fmt::format("the command ended with {} and left no improved.py", *ended));
  return file.string();
}

exit_code print_end(const baseline_arguments& arguments, const baseline_table& table,
  const bounds_table& written, const std::vector<baseline_table::row>& rows) {
  if (arguments.json)
    std::fputs(to_json(written).c_str(), stdout);
  else
    for (const auto& row : rows)
      fmt::print(
        "{} {}\n", row.problem, baseline_line(row.uuid, *table.find(row.problem, row.uuid)));
  const auto missing = table.without_baseline();
  for (const auto& row : missing)
    fmt::print(stderr, "gristmill: {}, workload {}: no mode was timed, so there is no T_b\n",
      row.problem, row.uuid);
  return missing.empty() ? exit_code::ok : exit_code::failure;
}

/// Everything behind the checks of the flags.
exit_code measure_all(const baseline_arguments& arguments, std::vector<problem> problems,
  const baseline_limits& limits) {
  auto scratch = scratch_folder::create();
  if (!scratch)
    return complain(scratch.error());
  baseline_protocol how;
  how.flush = arguments.flush;
  how.samples = arguments.samples;
  how.seed = arguments.seed;
  how.on_cpu = arguments.gpus == "cpu";
  if (how.on_cpu)
    how.sets = 2;
  auto plan = make_plan(arguments, std::move(problems), how, scratch->path());
  if (!plan)
    return complain(plan.error());
  auto script = write_baseline_scripts(scratch->path());
  if (!script)
    return complain(script.error());
  std::optional<baseline_leases> leases;
  if (!how.on_cpu) {
    auto opened = baseline_leases::open(arguments.gpus, arguments.socket, scratch->path().string());
    if (!opened)
      return complain(opened.error());
    leases.emplace(std::move(*opened));
  }
  const std::string log =
    arguments.out.empty() ? (scratch->path() / "log").string() : arguments.out + ".log";
  baseline_runner runner(arguments, *script, log, std::move(leases), limits);
  auto rates = rates_answer(arguments, how, scratch->path(), runner);
  if (!rates)
    return complain(rates.error());
  auto measured = read_baseline_rates(*rates);
  if (!measured)
    return complain(measured.error());
  fmt::print(stderr, "gristmill: roofline: {}\n", rates_text(*rates));
  if (arguments.roofline) {
    const auto text = rates->dump(1) + "\n";
    if (arguments.out.empty())
      std::fputs(text.c_str(), stdout);
    else if (auto written = write_text(arguments.out, text); !written)
      return complain(written.error());
    return exit_code::ok;
  }
  baseline_table table(*measured, plan->rows);
  std::string circumstances;
  const auto save = [&]() -> result<bounds_table> {
    auto now = table.table(table_base(arguments, runner, *rates, circumstances));
    if (!now)
      return now;
    if (!arguments.out.empty())
      if (auto written = write_text(arguments.out, to_json(*now)); !written)
        return pass(written);
    return now;
  };
  const auto take = [&](const baseline_task& task, const ordered_json& raw) -> result<void> {
    auto answer = read_baseline_answer(raw, task.mode);
    if (!answer)
      return pass(answer);
    if (!answer->circumstances.empty())
      circumstances = answer->circumstances;
    fmt::print(stderr, "gristmill: {} {} {}: {}\n", task.problem, task.uuid, task.mode,
      answer->mode.reason.empty() ? fmt::format("{:.2f} us (MAD {:.2f})",
        answer->mode.counted().median / 1e3, answer->mode.counted().mad / 1e3)
                                  : answer->mode.reason);
    if (auto added = table.add(task.problem, task.uuid, *answer); !added)
      return added;
    if (auto saved = save(); !saved)
      return pass(saved);
    return {};
  };
  for (size_t i = 0; i < plan->tasks.size(); ++i) {
    const auto& task = plan->tasks[i];
    if (runner.is_over()) {
      table.leave_out(task.problem, task.uuid, task.mode,
        "not measured: the deadline of " + arguments.deadline + " was over");
      continue;
    }
    const auto* following = i + 1 < plan->tasks.size() ? &plan->tasks[i + 1] : nullptr;
    if (auto taken = take(task, runner.run(task, following)); !taken)
      return complain(taken.error());
  }
  if (!arguments.agent.empty())
    for (const auto& target : plan->problems) {
      auto code = ask_agent(arguments, target, runner, limits);
      for (const auto& work : target.workloads) {
        if (!code) {
          table.leave_out(target.name, work.uuid, "agent", code.error().what);
          continue;
        }
        auto task = write_baseline_job(target, work, "agent", *code, 0, how, scratch->path());
        if (!task)
          return complain(task.error());
        if (auto taken = take(*task, runner.run(*task, nullptr)); !taken)
          return complain(taken.error());
      }
    }
  auto written = save();
  if (!written)
    return complain(written.error());
  return print_end(arguments, table, *written, plan->rows);
}

exit_code baseline_command(const baseline_arguments& arguments) {
  if (auto fits = check_gpus(arguments.gpus); !fits)
    return complain(fits.error());
  const std::vector<std::string> flushes{"official", "clean"};
  if (std::find(flushes.begin(), flushes.end(), arguments.flush) == flushes.end())
    return complain({errc::invalid_input,
      "--flush " + arguments.flush + ": unknown" + suggestion(arguments.flush, flushes)});
  if (arguments.samples < 3 || arguments.samples > 10'000)
    return complain(
      {errc::invalid_input, fmt::format("--samples {}: expected 3 to 10000", arguments.samples)});
  if (access(arguments.python.c_str(), X_OK) != 0)
    return complain({errc::invalid_input, "--python " + arguments.python + ": no such program"});
  std::error_code error;
  if (!arguments.out.empty() && fs::exists(arguments.out, error))
    return complain({errc::invalid_input, "-o " + arguments.out + ": is there already"});
  if (!arguments.code.empty() && !fs::exists(arguments.code, error))
    return complain({errc::not_found, "--code " + arguments.code + ": no such file"});
  if (!arguments.agent.empty() && arguments.out.empty())
    return complain({errc::invalid_input,
      "--by-agent: needs -o FILE, because the agent works in the folder FILE.agent"});
  if (arguments.problems.empty() != arguments.roofline)
    return complain({errc::invalid_input,
      arguments.roofline ? "--roofline: takes no problems; the rates are of the device alone"
                         : "no problem given; name built-in problems or folders, or --roofline"});
  if (arguments.roofline && !arguments.rates.empty())
    return complain(
      {errc::invalid_input, "--rates: there is nothing to measure beside --roofline"});
  baseline_limits limits;
  for (const auto& [flag, text, to] : {std::tuple{"--limit", &arguments.limit, &limits.mode},
         std::tuple{"--deadline", &arguments.deadline, &limits.all},
         std::tuple{"--agent-limit", &arguments.agent_limit, &limits.agent}}) {
    auto time = time_of(flag, *text);
    if (!time)
      return complain(time.error());
    *to = *time;
  }
  if (limits.mode > cap_max)
    return complain({errc::invalid_input,
      fmt::format("--limit {}: a lease of class reference lasts {} s at most", arguments.limit,
        cap_max.count())});
  auto problems = load_all(arguments.problems);
  if (!problems)
    return complain(problems.error());
  return measure_all(arguments, std::move(*problems), limits);
}

} // namespace

void add_baseline_verb(CLI::App& root, verbs& all) {
  auto* app = root.add_subcommand(
    "baseline", "measures what PyTorch and its libraries need for problems, as a bounds table");
  auto given = std::make_shared<baseline_arguments>();
  app->add_option("problem", given->problems, "built-in problems or problem folders");
  app->add_option("--gpus", given->gpus, "the GPU, such as cuda:0; cpu tries all but the times")
    ->required();
  app->add_option("--modes", given->modes, "some of the modes, with commas between; default all");
  app->add_option("-o,--out", given->out, "the table; printed alone when absent");
  app->add_flag("--roofline", given->roofline, "measure the rates of the GPU alone");
  app->add_option("--rates", given->rates, "rates that --roofline wrote before");
  app->add_option("--python", given->python, "interpreter with torch")->capture_default_str();
  app->add_option("--flush", given->flush, "official or clean")->capture_default_str();
  app->add_option("--samples", given->samples, "timed calls of a mode")->capture_default_str();
  app->add_option("--seed", given->seed, "of the input values")->capture_default_str();
  app->add_option("--limit", given->limit, "longest time of a mode")->capture_default_str();
  app->add_option("--deadline", given->deadline, "after it no mode begins")->capture_default_str();
  app->add_option(
    "--socket", given->socket, "a broker; default the usual one, else one of its own");
  app->add_option("--code", given->code, "a Python file with `run`, as the mode agent");
  app->add_option("--by-agent", given->agent, "a command that improves the PyTorch code");
  app->add_option("--agent-limit", given->agent_limit, "longest time of it for a problem")
    ->capture_default_str();
  app->add_flag("--json", given->json, "the table as JSON on stdout");
  all.push_back({app, [given] { return baseline_command(*given); }});
}

} // namespace gristmill
