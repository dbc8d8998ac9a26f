#pragma once

#include "messages/compile.hpp"
#include "messages/result.hpp"
#include "protocol/plan.hpp"
#include "protocol/resolve.hpp"
#include "protocol/trace_plan.hpp"
#include "protocol/workload.hpp"
#include "tensors/compare.hpp"
#include "tensors/dtype.hpp"
#include "tensors/generate.hpp"
#include "tensors/philox.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The text of `job.json` (schema "gristmill.job/1"), by which the main process tells a child what
/// to do; contracts section 2. Everything is resolved: a child evaluates no expression and asks
/// nobody.
///
/// File names are absolute, or relative to the job directory. Bytes are exact sizes.
namespace gristmill {

/// Nothing in a job may be larger.
struct job_limits {
  static constexpr size_t text_bytes = size_t{64} << 20;
  static constexpr size_t workloads = 4096;
  static constexpr size_t tensors = 1024;
  static constexpr size_t entries = 1024;
  static constexpr size_t dimensions = 16;
  static constexpr size_t trace_attempts = 64;
  static constexpr size_t calls = 2;
  /// Cases of a workload, and calls of a workload that are judged.
  static constexpr size_t cases = 256;
  static constexpr size_t blocks = 64;
};

enum class job_kind : uint8_t { compile = 0, prepare, run, judge };

std::string_view to_string(job_kind kind);

// ---- compile: device code for units of one candidate ----

struct compile_job {
  std::string source_file;
  plan_options options;
  std::vector<compile_unit> units;
  /// "sm_90a".
  std::string arch;
  /// The compiler to start, such as "/usr/bin/clang++-19", and its "clang-19.1.7".
  std::string compiler;
  std::string compiler_version;
};

// ---- prepare: inputs, references and the operator graph ----

/// Where the values of an input come from.
enum class tensor_source : uint8_t {
  /// Our own generator, with the tensor's key.
  generator = 0,
  /// A tensor of a safetensors file.
  safetensors,
  /// The definition's custom entry point: one of the workload's calls writes the file.
  custom,
};

/// An input that the oracle makes. Of the generator, the same key and shape give the same bytes
/// everywhere.
struct drawn_tensor {
  std::string name;
  /// Only what the choice of a distribution needs (specification 5.3).
  std::string description;
  dtype type = dtype::float32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  tensor_key key;
  std::string file;
  /// At most `bytes`. Less makes a pattern file: the tensor's first bytes, which a runner maps over
  /// and over where only the time counts.
  uint64_t file_bytes = 0;
  /// Of the generator: which distribution it is drawn from.
  input_style style = input_style::standard;
  tensor_source source = tensor_source::generator;
  /// Of safetensors: the file, and the tensor's name in it. Else empty.
  std::string blob_file;
  std::string blob_key;
};

/// A reference output to compute, or any tensor that is compared.
struct stored_tensor {
  std::string name;
  dtype type = dtype::float32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string file;
};

/// An input without a shape, whose value a custom entry point returns.
struct custom_number {
  std::string name;
  dtype type = dtype::float32;

