#include "gpu/children/timed_calls.hpp"

#include "tensors/tensor_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace gristmill {

namespace {

using role = resolved_buffer::role;

/// Left free for what measuring itself needs beside twice the L2 cache.
constexpr uint64_t reserve_bytes = uint64_t{512} << 20;

/// The share of the warm-up that a workload gets when another one was timed before it.
constexpr int later_warm_up_part = 6;

std::string call_name(uint32_t number) {
  return fmt::format("timed {}", number);
}

/// Device functions work on words of eight bytes.
uint64_t word_end(uint64_t address) {
  return (address + 7) / 8 * 8;
}

} // namespace

timed_calls::timed_calls(
  runner_device gpu, const child_context& context, unit_store& units, uint32_t workload)
  : on_(std::move(gpu)), gpu_(*on_.real), context_(context), units_(units), workload_(workload) {}

timed_calls::~timed_calls() {
  for (const auto& one : masters_)
    release(one);
  release(poison_);
  for (const auto address : work_)
    if (address != 0)
      (void)gpu_.free(address);
}

void timed_calls::release(const master& what) {
  for (const auto address : what.contents)
    if (address != 0)
      (void)gpu_.free(address);
}

pass_result<void> timed_calls::allocate_work() {
  for (size_t i = 0; i < pass_->buffers.size(); ++i) {
    const auto& what = buffer(i);
    if (what.bytes == 0) {
      work_.push_back(0);
      zero_digests_.push_back(0);
      continue;
    }
    auto made = gpu_.allocate(what.bytes + shift_room, what.name);
    if (!made)
      return device_said(made.error());
    work_.push_back(*made);
    zero_digests_.push_back(0);
    if (what.init != "restored")
      continue;
    if (auto done = gpu_.memset(*made, what.bytes + shift_room, 1, 0); !done)
      return device_said(done.error());
    auto digest = gpu_.digest(*made, what.bytes + shift_room, order_->digest_seed());
    if (!digest)
      return device_said(digest.error());
    zero_digests_.back() = *digest;
  }
  return {};
}

pass_result<std::optional<timed_calls::master>> timed_calls::load(const timed_case& one) {
  master out;
  const auto files_before = mapped_.size();
  for (size_t i = 0; i < one.pass->buffers.size(); ++i) {
    out.contents.push_back(0);
    out.digests.push_back(0);
    const auto& what = buffer(i);
    const bool is_output = what.kind == role::output && one.has_outputs;
    if (what.bytes == 0 || (what.kind != role::input && !is_output))
      continue;
    auto source = one.pass->buffers[i];
    if (is_output)
      source.file_bytes = what.bytes;
    auto address = map_buffer(gpu_, context_, source, mapped_);
    if (!address) {
      release(out);
      mapped_.resize(files_before);
      // "refused" is all that `map_buffer` turns into the candidate's error here: the device is
      // full. The candidate has no part in how large the inputs are.
      if (address.error().status == verdict_status::runtime_error && !masters_.empty())
        return std::optional<master>{};
      auto why = address.error();
      why.status = verdict_status::infrastructure;
      return tl::unexpected<pass_failure>(std::move(why));
    }
    out.contents.back() = *address;
    if (!is_output)
      continue;
    auto digest = gpu_.digest(*address, what.bytes, order_->digest_seed());
    if (!digest)
      return device_said(digest.error());
    out.digests.back() = *digest;
  }
  return std::optional<master>(std::move(out));
}

pass_result<void> timed_calls::draw_poison() {
  // Not what the checked run began with: an output that nobody writes must not look the same.
  auto key = context_.what.run.timing.order;
  key.bytes[0] ^= 0x5a;
  const bool has_other = masters_.size() > 1 && cases_.front().has_outputs;
  for (size_t i = 0; i < pass_->buffers.size(); ++i) {
    poison_.contents.push_back(0);
    const auto& what = buffer(i);
    if (has_other || what.kind != role::output || what.bytes == 0)
      continue;
    auto made = gpu_.allocate(what.bytes, what.name);
    if (!made)
      return device_said(made.error());
    poison_.contents.back() = *made;
    if (auto done = fill_random(on_, what, *made, key_of(key, i), true); !done)
      return done;
  }
  return {};
}

