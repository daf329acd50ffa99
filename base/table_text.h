#ifndef MUSTER_BASE_TABLE_TEXT_H_
#define MUSTER_BASE_TABLE_TEXT_H_

#include <string>
#include <vector>

namespace muster {

// Lines of text in columns, each as wide as its longest cell, three blanks apart; nothing behind
// the last one. Rows may be of different lengths. Pure.
std::string AlignedColumns(const std::vector<std::vector<std::string>>& rows);

}  // namespace muster

#endif  // MUSTER_BASE_TABLE_TEXT_H_