  friend bool operator==(const custom_number&, const custom_number&) = default;
};

/// One call `entry(axes_and_scalars, device)` of the definition's custom entry point.
struct entry_call {
  /// The call's first argument: these axes and numbers together.
  axis_values axes;
  scalar_values scalars;
  /// Seeds the random generators of Python and torch before the call.
  tensor_key key;
  /// What to keep of the tensors that it returns, and where; one name may stand here twice.
  std::vector<stored_tensor> tensors;
  std::vector<custom_number> numbers;
};

struct prepare_workload {
  /// The workload's; of a set beyond the first it says which, such as "UUID set 3".
  std::string uuid;
  /// Resolved axes of the correctness run.
  axis_values axes;
  scalar_values scalars;
  /// Tensor inputs of the correctness run, in order of the definition.
  std::vector<drawn_tensor> inputs;
  /// In order of the definition; empty when only the clock's inputs are wanted.
  std::vector<stored_tensor> references;
  /// Inputs of the clock run, at true shape.
  std::vector<drawn_tensor> patterns;
  /// Of a definition with a custom entry point: the call for the correctness run, which makes the
  /// numbers that the reference gets, then one for the clock where that has other axes.
  std::vector<entry_call> calls;
};

enum class oracle_kind : uint8_t {
  /// Our own code: `run_native_reference` knows the definition.
  native = 0,
  /// The definition's Python, on the CPU.
  torch,
};

std::string_view to_string(oracle_kind kind);

struct prepare_job {
  oracle_kind oracle = oracle_kind::native;
  /// `definition.json`, whole.
  std::string definition_text;
  /// Of the torch oracle, and for a trace: the interpreter, such as "/usr/bin/python3".
  std::string python;
  std::vector<prepare_workload> workloads;
  /// Whether to trace the reference's operators; the ways to try, best first. The graph is written
  /// to `graph_file`.
  std::vector<trace_attempt> trace;
  std::string graph_file;
};

// ---- run: a candidate on a device ----

struct run_unit {
  /// `compile_unit::key`.
  std::string key;
  /// PTX for the mock.
  std::string file;
  std::vector<compiled_entry> entries;
};

/// A buffer and where its content comes from or goes to.
struct run_buffer {
  resolved_buffer what;
  /// Input: the file to map. Output: the file to write; empty for none. Scratch: empty.
  std::string file;
  /// Input: size of the file. Less than the buffer's bytes means a pattern, to be repeated.
  uint64_t file_bytes = 0;
};

/// One way to run a workload: a plan resolved for certain axes, with its buffers.
struct run_pass {
  /// `run_unit::key`.
  std::string unit;
  std::vector<run_buffer> buffers;
  /// The indices of buffers in the steps are those of `buffers`.
  std::vector<resolved_step> steps;
};

/// One set of inputs that a workload is checked on, outputs written for the judge.
struct run_case {
  /// For people: "set 3", "held-out 1", "neighbour M=4097".
  std::string label;
  run_pass pass;
};

struct run_workload {
  std::string uuid;
  /// The cases are those of a shrunken twin.
  bool shrunken = false;
  /// Run in full, in this order. None: only the clock.
  std::vector<run_case> cases;
  /// At true size, for the time.
  bool has_clock = false;
  run_pass clock;
  /// A real device times calls on the inputs of these cases, in an order that the candidate cannot
  /// foresee, and holds their outputs against those of the checked runs; their passes have the
  /// shapes and steps of `clock`, whose own input files it does not read. Empty: the clock runs on
  /// its own inputs, as a modelled device does.
  std::vector<uint32_t> timed_on;
};

/// How a real device takes samples (contracts section 10). A modelled one takes no notice.
struct run_timing {
  /// What L2 holds before each call: "official" or "clean".
  std::string flush = "official";
  /// Load before the first sample.
  uint64_t warm_up_ns = 300'000'000;
  /// No sample of a workload begins after this much time.
  uint64_t limit_ns = 30'000'000'000;
  /// Trace activities (CUPTI) where that can be had; else by events, and the record says so.
  bool trace = true;
  /// Of the timed calls this share is written out for the judge, in 1/1024; which ones is drawn
  /// from `order`.
  uint32_t written_share = 0;
  /// At most so many written out for each workload.
  uint32_t written_max = 4;
  /// Draws the order of cases, moved addresses and what is written out.
  tensor_key order;
};

struct run_job {
  /// "mock:h200".
  std::string device;
  /// Warp instructions one launch may take before it counts as endless.
  uint64_t instruction_limit = 0;
  /// How often the clock run is timed. One is enough for a device whose time is modelled.
  uint32_t samples = 1;
  /// Makes what undefined scratch and poisoned outputs hold; the parent draws it.
  tensor_key fill;
  run_timing timing;
  std::vector<run_unit> units;
  std::vector<run_workload> workloads;
  /// With an incumbent to compare with: its job, at most one, on the same device and the same
  /// workloads, none of which has cases besides those it is timed on. The runner then opens no
  /// device itself: it runs both sides in processes of their own, one after the other, in blocks
  /// whose order it draws (`comparison_block`).
  std::vector<run_job> against;
  /// Blocks of each side; only with `against`.
  uint32_t blocks = 0;
};

// ---- judge: outputs against references ----

/// One output of one call.
struct judge_output {
  stored_tensor solution;
  std::string reference_file;
};

/// A call of a case: "set 3", or "set 3, timed 17".
struct judge_call {
  std::string label;
  /// The reference holds NaN: the outputs must hold it in the same places and nowhere else, and
  /// those places do not count otherwise.
  bool nan_positions = false;
  std::vector<judge_output> outputs;
};

struct judge_workload {
  std::string uuid;
  bool shrunken = false;
  tolerance allowed;
  /// What was written, call by call; every call has all outputs of the problem.
  std::vector<judge_call> calls;
};

struct judge_job {
  std::vector<judge_workload> workloads;
};

/// What a child is to do. Only the member that `kind` names is written and read.
struct job {
  job_kind kind = job_kind::run;
  /// Of the lease; 0 for children that need none.
  uint64_t token = 0;
  /// Stands in every line of the child. At least 16 characters.
  std::string nonce;
  compile_job compile;
  prepare_job prepare;
  run_job run;
  judge_job judge;
};

/// The text of job.json.
std::string to_json(const job& what);

/// The reverse. Strict: an unknown key, a missing one, a wrong type, a number out of range, an
/// index without its buffer, a buffer whose bytes do not fit its shape, or anything beyond
/// `job_limits` is `invalid_input` that names the field.
result<job> job_from_json(std::string_view text);

/// Where an output of a call is written (`written_call::call`): the file of the case for its check,
/// and for a timed call a file beside it.
std::string written_file(const std::string& file_of_case, std::string_view call);

/// A buffer of a resolved workload with the file that it is read from or written to.
run_buffer make_run_buffer(const resolved_buffer& buffer, std::string file, uint64_t file_bytes);

} // namespace gristmill