pass_result<void> timed_calls::set_up(const std::vector<timed_case>& cases) {
  const auto& run = context_.what.run;
  pass_ = cases.front().pass;
  // How many cases fit is known later; the digests' seed does not depend on it.
  order_.emplace(run.timing.order, workload_, 1U, 0U, 0U);
  auto loaded = units_.keep(gpu_, pass_->unit);
  if (!loaded)
    return pass(loaded);
  module_ = *loaded;
  auto globals = gpu_.globals(module_);
  if (!globals)
    return device_said(globals.error());
  globals_ = std::move(*globals);
  auto built = call_builder::make(gpu_, module_, *pass_, units_.unit(pass_->unit));
  if (!built)
    return pass(built);
  builder_.emplace(std::move(*built));
  if (auto done = allocate_work(); !done)
    return done;
  auto reserve = gpu_.allocate(reserve_bytes + 2 * gpu_.properties().l2_bytes, "reserve");
  if (!reserve)
    return fail_pass(verdict_status::infrastructure, reserve.error().what);
  for (const auto& one : cases) {
    auto copied = load(one);
    if (!copied)
      return pass(copied);
    if (!*copied)
      break;
    masters_.push_back(std::move(**copied));
    cases_.push_back(one);
  }
  if (auto done = gpu_.free(*reserve); !done)
    return device_said(done.error());
  if (auto done = draw_poison(); !done)
    return done;
  order_.emplace(run.timing.order, workload_, static_cast<uint32_t>(masters_.size()),
    static_cast<uint32_t>(pass_->buffers.size()), run.timing.written_share);
  tally_.emplace(run.timing.written_max);
  return {};
}

pass_result<void> timed_calls::refill_room(size_t index, uint64_t seed) {
  const auto base = work_[index];
  const auto end = base + buffer(index).bytes + shift_room;
  const auto behind = word_end(addresses_[index] + buffer(index).bytes);
  if (addresses_[index] > base)
    if (auto done = gpu_.fill(base, addresses_[index] - base, seed); !done)
      return device_said(done.error());
  if (behind < end)
    if (auto done = gpu_.fill(behind, end - behind, seed + 1); !done)
      return device_said(done.error());
  return {};
}

pass_result<void> timed_calls::fill_buffer(size_t index) {
  const auto& what = buffer(index);
  const auto seed = now_.fill + 4 * index;
  // Restored scratch is zero wherever it lies: what is not has been left there.
  if (what.init == "restored")
    return {};
  // Nothing that a kernel leaves beside its buffers is there at the next call.
  if (auto done = refill_room(index, seed); !done)
    return done;
  const auto from = [&]() -> device_pointer {
    if (what.kind == role::input)
      return masters_[now_.which].contents[index];
    if (what.kind != role::output)
      return 0;
    const auto own = poison_.contents[index];
    return own != 0 ? own : masters_[now_.poison].contents[index];
  }();
  auto done = from == 0 ? gpu_.fill(addresses_[index], what.bytes, seed + 2)
                        : gpu_.copy(addresses_[index], from, what.bytes);
  if (!done)
    return device_said(done.error());
  return {};
}

pass_result<void> timed_calls::prepare(uint32_t number) {
  now_ = order_->draw(number);
  addresses_.assign(work_.size(), 0);
  for (size_t i = 0; i < work_.size(); ++i) {
    if (work_[i] == 0)
      continue;
    addresses_[i] = place_in_room(work_[i], shift_room, buffer(i).align, now_.places[i]);
    if (auto done = fill_buffer(i); !done)
      return done;
  }
  auto steps = builder_->steps(addresses_);
  if (!steps)
    return pass(steps);
  steps_ = std::move(*steps);
  return {};
}

