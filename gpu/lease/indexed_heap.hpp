#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gristmill {

/// A binary heap of numbered things (0, 1, 2, …), each with a key that can change: the first of
/// them at once, everything else in O(log n). `Less` orders keys, then numbers:
/// `less(key_a, id_a, key_b, id_b)`; it is handed in with each call, because it may need to look at
/// the things.
template <class Key>
class indexed_heap {
public:
  struct item {
    Key key;
    uint32_t id = 0;
  };

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  const item& top() const { return items_.front(); }
  /// Null when it is not there.
  const Key* key_of(uint32_t id) const { return contains(id) ? &items_[place_[id]].key : nullptr; }
  bool contains(uint32_t id) const { return id < place_.size() && place_[id] != none; }

  /// Adds it, or gives it another key.
  template <class Less>
  void set(uint32_t id, const Key& key, Less less) {
    if (id >= place_.size())
      place_.resize(id + 1, none);
    if (place_[id] == none) {
      place_[id] = static_cast<uint32_t>(items_.size());
      items_.push_back({key, id});
      up(place_[id], less);
      return;
    }
    items_[place_[id]].key = key;
    settle(place_[id], less);
  }

  template <class Less>
  void erase(uint32_t id, Less less) {
    if (!contains(id))
      return;
    auto at = place_[id];
    place_[id] = none;
    auto last = items_.back();
    items_.pop_back();
    if (at == items_.size())
      return;
    put(at, last);
    settle(at, less);
  }

private:
  static constexpr uint32_t none = ~uint32_t{0};

  void put(uint32_t at, const item& what) {
    items_[at] = what;
    place_[what.id] = at;
  }

  template <class Less>
  void settle(uint32_t at, Less less) {
    if (!up(at, less))
      down(at, less);
  }

  template <class Less>
  bool up(uint32_t at, Less less) {
    auto what = items_[at];
    auto from = at;
    while (at > 0) {
      auto parent = (at - 1) / 2;
      if (!less(what.key, what.id, items_[parent].key, items_[parent].id))
        break;
      put(at, items_[parent]);
      at = parent;
    }
    put(at, what);
    return at != from;
  }

  template <class Less>
  void down(uint32_t at, Less less) {
    auto what = items_[at];
    for (;;) {
      auto child = 2 * at + 1;
      if (child >= items_.size())
        break;
      if (child + 1 < items_.size()
        && less(items_[child + 1].key, items_[child + 1].id, items_[child].key, items_[child].id))
        ++child;
      if (!less(items_[child].key, items_[child].id, what.key, what.id))
        break;
      put(at, items_[child]);
      at = child;
    }
    put(at, what);
  }

  std::vector<item> items_;
  /// Where each number stands in `items_`.
  std::vector<uint32_t> place_;
};

} // namespace gristmill
