// All of it is there already.
#pragma once
#include "gristmill/all.h"
