#include "agent/exit_report.h"
