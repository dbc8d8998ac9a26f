#include "gpu/broker/broker_store.hpp"

#include "journal/event_line.hpp"
#include "protocol/json_document.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t journal_bytes_max = uint64_t{64} << 20;
constexpr size_t state_bytes_max = size_t{64} << 20;

failure trouble(const fs::path& file) {
  return {errc::io_failed, fmt::format("{}: {}", file.string(), std::strerror(errno))};
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    auto written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

/// A name of a GPU ("mock:h200#0") as part of a file name.
std::string file_part(const std::string& gpu) {
  std::string out;
  for (char c : gpu)
    out += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '-';
  return out;
}

} // namespace

broker_store::broker_store(fs::path folder, int lock) : folder_(std::move(folder)), lock_(lock) {}

broker_store::~broker_store() {
  if (journal_ >= 0)
    close(journal_);
  close(lock_);
}

result<std::unique_ptr<broker_store>> broker_store::open(const fs::path& folder) {
  std::error_code error;
  const bool fresh = fs::create_directories(folder, error);
  if (error)
    return fail(errc::io_failed, fmt::format("{}: {}", folder.string(), error.message()));
  if (fresh)
    fs::permissions(folder, fs::perms::owner_all, error);
  const auto lock_file = folder / "lock";
  const int lock = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0)
    return tl::unexpected<failure>(trouble(lock_file));
  std::unique_ptr<broker_store> store(new broker_store(folder, lock));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    return fail(errc::refused,
      fmt::format("another broker keeps its state in {}; give this one a --state of its own",
        folder.string()));
  const auto state = folder / "state.json";
  if (fs::exists(state, error)) {
    auto text = read_text_file(state, state_bytes_max);
    if (!text)
      return pass(text);
    auto memory = parse_broker_memory(*text, state.string());
    if (!memory)
      return pass(memory);
    store->memory_ = std::move(*memory);
  }
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    auto name = it->path().filename().string();
    if (!name.starts_with("lease-") || !name.ends_with(".json"))
      continue;
    auto text = read_text_file(it->path(), state_bytes_max);
    if (!text)
      return pass(text);
    auto record = parse_lease_record(*text, it->path().string());
    if (!record)
      return pass(record);
    store->leases_.push_back(std::move(*record));
  }
  store->open_journal();
  if (store->journal_ < 0)
    return tl::unexpected<failure>(trouble(folder / "journal.jsonl"));
  return store;
}

fs::path broker_store::lease_file(const std::string& gpu) const {
  return folder_ / fmt::format("lease-{}.json", file_part(gpu));
}

result<void> broker_store::replace(
  const fs::path& file, std::string_view text, bool durable) const {
  auto fresh = file;
  fresh += ".new";
  const int out = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0)
    return tl::unexpected<failure>(trouble(fresh));
  const bool written = write_all(out, text) && (!durable || fsync(out) == 0);
  const auto code = errno;
  close(out);
  errno = code;
  if (!written || rename(fresh.c_str(), file.c_str()) != 0)
    return tl::unexpected<failure>(trouble(fresh));
  if (!durable)
    return {};
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = folder >= 0 && fsync(folder) == 0;
  if (folder >= 0)
    close(folder);
  if (!synced)
    return tl::unexpected<failure>(trouble(folder_));
  return {};
}

result<void> broker_store::save(const broker_memory& memory, bool durable) {
  auto done = replace(folder_ / "state.json", broker_memory_text(memory), durable);
  if (done)
    memory_ = memory;
  return done;
}

result<void> broker_store::save_lease(const lease_record& record) {
  return replace(lease_file(record.gpu), lease_record_text(record), false);
}

void broker_store::forget_lease(const std::string& gpu) {
  unlink(lease_file(gpu).c_str());
}

void broker_store::open_journal() {
  const auto file = folder_ / "journal.jsonl";
  journal_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat seen {};
  if (journal_ >= 0 && fstat(journal_, &seen) == 0)
    journal_bytes_ = static_cast<uint64_t>(seen.st_size);
}

void broker_store::note(event entry) {
  entry.seq = ++seq_;
  entry.incarnation = static_cast<decltype(entry.incarnation)>(memory_.epoch);
  entry.wall = std::chrono::duration_cast<std::chrono::nanoseconds>(
    std::chrono::system_clock::now().time_since_epoch())
                 .count();
  const auto line = canonical_line(entry) + "\n";
  if (journal_bytes_ + line.size() > journal_bytes_max) {
    close(journal_);
    rename((folder_ / "journal.jsonl").c_str(), (folder_ / "journal.1.jsonl").c_str());
    journal_bytes_ = 0;
    open_journal();
  }
  // A full disk loses lines of the journal, never a lease.
  if (journal_ >= 0 && write_all(journal_, line))
    journal_bytes_ += line.size();
}

} // namespace gristmill
