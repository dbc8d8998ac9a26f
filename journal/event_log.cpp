#include "journal/event_log.hpp"

#include "journal/event_line.hpp"

#include <SQLiteCpp/SQLiteCpp.h>
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <sys/vfs.h>

namespace gristmill {

namespace fs = std::filesystem;

namespace {

// "GMil": tells our files from other SQLite files.
constexpr int32_t application_id = 0x474d696c;
constexpr int busy_ms = 5000;

constexpr const char* columns =
  "seq, v, incarnation, t, wall, kind, problem, attempt, candidate, gpu, token, reason, data";

event read_row(SQLite::Statement& row) {
  event e;
  e.seq = static_cast<uint64_t>(row.getColumn(0).getInt64());
  e.v = row.getColumn(1).getUInt();
  e.incarnation = row.getColumn(2).getUInt();
  e.t = std::chrono::nanoseconds{row.getColumn(3).getInt64()};
  e.wall = row.getColumn(4).getInt64();
  e.kind = row.getColumn(5).getString();
  e.problem = row.getColumn(6).getString();
  e.attempt = row.getColumn(7).getString();
  e.candidate = row.getColumn(8).getString();
  e.gpu = row.getColumn(9).getString();
  e.token = static_cast<uint64_t>(row.getColumn(10).getInt64());
  e.reason = row.getColumn(11).getString();
  e.data = row.getColumn(12).getString();
  return e;
}

int64_t one_number(SQLite::Database& db, const char* sql) {
  return db.execAndGet(sql).getInt64();
}

void make_schema(SQLite::Database& db) {
  db.exec(fmt::format("PRAGMA application_id = {}", application_id));
  SQLite::Transaction all(db);
  db.exec("CREATE TABLE events (seq INTEGER PRIMARY KEY, v INTEGER NOT NULL, "
          "incarnation INTEGER NOT NULL, t INTEGER NOT NULL, wall INTEGER NOT NULL, "
          "kind TEXT NOT NULL, problem TEXT NOT NULL, attempt TEXT NOT NULL, "
          "candidate TEXT NOT NULL, gpu TEXT NOT NULL, token INTEGER NOT NULL, "
          "reason TEXT NOT NULL, data TEXT NOT NULL)");
  db.exec("CREATE INDEX events_by_kind ON events (kind, seq)");
  db.exec("CREATE TABLE starts (incarnation INTEGER PRIMARY KEY)");
  db.exec(fmt::format("PRAGMA user_version = {}", event_schema_version));
  all.commit();
}

// The type of the mount that `path` lies on, from the kernel's table: the last mount whose point is
// a prefix of the path.
std::string mount_type_of(const fs::path& path) {
  std::ifstream table("/proc/self/mountinfo");
  std::string line;
  std::string best_type;
  size_t best_length = 0;
  auto text = path.string();
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string skip;
    std::string point;
    std::string field;
    fields >> skip >> skip >> skip >> skip >> point;
    while (fields >> field && field != "-") {
    }
    std::string type;
    fields >> type;
    bool inside = text.starts_with(point)
      && (point == "/" || text.size() == point.size() || text[point.size()] == '/');
    if (inside && point.size() >= best_length) {
      best_length = point.size();
      best_type = type;
    }
  }
  return best_type;
}

} // namespace

std::optional<std::string> network_file_system(uint64_t magic, const std::string& mount_type) {
  switch (magic & 0xffffffffu) {
  case 0x6969:
    return "NFS";
  case 0x517b:
    return "SMB";
  case 0xff534d42:
    return "CIFS";
  case 0xfe534d42:
    return "SMB2";
  case 0x5346414f:
    return "AFS";
  case 0x00c36400:
    return "Ceph";
  case 0x0bd00bd0:
    return "Lustre";
  case 0x65735546: {
    // FUSE serves local file systems too; only the mount table tells.
    static constexpr std::array<std::string_view, 8> remote = {"fuse.sshfs", "fuse.rclone",
      "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.davfs", "fuse.ceph", "fuse.juicefs"};
    if (std::find(remote.begin(), remote.end(), mount_type) != remote.end())
      return mount_type;
    return std::nullopt;
  }
  default:
    return std::nullopt;
  }
}

