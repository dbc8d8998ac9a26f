#include "kernels/families/index_pool.hpp"

#include "kernels/pointwise_operators.hpp"

#include <fmt/format.h>

namespace gristmill {

index_id index_pool::insert(node one) {
  const auto key = std::make_tuple(one.what, one.number, one.text, one.a, one.b);
  const auto [found, is_new] = known_.try_emplace(key, static_cast<index_id>(nodes_.size()));
  if (is_new) {
    if (nodes_.size() > 100'000)
      throw no_template{"the graph's index arithmetic is too long for one kernel"};
    nodes_.push_back(std::move(one));
  } else if (one.bound >= 0) {
    nodes_[static_cast<size_t>(found->second)].bound = one.bound;
  }
  return found->second;
}

index_id index_pool::constant(int64_t number) {
  return insert({kind::constant, number, {}, -1, -1, -1});
}

index_id index_pool::size(size_pair traced) {
  const auto text = sizes_.text(traced);
  if (!text)
    throw no_template{
      fmt::format("no axis of the definition explains a dimension of size {}", traced.first)};
  if (text->find_first_not_of("0123456789") == std::string::npos)
    return constant(std::stoll(*text));
  return insert({kind::size, 0, *text, -1, -1, -1});
}

index_id index_pool::variable(const std::string& text, index_id bound) {
  return insert({kind::variable, 0, text, -1, -1, bound});
}

bool index_pool::is_constant(index_id id, int64_t number) const {
  return at(id).what == kind::constant && at(id).number == number;
}

int64_t index_pool::number(index_id id) const {
  return at(id).what == kind::constant ? at(id).number : -1;
}

bool index_pool::is_below(index_id id, index_id limit) const {
  const node& one = at(id);
  if (one.what == kind::constant && at(limit).what == kind::constant)
    return one.number < at(limit).number;
  if (one.what == kind::constant && one.number == 0)
    return true; // Of an empty dimension nothing is ever read.
  if (one.bound < 0)
    return false;
  return one.bound == limit
    || (at(one.bound).what == kind::constant && at(limit).what == kind::constant
      && at(one.bound).number <= at(limit).number);
}

index_id index_pool::exact_quotient(index_id a, index_id b) {
  const node x = at(a);
  if (a == b)
    return constant(1);
  if (x.what == kind::constant)
    return at(b).what == kind::constant && at(b).number > 0 && x.number % at(b).number == 0
      ? constant(x.number / at(b).number)
      : x.number == 0 ? a
                      : -1;
  if (x.what == kind::times) {
    if (const index_id second = exact_quotient(x.b, b); second >= 0)
      return times(x.a, second);
    if (const index_id first = exact_quotient(x.a, b); first >= 0)
      return times(first, x.b);
  }
  if (x.what == kind::add) {
    const index_id first = exact_quotient(x.a, b);
    const index_id second = first < 0 ? -1 : exact_quotient(x.b, b);
    if (second >= 0)
      return add(first, second);
  }
  return -1;
}

index_id index_pool::add(index_id a, index_id b) {
  if (is_constant(a, 0))
    return b;
  if (is_constant(b, 0))
    return a;
  if (at(a).what == kind::constant && at(b).what == kind::constant)
    return constant(at(a).number + at(b).number);
  if (at(a).what == kind::constant)
    std::swap(a, b);
  // (x / n) * n + x % n
  const node left = at(a);
  const node right = at(b);
  if (right.what == kind::rest && left.what == kind::times && left.b == right.b
    && at(left.a).what == kind::over && at(left.a).a == right.a && at(left.a).b == right.b)
    return right.a;
  return insert({kind::add, 0, {}, a, b, -1});
}

index_id index_pool::minus(index_id a, index_id b, index_id bound) {
  if (is_constant(b, 0))
    return a;
  if (a == b)
    return constant(0);
  if (at(a).what == kind::constant && at(b).what == kind::constant)
    return constant(at(a).number - at(b).number);
  // (x + b) - b, and constants of sums.
  const node left = at(a);
  if (left.what == kind::add && left.b == b)
    return left.a;
  if (left.what == kind::add && at(left.b).what == kind::constant && at(b).what == kind::constant
    && at(left.b).number > at(b).number)
    return add(left.a, constant(at(left.b).number - at(b).number));
  return insert({kind::minus, 0, {}, a, b, bound});
}

index_id index_pool::times(index_id a, index_id b) {
  if (is_constant(a, 0) || is_constant(b, 1))
    return a;
  if (is_constant(b, 0) || is_constant(a, 1))
    return b;
  if (at(a).what == kind::constant && at(b).what == kind::constant)
    return constant(at(a).number * at(b).number);
  if (at(a).what == kind::constant)
    std::swap(a, b);
  return insert({kind::times, 0, {}, a, b, -1});
}

index_id index_pool::over(index_id a, index_id b) {
  if (is_constant(b, 1) || is_constant(a, 0))
    return a;
  if (at(a).what == kind::constant && at(b).what == kind::constant && at(b).number > 0)
    return constant(at(a).number / at(b).number);
  if (is_below(a, b))
    return constant(0);
  if (const index_id exact = exact_quotient(a, b); exact >= 0)
    return exact;
  const node x = at(a);
  if (x.what == kind::add) {
    if (const index_id first = exact_quotient(x.a, b); first >= 0)
      return add(first, over(x.b, b));
    if (const index_id second = exact_quotient(x.b, b); second >= 0)
      return add(over(x.a, b), second);
  }
  // x below n * b gives less than n.
  index_id bound = -1;
  if (x.bound >= 0)
    bound = exact_quotient(x.bound, b);
  return insert({kind::over, 0, {}, a, b, bound});
}

index_id index_pool::rest(index_id a, index_id b) {
  if (is_constant(b, 1))
    return constant(0);
  if (at(a).what == kind::constant && at(b).what == kind::constant && at(b).number > 0)
    return constant(at(a).number % at(b).number);
  if (is_below(a, b))
    return a;
  if (exact_quotient(a, b) >= 0)
    return constant(0);
  const node x = at(a);
  if (x.what == kind::add) {
    if (exact_quotient(x.a, b) >= 0)
      return rest(x.b, b);
    if (exact_quotient(x.b, b) >= 0)
      return rest(x.a, b);
  }
  // (x % (n * b)) % b
  if (x.what == kind::rest && exact_quotient(x.b, b) >= 0)
    return rest(x.a, b);
  return insert({kind::rest, 0, {}, a, b, b});
}

std::optional<int64_t> index_pool::step_of(index_id id, index_id variable) const {
  if (id == variable)
    return 1;
  const node& one = at(id);
  if (one.what == kind::constant || one.what == kind::size || one.what == kind::variable)
    return 0;
  const auto left = step_of(one.a, variable);
  const auto right = step_of(one.b, variable);
  if (!left || !right)
    return std::nullopt;
  switch (one.what) {
  case kind::add:
    return *left + *right;
  case kind::minus:
    return *left - *right;
  case kind::times:
    if (*left == 0 && *right == 0)
      return 0;
    if (*right == 0 && at(one.b).what == kind::constant)
      return *left * at(one.b).number;
    if (*left == 0 && at(one.a).what == kind::constant)
      return *right * at(one.a).number;
    return std::nullopt;
  default:
    return *left == 0 && *right == 0 ? std::optional<int64_t>{0} : std::nullopt;
  }
}

index_id index_pool::without(index_id id, index_id variable) {
  if (id == variable)
    return constant(0);
  const node one = at(id);
  if (one.what == kind::constant || one.what == kind::size || one.what == kind::variable)
    return id;
  const index_id a = without(one.a, variable);
  const index_id b = without(one.b, variable);
  if (a == one.a && b == one.b)
    return id;
  switch (one.what) {
  case kind::add:
    return add(a, b);
  case kind::minus:
    return minus(a, b, one.bound);
  case kind::times:
    return times(a, b);
  case kind::over:
    return over(a, b);
  default:
    return rest(a, b);
  }
}

bool index_pool::uses(index_id id, index_id variable) const {
  if (id == variable)
    return true;
  const node& one = at(id);
  return (one.a >= 0 && uses(one.a, variable)) || (one.b >= 0 && uses(one.b, variable));
}

bool index_pool::is_multiple(index_id id, int64_t number) {
  return number == 1 || exact_quotient(id, constant(number)) >= 0;
}

index_id index_pool::flat(const std::vector<index_id>& index, const std::vector<index_id>& shape) {
  index_id position = constant(0);
  for (size_t i = 0; i < index.size(); ++i)
    position = add(times(position, shape[i]), index[i]);
  return position;
}

std::vector<index_id> index_pool::unflat(index_id position, const std::vector<index_id>& shape) {
  std::vector<index_id> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    if (i == 0) {
      index[0] = position;
      break;
    }
    index[i] = rest(position, shape[i]);
    position = over(position, shape[i]);
  }
  return index;
}

std::vector<index_id> index_pool::shape(const std::vector<size_pair>& traced) {
  std::vector<index_id> ids;
  for (const size_pair& one : traced)
    ids.push_back(size(one));
  return ids;
}

index_id index_pool::product(const std::vector<index_id>& sizes) {
  index_id all = constant(1);
  for (index_id one : sizes)
    all = times(all, one);
  return all;
}

std::string index_pool::text(
  index_id id, const std::function<std::string(const std::string& formula)>& size_text) const {
  const node& one = at(id);
  const auto infix = [&](const char* sign) {
    return fmt::format("({} {} {})", text(one.a, size_text), sign, text(one.b, size_text));
  };
  switch (one.what) {
  case kind::constant:
    return one.number < 0 ? fmt::format("({})", one.number) : fmt::format("{}", one.number);
  case kind::size:
    return size_text(one.text);
  case kind::variable:
    return one.text;
  case kind::add:
    return infix("+");
  case kind::minus:
    return infix("-");
  case kind::times:
    return infix("*");
  case kind::over:
    return infix("/");
  case kind::rest:
    return infix("%");
  }
  return {};
}

std::string index_pool::plan_text(index_id id) const {
  const node& one = at(id);
  if (one.what == kind::variable)
    throw no_template{"a size depends on data"};
  const auto infix = [&](const char* sign) {
    return fmt::format("({} {} {})", plan_text(one.a), sign, plan_text(one.b));
  };
  switch (one.what) {
  case kind::constant:
    return fmt::format("{}", one.number);
  case kind::size:
  case kind::variable:
    return one.text;
  case kind::add:
    return infix("+");
  case kind::minus:
    return infix("-");
  case kind::times:
    return infix("*");
  case kind::over:
    return infix("//");
  case kind::rest:
    return infix("%");
  }
  return {};
}

std::vector<index_id> through_view(index_pool& pool, const std::vector<size_pair>& from,
  const std::vector<size_pair>& to, const std::vector<index_id>& index_in_to) {
  std::vector<index_id> index(from.size(), pool.constant(0));
  const size_pair unit{1, 1};
  size_t i = 0;
  size_t j = 0;
  while (true) {
    while (i < from.size() && from[i] == unit)
      ++i;
    while (j < to.size() && to[j] == unit)
      ++j;
    if (i == from.size() && j == to.size())
      return index;
    if (i == from.size() || j == to.size())
      throw no_template{"a view changes the number of elements"};
    // The shortest run of dimensions on either side with equally many elements in both traces.
    std::vector<size_pair> left{from[i]};
    std::vector<size_pair> right{to[j]};
    std::vector<index_id> parts{index_in_to[j]};
    const size_t start = i++;
    ++j;
    size_pair a = left.front();
    size_pair b = right.front();
    while (a != b) {
      if ((a.first < b.first || (a.first == b.first && a.second < b.second)) && i < from.size()) {
        a = a * from[i];
        left.push_back(from[i++]);
      } else if (j < to.size()) {
        b = b * to[j];
        right.push_back(to[j]);
        parts.push_back(index_in_to[j++]);
      } else if (i < from.size()) {
        a = a * from[i];
        left.push_back(from[i++]);
      } else {
        throw no_template{"a view changes the number of elements"};
      }
    }
    const auto taken = left.size() == 1 && right.size() == 1
      ? parts
      : pool.unflat(pool.flat(parts, pool.shape(right)), pool.shape(left));
    for (size_t k = 0; k < taken.size(); ++k)
      index[start + k] = taken[k];
  }
}

} // namespace gristmill
