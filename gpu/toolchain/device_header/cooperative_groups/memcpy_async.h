// What a group does together.
#pragma once
#include "../gristmill/all.h"
#include "../gristmill/groups_collective.h"
