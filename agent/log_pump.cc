#include "agent/log_pump.h"
