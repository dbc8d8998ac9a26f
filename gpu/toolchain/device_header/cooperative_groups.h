// The threads that work together.
#pragma once
#include "gristmill/all.h"
#include "gristmill/groups.h"
