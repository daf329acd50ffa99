#ifndef MUSTER_TESTS_SIM_SIM_TEXT_H_
#define MUSTER_TESTS_SIM_SIM_TEXT_H_

#include <string>

#include "agent/events.h"
#include "rendezvous/events.h"

// One line for each thing that happens: the trace of a simulation.

namespace muster::sim {

std::string Text(const SupervisorEvent& event);
std::string Text(const SupervisorEffect& effect);
std::string Text(const RoundEvent& event);
std::string Text(const RoundEffect& effect);

// "1.5s"
std::string Text(Duration duration);

}  // namespace muster::sim

#endif  // MUSTER_TESTS_SIM_SIM_TEXT_H_
