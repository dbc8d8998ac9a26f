#include "gpu/broker/guard.hpp"

#include "protocol/strict_json.hpp"

namespace gristmill {

using std::chrono::nanoseconds;

std::string guard_report_text(const guard_report& r) {
  ordered_json out = {{"gpu", r.gpu}, {"exit_code", r.exit_code}, {"capped", r.capped},
    {"revoked", r.revoked}, {"held_ns", r.held.count()}, {"cleaned_ns", r.cleaned.count()},
    {"ended_processes", r.ended_processes}};
  if (r.probe) {
    out["probe"] = to_string(r.probe->outcome);
    out["detail"] = r.probe->detail;
  }
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

result<guard_report> parse_guard_report(std::string_view text) {
  auto json = parse_json(text, "report");
  if (!json)
    return pass(json);
  guard_report r;
  std::optional<failure> trouble;
  {
    strict_object in(*json, "report", trouble);
    r.gpu = in.text("gpu", 256);
    r.exit_code = static_cast<int>(in.integer("exit_code", 0, 255));
    r.capped = in.boolean("capped");
    r.revoked = in.text("revoked", 8192);
    r.held = nanoseconds{in.integer("held_ns")};
    r.cleaned = nanoseconds{in.integer("cleaned_ns")};
    r.ended_processes = in.natural32("ended_processes");
    if (in.has("probe")) {
      probe_report probe;
      probe.outcome = static_cast<probe_outcome>(in.choice("probe",
        {to_string(probe_outcome::passed), to_string(probe_outcome::failed),
          to_string(probe_outcome::could_not)}));
      probe.detail = in.text("detail", 8192);
      r.probe = probe;
    }
  }
  if (trouble)
    return tl::unexpected<failure>(*trouble);
  return r;
}

} // namespace gristmill
