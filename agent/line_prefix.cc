#include "agent/line_prefix.h"
