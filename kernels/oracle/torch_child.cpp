#include "kernels/oracle/torch_child.hpp"

#include "protocol/op_graph.hpp"
#include "protocol/strict_json.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr uint64_t answers_bytes_max = uint64_t{16} << 20;
constexpr uint64_t graph_bytes_max = uint64_t{1} << 20;

template <class Tensor>
ordered_json stored(const Tensor& tensor) {
  return {{"name", tensor.name}, {"dtype", name(tensor.type)}, {"shape", tensor.shape},
    {"bytes", tensor.bytes}, {"file", tensor.file}};
}

ordered_json python_value(const scalar_value& scalar) {
  if (scalar.type == dtype::boolean)
    return scalar.integer != 0;
  if (scalar.is_integer)
    return scalar.integer;
  // Python's JSON reads an infinity from a number that is too large, and needs no other form.
  return scalar.number;
}

ordered_json python_scalars(const scalar_values& scalars) {
  auto all = ordered_json::array();
  for (const auto& [scalar, value] : scalars)
    all.push_back({{"name", scalar}, {"value", python_value(value)}});
  return all;
}

ordered_json python_axes(const axis_values& axes) {
  auto all = ordered_json::object();
  for (const auto& [axis_name, size] : axes)
    all[axis_name] = size;
  return all;
}

ordered_json python_trace_set(const trace_set& set) {
  auto tensors = [](const std::vector<trace_tensor>& from) {
    auto all = ordered_json::array();
    for (const auto& tensor : from)
      all.push_back({{"name", tensor.name}, {"dtype", name(tensor.type)}, {"shape", tensor.shape}});
    return all;
  };
  return {{"axes", python_axes(set.axes)}, {"scalars", python_scalars(set.scalars)},
    {"inputs", tensors(set.inputs)}, {"outputs", tensors(set.outputs)}};
}

/// 63 bits of a key: a seed that every generator takes.
uint64_t seed_of(const tensor_key& key) {
  uint64_t seed = 0;
  for (size_t i = 0; i < 8; ++i)
    seed = seed << 8 | key.bytes[i];
  return seed >> 1;
}

ordered_json python_call(const entry_call& call) {
  ordered_json one{{"axes", python_axes(call.axes)}, {"scalars", python_scalars(call.scalars)},
    {"seed", seed_of(call.key)}, {"tensors", ordered_json::array()},
    {"numbers", ordered_json::array()}};
  for (const auto& tensor : call.tensors)
    one["tensors"].push_back(stored(tensor));
  for (const auto& number : call.numbers)
    one["numbers"].push_back(number.name);
  return one;
}

std::string python_job(const prepare_job& job, const definition& def) {
  auto inputs = ordered_json::array();
  for (const auto& input : def.inputs)
    inputs.push_back(input.name);
  auto workloads = ordered_json::array();
  if (job.oracle == oracle_kind::torch)
    for (const auto& work : job.workloads) {
      if (work.references.empty() && work.calls.empty())
        continue;
      ordered_json one{{"uuid", work.uuid}, {"scalars", python_scalars(work.scalars)},
        {"inputs", ordered_json::array()}, {"references", ordered_json::array()},
        {"calls", ordered_json::array()}};
      for (const auto& call : work.calls)
        one["calls"].push_back(python_call(call));
      for (const auto& tensor : work.inputs)
        one["inputs"].push_back(stored(tensor));
      for (const auto& tensor : work.references)
        one["references"].push_back(stored(tensor));
      workloads.push_back(std::move(one));
    }
  auto attempts = ordered_json::array();
  for (const auto& attempt : job.trace)
    attempts.push_back({{"first", python_trace_set(attempt.sets[0])},
      {"second", python_trace_set(attempt.sets[1])}});
  const ordered_json all{{"reference", def.reference},
    {"entry_point", def.custom_inputs_entrypoint}, {"inputs", inputs}, {"workloads", workloads},
    {"trace", attempts}, {"graph_file", job.graph_file}};
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<void> write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    return fail(errc::io_failed, path + ": cannot be written");
  return {};
}

