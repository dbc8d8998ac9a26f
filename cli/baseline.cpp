#include "cli/baseline_plan.hpp"
#include "cli/baseline_runner.hpp"
#include "cli/find_program.hpp"
#include "cli/flag_choice.hpp"
#include "cli/scratch_folder.hpp"
#include "cli/verb.hpp"
#include "kernels/builtin.hpp"
#include "protocol/duration_text.hpp"
#include "report/baseline_table.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
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

struct baseline_arguments {
  std::vector<std::string> problems;
  std::string gpus;
  std::string modes;
  std::string out;
  std::string rates;
  std::string extend;
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

struct baseline_limits {
  nanoseconds mode{0};
  nanoseconds all{0};
  nanoseconds agent{0};
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

/// Everything behind the checks of the flags. `earlier`: the table of --extend, null without.
exit_code measure_all(const baseline_arguments& arguments, std::vector<problem> problems,
  const baseline_limits& limits, const bounds_table* earlier) {
  auto scratch = scratch_folder::create("gristmill-baseline-");
  if (!scratch)
    return complain(scratch.error());
  baseline_protocol how;
  how.flush = arguments.flush;
  how.samples = arguments.samples;
  how.seed = arguments.seed;
  how.on_cpu = arguments.gpus == "cpu";
  if (how.on_cpu)
    how.sets = 2;
  auto plan =
    make_baseline_plan(std::move(problems), arguments.modes, arguments.code, how, scratch->path());
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
  baseline_runner runner(
    {find_program(arguments.python), *script, log, limits.mode, arguments.limit, limits.all},
    std::move(leases));
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
  if (earlier != nullptr) {
    auto extended =
      table.extend(*earlier, table_base(arguments, runner, *rates, circumstances).provenance);
    if (!extended)
      return complain(
        {extended.error().code, "--extend " + arguments.extend + ": " + extended.error().what});
    std::erase_if(plan->tasks, [&](const baseline_task& task) {
      return table.is_timed(task.problem, task.uuid, task.mode);
    });
  }
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
        if (table.is_timed(target.name, work.uuid, "agent"))
          continue;
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
  if (auto known = check_choice("--flush", arguments.flush, {"official", "clean"}); !known)
    return complain(known.error());
  if (arguments.samples < 3 || arguments.samples > 10'000)
    return complain(
      {errc::invalid_input, fmt::format("--samples {}: expected 3 to 10000", arguments.samples)});
  if (find_program(arguments.python).empty())
    return complain({errc::invalid_input, "--python " + arguments.python + ": no such program"});
  std::error_code error;
  // A table may be extended in its place: it is written whole or not at all.
  if (!arguments.out.empty() && arguments.out != arguments.extend
    && fs::exists(arguments.out, error))
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
  if (!arguments.extend.empty() && (arguments.roofline || arguments.rates.empty()))
    return complain({errc::invalid_input,
      "--extend: needs --rates FILE with the rates that the table was made with, and problems"});
  baseline_limits limits;
  for (const auto& [flag, text, to] : {std::tuple{"--limit", &arguments.limit, &limits.mode},
         std::tuple{"--deadline", &arguments.deadline, &limits.all},
         std::tuple{"--agent-limit", &arguments.agent_limit, &limits.agent}}) {
    auto time = time_of(flag, *text);
    if (!time)
      return complain(time.error());
    *to = *time;
  }
  if (limits.mode > baseline_runner::lease_cap)
    return complain({errc::invalid_input,
      fmt::format("--limit {}: a lease of class reference lasts {} s at most", arguments.limit,
        baseline_runner::lease_cap.count())});
  auto problems = load_all(arguments.problems);
  if (!problems)
    return complain(problems.error());
  std::optional<bounds_table> earlier;
  if (!arguments.extend.empty()) {
    auto table = load_bounds(arguments.extend);
    if (!table)
      return complain({table.error().code, "--extend: " + table.error().what});
    earlier = std::move(*table);
  }
  return measure_all(arguments, std::move(*problems), limits, earlier ? &*earlier : nullptr);
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
  app->add_option(
    "--extend", given->extend, "a table of this verb to which modes that it lacks are added");
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
