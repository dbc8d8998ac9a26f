#include "simulation/sweep/sweep_folder.hpp"

#include "simulation/report/lab_metrics.hpp"
#include "simulation/scenario_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gristmill {

namespace {

namespace fs = std::filesystem;

constexpr const char* plan_file = "plan.txt";
constexpr const char* sweep_copy = "sweep.toml";
constexpr std::array<const char*, 3> row_files = {"curves.csv", "waits.csv", "results.csv"};
constexpr uintmax_t file_bytes_max = uintmax_t{2} << 30;
constexpr size_t changes_told = 5;

std::string problem_of(const fs::path& file) {
  return fmt::format("{}: {}", file.string(), std::generic_category().message(errno));
}

/// Whole and on disk, or as it was before.
result<void> replace_file(const fs::path& file, const std::string& text) {
  auto fresh = file;
  fresh += ".part";
  const int out = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (out < 0)
    return fail(errc::io_failed, problem_of(fresh));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(out, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += static_cast<size_t>(n);
  }
  const bool stored = done == text.size() && ::fsync(out) == 0;
  const auto what = problem_of(fresh);
  ::close(out);
  if (!stored)
    return fail(errc::io_failed, what);
  std::error_code error;
  fs::rename(fresh, file, error);
  if (error)
    return fail(errc::io_failed, file.string() + ": " + error.message());
  return {};
}

result<std::string> read_file(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error)
    return fail(errc::io_failed, file.string() + ": " + error.message());
  if (size > file_bytes_max)
    return fail(errc::invalid_input, file.string() + ": too large for a file of a sweep");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    return fail(errc::io_failed, file.string() + ": cannot be read");
  return std::move(text).str();
}

/// Calls `each(line, number)` for every line that is whole; what a killed process has left at the
/// end is none.
template <class Each>
result<void> for_lines(const std::string& text, Each each) {
  size_t number = 1;
  for (size_t from = 0;; ++number) {
    const size_t end = text.find('\n', from);
    if (end == std::string::npos)
      return {};
    if (auto fine = each(std::string_view(text).substr(from, end - from), number); !fine)
      return fine;
    from = end + 1;
  }
}

template <class Number>
bool read_number(const std::string& text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

using row_index = std::map<std::pair<size_t, uint64_t>, lab_row*>;

/// The row that a line of curves or waits belongs to; null for one of a run that never got into the
/// results.
lab_row* row_for(const row_index& rows, const std::vector<std::string>& fields) {
  uint64_t variant = 0;
  uint64_t seed = 0;
  if (!read_number(fields[0], variant) || !read_number(fields[1], seed))
    return nullptr;
  const auto found = rows.find({variant, seed});
  return found == rows.end() ? nullptr : found->second;
}

bool take_curve_line(lab_row& row, const std::vector<std::string>& f) {
  outcome_point p;
  if (f.size() != 8 || !read_number(f[2], p.time_s) || !read_number(f[3], p.gpu_hours)
    || !read_number(f[4], p.geomean) || !read_number(f[5], p.wins)
    || !read_number(f[6], p.above_two) || !read_number(f[7], p.median_sol))
    return false;
  // The same run again: it was killed between its curve and its result, and done anew.
  if (!row.curve.empty() && p.time_s <= row.curve.back().time_s)
    row.curve.clear();
  row.curve.push_back(p);
  return true;
}

bool take_wait_line(lab_row& row, const std::vector<std::string>& f) {
  double time = 0;
  double share = 0;
  if (f.size() != 4 || !read_number(f[2], time) || !read_number(f[3], share))
    return false;
  if (time == 0)
    row.wait_shares.clear();
  row.wait_shares.push_back(share);
  return true;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    out.push_back(line);
  return out;
}

} // namespace

