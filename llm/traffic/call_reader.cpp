#include "llm/traffic/call_reader.hpp"

#include <algorithm>
#include <cctype>

namespace gristmill {

namespace {

bool is_event_stream(const http_headers& headers) {
  for (const auto& [name, value] : headers)
    if (name == "content-type") {
      std::string low;
      for (const char c : value)
        low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return low.find("event-stream") != std::string::npos;
    }
  return false;
}

/// A gateway may have lost an answer that its model server has begun, and been billed for.
bool may_hide_work(uint32_t status) {
  // 520 to 524: what a network in front says of the server behind it.
  return status == 408 || status == 502 || status == 504 || (status >= 520 && status <= 524);
}

/// The server has decided before it did anything.
bool says_no(trouble_kind kind) {
  return kind == trouble_kind::throttle || kind == trouble_kind::overload
    || kind == trouble_kind::money || kind == trouble_kind::too_big || kind == trouble_kind::config;
}

} // namespace

call_reader::call_reader(uint64_t id, const dialect& how, uint32_t cap)
  : id_(id), how_(how), cap_(cap), decoder_(how.decoder()) {}

std::optional<try_result> call_reader::take(const http_report& report,
  std::chrono::nanoseconds since_sent, std::chrono::sys_seconds now_utc) {
  if (status_ == 0 && report.status != 0) {
    status_ = report.status;
    headers_ = report.headers;
  }
  for (const auto& event : report.events) {
    if (!any_event_)
      first_event_ = since_sent;
    any_event_ = true;
    if (!decoder_->finished())
      decoder_->take(event);
  }
  if (!report.ended)
    return std::nullopt;
  auto out = end(report, now_utc);
  if (auto id = request_id_of(headers_); !id.empty())
    out.reply.request_id = std::move(id);
  return out;
}

bool call_reader::just_finished() {
  if (finished_told_ || !any_event_ || !decoder_->finished())
    return false;
  finished_told_ = true;
  return true;
}

try_result call_reader::end(const http_report& last, std::chrono::sys_seconds now_utc) {
  try_result out;
  out.id = id_;
  out.status = status_;
  out.first_event = first_event_;
  if (status_ != 0)
    out.limits = how_.limits_of(headers_, now_utc);
  // The dialect's own end decides; what the transport thinks of the rest does not matter.
  if (any_event_ && decoder_->finished()) {
    out.reply = decoder_->result(cap_);
    out.refused_unbilled = says_no(out.reply.failed.kind) && decoder_->text_bytes() == 0;
    return out;
  }
  auto failed = [&](trouble_kind kind) {
    if (any_event_)
      out.reply = decoder_->result(cap_);
    out.reply.failed = {
      kind, std::chrono::nanoseconds{0}, last.why.empty() ? to_string(last.how) : last.why};
  };
  switch (last.how) {
  case http_end::complete:
    if (status_ == 200 && (any_event_ || is_event_stream(headers_))) {
      out.reply = decoder_->result(cap_);
      out.refused_unbilled = says_no(out.reply.failed.kind) && decoder_->text_bytes() == 0;
    } else {
      auto whole = last;
      whole.status = status_;
      whole.headers = headers_;
      out.reply.failed = how_.judge_failure(whole, now_utc);
      // Whatever that is, it is no answer.
      if (out.reply.failed.kind == trouble_kind::none)
        out.reply.failed = {trouble_kind::ambiguous, std::chrono::nanoseconds{0},
          "the server answered with something that is no event stream"};
      // A wrong endpoint that answers 200 may be a model that has worked, without a stream.
      out.refused_unbilled = status_ == 200
        ? says_no(out.reply.failed.kind) && out.reply.failed.kind != trouble_kind::config
        : status_ >= 400 && !may_hide_work(status_);
    }
    break;
  case http_end::cancelled:
    out.cancelled = true;
    failed(trouble_kind::ambiguous);
    break;
  case http_end::not_sent:
    out.sent = false;
    // A key that is not in its variable does not come by waiting.
    failed(how_.judge_failure(last, now_utc).kind == trouble_kind::config ? trouble_kind::config
                                                                          : trouble_kind::overload);
    break;
  case http_end::connect_timeout:
    out.sent = false;
    out.timed_out = true;
    failed(trouble_kind::overload);
    break;
  case http_end::first_event_timeout:
  case http_end::idle_timeout:
  case http_end::wall_timeout:
    out.timed_out = true;
    failed(trouble_kind::ambiguous);
    break;
  case http_end::cut_off:
    // Before the first event it is as if the server had said 503, but what it did nobody knows.
    failed(any_event_ ? trouble_kind::ambiguous : trouble_kind::transient);
    break;
  case http_end::too_large:
    failed(trouble_kind::ambiguous);
    break;
  }
  // A transfer that broke off has no usage that can be trusted to be all.
  if (out.reply.failed.kind != trouble_kind::none && last.how != http_end::complete
    && out.reply.usage.state == usage_state::exact)
    out.reply.usage.state = usage_state::estimated;
  return out;
}

} // namespace gristmill
