#include "cli/verb.hpp"

#include "actors/child_job.hpp"
#include "actors/prepare_jobs.hpp"
#include "cli/find_program.hpp"
#include "cli/flag_choice.hpp"
#include "cli/problem_paths.hpp"
#include "cli/scratch_folder.hpp"
#include "gpu/children/child_loop.hpp"
#include "journal/hash.hpp"
#include "protocol/child_answers.hpp"
#include "protocol/duration_text.hpp"
#include "protocol/shrink.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <memory>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

struct reference_arguments {
  std::vector<std::string> paths;
  std::string workload = "smallest";
  std::string limit = "2m";
  std::string python = "/usr/bin/python3";
  bool json = false;
};

/// How one reference ended.
struct reference_end {
  std::string problem;
  std::string workload;
  /// A status of a verdict, "REFUSED" for what does not load, "OVER_LIMIT".
  std::string status;
  double seconds = 0;
  std::string reason;
};

/// Keeps interrupts until they are asked for, so that a command can clean up before it ends. To be
/// made before any thread, which then has the same mask; children start with one of their own.
class interrupts {
public:
  interrupts() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now {};
      // What is ignored (nohup) stays so.
      if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
        sigaddset(&set_, number);
    }
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  /// True from the first one on.
  bool seen() {
    const timespec at_once{0, 0};
    seen_ = seen_ || sigtimedwait(&set_, nullptr, &at_once) > 0;
    return seen_;
  }

private:
  sigset_t set_{};
  bool seen_ = false;
};

/// Bytes of all inputs and outputs of a workload at its own size.
result<uint64_t> declared_bytes(const problem& target, const workload& work) {
  auto axes = resolve_axes(target.def, work.axes);
  if (!axes)
    return pass(axes);
  uint64_t total = 0;
  for (const auto* specs : {&target.def.inputs, &target.def.outputs})
    for (const auto& spec : *specs) {
      if (spec.is_scalar)
        continue;
      auto shape = resolve_shape(spec, *axes);
      if (!shape)
        return pass(shape);
      auto bytes = storage_bytes(spec.type, *shape);
      if (!bytes)
        return pass(bytes);
      if (__builtin_add_overflow(total, *bytes, &total))
        return fail(errc::invalid_input, "the workload has more than 2^64 bytes");
    }
  return total;
}

/// What runs the references, one at a time.
class reference_runner {
public:
  reference_runner(run_context context, std::chrono::nanoseconds limit, interrupts& stop)
    : context_(std::move(context)), limit_(limit), stop_(stop), loop_(limits_for(context_)) {}

  reference_end run(problem target, const workload& work) {
    reference_end out{target.name, work.uuid, {}, 0, {}};
    target.workloads = {work};
    auto job_folder = prepare(target, out);
    if (!job_folder)
      return refused(std::move(out), job_folder.error());
    std::error_code error; // What stays behind goes with the scratch folder.
    fs::remove_all(context_.directory / "data", error);
    return out;
  }

  static reference_end refused(reference_end out, const failure& why) {
    out.status = why.code == errc::not_found ? to_string(verdict_status::infrastructure)
      : why.code == errc::refused            ? to_string(verdict_status::not_checked)
      : why.code == errc::invalid_input || why.code == errc::unsupported
      ? std::string("REFUSED")
      : to_string(verdict_status::infrastructure);
    out.reason = why.what;
    return out;
  }

private:
  static child_loop_limits limits_for(const run_context& context) {
    child_loop_limits limits;
    limits.program_folder = context.programs.string();
    return limits;
  }

  result<void> check_room(const problem& target) const {
    auto bytes = declared_bytes(target, target.workloads.front());
    if (!bytes)
      return pass(bytes);
    // Inputs and outputs stand in the memory of the child, with what lies between them on top.
    const auto memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (*bytes > memory / 3)
      return fail(errc::refused,
        fmt::format("too large here: inputs and outputs take {:.1f} GB, and this machine has "
                    "{:.1f} GB of memory",
          static_cast<double>(*bytes) / 1e9, static_cast<double>(memory) / 1e9));
    return {};
  }

