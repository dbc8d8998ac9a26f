#pragma once

#include "messages/result.hpp"
#include "protocol/bounds.hpp"
#include "protocol/trace.hpp"
#include "scoring/suite.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// A trace file as it was read.
struct trace_file {
  std::string name;
  std::vector<trace> traces;
};

/// The problems that make up the suite, when it is not the whole table.
struct suite_problem {
  /// The `name` of the definition.
  std::string name;
  /// Of the folder that it lies in, such as "L1"; used where the table has no category.
  std::string category;
  std::vector<std::string> uuids;
};

struct score_request {
  std::vector<trace_file> files;
  bounds_table bounds;
  /// SHA-256 of the table's file.
  std::string bounds_sha256;
  std::string bounds_file;
  /// Empty: all problems of the table, with all workloads that it has.
  std::vector<suite_problem> problems;
  /// Keeps only traces of these solutions; empty: all.
  std::vector<std::string> solutions;
  /// The hardware of all traces, named by the user although the table is for another device; empty
  /// otherwise.
  std::string other_device;
  /// "PROBLEM:UUID" of times below the bound that a person has looked at.
  std::vector<std::string> audited;
};

/// A score with everything that must be printed beside it.
struct trace_score {
  suite_score suite;
  std::string bounds_file;
  std::string bounds_sha256;
  bounds_table provenance;
  /// What the traces say, the one hardware of all of them; empty when there is no trace.
  std::string hardware;
  /// `hardware` is not the table's device.
  bool other_device = false;
  /// The times are those of a model, not of a measurement.
  bool modelled = false;
  /// Problem -> solution, for the problems that have traces.
  std::vector<std::pair<std::string, std::string>> solutions;
  std::vector<std::string> audited;
  /// Whole sentences for a person.
  std::vector<std::string> notes;
};

/// Scores traces against a table. The rules (docs/scoring.md) that make it `invalid_input` or
/// `refused`: a table without the clocks' state; two traces of one workload; two solutions of one
/// problem; a trace whose problem or workload the suite does not have; a workload of the suite that
/// the table does not have; traces of two kinds of hardware, or of another than the table's;
/// modelled times beside measured ones; a PASSED trace without a positive latency; an audit of
/// what needs none. Traces without an evaluation have nothing to score and are counted in a note.
result<trace_score> score_traces(const score_request& request);

/// Whether two names mean the same device: equal but for case, blanks and a leading "NVIDIA".
bool is_same_device(std::string_view a, std::string_view b);

/// The category of a problem that no table and no folder tells: what stands before the first `/`
/// of its name, else "uncategorised".
std::string category_of(std::string_view problem_name);

/// The table for a terminal, at most 110 columns.
std::string to_text(const trace_score& score);

/// For programs; one JSON object.
std::string to_json(const trace_score& score);

} // namespace gristmill
