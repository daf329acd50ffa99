#include "base/json_leaves.h"
