#include "agent/port_reservation.h"
