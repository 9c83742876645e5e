// A table that is snapshotted while it changes: C++ over the C interface.
//
// The snapshot is compared with the table at once, so it had better be in the cache:
// CW_REUSE_SOON. The table is cleared for later: CW_REUSE_NEVER.
//
//     c++ snapshot.cpp $(pkg-config --cflags --libs cachewise) -o snapshot
#include <cachewise.h>

#include <cstdio>
#include <vector>

namespace {

class Table {
public:
    explicit Table(std::size_t rows) : rows_(rows * row_bytes) {}

    void set(std::size_t row, int value) { cw_fill(&rows_[row * row_bytes], value, row_bytes); }

    std::vector<unsigned char> snapshot() const {
        std::vector<unsigned char> copy(rows_.size());
        cw_copy_hint(copy.data(), rows_.data(), rows_.size(), CW_REUSE_SOON);
        return copy;
    }

    bool is(const std::vector<unsigned char> &copy) const {
        return cw_equal(copy.data(), rows_.data(), rows_.size()) != 0;
    }

    int order(const std::vector<unsigned char> &copy) const {
        return cw_compare(rows_.data(), copy.data(), rows_.size());
    }

    // Row 0 goes, the others move up: source and destination overlap.
    void drop_first() {
        cw_move(rows_.data(), rows_.data() + row_bytes, rows_.size() - row_bytes);
        cw_zero(rows_.data() + rows_.size() - row_bytes, row_bytes);
    }

    void clear() { cw_zero_hint(rows_.data(), rows_.size(), CW_REUSE_NEVER); }

private:
    static constexpr std::size_t row_bytes = 4096;
    std::vector<unsigned char> rows_;
};

} // namespace

int main() {
    Table table(512);
    for (std::size_t row = 0; row < 512; ++row) {
        table.set(row, static_cast<int>(row));
    }
    const std::vector<unsigned char> before = table.snapshot();
    bool right = table.is(before) && table.order(before) == 0;
    table.drop_first();
    right = right && !table.is(before) && table.order(before) > 0 && before[4096] == 1;
    table.clear();
    right = right && table.order(before) < 0;
    std::puts(right ? "snapshots hold" : "WRONG");
    return right ? 0 : 1;
}
