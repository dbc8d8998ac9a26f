#pragma once

#include "journal/blob_store.hpp"
#include "protocol/problem_files.hpp"

#include <filesystem>

namespace gristmill {

/// At the coordinator: puts the files of a problem that travel into the store. Errors: those of
/// `problem_texts`; `io_failed`.
result<problem_listing> store_problem(blob_store& store, const problem& from);

/// At a node, once the blobs of the listing are in its store: writes `<root>/<name>/` and loads it.
/// Of a built-in there is nothing to write: `unsupported`. Errors: those of `blob_store::get` and
/// `write_problem`.
result<problem> restore_problem(
  const blob_store& store, const std::filesystem::path& root, const problem_listing& listing);

/// The blobs to be fetched for the listing.
std::vector<blob_ref> blobs_of(const problem_listing& listing);

} // namespace gristmill
