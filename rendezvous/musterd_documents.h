#ifndef MUSTER_RENDEZVOUS_MUSTERD_DOCUMENTS_H_
#define MUSTER_RENDEZVOUS_MUSTERD_DOCUMENTS_H_

#include <string>

#include "rendezvous/musterd_config.h"

// What musterd says of itself, made from rendezvous/musterd_table.h. Pure.

namespace muster {

// `musterd --help`.
std::string MusterdHelp();

// packaging/man/musterd.8.
std::string MusterdManPage();

// docs/MUSTERD.md.
std::string MusterdDocument();

// `musterd --check-config`: one line for each option, with where its value comes from.
std::string MusterdSettingsText(const MusterdCommand& command);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MUSTERD_DOCUMENTS_H_