std::string plan_text(const lab_plan& plan, const lab_identity& who) {
  std::string out = "gristmill sweep 1\n";
  out += fmt::format("version = {}\nbuild = {}\nengine = {}\nfirst_seed = {}\nseeds = {}\n",
    who.version, who.build, to_string(plan.engine), plan.first_seed, plan.seeds);
  out += "scenario of variant 0:\n" + canonical_toml(plan.variants.front().what);
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const auto& variant = plan.variants[v];
    out += fmt::format("variant {}:", v);
    for (const auto& [key, value] : plan.points[variant.point])
      out += fmt::format(" {}={}", key, value);
    out += fmt::format(" policy={} planner={}{} config={}\n", variant.what.lease_policy,
      variant.what.planner, plan.baselines[variant.point] == v ? " baseline" : "", variant.config);
  }
  return out;
}

std::string what_changed(const std::string& before, const std::string& after) {
  const auto was = lines_of(before);
  const auto is = lines_of(after);
  const auto only_in = [](const std::vector<std::string>& a, const std::vector<std::string>& b,
                         const char* sign) {
    std::string out;
    size_t told = 0;
    size_t more = 0;
    for (const auto& line : a) {
      if (std::find(b.begin(), b.end(), line) != b.end())
        continue;
      if (told == changes_told)
        ++more;
      else if (++told > 0)
        out += fmt::format("\n  {}: {}", sign, line);
    }
    return more == 0 ? out : out + fmt::format("\n  {}: {} more lines", sign, more);
  };
  return only_in(was, is, "was") + only_in(is, was, "is");
}

result<sweep_folder> sweep_folder::open(const fs::path& folder, const lab_plan& plan,
  const std::string& sweep_text, const lab_identity& who) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    return fail(errc::invalid_input, folder.string() + ": is no folder");
  if (fs::is_directory(folder, error) && !fs::is_empty(folder, error)
    && !fs::exists(folder / plan_file, error) && !fs::exists(folder / "lock", error))
    return fail(errc::invalid_input,
      folder.string() + ": holds something else than a sweep; name another with --out");
  fs::create_directories(folder, error);
  if (error)
    return fail(errc::io_failed, folder.string() + ": " + error.message());
  auto lock = run_lock::take(folder);
  if (!lock)
    return fail(lock.error().code,
      lock.error().code == errc::refused ? folder.string() + ": another process works on this sweep"
                                         : lock.error().what);
  sweep_folder out(folder, plan, std::move(*lock));
  if (auto fine = out.check_plan_file(plan_text(plan, who), sweep_text); !fine)
    return pass(fine);
  if (auto fine = out.read_rows(); !fine)
    return pass(fine);
  if (auto fine = out.write_rows(out.rows_); !fine)
    return pass(fine);
  if (auto fine = out.open_for_append(); !fine)
    return pass(fine);
  return out;
}

sweep_folder::sweep_folder(sweep_folder&& other) noexcept
  : folder_(std::move(other.folder_)), plan_(other.plan_), lock_(std::move(other.lock_)),
    rows_(std::move(other.rows_)), files_(std::exchange(other.files_, {-1, -1, -1})) {}

sweep_folder::~sweep_folder() {
  close();
}

void sweep_folder::close() {
  for (int& file : files_)
    if (file >= 0)
      ::close(std::exchange(file, -1));
}

result<void> sweep_folder::check_plan_file(
  const std::string& wanted, const std::string& sweep_text) {
  const auto file = folder_ / plan_file;
  std::error_code error;
  if (!fs::exists(file, error)) {
    if (auto written = replace_file(folder_ / sweep_copy, sweep_text); !written)
      return written;
    return replace_file(file, wanted);
  }
  auto before = read_file(file);
  if (!before)
    return pass(before);
  if (*before != wanted)
    return fail(errc::invalid_input,
      fmt::format("{}: belongs to another sweep or program; take another folder with --out:{}",
        folder_.string(), what_changed(*before, wanted)));
  return {};
}

run_set sweep_folder::have() const {
  run_set out;
  for (const auto& row : rows_)
    out.insert({row.variant, row.seed});
  return out;
}