  /// The work of a run's oracle, less what only a run needs.
  result<void> prepare(const problem& target, reference_end& out) {
    if (auto room = check_room(target); !room)
      return room;
    auto work = build_prepare_job(context_, target);
    if (!work)
      return pass(work);
    work->trace.clear();
    work->graph_file.clear();
    auto& only = work->workloads.front();
    only.patterns.clear();
    for (auto& call : only.calls)
      std::erase_if(call.tensors, [&](const stored_tensor& tensor) {
        return std::none_of(only.inputs.begin(), only.inputs.end(),
          [&](const drawn_tensor& input) { return input.file == tensor.file; });
      });
    if (only.calls.size() > 1)
      only.calls.resize(1);
    if (auto made = make_data_folders(context_, target); !made)
      return made;
    job what;
    what.kind = job_kind::prepare;
    what.prepare = std::move(*work);
    auto child =
      make_child_job(context_, child_profile::oracle, "gristmill-oracle", std::move(what), limit_);
    if (!child)
      return pass(child);
    std::promise<child_result> ended;
    auto waiting = ended.get_future();
    if (auto submitted = loop_.submit(
          child->request, [&](child_result answer) { ended.set_value(std::move(answer)); });
        !submitted)
      return submitted;
    for (bool cancelled = false;
         waiting.wait_for(std::chrono::milliseconds{20}) != std::future_status::ready;)
      if (!cancelled && stop_.seen()) {
        cancelled = true;
        loop_.cancel(child->request.id);
      }
    settle(waiting.get(), child->request.nonce, out);
    return {};
  }

  void settle(const child_result& ended, const std::string& nonce, reference_end& out) const {
    out.seconds = std::chrono::duration<double>(ended.wall).count();
    out.status = to_string(verdict_status::infrastructure);
    if (ended.end == child_end::deadline) {
      out.status = "OVER_LIMIT";
      out.reason =
        fmt::format("over the limit of {:g} s", std::chrono::duration<double>(limit_).count());
      return;
    }
    if (ended.end != child_end::done) {
      out.reason = describe_end("oracle", ended);
      return;
    }
    const auto answers = read_prepare_answers(ended.lines, nonce);
    if (!answers) {
      out.reason = answers.error().what;
    } else if (answers->workloads.size() != 1) {
      out.reason = "the oracle did not answer for the workload";
    } else {
      out.status = to_string(answers->workloads[0].status);
      out.reason = answers->workloads[0].reason;
    }
  }

  run_context context_;
  std::chrono::nanoseconds limit_;
  interrupts& stop_;
  child_loop loop_;
};

/// The workloads to run: all of them, or the one with the fewest elements.
result<std::vector<workload>> choose_workloads(const problem& target, const std::string& which) {
  if (which == "all")
    return target.workloads;
  const workload* smallest = nullptr;
  uint64_t fewest = 0;
  for (const auto& work : target.workloads) {
    auto axes = resolve_axes(target.def, work.axes);
    if (!axes)
      return fail(axes.error().code, "workload " + work.uuid + ": " + axes.error().what);
    auto elements = workload_elements(target.def, *axes);
    if (!elements)
      return fail(elements.error().code, "workload " + work.uuid + ": " + elements.error().what);
    if (smallest == nullptr || *elements < fewest) {
      smallest = &work;
      fewest = *elements;
    }
  }
  if (smallest == nullptr)
    return fail(errc::invalid_input, "there is no workload");
  return std::vector<workload>{*smallest};
}

void print_line(const reference_end& end) {
  std::fputs(fmt::format("{:<20} {:>8.2f} s  {}  {}{}{}\n", end.status, end.seconds, end.problem,
               end.workload, end.reason.empty() ? "" : ": ", end.reason)
               .c_str(),
    stdout);
  std::fflush(stdout);
}

exit_code print_all(const std::vector<reference_end>& ends, bool json) {
  std::vector<std::pair<std::string, size_t>> counts;
  auto all = ordered_json::array();
  exit_code code = exit_code::ok;
  for (const auto& end : ends) {
    auto found = std::find_if(
      counts.begin(), counts.end(), [&](const auto& each) { return each.first == end.status; });
    if (found == counts.end())
      found = counts.insert(counts.end(), {end.status, 0});
    ++found->second;
    all.push_back({{"problem", end.problem}, {"workload", end.workload}, {"status", end.status},
      {"seconds", end.seconds}, {"reason", end.reason}});
    if (end.status == "REFUSED")
      code = exit_code::usage;
    else if (end.status != to_string(verdict_status::passed) && code == exit_code::ok)
      code = exit_code::failure;
  }
  std::string line;
  auto summary = ordered_json::object();
  for (const auto& [status, count] : counts) {
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count, status);
    summary[status] = count;
  }
  if (json)
    std::fputs((ordered_json{{"references", all}, {"summary", summary}}.dump(
                  2, ' ', false, ordered_json::error_handler_t::replace)
                 + "\n")
                 .c_str(),
      stdout);
  else
    std::fputs(fmt::format("{} references: {}\n", ends.size(), line).c_str(), stdout);
  return code;
}

