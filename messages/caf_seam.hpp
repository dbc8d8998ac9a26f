#pragma once

// The one place that knows which CAF it is. Debian ships 0.17.6; upstream is at 1.x, and the move
// must stay a change of this file. Everything else talks to CAF through the names below.

#include <caf/all.hpp>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Only the major version may be compared: 1.1.0 defines CAF_VERSION as the octal literal 0100.
#if CAF_MAJOR_VERSION != 0
#error "messages/caf_seam.hpp is written for CAF 0.17; port it here and nowhere else"
#endif

// ---- fields of a message
// ------------------------------------------------------------------------- GRISTMILL_FIELDS(type,
// a, b, c) in namespace gristmill makes a struct a message: a free function, so that the structs
// themselves know nothing of CAF.
#define GRISTMILL_PARENS ()
#define GRISTMILL_EXPAND(...) GRISTMILL_E3(GRISTMILL_E3(GRISTMILL_E3(__VA_ARGS__)))
#define GRISTMILL_E3(...) GRISTMILL_E2(GRISTMILL_E2(GRISTMILL_E2(__VA_ARGS__)))
#define GRISTMILL_E2(...) GRISTMILL_E1(GRISTMILL_E1(GRISTMILL_E1(__VA_ARGS__)))
#define GRISTMILL_E1(...) __VA_ARGS__
#define GRISTMILL_EACH(m, ...) __VA_OPT__(GRISTMILL_EXPAND(GRISTMILL_EACH_1(m, __VA_ARGS__)))
#define GRISTMILL_EACH_1(m, a, ...)                                                                \
  m(a) __VA_OPT__(, GRISTMILL_EACH_2 GRISTMILL_PARENS(m, __VA_ARGS__))
#define GRISTMILL_EACH_2() GRISTMILL_EACH_1
#define GRISTMILL_FIELD(name) x.name

#define GRISTMILL_FIELDS(type, ...)                                                                \
  template <class Inspector>                                                                       \
  typename Inspector::result_type inspect(Inspector& f, type& x) {                                 \
    (void)x;                                                                                       \
    return f(                                                                                      \
      caf::meta::type_name(#type) __VA_OPT__(, GRISTMILL_EACH(GRISTMILL_FIELD, __VA_ARGS__)));     \
  }

// A block of type IDs a domain. The blocks lie 64 apart, so that one can grow without renumbering
// the next; what travels between nodes is the name, not the number.
#define GRISTMILL_BEGIN_TYPES(block, index)                                                        \
  CAF_BEGIN_TYPE_ID_BLOCK(block, caf::first_custom_type_id + 64 * (index))
#define GRISTMILL_TYPE(block, type) CAF_ADD_TYPE_ID(block, (type))
#define GRISTMILL_END_TYPES(block) CAF_END_TYPE_ID_BLOCK(block)

namespace gristmill::seam {

/// A handler of a typed actor: `sig<reply, request...>`; `sig<void, event>` for one without a
/// reply.
namespace detail {
template <class R, class... As>
struct sig_of {
  using type = typename caf::replies_to<As...>::template with<R>;
};
} // namespace detail
template <class R, class... As>
using sig = typename detail::sig_of<R, As...>::type;

/// Makes the message types of the blocks known to a system that is yet to be created.
template <class... Blocks>
void add_types(caf::actor_system_config& config) {
  (config.add_message_types<Blocks>(), ...);
}

/// Registers how errors with codes of enum `E` print. `category` has at most ten characters.
template <class E>
void add_errors(caf::actor_system_config& config, const char* category) {
  config.add_error_category(caf::atom_from_string(std::string(category)),
    [](uint8_t code, caf::atom_value, const caf::message& context) {
      std::string text = to_string(static_cast<E>(code));
      if (context.match_elements<std::string>())
        text += ": " + context.get_as<std::string>(0);
      return text;
    });
}

inline std::string show(const caf::actor_system& system, const caf::error& error) {
  return system.render(error);
}

/// Sends without waiting for anything.
template <class Self, class Handle, class... Ts>
void tell(Self* self, const Handle& to, Ts&&... xs) {
  self->send(to, std::forward<Ts>(xs)...);
}

/// Sends after `delay`; cannot be taken back, so the message carries what tells a stale one apart.
template <class Self, class Handle, class... Ts>
void tell_later(Self* self, caf::timespan delay, const Handle& to, Ts&&... xs) {
  self->delayed_send(to, delay, std::forward<Ts>(xs)...);
}

/// Asks an actor of this node. Waits for ever as far as CAF is concerned: the asker keeps its own
/// deadlines, because request timers are never cancelled in 0.17.
template <class Self, class Handle, class... Ts>
auto ask(Self* self, const Handle& to, Ts&&... xs) {
  return self->request(to, caf::infinite, std::forward<Ts>(xs)...);
}

/// Sends from a thread that is no actor.
template <class Handle, class... Ts>
void post(const Handle& to, Ts&&... xs) {
  caf::anon_send(to, std::forward<Ts>(xs)...);
}

/// An exception ends the actor with the text of the exception as its reason, which whoever watches
/// it sees. CAF's own handler would print to standard output, where only data belongs. To be called
/// from `make_behavior`.
template <class Self>
void end_on_exception(Self* self) {
  self->set_exception_handler([](caf::scheduled_actor*, std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      return caf::make_error(caf::sec::runtime_error, std::string(error.what()));
    } catch (...) {
      return caf::sec::runtime_error;
    }
  });
}

/// Calls a function when a watched actor ends. One table an actor; watching a peer twice replaces
/// the function, because a second `monitor` would stack up.
class monitors {
public:
  using handler = std::function<void(const caf::error&)>;

  template <class Self>
  explicit monitors(Self* self) : table_(std::make_shared<table>()) {
    self->set_down_handler([t = table_](caf::down_msg& down) {
      auto found = t->find(down.source);
      if (found == t->end())
        return;
      auto call = std::move(found->second);
      t->erase(found);
      call(down.reason);
    });
  }

  template <class Self, class Handle>
  void watch(Self* self, const Handle& peer, handler on_down) {
    auto address = caf::actor_cast<caf::actor_addr>(peer);
    bool fresh = table_->find(address) == table_->end();
    (*table_)[address] = std::move(on_down);
    if (fresh)
      self->monitor(peer);
  }

  template <class Self, class Handle>
  void unwatch(Self* self, const Handle& peer) {
    auto address = caf::actor_cast<caf::actor_addr>(peer);
    if (table_->erase(address) != 0)
      self->demonitor(address);
  }

  /// To be called from `on_exit`: drops the functions and with them every handle they captured.
  void clear() { table_->clear(); }

private:
  using table = std::map<caf::actor_addr, handler>;
  std::shared_ptr<table> table_;
};

} // namespace gristmill::seam
