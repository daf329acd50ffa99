#include "agent/tee_stream.h"
