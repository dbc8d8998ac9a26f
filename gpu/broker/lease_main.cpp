// `gristmill lease` as a program of its own: it links nothing but what it needs, because it is
// started for every command that somebody runs on a shared GPU.

#include "gpu/broker/guard.hpp"

int main(int argc, char** argv) {
  return gristmill::lease_program({argv + 1, argv + argc});
}
