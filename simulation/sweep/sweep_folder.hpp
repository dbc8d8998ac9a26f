#pragma once

#include "journal/run_lock.hpp"
#include "messages/result.hpp"
#include "simulation/report/lab_row.hpp"
#include "simulation/report/lab_text.hpp"
#include "simulation/sweep/lab_runner.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace gristmill {

/// The folder of a sweep: what it was asked, and each run as soon as it is done, so that a killed
/// sweep goes on where it was (docs/lab.md has the files). One process works in it at a time.
class sweep_folder {
public:
  /// Makes the folder, or opens the one of the same plan. Errors: `invalid_input` when the folder
  /// belongs to another plan or another build (with what differs), or holds something else, or a
  /// file of it was changed; `refused` when another process works in it; `io_failed`.
  static result<sweep_folder> open(const std::filesystem::path& folder, const lab_plan& plan,
    const std::string& sweep_text, const lab_identity& who);

  sweep_folder(sweep_folder&&) noexcept;
  sweep_folder& operator=(sweep_folder&&) = delete;
  ~sweep_folder();

  /// Runs that earlier processes have finished, in order.
  const std::vector<lab_row>& rows() const { return rows_; }
  run_set have() const;

  /// On disk when it returns. Errors: `io_failed`.
  result<void> append(const lab_row& row);
  /// Puts all rows in order: equal files however many threads there were, and however often the
  /// sweep was killed. No `append` after it.
  result<void> finish(const std::vector<lab_row>& rows);
  /// Complete or not at all.
  result<void> write(const std::string& name, const std::string& text) const;

private:
  sweep_folder(std::filesystem::path folder, const lab_plan& plan, run_lock lock)
    : folder_(std::move(folder)), plan_(&plan), lock_(std::move(lock)) {}

  result<void> check_plan_file(const std::string& wanted, const std::string& sweep_text);
  result<void> read_rows();
  result<void> write_rows(const std::vector<lab_row>& rows) const;
  result<void> open_for_append();
  void close();

  std::filesystem::path folder_;
  const lab_plan* plan_;
  run_lock lock_;
  std::vector<lab_row> rows_;
  /// Curves, waits, results: the results come last, a run without a line there is not done.
  std::array<int, 3> files_ = {-1, -1, -1};
};

/// Every line of what makes a sweep what it is: program, seeds, engine, scenario, variants.
std::string plan_text(const lab_plan& plan, const lab_identity& who);

/// Lines that only one of two plans has, a few of each, as "was: seeds = 3" and "is: seeds = 4";
/// empty for equal texts.
std::string what_changed(const std::string& before, const std::string& after);

} // namespace gristmill