std::optional<std::string> network_file_system(const fs::path& path) {
  std::error_code error;
  auto existing = fs::absolute(path, error);
  while (!existing.empty() && existing != existing.root_path() && !fs::exists(existing, error))
    existing = existing.parent_path();
  existing = fs::canonical(existing, error);
  struct statfs info {};
  if (error || ::statfs(existing.c_str(), &info) != 0)
    return std::nullopt;
  return network_file_system(static_cast<uint64_t>(info.f_type), mount_type_of(existing));
}

struct event_log::state {
  fs::path file;
  mode how = mode::read;
  SQLite::Database db;
  uint32_t incarnation = 0;
  uint64_t last = 0;
  /// What `PRAGMA synchronous` is set to, so that it is set only when it changes.
  std::optional<durability> synchronous;

  state(const fs::path& f, mode m)
    : file(f), how(m), db(f.string(),
                         m == mode::read       ? SQLite::OPEN_READONLY
                           : m == mode::create ? SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE
                                               : SQLite::OPEN_READWRITE,
                         busy_ms) {}

  tl::unexpected<failure> failed(const char* what, const std::exception& e) const {
    return fail(errc::io_failed, fmt::format("cannot {} '{}': {}", what, file.string(), e.what()));
  }

  void set(durability wanted) {
    if (synchronous == wanted)
      return;
    // NORMAL, not OFF, for relaxed events: with OFF a checkpoint may overwrite the database before
    // the log of it is on the disk, and a power cut then destroys the file, not just its tail.
    db.exec(
      wanted == durability::barrier ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    synchronous = wanted;
  }
};

event_log::event_log(std::unique_ptr<state> s) : state_(std::move(s)) {}
event_log::event_log(event_log&&) noexcept = default;
event_log& event_log::operator=(event_log&&) noexcept = default;
event_log::~event_log() = default;

result<event_log> event_log::open(const fs::path& file, mode how) {
  if (auto kind = network_file_system(file))
    return fail(errc::refused,
      fmt::format("'{}' lies on a network file system ({}), where the locks of SQLite do not hold; "
                  "choose a folder on a local disk",
        file.string(), *kind));
  std::error_code error;
  bool exists = fs::exists(file, error);
  if (how == mode::create && exists)
    return fail(errc::io_failed,
      fmt::format("cannot create the event log '{}': it exists already", file.string()));
  if (how != mode::create && !exists)
    return fail(errc::not_found, fmt::format("there is no event log '{}'", file.string()));
  try {
    auto s = std::make_unique<state>(file, how);
    if (how == mode::create) {
      s->db.exec("PRAGMA journal_mode = WAL");
      s->set(durability::barrier);
      make_schema(s->db);
    }
    if (one_number(s->db, "PRAGMA application_id") != application_id)
      return fail(errc::io_failed, fmt::format("'{}' is not an event log", file.string()));
    auto version = one_number(s->db, "PRAGMA user_version");
    if (version != event_schema_version)
      return fail(errc::unsupported,
        fmt::format("'{}' has event schema {}; this program reads schema {}", file.string(),
          version, event_schema_version));
    if (how != mode::read) {
      // Without a limit the side file keeps the size of the largest burst for ever.
      s->db.exec("PRAGMA journal_size_limit = 67108864");
      s->set(durability::barrier);
      s->db.exec("INSERT INTO starts SELECT coalesce(max(incarnation), 0) + 1 FROM starts");
    }
    s->incarnation =
      static_cast<uint32_t>(one_number(s->db, "SELECT coalesce(max(incarnation), 0) FROM starts"));
    s->last = static_cast<uint64_t>(one_number(s->db, "SELECT coalesce(max(seq), 0) FROM events"));
    return event_log{std::move(s)};
  } catch (const std::exception& e) {
    return fail(
      errc::io_failed, fmt::format("cannot open the event log '{}': {}", file.string(), e.what()));
  }
}

result<uint64_t> event_log::append(std::span<const event> events, durability how, int64_t wall) {
  if (state_->how == mode::read)
    return fail(errc::refused,
      fmt::format("'{}' was opened to read; nothing can be appended", state_->file.string()));
  std::vector<std::string> data;
  data.reserve(events.size());
  for (const auto& e : events) {
    auto canonical = canonical_data(e.data.empty() ? "{}" : std::string_view{e.data});
    if (!canonical)
      return fail(
        errc::invalid_input, fmt::format("event '{}': {}", e.kind, canonical.error().what));
    if (e.v != event_schema_version)
      return fail(errc::invalid_input,
        fmt::format(
          "event '{}': v is {}, this log holds schema {}", e.kind, e.v, event_schema_version));
    if (canonical_line(e).size() > event_line_bytes_max)
      return fail(errc::invalid_input,
        fmt::format("event '{}' is longer than {} bytes as a line", e.kind, event_line_bytes_max));
    if (e.token > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return fail(errc::invalid_input, fmt::format("event '{}': the token is too large", e.kind));
    data.push_back(std::move(*canonical));
  }
  try {
    state_->set(how);
    SQLite::Transaction all(state_->db);
    SQLite::Statement insert(state_->db,
      fmt::format("INSERT INTO events ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", columns));
    uint64_t seq = state_->last;
    for (size_t i = 0; i < events.size(); ++i) {
      const auto& e = events[i];
      insert.bind(1, static_cast<int64_t>(++seq));
      insert.bind(2, e.v);
      insert.bind(3, state_->incarnation);
      insert.bind(4, static_cast<int64_t>(e.t.count()));
      insert.bind(5, wall);
      insert.bind(6, e.kind);
      insert.bind(7, e.problem);
      insert.bind(8, e.attempt);
      insert.bind(9, e.candidate);
      insert.bind(10, e.gpu);
      insert.bind(11, static_cast<int64_t>(e.token));
      insert.bind(12, e.reason);
      insert.bind(13, data[i]);
      insert.exec();
      insert.reset();
    }
    // An empty barrier still has to bring earlier relaxed events to the disk; only a commit that
    // writes does.
    if (events.empty() && how == durability::barrier)
      state_->db.exec(fmt::format("PRAGMA user_version = {}", event_schema_version));
    all.commit();
    state_->last = seq;
    return seq;
  } catch (const std::exception& e) {
    return state_->failed("append to the event log", e);
  }
}

namespace {

result<std::vector<event>> read_all(SQLite::Statement& query) {
  std::vector<event> out;
  while (query.executeStep())
    out.push_back(read_row(query));
  return out;
}

int64_t sql_limit(size_t limit) {
  return static_cast<int64_t>(
    std::min<size_t>(limit, static_cast<size_t>(std::numeric_limits<int64_t>::max())));
}

} // namespace

result<std::vector<event>> event_log::read(uint64_t from, size_t limit) const {
  try {
    SQLite::Statement query(state_->db,
      fmt::format("SELECT {} FROM events WHERE seq >= ? ORDER BY seq LIMIT ?", columns));
    query.bind(1, sql_limit(from));
    query.bind(2, sql_limit(limit));
    return read_all(query);
  } catch (const std::exception& e) {
    return state_->failed("read the event log", e);
  }
}

result<std::vector<event>> event_log::read_kind(
  const std::string& kind, uint64_t from, size_t limit) const {
  try {
    SQLite::Statement query(state_->db,
      fmt::format(
        "SELECT {} FROM events WHERE kind = ? AND seq >= ? ORDER BY seq LIMIT ?", columns));
    query.bind(1, kind);
    query.bind(2, sql_limit(from));
    query.bind(3, sql_limit(limit));
    return read_all(query);
  } catch (const std::exception& e) {
    return state_->failed("read the event log", e);
  }
}

result<uint64_t> event_log::last_seq() const {
  try {
    return static_cast<uint64_t>(
      one_number(state_->db, "SELECT coalesce(max(seq), 0) FROM events"));
  } catch (const std::exception& e) {
    return state_->failed("read the event log", e);
  }
}

result<uint64_t> event_log::count() const {
  try {
    return static_cast<uint64_t>(one_number(state_->db, "SELECT count(*) FROM events"));
  } catch (const std::exception& e) {
    return state_->failed("read the event log", e);
  }
}

uint32_t event_log::incarnation() const {
  return state_->incarnation;
}

} // namespace gristmill
