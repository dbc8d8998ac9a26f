#pragma once

#include "messages/measure.hpp"

#include <string>

namespace gristmill {

/// Names what is measured, apart from who asks and under which lease: equal keys mean the same code
/// on the same inputs, so that a measurement which ended while the coordinator was away can stand
/// for the one that it asks for again. A SHA-256 in hexadecimal.
std::string measure_key(const measure_request& what);

} // namespace gristmill
