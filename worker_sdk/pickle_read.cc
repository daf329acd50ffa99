#include <muster/error.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <variant>

#include "worker_sdk/pickle.h"

namespace muster {
namespace {

struct Value;
using Ref = Value*;  // into the machine's arena: no cycle leaks, no depth overflows a stack
struct None {};
struct Mark {};
struct Opaque {};  // something that no state_dict needs
struct Global {
  std::string name;  // "torch._utils _rebuild_tensor_v2"
};
struct Sequence {
  std::vector<Ref> items;
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
struct Storage {
  std::string type, key;
  int64_t numel = 0;
};
struct Value {
  std::variant<None, Mark, Opaque, int64_t, std::string, Global, Sequence, Dict, Storage,
               PickledTensor>
      is;
};

// One pickle, executed as far as data goes.
class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  Ref Run() {
    while (true) {
      at_ = position_;
      const auto code = static_cast<unsigned char>(Raw(1)[0]);
      if (code == '.') return Pop();
      Step(code);
    }
  }

  [[noreturn]] void Fail(const std::string& what) const {
    throw CheckpointError("data.pkl, byte " + std::to_string(at_) + ": " + what);
  }

 private:
  void Step(unsigned char code) {
    if (!PushesConstant(code) && !Remembers(code) && !Builds(code)) {
      char text[8];
      std::snprintf(text, sizeof text, "0x%02x", code);
      Fail("opcode " + std::string(text) + " is not of a state_dict");
    }
  }

  bool PushesConstant(unsigned char code) {
    switch (code) {
      case 0x80:  // PROTO
        Raw(1);
        return true;
      case 'N':
        return Push(None());
      case 0x88:
      case 0x89:
        return Push(static_cast<int64_t>(code == 0x88));
      case 'K':
        return Push(Number<uint8_t>());
      case 'M':
        return Push(Number<uint16_t>());
      case 'J':
        return Push(Number<int32_t>());
      case 0x8a:  // LONG1
        return Push(Long(Raw(Number<uint8_t>())));
      case 'G':  // a double
        Raw(8);
        return Push(Opaque());
      case 'X':
        return Push(std::string(Raw(Number<uint32_t>())));
      case 'c': {
        const std::string module = Line();
        return Push(Global{module + " " + Line()});
      }
      case '(':
        return Push(Mark());
      case '}':
        return Push(Dict());
      case ']':
      case ')':
        return Push(Sequence());
      default:
        return false;
    }
  }

  bool Remembers(unsigned char code) {
    switch (code) {
      case 'q':
        memo_[Number<uint8_t>()] = Top();
        return true;
      case 'r':
        memo_[Number<uint32_t>()] = Top();
        return true;
      case 'h':
        stack_.push_back(Recall(Number<uint8_t>()));
        return true;
      case 'j':
        stack_.push_back(Recall(Number<uint32_t>()));
        return true;
      default:
        return false;
    }
  }

  bool Builds(unsigned char code) {
    switch (code) {
      case 't':
        return Push(Sequence{SinceMark()});
      case 0x85:
      case 0x86:
      case 0x87:
        return Push(Sequence{Last(code - 0x84u)});
      case 'a':
        return Append(Last(1));
      case 'e':
        return Append(SinceMark());
      case 's':
        return SetItems(Last(2));
      case 'u':
        return SetItems(SinceMark());
      case 'b':  // attributes, such as _metadata: of no use here
        Pop();
        return true;
      case 'Q':
        return Push(StorageOf(*Pop()));
      case 'R':
        return Reduce();
      default:
        return false;
    }
  }

  bool Append(const std::vector<Ref>& items) {
    auto* list = std::get_if<Sequence>(&Top()->is);
    if (list == nullptr) Fail("items for what is no list");
    list->items.insert(list->items.end(), items.begin(), items.end());
    return true;
  }

  bool SetItems(const std::vector<Ref>& items) {
    auto* dict = std::get_if<Dict>(&Top()->is);
    if (dict == nullptr || items.size() % 2 != 0) Fail("items for what is no dict");
    for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
    return true;
  }

  bool Reduce() {
    const Ref arguments = Pop(), callee = Pop();
    const auto* function = std::get_if<Global>(&callee->is);
    const auto* list = std::get_if<Sequence>(&arguments->is);
    if (function == nullptr || list == nullptr) Fail("a call of what cannot be called");
    if (function->name == "collections OrderedDict") return Push(Dict());
    if (function->name == "torch._utils _rebuild_tensor_v2") return Push(TensorOf(list->items));
    if (function->name == "torch._utils _rebuild_parameter" && !list->items.empty()) {
      stack_.push_back(list->items[0]);
      return true;
    }
    return Push(Opaque());
  }

  // ("storage", type, key, device, numel)
  Storage StorageOf(const Value& id) {
    const auto* items = std::get_if<Sequence>(&id.is);
    if (items == nullptr || items->items.size() != 5) Fail("it is no storage");
    const auto* type = std::get_if<Global>(&items->items[1]->is);
    const auto* key = std::get_if<std::string>(&items->items[2]->is);
    if (type == nullptr || key == nullptr) Fail("it is no storage");
    return {type->name.substr(type->name.find(' ') + 1), *key, IntOf(*items->items[4])};
  }

