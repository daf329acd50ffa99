#include "rendezvous/credential_files.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/unique_fd.h"

namespace muster {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;
constexpr size_t kTokenBytesMin = 16;
constexpr size_t kTokenBytesMax = 4096;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::FailedPreconditionError(absl::StrCat(parts...));
}

Bio BioOf(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

// Instead of OpenSSL's question at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

Certificate FirstCertificate(const std::string& text) {
  ERR_clear_error();
  const Bio bio = BioOf(text);
  return {PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr), &X509_free};
}

std::string DateOf(const ASN1_TIME* time) {
  std::tm date{};
  if (ASN1_TIME_to_tm(time, &date) != 1) return "an unknown date";
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &date));
}

// The first DNS name, else the common name.
std::string NameOf(X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string name;
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && name.empty(); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(names, i);
    if (entry->type != GEN_DNS && entry->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = entry->d.ia5;
    name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                static_cast<size_t>(ASN1_STRING_length(text)));
  }
  GENERAL_NAMES_free(names);
  if (!name.empty()) return name;
  char common[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, common,
                            sizeof(common));
  return common;
}

absl::Status CheckPeriod(const std::string& path, X509* certificate) {
  const ASN1_TIME* begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* end = X509_get0_notAfter(certificate);
  if (X509_cmp_current_time(begin) > 0) {
    return Refuse(path, ": the certificate is valid from ", DateOf(begin), " on only");
  }
  if (X509_cmp_current_time(end) < 0) {
    return Refuse(path, ": the certificate expired on ", DateOf(end), ": renew it");
  }
  return absl::OkStatus();
}

absl::Status CheckKey(const TlsFiles& files, X509* certificate) {
  const absl::StatusOr<std::string> text = ReadCredentialFile(files.key);
  if (!text.ok()) return text.status();
  const Bio bio = BioOf(*text);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &NoPassphrase, nullptr),
                &EVP_PKEY_free);
  if (key == nullptr) {
    return Refuse(files.key, " holds no private key in PEM form without a passphrase");
  }
  if (X509_check_private_key(certificate, key.get()) == 1) return absl::OkStatus();
  return Refuse(files.key, " is not the key of the certificate in ", files.cert);
}

bool IsToken(absl::string_view text) {
  return text.size() >= kTokenBytesMin && text.size() <= kTokenBytesMax &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c); });
}

}  // namespace

absl::StatusOr<std::string> ReadCredentialFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || fstat(fd.get(), &status) != 0) {
    return Refuse("cannot read ", path, ": ", std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return Refuse("cannot read ", path, ": it is no file");
  std::string text(kFileBytesMax + 1, '\0');
  size_t size = 0;
  for (;;) {
    const ssize_t got = read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0) return Refuse("cannot read ", path, ": ", std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
    if (size > kFileBytesMax) return Refuse(path, " is over 1 MiB");
  }
  text.resize(size);
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadCredentialFile(path);
  if (!text.ok()) return text.status();
  std::vector<std::string> tokens;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (!IsToken(line)) {
      return Refuse(path, ":", number, " is no token: one has 16 to 4096 printable characters ",
                    "without blanks, as from 'openssl rand -hex 32'");
    }
    tokens.emplace_back(line);
  }
  if (tokens.empty()) return Refuse(path, " holds no token: put one a line");
  return tokens;
}

absl::StatusOr<std::string> CheckTlsFiles(const TlsFiles& files) {
  if (!files.ca.empty()) {
    const absl::StatusOr<std::string> text = ReadCredentialFile(files.ca);
    if (!text.ok()) return text.status();
    if (FirstCertificate(*text) == nullptr) {
      return Refuse(files.ca, " holds no certificate in PEM form");
    }
  }
  if (files.cert.empty()) return "";
  const absl::StatusOr<std::string> text = ReadCredentialFile(files.cert);
  if (!text.ok()) return text.status();
  const Certificate certificate = FirstCertificate(*text);
  if (certificate == nullptr) return Refuse(files.cert, " holds no certificate in PEM form");
  if (absl::Status status = CheckPeriod(files.cert, certificate.get()); !status.ok()) return status;
  if (absl::Status status = CheckKey(files, certificate.get()); !status.ok()) return status;
  return absl::StrCat("certificate of ", NameOf(certificate.get()), ", valid until ",
                      DateOf(X509_get0_notAfter(certificate.get())));
}

absl::Status CheckFiles(const TlsFiles& tls, const std::string& token_file) {
  absl::Status status = CheckTlsFiles(tls).status();
  if (status.ok() && !token_file.empty()) status = ReadTokens(token_file).status();
  return status;
}

absl::Status CheckFiles(const EtcdOptions& etcd) {
  absl::Status status = CheckTlsFiles({etcd.ca_file, etcd.cert_file, etcd.key_file}).status();
  if (status.ok() && !etcd.password_file.empty()) {
    status = ReadCredentialFile(etcd.password_file).status();
  }
  return status;
}

std::string ExposureOf(const std::string& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return "";
  if ((status.st_mode & (S_IROTH | S_IWOTH)) == 0) return "";
  return absl::StrCat(path, " can be read by every user of this machine: chmod 600 it");
}

bool SameSecret(std::string_view a, std::string_view b) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hashes[2];
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), hashes[0].data());
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), hashes[1].data());
  return CRYPTO_memcmp(hashes[0].data(), hashes[1].data(), SHA256_DIGEST_LENGTH) == 0;
}

}  // namespace muster
