#pragma once

#include "simulation/import/trace_import.hpp"

#include <memory>

namespace gristmill {

/// Standard workload format: comments after ';', 18 numbers a job.
std::unique_ptr<import_reader> make_swf_reader();
/// The pod list of the OpenB trace: CSV with a header line.
std::unique_ptr<import_reader> make_openb_reader();
/// A trace of the Gavel simulator: ten fields between tabs, no header.
std::unique_ptr<import_reader> make_gavel_reader();

} // namespace gristmill
