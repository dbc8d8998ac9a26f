// What a command is given, and what it leaves behind.

#include "actors/command_proposer.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace gristmill {

namespace {

constexpr const char* task = R"(
## How to hand in

Leave these files in the current folder and end with status 0:

- `candidate.cu`: the whole CUDA file.
- `plan.json`: the launch plan.
- `hypothesis.txt`: one or two sentences: what this candidate tests.
- `cost.json`, if you know it: `{"usd": 0.12}`, what this attempt cost.

Here are also `problem/`, `incumbent/` (the best so far), `history.tsv` and `program.md`.
)";

std::string cell(std::string text) {
  for (auto& c : text)
    if (c == '\t' || c == '\n' || c == '\r')
      c = ' ';
  return text;
}

class descriptor {
public:
  explicit descriptor(int value) : value_(value) {}
  ~descriptor() {
    if (value_ >= 0)
      close(value_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return value_; }

private:
  int value_;
};

/// `not_found` when there is no such name; `invalid_input` when it is not a plain file of its own.
result<std::string> read_left_file(int folder, const char* name, uint64_t bytes_max) {
  // Neither a link nor a pipe makes us wait or look elsewhere.
  const descriptor file(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT)
    return fail(errc::not_found, fmt::format("the command left no {}", name));
  if (file.get() < 0 && errno == ELOOP)
    return fail(errc::invalid_input, fmt::format("{}: a link, which is not followed", name));
  struct stat about {};
  if (file.get() < 0 || fstat(file.get(), &about) != 0)
    return fail(errc::invalid_input, fmt::format("{}: {}", name, std::strerror(errno)));
  if (!S_ISREG(about.st_mode) || about.st_nlink != 1)
    return fail(errc::invalid_input, fmt::format("{}: no plain file of its own", name));
  const auto size = static_cast<uint64_t>(about.st_size);
  if (size > bytes_max)
    return fail(
      errc::invalid_input, fmt::format("{}: {} bytes, and {} are allowed", name, size, bytes_max));
  std::string text(size, '\0');
  size_t got = 0;
  while (got < text.size()) {
    auto n = read(file.get(), text.data() + got, text.size() - got);
    if (n <= 0)
      break;
    got += static_cast<size_t>(n);
  }
  text.resize(got);
  return text;
}

/// Nothing for a text of another form: what an attempt cost is then unknown, not 0.
maybe<uint64_t> cost_in(const std::string& text) {
  auto data = nlohmann::json::parse(text, nullptr, false);
  auto usd = data.is_object() ? data.find("usd") : data.end();
  if (!data.is_object() || usd == data.end() || !usd->is_number())
    return {};
  auto value = usd->get<double>();
  if (!(value >= 0) || value > 1e6)
    return {};
  return static_cast<uint64_t>(std::llround(value * 1e9));
}

std::string one_line(const std::string& text) {
  std::string out;
  for (char c : text) {
    bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!blank)
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  }
  while (!out.empty() && out.back() == ' ')
    out.pop_back();
  return out;
}

} // namespace

result<void> write_command_folder(const job_directory& folder, const protocol_program& program,
  const problem& of, const prompt_facts& facts) {
  std::error_code error;
  std::filesystem::create_directory(folder.file("problem"), error);
  std::filesystem::create_directory(folder.file("incumbent"), error);
  if (error)
    return fail(errc::io_failed, folder.path() + ": " + error.message());
  const auto rendered = render_prompt(program, facts);
  std::string history = "id\thypothesis\tstrategy\toutcome\tchange_percent\treason\n";
  for (const auto& row : facts.history)
    history += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", cell(row.id), cell(row.hypothesis),
      cell(row.strategy), cell(row.outcome), cell(row.change), cell(row.reason));
  std::vector<std::pair<std::string, std::string>> files{
    {"prompt.md", rendered.instructions + "\n" + rendered.user + task},
    {"program.md", program.text}, {"history.tsv", history},
    {"problem/definition.json", of.definition_text}, {"problem/workload.jsonl", of.workload_text},
    {"problem/reference.py", of.def.reference}};
  if (facts.best) {
    files.emplace_back("incumbent/candidate.cu", facts.best->source);
    files.emplace_back("incumbent/plan.json", facts.best->plan);
    files.emplace_back("incumbent/numbers.txt", facts.best->numbers + "\n");
  }
  for (const auto& [name, text] : files)
    if (auto written = folder.write(name, text); !written)
      return written;
  return {};
}

result<command_answer> read_command_folder(const std::string& folder, const program_rules& rules) {
  const descriptor here(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (here.get() < 0)
    return fail(errc::invalid_input, "the command took its folder away");
  command_answer out;
  auto source = read_left_file(here.get(), "candidate.cu", rules.source_bytes_max);
  if (!source)
    return pass(source);
  auto plan = read_left_file(here.get(), "plan.json", rules.plan_bytes_max);
  if (!plan)
    return pass(plan);
  auto hypothesis = read_left_file(here.get(), "hypothesis.txt", 8192);
  if (!hypothesis && hypothesis.error().code != errc::not_found)
    return pass(hypothesis);
  out.source = std::move(*source);
  out.plan = std::move(*plan);
  if (hypothesis)
    out.hypothesis = one_line(*hypothesis);
  return out;
}

maybe<uint64_t> read_command_cost(const std::string& folder) {
  const descriptor here(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  auto cost = here.get() < 0 ? result<std::string>{fail(errc::not_found, "no folder")}
                             : read_left_file(here.get(), "cost.json", 4096);
  return cost ? cost_in(*cost) : maybe<uint64_t>{};
}

} // namespace gristmill
