#pragma once

#include "actors/transport/cluster_address.hpp"

namespace gristmill {

/// A port that is taken: nobody else can have it any more. Whoever connects waits in the kernel
/// until somebody accepts, or is turned away when this goes. Children of the process do not get it.
class listening_socket {
public:
  /// Takes the port. Errors: `invalid_input`, with a remedy (in use, not of this machine, name
  /// unknown); `io_failed`.
  static result<listening_socket> at(const cluster_address& where);

  listening_socket(listening_socket&& other) noexcept;
  listening_socket& operator=(listening_socket&& other) noexcept;
  ~listening_socket();

  /// Where `at` was given port 0, the one that the system has picked.
  uint16_t port() const;
  /// The descriptor, which does not block. The caller closes it.
  int release();

private:
  explicit listening_socket(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

} // namespace gristmill
