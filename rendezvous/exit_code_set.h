#ifndef MUSTER_RENDEZVOUS_EXIT_CODE_SET_H_
#define MUSTER_RENDEZVOUS_EXIT_CODE_SET_H_

#include <bitset>
#include <string>

namespace muster {

// Exit codes from 0 to 255, as a shell reports them: 128 + n for signal n. A plain value.
class ExitCodeSet {
 public:
  static constexpr int kSize = 256;

  // Codes beyond kSize are in no set, and adding one does nothing.
  void Add(int code) {
    if (code >= 0 && code < kSize) codes_.set(code);
  }
  bool Contains(int code) const { return code >= 0 && code < kSize && codes_[code]; }
  bool empty() const { return codes_.none(); }

  // "3,64-78"; "none" when empty.
  std::string ToString() const;

  bool operator==(const ExitCodeSet&) const = default;

 private:
  std::bitset<kSize> codes_;
};

}  // namespace muster

#endif  // MUSTER_RENDEZVOUS_EXIT_CODE_SET_H_
