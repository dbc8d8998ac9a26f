#include "kernels/naive/naive_operators.hpp"

namespace gristmill {

namespace {

template <class Table>
auto find_in(const Table& table, std::string_view op) -> const typename Table::mapped_type* {
  const auto found = table.find(op);
  return found == table.end() ? nullptr : &found->second;
}

} // namespace

const naive_operator_table& naive_operators() {
  static const naive_operator_table table = [] {
    naive_operator_table made;
    add_naive_pointwise(made);
    add_naive_pointwise_backward(made);
    add_naive_creation(made);
    add_naive_movement(made);
    add_naive_scatters(made);
    add_naive_reductions(made);
    add_naive_losses(made);
    add_naive_products(made);
    add_naive_windows(made);
    return made;
  }();
  return table;
}

const naive_row_table& naive_row_operators() {
  static const naive_row_table table = [] {
    naive_row_table made;
    add_naive_normalisation(made);
    return made;
  }();
  return table;
}

const naive_scan_table& naive_scan_operators() {
  static const naive_scan_table table = [] {
    naive_scan_table made;
    add_naive_scans(made);
    return made;
  }();
  return table;
}

const naive_operator* find_naive_operator(std::string_view op) {
  return find_in(naive_operators(), op);
}

const naive_row_operator* find_naive_row_operator(std::string_view op) {
  return find_in(naive_row_operators(), op);
}

const naive_scan_operator* find_naive_scan_operator(std::string_view op) {
  return find_in(naive_scan_operators(), op);
}

} // namespace gristmill
