#pragma once

#include "gpu/lease/policy.hpp"

#include <memory>
#include <utility>

namespace gristmill {

/// Passes everything on to another policy: for those who only watch, or change one answer.
class wrapped_policy : public lease_policy {
public:
  explicit wrapped_policy(std::unique_ptr<lease_policy> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  void on_request(const waiter& w) override { inner_->on_request(w); }
  void on_cancel(uint64_t ticket) override { inner_->on_cancel(ticket); }
  void on_grant(uint64_t ticket, uint32_t gpu, std::chrono::nanoseconds now) override {
    inner_->on_grant(ticket, gpu, now);
  }
  void on_release(
    const lease_usage& usage, std::string_view reason, std::chrono::nanoseconds now) override {
    inner_->on_release(usage, reason, now);
  }
  std::optional<uint64_t> pick(const gpu_offer& offer, std::chrono::nanoseconds now) override {
    return inner_->pick(offer, now);
  }
  /// There is no looking ahead through a wrapper.
  std::unique_ptr<lease_policy> clone() const override { return nullptr; }
  std::string save() const override { return inner_->save(); }
  result<void> load(std::string_view text) override { return inner_->load(text); }

private:
  std::unique_ptr<lease_policy> inner_;
};

} // namespace gristmill
