#include "journal/blob_transfer.hpp"

#include "journal/hash.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace gristmill {

namespace {

constexpr uint64_t piece_bytes = blob_piece_max;

void remove_name(std::deque<std::string>& from, const std::string& name) {
  from.erase(std::remove(from.begin(), from.end(), name), from.end());
}

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

blob_transfer::blob_transfer(blob_inbox& inbox, blob_transfer_limits limits)
  : inbox_(inbox), limits_(limits) {}

blob_transfer::steps blob_transfer::fetch(
  uint64_t id, uint64_t peer, blob_fetch what, instant now) {
  steps out;
  if (auto fine = admit(what); !fine) {
    out.ended.push_back({id, pass(fine)});
    return out;
  }
  open_fetch mine;
  mine.peer = peer;
  mine.deadline = now + (what.deadline.count() > 0 ? what.deadline : limits_.fetch_deadline);
  for (const auto& ref : what.blobs) {
    if (ref.sha256.empty() || mine.missing.contains(ref.sha256))
      continue;
    auto known = blobs_.find(ref.sha256);
    if (known == blobs_.end()) {
      if (inbox_.has(ref))
        continue;
      known = blobs_.emplace(ref.sha256, wanted_blob{}).first;
      known->second.what = ref;
      known->second.peer = peer;
      peers_[peer].waiting.push_back(ref.sha256);
    }
    known->second.waiters.push_back(id);
    mine.missing.insert(ref.sha256);
  }
  if (mine.missing.empty()) {
    out.ended.push_back({id, blobs_fetched{}});
    return out;
  }
  fetches_.emplace(id, std::move(mine));
  touched_.insert(peer);
  return finish(std::move(out), now);
}

result<void> blob_transfer::admit(const blob_fetch& what) {
  if (fetches_.size() >= limits_.fetches_max
    || blobs_.size() + what.blobs.size() > limits_.blobs_waiting_max)
    return fail(errc::queue_full,
      fmt::format("{} fetches of {} blobs wait already", fetches_.size(), blobs_.size()));
  std::map<std::string, uint64_t> sizes;
  for (const auto& ref : what.blobs) {
    if (ref.sha256.empty())
      continue;
    if (!is_sha256_hex(ref.sha256))
      return fail(errc::invalid_input,
        fmt::format("'{}' does not name a blob: 64 lower-case hexadecimal characters are expected",
          ref.sha256.substr(0, 80)));
    if (ref.bytes > limits_.blob_bytes_max)
      return fail(errc::refused,
        fmt::format("blob {} is said to have {} bytes; at most {} are fetched", ref.sha256,
          ref.bytes, limits_.blob_bytes_max));
    if (ref.bytes == 0 && ref.sha256 != sha256_hex({}))
      return fail(errc::invalid_input,
        fmt::format(
          "blob {} is said to be empty, and its hash is not that of nothing", ref.sha256));
    auto known = blobs_.find(ref.sha256);
    const auto size = known != blobs_.end() ? known->second.what.bytes
                                            : sizes.emplace(ref.sha256, ref.bytes).first->second;
    if (size != ref.bytes)
      return fail(errc::invalid_input,
        fmt::format(
          "blob {} is said to have {} bytes, and {} elsewhere", ref.sha256, ref.bytes, size));
  }
  return {};
}

blob_transfer::steps blob_transfer::piece(uint64_t peer, blob_piece what, instant now) {
  auto blob = blobs_.find(what.sha256);
  if (blob == blobs_.end() || blob->second.peer != peer)
    return {};
  auto asked = blob->second.open.find(what.offset);
  if (asked == blob->second.open.end())
    return {};
  steps out;
  blob->second.open.erase(asked);
  --peers_[peer].pieces_open;
  touched_.insert(peer);
  if (blob->second.spoiled)
    begin_again(blob, now, out);
  else if (!what.failure_text.empty())
    peer_failed(blob,
      {errc::not_found, "the peer does not give it: " + what.failure_text.substr(0, 500)}, false,
      now, out);
  else
    take(blob, std::move(what), now, out);
  return finish(std::move(out), now);
}

void blob_transfer::take(blob_place blob, blob_piece what, instant now, steps& out) {
  auto& wanted = blob->second;
  const auto expected = std::min(piece_bytes, wanted.what.bytes - what.offset);
  if (what.total != wanted.what.bytes)
    return damaged(blob,
      fmt::format("the peer's has {} bytes instead of {}", what.total, wanted.what.bytes), now,
      out);
  if (what.data.size() != expected)
    return damaged(blob,
      fmt::format("a piece has {} bytes instead of {}", what.data.size(), expected), now, out);
  wanted.early.emplace(what.offset, std::move(what.data));
  while (!wanted.early.empty() && wanted.early.begin()->first == wanted.written) {
    const auto next = std::move(wanted.early.extract(wanted.early.begin()).mapped());
    if (auto stored = inbox_.append(blob->first, next); !stored) {
      wanted.begun = false;
      return fail_all(blob, stored.error(), now, out);
    }
    wanted.written += next.size();
  }
  if (wanted.written == wanted.what.bytes)
    complete(blob, now, out);
}

void blob_transfer::complete(blob_place blob, instant now, steps& out) {
  auto& wanted = blob->second;
  auto fits = inbox_.finish(blob->first);
  wanted.begun = false;
  if (!fits)
    return fail_all(blob, fits.error(), now, out);
  if (!*fits)
    return damaged(blob, "its bytes have another hash", now, out);
  const auto name = blob->first;
  const auto waiters = std::move(wanted.waiters);
  const auto bytes = wanted.what.bytes;
  wanted.waiters.clear();
  remove(blob, false, now);
  // It has travelled once, however many wait for it.
  if (auto first = fetches_.find(waiters.front()); first != fetches_.end())
    first->second.bytes += bytes;
  for (auto id : waiters) {
    auto& fetch = fetches_.at(id);
    fetch.missing.erase(name);
    if (fetch.missing.empty())
      end_fetch(id, blobs_fetched{fetch.bytes}, now, out);
  }
}

void blob_transfer::damaged(blob_place blob, const std::string& why, instant now, steps& out) {
  auto& wanted = blob->second;
  if (wanted.again)
    return peer_failed(blob,
      {errc::io_failed, fmt::format("blob {} came damaged twice: {}", blob->first, why)}, false,
      now, out);
  ++fetched_again_;
  wanted.again = true;
  wanted.spoiled = true;
  begin_again(blob, now, out);
}

void blob_transfer::begin_again(blob_place blob, instant now, steps& out) {
  auto& wanted = blob->second;
  // What is under way may be as bad as what came.
  if (!wanted.open.empty())
    return;
  wanted.spoiled = false;
  wanted.early.clear();
  wanted.written = 0;
  wanted.asked = 0;
  inbox_.drop(blob->first);
  wanted.begun = false;
  if (auto begun = begin(wanted); !begun)
    fail_all(blob, begun.error(), now, out);
}

blob_transfer::steps blob_transfer::peer_gone(uint64_t peer, instant now) {
  steps out;
  const failure lost{errc::node_lost, "the machine that was to give the blobs is gone"};
  std::vector<std::string> names;
  for (const auto& [name, blob] : blobs_)
    if (blob.peer == peer)
      names.push_back(name);
  for (const auto& name : names)
    if (auto blob = blobs_.find(name); blob != blobs_.end())
      peer_failed(blob, lost, true, now, out);
  // Those that wait for what another peer is giving.
  std::vector<uint64_t> rest;
  for (const auto& [id, fetch] : fetches_)
    if (fetch.peer == peer)
      rest.push_back(id);
  for (auto id : rest)
    end_fetch(id, tl::unexpected<failure>(lost), now, out);
  return finish(std::move(out), now);
}

blob_transfer::steps blob_transfer::due(instant now) {
  steps out;
  while (!parked_.empty() && parked_.front().until <= now) {
    inbox_.drop(parked_.front().what.sha256);
    parked_.pop_front();
  }
  std::vector<uint64_t> late;
  for (const auto& [id, fetch] : fetches_)
    if (fetch.deadline <= now)
      late.push_back(id);
  for (auto id : late)
    if (auto fetch = fetches_.find(id); fetch != fetches_.end())
      end_fetch(id,
        fail(errc::timed_out,
          fmt::format("{} blobs have not come within the deadline", fetch->second.missing.size())),
        now, out);
  std::vector<std::string> silent;
  for (const auto& [name, blob] : blobs_)
    for (const auto& [offset, until] : blob.open)
      if (until <= now) {
        silent.push_back(name);
        break;
      }
  for (const auto& name : silent)
    if (auto blob = blobs_.find(name); blob != blobs_.end())
      peer_failed(blob,
        {errc::timed_out,
          fmt::format("the peer has not answered for a piece of blob {} for {:g} s", name,
            seconds_of(limits_.piece_deadline))},
        true, now, out);
  return finish(std::move(out), now);
}

blob_transfer::steps blob_transfer::end(const failure& why) {
  steps out;
  for (const auto& [id, fetch] : fetches_)
    out.ended.push_back({id, tl::unexpected<failure>(why)});
  for (const auto& [name, blob] : blobs_)
    if (blob.begun)
      inbox_.drop(name);
  fetches_.clear();
  blobs_.clear();
  peers_.clear();
  touched_.clear();
  drop_parked();
  return out;
}

std::optional<blob_transfer::instant> blob_transfer::next_due() const {
  std::optional<instant> out;
  const auto consider = [&](instant when) {
    if (!out || when < *out)
      out = when;
  };
  for (const auto& [id, fetch] : fetches_)
    consider(fetch.deadline);
  for (const auto& [name, blob] : blobs_)
    for (const auto& [offset, until] : blob.open)
      consider(until);
  if (!parked_.empty())
    consider(parked_.front().until);
  return out;
}

bool blob_transfer::wants(uint64_t peer) const {
  return std::any_of(
           blobs_.begin(), blobs_.end(), [&](const auto& b) { return b.second.peer == peer; })
    || std::any_of(
      fetches_.begin(), fetches_.end(), [&](const auto& f) { return f.second.peer == peer; });
}

blob_transfer::steps blob_transfer::finish(steps out, instant now) {
  while (!touched_.empty())
    ask_more(touched_.extract(touched_.begin()).value(), now, out);
  std::erase_if(peers_, [](const auto& p) {
    return p.second.waiting.empty() && p.second.active.empty() && p.second.pieces_open == 0;
  });
  return out;
}

void blob_transfer::ask_more(uint64_t peer, instant now, steps& out) {
  auto& state = peers_[peer];
  while (state.active.size() < limits_.blobs_open_max && !state.waiting.empty()) {
    const auto name = std::move(state.waiting.front());
    state.waiting.pop_front();
    auto blob = blobs_.find(name);
    state.active.push_back(name);
    if (blob->second.begun)
      continue;
    if (auto begun = begin(blob->second); !begun)
      fail_all(blob, begun.error(), now, out);
    else if (blob->second.what.bytes == blob->second.written) // Nothing to ask for.
      complete(blob, now, out);
  }
  for (size_t idle = 0;
       state.pieces_open < limits_.pieces_open_max && idle < state.active.size();) {
    auto name = std::move(state.active.front());
    state.active.pop_front();
    auto& blob = blobs_.at(name);
    state.active.push_back(std::move(name));
    const auto ahead = blob.asked - blob.written;
    if (blob.spoiled || blob.asked == blob.what.bytes
      || ahead >= piece_bytes * limits_.pieces_open_max) {
      ++idle;
      continue;
    }
    idle = 0;
    const auto bytes = std::min(piece_bytes, blob.what.bytes - blob.asked);
    out.pulls.push_back({peer, {blob.what.sha256, blob.asked, static_cast<uint32_t>(bytes)}});
    blob.open.emplace(blob.asked, now + limits_.piece_deadline);
    blob.asked += bytes;
    ++state.pieces_open;
  }
}

result<void> blob_transfer::begin(wanted_blob& blob) {
  if (unpark(blob))
    return {};
  auto begun = inbox_.begin(blob.what);
  if (!begun && !parked_.empty()) {
    // They take room, and are worth less.
    drop_parked();
    begun = inbox_.begin(blob.what);
  }
  blob.begun = begun.has_value();
  return begun;
}

void blob_transfer::peer_failed(
  blob_place blob, const failure& why, bool keep, instant now, steps& out) {
  auto& wanted = blob->second;
  std::vector<uint64_t> failed;
  std::vector<uint64_t> others;
  for (auto id : wanted.waiters)
    (fetches_.at(id).peer == wanted.peer ? failed : others).push_back(id);
  wanted.waiters = others;
  if (others.empty()) {
    remove(blob, keep, now);
  } else {
    leave_peer(wanted);
    wanted.peer = fetches_.at(others.front()).peer;
    wanted.again = false;
    const bool was_spoiled = std::exchange(wanted.spoiled, false);
    wanted.early.clear();
    if ((!keep || was_spoiled) && wanted.begun) {
      inbox_.drop(blob->first);
      wanted.begun = false;
    }
    if (!wanted.begun)
      wanted.written = 0;
    wanted.asked = wanted.written;
    peers_[wanted.peer].waiting.push_back(blob->first);
    touched_.insert(wanted.peer);
  }
  for (auto id : failed)
    if (fetches_.contains(id))
      end_fetch(id, tl::unexpected<failure>(why), now, out);
}

void blob_transfer::fail_all(blob_place blob, const failure& why, instant now, steps& out) {
  const auto waiters = std::exchange(blob->second.waiters, {});
  remove(blob, false, now);
  for (auto id : waiters)
    if (fetches_.contains(id))
      end_fetch(id, tl::unexpected<failure>(why), now, out);
}

void blob_transfer::end_fetch(uint64_t id, result<blobs_fetched> outcome, instant now, steps& out) {
  auto node = fetches_.extract(id);
  for (const auto& name : node.mapped().missing) {
    auto blob = blobs_.find(name);
    if (blob == blobs_.end())
      continue;
    auto& waiters = blob->second.waiters;
    waiters.erase(std::remove(waiters.begin(), waiters.end(), id), waiters.end());
    if (waiters.empty())
      remove(blob, true, now);
  }
  out.ended.push_back({id, std::move(outcome)});
}

void blob_transfer::remove(blob_place blob, bool keep, instant now) {
  auto& wanted = blob->second;
  leave_peer(wanted);
  if (wanted.begun && keep && !wanted.spoiled && wanted.written > 0 && limits_.parked_max > 0) {
    if (parked_.size() >= limits_.parked_max) {
      inbox_.drop(parked_.front().what.sha256);
      parked_.pop_front();
    }
    parked_.push_back({wanted.what, wanted.written, now + limits_.parked_for});
  } else if (wanted.begun) {
    inbox_.drop(blob->first);
  }
  blobs_.erase(blob);
}

void blob_transfer::leave_peer(wanted_blob& blob) {
  auto& state = peers_[blob.peer];
  remove_name(state.waiting, blob.what.sha256);
  remove_name(state.active, blob.what.sha256);
  state.pieces_open -= static_cast<uint32_t>(blob.open.size());
  blob.open.clear();
  touched_.insert(blob.peer);
}

bool blob_transfer::unpark(wanted_blob& blob) {
  auto found = std::find_if(parked_.begin(), parked_.end(),
    [&](const parked_blob& p) { return p.what.sha256 == blob.what.sha256; });
  if (found == parked_.end())
    return false;
  const auto kept = *found;
  parked_.erase(found);
  if (kept.what.bytes != blob.what.bytes) {
    inbox_.drop(kept.what.sha256);
    return false;
  }
  blob.begun = true;
  blob.written = kept.written;
  blob.asked = kept.written;
  return true;
}

void blob_transfer::drop_parked() {
  for (const auto& one : parked_)
    inbox_.drop(one.what.sha256);
  parked_.clear();
}

} // namespace gristmill
