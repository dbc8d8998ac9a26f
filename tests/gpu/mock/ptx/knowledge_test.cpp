#include "gpu/mock/ptx/watch/knowledge.hpp"

#include <doctest/doctest.h>

using gristmill::ptx::knowledge;

TEST_CASE("who knows a moment knows every moment before it, and nothing of others") {
  knowledge k;
  CHECK(k.empty());
  CHECK_FALSE(k.knows(2, 1));
  k.learn(2, 5);
  CHECK(k.knows(2, 5));
  CHECK(k.knows(2, 1));
  CHECK_FALSE(k.knows(2, 6));
  CHECK_FALSE(k.knows(3, 1));
  CHECK_FALSE(k.knows(1, 1));
  k.learn(2, 3);
  CHECK(k.knows(2, 5));
}

TEST_CASE("to join is to know what either knew, and leaves the other as it was") {
  knowledge a;
  knowledge b;
  a.learn(2, 5);
  a.learn(6, 1);
  b.learn(2, 3);
  b.learn(4, 9);
  knowledge both = a;
  both.join(b);
  CHECK(both.knows(2, 5));
  CHECK(both.knows(4, 9));
  CHECK(both.knows(6, 1));
  CHECK_FALSE(a.knows(4, 1));
  CHECK_FALSE(b.knows(6, 1));
  both.join(knowledge{});
  CHECK(both.knows(4, 9));
  knowledge none;
  none.join(a);
  CHECK(none.knows(6, 1));
  none.learn(8, 1);
  CHECK_FALSE(a.knows(8, 1));
}
