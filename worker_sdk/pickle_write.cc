#include <cstring>

#include "worker_sdk/pickle.h"

namespace muster {
namespace {

// Opcodes of protocol 2.
class Writer {
 public:
  void Op(char code) { bytes_ += code; }
  void Global(std::string_view module, std::string_view name) {
    bytes_ += 'c';
    bytes_.append(module).append("\n").append(name).append("\n");
  }
  void Text(std::string_view text) {
    Op('X');
    Raw(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  void Int(int64_t number) {
    if (number >= INT32_MIN && number <= INT32_MAX) {
      Op('J');
      Raw(static_cast<int32_t>(number));
    } else {
      bytes_ += "\x8a\x08";  // LONG1 of 8 bytes
      Raw(number);
    }
  }
  void Tuple(const std::vector<int64_t>& numbers) {
    Op('(');
    for (const int64_t number : numbers) Int(number);
    Op('t');
  }
  void EmptyOrderedDict() {
    Global("collections", "OrderedDict");
    bytes_ += ")R";
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <class T>
  void Raw(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  std::string bytes_ = "\x80\x02";
};

void Tensor(Writer& out, const PickledTensor& tensor) {
  out.Global("torch._utils", "_rebuild_tensor_v2");
  out.Op('(');
  out.Op('(');
  out.Text("storage");
  out.Global("torch", tensor.storage);
  out.Text(tensor.key);
  out.Text("cpu");
  out.Int(tensor.numel);
  out.Op('t');
  out.Op('Q');
  out.Int(tensor.offset);
  out.Tuple(tensor.sizes);
  out.Tuple(tensor.strides);
  out.Op('\x89');  // no gradient
  out.EmptyOrderedDict();
  out.Op('t');
  out.Op('R');
}

}  // namespace

std::string Pickle(const PickledStateDict& tensors) {
  Writer out;
  out.EmptyOrderedDict();
  out.Op('(');
  for (const auto& [name, tensor] : tensors) {
    out.Text(name);
    Tensor(out, tensor);
  }
  out.Op('u');
  out.Op('.');
  return out.Take();
}

}  // namespace muster
