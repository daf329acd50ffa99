#ifndef MUSTER_RENDEZVOUS_CREDENTIAL_FILES_H_
#define MUSTER_RENDEZVOUS_CREDENTIAL_FILES_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/etcd_options.h"
#include "rendezvous/security.h"

// The files behind rendezvous/security.h. Everything blocks as the disk does. All errors are
// FailedPrecondition, one line that names the file and never what is in it.

namespace muster {

// The content of a file with a secret, a certificate or settings, 1 MiB at most.
absl::StatusOr<std::string> ReadCredentialFile(const std::string& path);

// The tokens of a file: one a line; empty lines and those that begin with '#' do not count. At
// least one, each of 16 to 4096 printable ASCII characters without blanks.
absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& path);

// Whether the files can be used now: they are there, in PEM form, the key belongs to the
// certificate and is not encrypted, and the certificate has begun and not expired. Empty names are
// not looked at. The value describes the certificate for the log: "certificate of a.example.org,
// valid until 2027-01-01"; empty where there is none.
absl::StatusOr<std::string> CheckTlsFiles(const TlsFiles& files);

// All files of one side: those of CheckTlsFiles, and one of tokens where it is named.
absl::Status CheckFiles(const TlsFiles& tls, const std::string& token_file);
absl::Status CheckFiles(const EtcdOptions& etcd);

// What users should hear of a secret's file: one line when others can read it, else empty.
std::string ExposureOf(const std::string& path);

// Whether the texts are equal, in a time that does not tell how far they are.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_CREDENTIAL_FILES_H_
