#ifndef MUSTER_VISIT_TENSORS_H_
#define MUSTER_VISIT_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster {

template <class T, class F>
void visit_tensors(std::vector<T>& items, F&& fn);
template <class K, class V, class... R, class F>
void visit_tensors(std::map<K, V, R...>& items, F&& fn);
template <class K, class V, class... R, class F>
void visit_tensors(std::unordered_map<K, V, R...>& items, F&& fn);
template <class T, class F>
void visit_tensors(std::optional<T>& item, F&& fn);
template <class A, class B, class F>
void visit_tensors(std::pair<A, B>& items, F&& fn);
template <class... T, class F>
void visit_tensors(std::tuple<T...>& items, F&& fn);

// Calls fn(tensor&) for every tensor in an output: tensors, and tuples, pairs, vectors, maps and
// optionals of what can be visited. For a type of yours, put visit_tensors(your_type&, fn) beside
// it.
template <class F>
void visit_tensors(at::Tensor& tensor, F&& fn) {
  fn(tensor);
}
template <class T, class F>
void visit_tensors(std::vector<T>& items, F&& fn) {
  for (T& item : items) visit_tensors(item, fn);
}
template <class K, class V, class... R, class F>
void visit_tensors(std::map<K, V, R...>& items, F&& fn) {
  for (auto& [key, item] : items) visit_tensors(item, fn);
}
template <class K, class V, class... R, class F>
void visit_tensors(std::unordered_map<K, V, R...>& items, F&& fn) {
  for (auto& [key, item] : items) visit_tensors(item, fn);
}
template <class T, class F>
void visit_tensors(std::optional<T>& item, F&& fn) {
  if (item) visit_tensors(*item, fn);
}
template <class A, class B, class F>
void visit_tensors(std::pair<A, B>& items, F&& fn) {
  visit_tensors(items.first, fn);
  visit_tensors(items.second, fn);
}
template <class... T, class F>
void visit_tensors(std::tuple<T...>& items, F&& fn) {
  std::apply([&](T&... item) { (visit_tensors(item, fn), ...); }, items);
}

}  // namespace muster

#endif  // MUSTER_VISIT_TENSORS_H_
