#include "agent/line_splitter.h"
