#include "agent/console_writer.h"
