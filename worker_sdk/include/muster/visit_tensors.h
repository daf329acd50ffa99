#ifndef MUSTER_VISIT_TENSORS_H_
#define MUSTER_VISIT_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
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

// Appends the tensors of a forward's argument: it, or those in tuples, pairs, vectors, maps and
// optionals. Anything else is passed over.
template <class T>
void collect_tensors(const T& argument, std::vector<at::Tensor>& tensors) {
  if constexpr (std::is_convertible_v<const T&, const at::Tensor&>) tensors.push_back(argument);
}
template <class T>
void collect_tensors(const std::optional<T>& argument, std::vector<at::Tensor>& tensors);
template <class K, class V, class... R>
void collect_tensors(const std::map<K, V, R...>& argument, std::vector<at::Tensor>& tensors);
template <class K, class V, class... R>
void collect_tensors(const std::unordered_map<K, V, R...>& argument,
                     std::vector<at::Tensor>& tensors);
template <class... T>
void collect_tensors(const std::tuple<T...>& argument, std::vector<at::Tensor>& tensors);
template <class A, class B>
void collect_tensors(const std::pair<A, B>& argument, std::vector<at::Tensor>& tensors) {
  collect_tensors(argument.first, tensors);
  collect_tensors(argument.second, tensors);
}
template <class T>
void collect_tensors(const std::vector<T>& argument, std::vector<at::Tensor>& tensors) {
  for (const T& item : argument) collect_tensors(item, tensors);
}
template <class T>
void collect_tensors(const std::optional<T>& argument, std::vector<at::Tensor>& tensors) {
  if (argument) collect_tensors(*argument, tensors);
}
template <class K, class V, class... R>
void collect_tensors(const std::map<K, V, R...>& argument, std::vector<at::Tensor>& tensors) {
  for (const auto& [key, item] : argument) collect_tensors(item, tensors);
}
template <class K, class V, class... R>
void collect_tensors(const std::unordered_map<K, V, R...>& argument,
                     std::vector<at::Tensor>& tensors) {
  for (const auto& [key, item] : argument) collect_tensors(item, tensors);
}
template <class... T>
void collect_tensors(const std::tuple<T...>& argument, std::vector<at::Tensor>& tensors) {
  std::apply([&](const T&... item) { (collect_tensors(item, tensors), ...); }, argument);
}

}  // namespace muster

#endif  // MUSTER_VISIT_TENSORS_H_