void timed_calls::note(const char* rule, std::string what) {
  const bool is_known = std::any_of(
    findings_.begin(), findings_.end(), [&](const finding& one) { return one.rule == rule; });
  if (!is_known)
    findings_.push_back({rule, "", std::move(what), true});
}

pass_result<void> timed_calls::check_inputs() {
  for (size_t i = 0; i < work_.size(); ++i) {
    if (buffer(i).kind != role::input || work_[i] == 0)
      continue;
    auto found = gpu_.difference(addresses_[i], masters_[now_.which].contents[i], buffer(i).bytes);
    if (!found)
      return device_said(found.error());
    if (found->words > 0)
      note("writes_input",
        fmt::format("a timed call left `{}` with {} of its words of eight bytes changed, the first "
                    "at byte {}",
          buffer(i).name, found->words, found->first));
  }
  return {};
}

pass_result<void> timed_calls::check_restored() {
  for (size_t i = 0; i < work_.size(); ++i) {
    if (buffer(i).init != "restored" || work_[i] == 0)
      continue;
    auto digest = gpu_.digest(work_[i], buffer(i).bytes + shift_room, order_->digest_seed());
    if (!digest)
      return device_said(digest.error());
    if (*digest != zero_digests_[i])
      return fail_pass(verdict_status::runtime_error,
        fmt::format("scratch `{}` is declared `restored`, but is not zero after a timed call",
          buffer(i).name));
  }
  return {};
}

pass_result<void> timed_calls::check_globals() {
  if (globals_.empty())
    return {};
  auto now = gpu_.globals(module_);
  if (!now)
    return device_said(now.error());
  if (*now != globals_)
    note("changes_global",
      "a module global differs after a timed call: the kernel could carry an answer from one call "
      "to the next");
  return {};
}

pass_result<bool> timed_calls::outputs_equal() {
  for (size_t i = 0; i < work_.size(); ++i) {
    if (buffer(i).kind != role::output || work_[i] == 0)
      continue;
    auto digest = gpu_.digest(addresses_[i], buffer(i).bytes, order_->digest_seed());
    if (!digest)
      return device_said(digest.error());
    if (*digest != masters_[now_.which].digests[i])
      return false;
  }
  return true;
}

pass_result<void> timed_calls::write_out(uint32_t number) {
  for (size_t i = 0; i < work_.size(); ++i) {
    if (buffer(i).kind != role::output)
      continue;
    std::vector<std::byte> content(buffer(i).bytes);
    if (!content.empty())
      if (auto done = gpu_.copy_out(content, addresses_[i]); !done)
        return device_said(done.error());
    const auto& file = cases_[now_.which].pass->buffers[i].file;
    if (auto done =
          write_tensor_file(context_.path(written_file(file, call_name(number))), content);
        !done)
      return fail_pass(verdict_status::infrastructure, done.error().what);
  }
  case_of_written_.emplace_back(number, now_.which);
  return {};
}

void timed_calls::forget(uint32_t number) {
  const auto found = std::find_if(case_of_written_.begin(), case_of_written_.end(),
    [&](const auto& one) { return one.first == number; });
  if (found == case_of_written_.end())
    return;
  std::error_code error; // What cannot be removed is not named either.
  for (const auto& one : cases_[found->second].pass->buffers)
    if (one.what.kind == role::output)
      std::filesystem::remove(context_.path(written_file(one.file, call_name(number))), error);
  case_of_written_.erase(found);
}

