#pragma once

#include "actors/run_context.hpp"
#include "protocol/run_terms.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace gristmill {

/// What of the terms a run context does not hold.
struct run_terms_rest {
  std::string run;
  bool rehearsal = false;
  std::string proposer;
  std::chrono::nanoseconds estimated_hold{0};
  std::chrono::nanoseconds run_end{0};
};

/// At the coordinator: the terms of this run. Puts the files of problems and the table of bounds
/// into the run's blob store. Errors: `io_failed`; `invalid_input` for a problem that cannot
/// travel, and when the terms do not fit a message (`cluster_text_max`).
result<run_terms> make_run_terms(const run_context& context, const run_terms_rest& rest);

/// What a node has of its own.
struct node_folders {
  /// For this run alone, private to this user: `jobs`, `data` and `problems` come below it.
  std::filesystem::path directory;
  std::filesystem::path programs;
  std::shared_ptr<blob_store> blobs;
  /// Interpreter of the torch oracle; empty when there is none.
  std::string python;
  std::vector<std::filesystem::path> blob_roots;
};

/// What has to be in the node's store before `make_node_context`.
std::vector<blob_ref> blobs_of(const run_terms& terms);

/// At a node: the same context as the coordinator's, but for folders, programs and interpreter. The
/// inputs that an oracle makes from either are equal bit by bit. Errors: `invalid_input` for a
/// problem or table that does not read, and for a built-in problem that this program has not;
/// `unsupported` for an oracle that needs the missing interpreter; `not_found` and `io_failed` of
/// the store.
result<run_context> make_node_context(const run_terms& terms, const node_folders& own);

/// Terms that differ only in what a context does not hold, such as the budget of a resumed run:
/// what was prepared under the one holds under the other.
bool same_context(const run_terms& a, const run_terms& b);

} // namespace gristmill
