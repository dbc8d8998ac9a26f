// Products of small matrices by a warp.
#pragma once
#include "gristmill/all.h"
#include "gristmill/fragments.h"