result<run_context> make_context(const reference_arguments& arguments, const fs::path& scratch) {
  const auto python = find_program(arguments.python);
  if (python.empty())
    return fail(errc::invalid_input, "--python " + arguments.python + ": no such program");
  auto programs = program_folder();
  if (!programs)
    return pass(programs);
  run_context context;
  context.directory = scratch;
  context.programs = *programs;
  // The same inputs every time: a reference that ran yesterday runs today.
  context.secret = hmac_sha256("gristmill problem reference", "0");
  context.oracle = "torch";
  context.python = python;
  context.check_elements_max = UINT64_MAX; // No twin in place of the workload itself.
  if (const char* blobs = std::getenv("FLASHINFER_TRACE_DIR"))
    context.blob_roots.emplace_back(blobs);
  return context;
}

exit_code problem_reference_command(const reference_arguments& arguments) {
  if (auto known = check_choice("--workload", arguments.workload, {"smallest", "all"}); !known)
    return complain(known.error());
  const auto limit = parse_duration_ns(arguments.limit);
  if (!limit || *limit == 0 || *limit > uint64_t{INT64_MAX})
    return complain({errc::invalid_input,
      "--limit " + arguments.limit + ": expected a time of more than 0, such as 30s or 2m"});
  interrupts stop;
  auto scratch = scratch_folder::create("gristmill-references-");
  if (!scratch)
    return complain(scratch.error());
  auto context = make_context(arguments, scratch->path());
  if (!context)
    return complain(context.error());
  reference_runner runner{std::move(*context), std::chrono::nanoseconds(*limit), stop};
  std::vector<reference_end> ends;
  const auto add = [&](reference_end end) {
    if (!arguments.json)
      print_line(end);
    ends.push_back(std::move(end));
  };
  for (const auto& path : arguments.paths) {
    const auto found = find_problems(path);
    for (const auto& why : found.errors)
      add(reference_runner::refused({path, {}, {}, 0, {}}, {errc::invalid_input, why.what}));
    for (const auto& each : found.found) {
      reference_end unread{each.path.string(), {}, {}, 0, {}};
      auto loaded = each.kind == problem_path_kind::folder
        ? load_problem(each.path)
        : result<problem>{
          fail(errc::invalid_input, "a reference needs a problem's folder, not one of its files")};
      auto workloads = loaded ? choose_workloads(*loaded, arguments.workload)
                              : result<std::vector<workload>>{pass(loaded)};
      if (!workloads) {
        add(reference_runner::refused(
          std::move(unread), {errc::invalid_input, workloads.error().what}));
        continue;
      }
      for (const auto& work : *workloads) {
        auto end = runner.run(*loaded, work);
        if (stop.seen()) {
          std::fprintf(stderr, "gristmill: interrupted at %s, workload %s\n", loaded->name.c_str(),
            work.uuid.c_str());
          print_all(ends, arguments.json);
          return exit_code::interrupted;
        }
        add(std::move(end));
      }
    }
  }
  return print_all(ends, arguments.json);
}

} // namespace

void add_problem_reference_verb(CLI::App& root, verbs& all) {
  auto* app = verb_group(root, "problem", "problems")
                .add_subcommand("reference", "run the references on this machine's CPU");
  auto given = std::make_shared<reference_arguments>();
  app->add_option("path", given->paths, "problem folders, or folders of them")->required();
  app->add_option("--workload", given->workload, "smallest (the default) or all");
  app->add_option("--limit", given->limit, "time for one reference, such as 30s; default 2m");
  app->add_option("--python", given->python, "interpreter with torch");
  app->add_flag("--json", given->json, "as JSON");
  all.push_back({app, [given] { return problem_reference_command(*given); }});
}

} // namespace gristmill
