#pragma once

#include "messages/compile.hpp"
#include "messages/measure.hpp"
#include "messages/result.hpp"
#include "messages/verdict.hpp"
#include "protocol/json_document.hpp"
#include "protocol/strict_json.hpp"
#include "protocol/workload.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The bodies of the `sample` lines, one struct for each kind of child, and their readers in the
/// parent. Children write what `to_json` gives; the readers take the lines of a `child_result` and
/// are strict: a line of another shape is `invalid_input` that names it. Of `hello` and `phase`
/// lines only the form is checked. Every reader wants the `done` line last.
namespace gristmill {

/// One unit of a compile job.
struct compile_answer {
  /// `compile_unit::key`.
  std::string unit;
  /// passed, compile_error, or reward_hack for an entry that nobody announced.
  verdict_status status = verdict_status::compile_error;
  /// PTX file in the job directory; empty unless passed.
  std::string file;
  std::vector<compiled_entry> entries;
  std::string log;
  std::string toolchain;
  /// Worth a look, not forbidden by themselves.
  std::vector<finding> findings;
};

/// Numbers with the names of the inputs that they are for.
using named_numbers = std::vector<std::pair<std::string, python_number>>;

/// One workload of a prepare job.
struct prepare_answer {
  std::string uuid;
  /// passed; invalid_reference; runtime_error when an input could not be made by what makes it; or
  /// infrastructure, which also stands for a Python or torch that lacks what the reference needs.
  verdict_status status = verdict_status::infrastructure;
  std::string reason;
  /// Of a custom entry point: the numbers that its calls returned, call by call.
  std::vector<named_numbers> numbers;
};

struct prepare_answers {
  std::vector<prepare_answer> workloads;
  /// File of the operator graph in the job directory; empty when there is none.
  std::string graph_file;
  /// Why there is none; empty when none was asked for.
  std::string graph_reason;
};

/// Everything that a runner said.
struct run_answers {
  std::vector<workload_measurement> workloads;
  /// Findings about how the candidate behaved, such as "changes_global".
  std::vector<finding> findings;
};

ordered_json to_json(const compile_answer& answer);
ordered_json to_json(const prepare_answer& answer);
/// Numbers as their own JSON values, so that a bool, an int and a float stay what they are; the
/// texts of `strict_object::number` where JSON has none.
ordered_json to_json(const named_numbers& numbers);
named_numbers read_numbers(
  const ordered_json& value, std::string path, std::optional<failure>& sink);
ordered_json graph_to_json(std::string_view graph_file, std::string_view reason);
ordered_json to_json(const workload_measurement& measured);
ordered_json to_json(const finding& found);
ordered_json to_json(const workload_evaluation& evaluated);

result<std::vector<compile_answer>> read_compile_answers(
  const std::vector<std::string>& lines, std::string_view nonce);
result<prepare_answers> read_prepare_answers(
  const std::vector<std::string>& lines, std::string_view nonce);
result<run_answers> read_run_answers(const std::vector<std::string>& lines, std::string_view nonce);
result<evaluation> read_judge_answers(
  const std::vector<std::string>& lines, std::string_view nonce);

// The reverse of `to_json`, for documents that keep these answers. What is wrong goes to the
// object's sink.
workload_measurement read_measurement(strict_object& object);
finding read_finding(strict_object& object);
workload_evaluation read_evaluation(strict_object& object);

/// The status with that upper-case name, or nothing.
result<verdict_status> status_from_text(std::string_view text);

} // namespace gristmill
