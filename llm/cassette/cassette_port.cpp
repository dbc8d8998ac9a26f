#include "llm/cassette/cassette.hpp"
#include "llm/cassette/cassette_file.hpp"
#include "llm/cassette/interaction.hpp"
#include "llm/cassette/playback.hpp"
#include "llm/transport/answer_head.hpp"
#include "llm/transport/key.hpp"
#include "protocol/json_document.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace gristmill {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

namespace {

constexpr size_t cassette_bytes_max = size_t{1} << 30;
constexpr double speed_min = 0.01;
constexpr double speed_max = 1e6;

/// Answers from the tape where there is one, sends and records where there is a port behind it. All
/// three ways to use a cassette are this with one of the two or both, so that requests are counted
/// in one place.
class cassette_port final : public http_port {
public:
  struct parts {
    recording_options recording;
    replay_options replaying;
    tape recorded;
    std::optional<cassette_file> file;
    http_port_factory inner;
    http_sink sink;
  };

  explicit cassette_port(parts what);
  ~cassette_port() override {
    // Ends the calls under way, and records how.
    inner_.reset();
  }

  void start(http_call call) override;
  void cancel(uint64_t id) override;
  void finished(uint64_t id) override;

private:
  struct under_way {
    interaction what;
    nanoseconds started{0};
  };

  void learn_secrets(const http_call& call);
  const interaction* on_tape(const std::string& hash, uint64_t ordinal) const;
  std::string miss_text(const canonical_request& request, uint64_t ordinal) const;
  void on_report(http_report report);
  void record(under_way done);
  nanoseconds now() const;

  const recording_options recording_;
  const replay_options replaying_;
  const http_sink sink_;
  const tape tape_;
  std::map<std::pair<std::string, uint64_t>, size_t> places_;

  std::mutex mutex_;
  // Under the mutex:
  redactor secrets_;
  std::vector<std::string> secrets_read_;
  std::unordered_map<std::string, uint64_t> counts_;
  std::unordered_map<uint64_t, under_way> open_;
  std::optional<cassette_file> file_;

  std::unique_ptr<playback> player_;
  std::unique_ptr<http_port> inner_;
};

cassette_port::cassette_port(parts what)
  : recording_(std::move(what.recording)), replaying_(std::move(what.replaying)),
    sink_(std::move(what.sink)), tape_(std::move(what.recorded)), file_(std::move(what.file)) {
  const bool answers = !what.inner || recording_.answer_known;
  for (size_t i = 0; i < tape_.all.size(); ++i) {
    const auto& [hash, ordinal] = std::pair(tape_.all[i].request.hash, tape_.all[i].ordinal);
    if (answers)
      places_.emplace(std::pair(hash, ordinal), i);
    else
      counts_[hash] = std::max(counts_[hash], ordinal + 1);
  }
  for (const auto& name : recording_.secret_environment)
    if (const auto key = read_key(name))
      secrets_.know(key->view());
  player_ = std::make_unique<playback>(replaying_.speed, replaying_.from_caller, sink_);
  if (what.inner)
    inner_ = what.inner([this](http_report report) { on_report(std::move(report)); });
}

nanoseconds cassette_port::now() const {
  if (recording_.now)
    return recording_.now();
  return std::chrono::duration_cast<nanoseconds>(
    std::chrono::steady_clock::now().time_since_epoch());
}

void cassette_port::learn_secrets(const http_call& call) {
  const auto& name = call.key_environment;
  if (name.empty()
    || std::find(secrets_read_.begin(), secrets_read_.end(), name) != secrets_read_.end())
    return;
  // One that is not set is the transport's to refuse, and a replay needs none.
  const auto key = read_key(name);
  if (!key)
    return;
  secrets_.know(key->view());
  secrets_read_.push_back(name);
}

const interaction* cassette_port::on_tape(const std::string& hash, uint64_t ordinal) const {
  const auto at = places_.find({hash, ordinal});
  if (at == places_.end())
    return nullptr;
  const auto& found = tape_.all[at->second];
  // What we ended ourselves or never sent is no answer to give to somebody who could send it now.
  if (inner_ && (found.how == http_end::cancelled || found.how == http_end::not_sent))
    return nullptr;
  return &found;
}

void cassette_port::start(http_call call) {
  const auto id = call.id;
  under_way next;
  const interaction* known = nullptr;
  std::string miss;
  {
    const std::lock_guard guard(mutex_);
    learn_secrets(call);
    next.what.request = canonical(call, recording_.volatile_fields, secrets_, &next.what.redacted);
    next.what.ordinal = counts_[next.what.request.hash]++;
    known = on_tape(next.what.request.hash, next.what.ordinal);
    if (!known && inner_) {
      next.started = now();
      open_.emplace(id, std::move(next));
    } else if (!known) {
      miss = miss_text(next.what.request, next.what.ordinal);
    }
  }
  if (known)
    return player_->play(id, *known);
  if (inner_)
    return inner_->start(std::move(call));
  if (replaying_.on_miss)
    replaying_.on_miss(miss);
  interaction nothing;
  nothing.how = http_end::not_sent;
  nothing.why = std::move(miss);
  player_->play(id, nothing);
}

void cassette_port::cancel(uint64_t id) {
  player_->cancel(id);
  if (inner_)
    inner_->cancel(id);
}

void cassette_port::finished(uint64_t id) {
  player_->finished(id);
  if (inner_)
    inner_->finished(id);
}

std::string cassette_port::miss_text(const canonical_request& request, uint64_t ordinal) const {
  const auto file = replaying_.file.string();
  const auto name = request.hash.substr(0, 12);
  const auto times = std::count_if(tape_.all.begin(), tape_.all.end(),
    [&](const interaction& each) { return each.request.hash == request.hash; });
  if (times > 0)
    return fmt::format("{}: {} holds {} answers to request {}, none to its call number {}",
      cassette_miss, file, times, name, ordinal + 1);
  if (tape_.all.empty())
    return fmt::format("{}: {} holds nothing", cassette_miss, file);
  const auto wanted = lines_of(request);
  size_t best = 0;
  size_t best_likeness = 0;
  for (size_t i = 0; i < tape_.all.size(); ++i) {
    const auto alike = likeness(lines_of(tape_.all[i].request), wanted);
    if (alike > best_likeness) {
      best = i;
      best_likeness = alike;
    }
  }
  const auto& nearest = tape_.all[best].request;
  return fmt::format(
    "{}: {} never saw request {}. The nearest of its {} is {}; this is how it differs "
    "(- recorded, + asked for):\n{}",
    cassette_miss, file, name, tape_.all.size(), nearest.hash.substr(0, 12),
    short_diff(lines_of(nearest), wanted));
}

void cassette_port::on_report(http_report report) {
  {
    const std::lock_guard guard(mutex_);
    if (const auto at = open_.find(report.id); at != open_.end()) {
      auto& call = at->second;
      const auto since = std::chrono::duration_cast<microseconds>(now() - call.started);
      if (report.status != 0)
        call.what.status = report.status;
      if (!report.headers.empty())
        call.what.headers = report.headers;
      for (const auto& event : report.events)
        call.what.events.push_back({since, event});
      if (report.ended) {
        call.what.body = report.body;
        call.what.how = report.how;
        call.what.why = report.why;
        call.what.took = since;
        // Before the reader hears of it, so that what a run has seen is on its cassette.
        record(std::move(call));
        open_.erase(at);
      }
    }
  }
  sink_(std::move(report));
}

void cassette_port::record(under_way done) {
  if (!file_)
    return;
  auto& what = done.what;
  std::erase_if(what.headers, [](const auto& header) { return !passes_on_header(header.first); });
  for (auto& [name, value] : what.headers)
    value = secrets_.redact(value, &what.redacted);
  for (auto& each : what.events) {
    each.event.name = secrets_.redact(each.event.name, &what.redacted);
    each.event.data = secrets_.redact(each.event.data, &what.redacted);
  }
  what.body = secrets_.redact(what.body, &what.redacted);
  what.why = secrets_.redact(what.why, &what.redacted);
  if (const auto written = file_->write(write_interaction(what)); !written) {
    file_.reset();
    if (recording_.on_failure)
      recording_.on_failure(written.error().what);
  }
}

result<tape> tape_of(const std::filesystem::path& file) {
  const auto text = read_text_file(file, cassette_bytes_max);
  if (!text)
    return pass(text);
  return read_tape(*text, file.string());
}

} // namespace