result<void> sweep_folder::read_rows() {
  std::error_code error;
  const auto results = folder_ / row_files[2];
  if (!fs::exists(results, error))
    return {};
  auto text = read_file(results);
  if (!text)
    return pass(text);
  row_index index;
  std::vector<std::unique_ptr<lab_row>> found;
  const auto head = results_head(*plan_);
  auto fine = for_lines(*text, [&](std::string_view line, size_t number) -> result<void> {
    if (number == 1 && std::string(line) + "\n" != head)
      return fail(errc::invalid_input,
        fmt::format("{}:1: the columns are not those of this sweep", results.string()));
    if (number == 1)
      return {};
    auto row = row_from_results(*plan_, line);
    if (!row)
      return fail(
        errc::invalid_input, fmt::format("{}:{}: {}", results.string(), number, row.error().what));
    if (index.contains({row->variant, row->seed}))
      return fail(errc::invalid_input,
        fmt::format("{}:{}: variant {} with seed {} stands twice", results.string(), number,
          row->variant, row->seed));
    found.push_back(std::make_unique<lab_row>(std::move(*row)));
    index[{found.back()->variant, found.back()->seed}] = found.back().get();
    return {};
  });
  if (!fine)
    return fine;
  for (size_t f = 0; f < 2; ++f) {
    const auto file = folder_ / row_files[f];
    if (!fs::exists(file, error))
      continue;
    auto lines = read_file(file);
    if (!lines)
      return pass(lines);
    fine = for_lines(*lines, [&](std::string_view line, size_t number) -> result<void> {
      auto fields = csv_fields(line);
      const bool is_head = number == 1;
      lab_row* row = fields && fields->size() > 2 && !is_head ? row_for(index, *fields) : nullptr;
      if (row != nullptr
        && !(f == 0 ? take_curve_line(*row, *fields) : take_wait_line(*row, *fields)))
        return fail(
          errc::invalid_input, fmt::format("{}:{}: a field is no number", file.string(), number));
      return {};
    });
    if (!fine)
      return fine;
  }
  // A result whose curve or waits are gone is done anew.
  for (auto& row : found)
    if (row->wait_shares.size() == wait_grid().size() && row->curve.size() == row->points)
      rows_.push_back(std::move(*row));
  sort_rows(rows_);
  return {};
}

result<void> sweep_folder::write_rows(const std::vector<lab_row>& rows) const {
  std::array<std::string, 3> texts = {curve_head(), waits_head(), results_head(*plan_)};
  for (const auto& row : rows) {
    texts[0] += curve_lines(row);
    texts[1] += waits_lines(row);
    texts[2] += results_line(*plan_, row);
  }
  for (size_t f = 0; f < texts.size(); ++f)
    if (auto written = replace_file(folder_ / row_files[f], texts[f]); !written)
      return written;
  return {};
}

result<void> sweep_folder::open_for_append() {
  for (size_t f = 0; f < files_.size(); ++f) {
    const auto file = folder_ / row_files[f];
    files_[f] = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (files_[f] < 0)
      return fail(errc::io_failed, problem_of(file));
  }
  return {};
}

result<void> sweep_folder::append(const lab_row& row) {
  const std::array<std::string, 3> texts = {
    curve_lines(row), waits_lines(row), results_line(*plan_, row)};
  for (size_t f = 0; f < texts.size(); ++f) {
    for (size_t done = 0; done < texts[f].size();) {
      const ssize_t n = ::write(files_[f], texts[f].data() + done, texts[f].size() - done);
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return fail(errc::io_failed, problem_of(folder_ / row_files[f]));
      done += static_cast<size_t>(n);
    }
    if (::fdatasync(files_[f]) != 0)
      return fail(errc::io_failed, problem_of(folder_ / row_files[f]));
  }
  return {};
}

result<void> sweep_folder::finish(const std::vector<lab_row>& rows) {
  close();
  return write_rows(rows);
}

result<void> sweep_folder::write(const std::string& name, const std::string& text) const {
  return replace_file(folder_ / name, text);
}

} // namespace gristmill