/// Starts a helper with its output in our log and waits for it. Answers its exit status, or 128 +
/// signal.
result<int> run_helper(std::vector<std::string> command) {
  auto all = helper_command("oracle", std::move(command));
  if (!all)
    return pass(all);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 2, 1);
  std::vector<char*> argv;
  for (auto& argument : *all)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fail(errc::io_failed, fmt::format("{}: {}", argv[0], std::strerror(error)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return fail(errc::io_failed, fmt::format("waiting for a helper: {}", std::strerror(errno)));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Python wrote it, so it is read like any text of a stranger, and written anew.
void settle_graph(const std::string& path, prepare_answers& answers) {
  auto text = read_text_file(path, graph_bytes_max);
  auto graph = text ? parse_op_graph(*text) : pass(text);
  if (graph)
    if (auto written = write_text(path, serialise(*graph)); !written)
      graph = pass(written);
  if (!graph) {
    answers.graph_file.clear();
    answers.graph_reason = "the trace makes no graph: " + graph.error().what;
  }
}

result<void> read_answers(
  const std::string& text, const prepare_job& job, prepare_answers& answers) {
  std::optional<failure> sink;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto parsed = parse_json(line, "torch_answers.jsonl");
    if (!parsed)
      return pass(parsed);
    {
      strict_object object{*parsed, "answer", sink};
      if (object.has("graph")) {
        answers.graph_file = object.text("graph", 4096).empty() ? "" : job.graph_file;
        answers.graph_reason = object.text("reason", child_line_bytes_max);
      } else {
        prepare_answer answer;
        answer.uuid = object.text("workload", 4096);
        auto status = status_from_text(object.text("status", 64));
        answer.status = status.value_or(verdict_status::infrastructure);
        answer.reason = object.text("reason", child_line_bytes_max);
        object.each("numbers", job_limits::calls, [&](const ordered_json& call, std::string where) {
          answer.numbers.push_back(read_numbers(call, std::move(where), object.sink()));
        });
        answers.workloads.push_back(std::move(answer));
      }
    }
    if (sink)
      return tl::unexpected<failure>(*sink);
  }
  return {};
}

} // namespace

result<prepare_answers> run_torch(const child_context& context, const definition& def) {
  const auto& job = context.what.prepare;
  for (const auto& file : oracle_scripts())
    if (auto written = write_text(context.path(std::string(file.path)), file.content); !written)
      return pass(written);
  if (auto written = write_text(context.path("torch_job.json"), python_job(job, def)); !written)
    return pass(written);
  // Isolated from the person's own Python packages and settings, and no byte code left behind.
  auto status =
    run_helper({job.python, "-I", "-B", context.path("torch_oracle.py"), context.folder});
  if (!status)
    return pass(status);

  prepare_answers answers;
  auto text = read_text_file(context.path("torch_answers.jsonl"), answers_bytes_max);
  if (!text && text.error().code != errc::not_found)
    return pass(text);
  // The last line may have broken off with the process.
  if (text) {
    text->resize(text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1);
    if (auto read = read_answers(*text, job, answers); !read)
      return pass(read);
  }
  const auto ended = fmt::format("{} ended early, with status {}", job.python, *status);
  if (!job.trace.empty()) {
    if (!answers.graph_file.empty())
      settle_graph(context.path(answers.graph_file), answers);
    else if (answers.graph_reason.empty())
      answers.graph_reason = ended;
  }
  if (job.oracle == oracle_kind::torch)
    for (const auto& work : job.workloads) {
      const bool known = std::any_of(answers.workloads.begin(), answers.workloads.end(),
        [&](const auto& answer) { return answer.uuid == work.uuid; });
      if (!known && !(work.references.empty() && work.calls.empty()))
        answers.workloads.push_back({work.uuid, verdict_status::infrastructure, ended, {}});
    }
  return answers;
}

} // namespace gristmill