  PickledTensor TensorOf(const std::vector<Ref>& arguments) {
    const Storage* storage =
        arguments.size() < 4 ? nullptr : std::get_if<Storage>(&arguments[0]->is);
    if (storage == nullptr) Fail("it is no tensor");
    return {storage->type,        storage->key,          storage->numel,
            IntOf(*arguments[1]), IntsOf(*arguments[2]), IntsOf(*arguments[3])};
  }

  int64_t IntOf(const Value& value) {
    const auto* number = std::get_if<int64_t>(&value.is);
    if (number == nullptr) Fail("it is no number");
    return *number;
  }

  std::vector<int64_t> IntsOf(const Value& value) {
    const auto* items = std::get_if<Sequence>(&value.is);
    if (items == nullptr) Fail("it is no shape");
    std::vector<int64_t> numbers;
    for (const Ref& item : items->items) numbers.push_back(IntOf(*item));
    return numbers;
  }

  template <class T>
  bool Push(T value) {
    arena_.push_back(Value{std::move(value)});
    stack_.push_back(&arena_.back());
    return true;
  }
  bool Push(uint8_t number) { return Push(static_cast<int64_t>(number)); }
  bool Push(uint16_t number) { return Push(static_cast<int64_t>(number)); }
  bool Push(int32_t number) { return Push(static_cast<int64_t>(number)); }

  Ref Top() const {
    if (stack_.empty()) Fail("nothing is on the stack");
    return stack_.back();
  }
  Ref Pop() {
    const Ref top = Top();
    stack_.pop_back();
    return top;
  }
  std::vector<Ref> Last(size_t count) {
    if (stack_.size() < count) Fail("too little is on the stack");
    std::vector<Ref> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<Ref> SinceMark() {
    size_t from = stack_.size();
    while (from > 0 && !std::holds_alternative<Mark>(stack_[from - 1]->is)) --from;
    if (from == 0) Fail("there is no mark");
    std::vector<Ref> items = Last(stack_.size() - from);
    stack_.pop_back();
    return items;
  }
  Ref Recall(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) Fail("nothing was remembered as " + std::to_string(index));
    return found->second;
  }

  std::string_view Raw(size_t size) {
    if (size > bytes_.size() - position_) Fail("it ends at byte " + std::to_string(bytes_.size()));
    const std::string_view raw = bytes_.substr(position_, size);
    position_ += size;
    return raw;
  }
  std::string Line() {
    const size_t end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) Fail("it ends at byte " + std::to_string(bytes_.size()));
    std::string line(Raw(end - position_));
    Raw(1);
    return line;
  }
  template <class T>
  T Number() {
    T number{};
    Raw(sizeof number).copy(reinterpret_cast<char*>(&number), sizeof number);
    return number;
  }
  int64_t Long(std::string_view raw) {
    if (raw.size() > sizeof(int64_t)) Fail("a number of " + std::to_string(raw.size()) + " bytes");
    const bool negative = !raw.empty() && (raw.back() & 0x80) != 0;
    int64_t number = negative ? -1 : 0;
    std::memcpy(&number, raw.data(), raw.size());
    return number;
  }

  std::string_view bytes_;
  size_t position_ = 0, at_ = 0;
  std::deque<Value> arena_;
  std::vector<Ref> stack_;
  std::map<uint32_t, Ref> memo_;
};

const Dict* Find(Ref root, const std::string& entry) {
  const Dict* dict = std::get_if<Dict>(&root->is);
  if (dict == nullptr || entry.empty()) return dict;
  for (const auto& [key, value] : dict->items) {
    const auto* name = std::get_if<std::string>(&key->is);
    if (name != nullptr && *name == entry) return std::get_if<Dict>(&value->is);
  }
  return nullptr;
}

std::string NamesOf(const Dict& dict) {
  std::string names;
  for (const auto& [key, value] : dict.items) {
    const auto* name = std::get_if<std::string>(&key->is);
    if (name != nullptr && std::holds_alternative<Dict>(value->is)) {
      names += (names.empty() ? "" : ", ") + *name;
    }
  }
  return names;
}

}  // namespace

PickledStateDict Unpickle(std::string_view bytes, const std::string& entry) {
  Machine machine(bytes);
  const Ref root = machine.Run();
  const Dict* dict = Find(root, entry);
  if (dict == nullptr) {
    throw CheckpointError(entry.empty() ? "it holds no dict" : "it holds no dict '" + entry + "'");
  }
  PickledStateDict tensors;
  for (const auto& [key, value] : dict->items) {
    const auto* name = std::get_if<std::string>(&key->is);
    const auto* tensor = std::get_if<PickledTensor>(&value->is);
    if (name != nullptr && tensor != nullptr) tensors.emplace_back(*name, *tensor);
  }
  if (!tensors.empty() || dict->items.empty()) return tensors;
  const std::string names = NamesOf(*dict);
  throw CheckpointError("it holds a dict without tensors" +
                        (names.empty() ? "" : ", with the dicts " + names + ": choose an entry"));
}

}  // namespace muster