std::vector<std::string> recording_options::default_volatile_fields() {
  // Who asks and where to keep the prompt: nothing that an answer depends on.
  return {"metadata", "prompt_cache_key", "safety_identifier", "user"};
}

result<std::unique_ptr<http_port>> make_recording_port(
  recording_options options, const http_port_factory& inner, http_sink sink) {
  auto file = cassette_file::create(options.file);
  if (!file)
    return pass(file);
  cassette_port::parts parts;
  parts.recording = std::move(options);
  parts.file = std::move(*file);
  parts.inner = inner;
  parts.sink = std::move(sink);
  return std::make_unique<cassette_port>(std::move(parts));
}

result<std::unique_ptr<http_port>> make_replay_port(replay_options options, http_sink sink) {
  if (!(options.speed == 0 || (options.speed >= speed_min && options.speed <= speed_max)))
    return fail(errc::invalid_input,
      fmt::format("{}: the speed of a replay is 0 (at once) or between {} and {}, not {}",
        options.file.string(), speed_min, speed_max, options.speed));
  auto recorded = tape_of(options.file);
  if (!recorded)
    return pass(recorded);
  cassette_port::parts parts;
  parts.recording.volatile_fields = options.volatile_fields;
  parts.recording.secret_environment = options.secret_environment;
  parts.replaying = std::move(options);
  parts.recorded = std::move(*recorded);
  parts.sink = std::move(sink);
  return std::make_unique<cassette_port>(std::move(parts));
}

result<std::unique_ptr<http_port>> make_append_port(
  recording_options options, const http_port_factory& inner, http_sink sink) {
  cassette_port::parts parts;
  if (std::filesystem::exists(options.file)) {
    auto recorded = tape_of(options.file);
    if (!recorded)
      return pass(recorded);
    parts.recorded = std::move(*recorded);
  }
  auto file = cassette_file::append(options.file, parts.recorded.whole_bytes);
  if (!file)
    return pass(file);
  if (!parts.recorded.ends_with_line)
    if (auto ended = file->write("\n"); !ended)
      return pass(ended);
  parts.file = std::move(*file);
  parts.replaying.file = options.file;
  parts.recording = std::move(options);
  parts.inner = inner;
  parts.sink = std::move(sink);
  return std::make_unique<cassette_port>(std::move(parts));
}

} // namespace gristmill
