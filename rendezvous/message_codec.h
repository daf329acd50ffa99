#ifndef MUSTER_RENDEZVOUS_MESSAGE_CODEC_H_
#define MUSTER_RENDEZVOUS_MESSAGE_CODEC_H_

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "proto/rendezvous.pb.h"
#include "rendezvous/messages.h"

// Between the plain messages of the machines and their form on the wire. Everything that comes from
// the network is checked here, so that the machines see only values that make sense by themselves.

namespace muster {

inline constexpr size_t kIdBytesMax = 255;    // job id, node id, role
inline constexpr size_t kHostBytesMax = 255;  // addresses and host names
inline constexpr size_t kTextBytesMax =
    8192;  // sentences, details, what a worker said of its error
inline constexpr size_t kOwnAddressesMax = 64;
inline constexpr size_t kWireBytesMax = 256 * 1024;  // one message; both ends refuse more

// Metadata key with which a master greets every stream, before it has anything to say.
inline constexpr char kGreeting[] = "muster-master";

// Never fail. Texts that exceed their limit are cut, bytes that are not UTF-8 become '?'.
v1::AgentMessage Encode(const AgentMessage& message);
v1::MasterMessage Encode(const MasterMessage& message);
v1::JobSettings Encode(const JobSettings& settings);
std::string WireText(std::string_view text, size_t bytes_max);

// Unimplemented: a kind of message that this version does not know.
// InvalidArgument: a value that cannot be meant (an empty job id, negative slots, a port above
// 65535, a text over its limit); one sentence names the field and the value. Whether settings make
// sense together is for the round machine to say, whose answer an agent can act on.
absl::StatusOr<AgentMessage> Decode(const v1::AgentMessage& wire);
absl::StatusOr<MasterMessage> Decode(const v1::MasterMessage& wire);
absl::StatusOr<JobSettings> Decode(const v1::JobSettings& wire);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_MESSAGE_CODEC_H_