pass_result<void> timed_calls::look(uint32_t number) {
  if (auto done = check_inputs(); !done)
    return done;
  if (auto done = check_restored(); !done)
    return done;
  if (auto done = check_globals(); !done)
    return done;
  if (!cases_.front().has_outputs)
    return {};
  auto equal = outputs_equal();
  if (!equal)
    return pass(equal);
  const auto decided = tally_->consider(number, *equal, now_.is_shared, now_.keep);
  if (decided.drop)
    forget(*decided.drop);
  return decided.write ? write_out(number) : pass_result<void>{};
}

std::string timed_calls::remarks(const measured_call& measured, size_t asked) const {
  std::string out;
  const auto add = [&](std::string text) { out += (out.empty() ? "" : "; ") + std::move(text); };
  if (masters_.size() < asked)
    add(fmt::format("timed on the first {} of {} cases, because the device's memory holds no more",
      masters_.size(), asked));
  if (!measured.canary_stable)
    add("the device's clock still moved by more than 1 % when the warm-up gave up");
  if (measured.samples_ns.size() < context_.what.run.samples)
    add(fmt::format("{} of {} samples within the time limit", measured.samples_ns.size(),
      context_.what.run.samples));
  if (tally_->unequal() > 0)
    add(fmt::format("{} of {} timed calls gave other bits than the checked call{}",
      tally_->unequal(), tally_->looked_at(),
      tally_->left_out_unequal()
        ? fmt::format("; {} of them, drawn at random, were written out", tally_->kept().size())
        : ""));
  return out;
}

timing_protocol timed_calls::protocol() const {
  const auto& run = context_.what.run;
  timing_protocol how;
  // A device that has just worked on the workload before needs only to get used to this one; the
  // canary has to be stable all the same.
  how.warm_up =
    std::chrono::nanoseconds(run.timing.warm_up_ns) / (workload_ == 0 ? 1 : later_warm_up_part);
  how.samples = run.samples;
  how.limit = std::chrono::nanoseconds(run.timing.limit_ns);
  how.trace = run.timing.trace;
  how.flush =
    run.timing.flush == to_string(flush_kind::clean) ? flush_kind::clean : flush_kind::official;
  return how;
}

pass_result<timed_workload> timed_calls::take(const std::vector<timed_case>& cases) {
  if (auto done = set_up(cases); !done)
    return pass(done);
  // Our own failures go past the device, which knows no statuses.
  std::optional<pass_failure> broken;
  const auto said = [&](const pass_result<void>& done) -> result<void> {
    if (done)
      return {};
    broken = done.error();
    return fail(errc::device_fault, done.error().detail);
  };
  call_script script;
  const auto how = protocol();
  script.prepare = [&](uint32_t number, call_use use) -> result<std::span<const call_step>> {
    on_.may_take(work_allowance);
    if (auto done = said(prepare(number)); !done)
      return pass(done);
    on_.may_take(how.limit + (use == call_use::warm_up ? warm_up_stretch : 0) * how.warm_up);
    return std::span<const call_step>(steps_);
  };
  script.after = [&](uint32_t number, call_use) {
    on_.may_take(work_allowance);
    return said(look(number));
  };
  auto measured = gpu_.measure(script, how);
  if (broken)
    return tl::unexpected<pass_failure>(std::move(*broken));
  if (!measured)
    return device_said(measured.error());
  timed_workload out;
  out.remarks = remarks(*measured, cases.size());
  out.samples_ns = std::move(measured->samples_ns);
  out.record = std::move(measured->record);
  out.record.digested = tally_->looked_at();
  out.record.digests_equal = tally_->equal();
  for (const auto number : tally_->kept()) {
    const auto found = std::find_if(case_of_written_.begin(), case_of_written_.end(),
      [&](const auto& one) { return one.first == number; });
    out.written.push_back({cases_[found->second].check, call_name(number)});
  }
  out.record.written_out = static_cast<uint32_t>(out.written.size());
  out.findings = std::move(measured->findings);
  out.findings.insert(out.findings.end(), findings_.begin(), findings_.end());
  return out;
}

} // namespace gristmill
