# DuckDB: a join, a group and a sort over tables made in memory.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "import duckdb" "duckdb not installed"
    ;;
run)
    "$(cat "$PREPARED/python")" - "$(part 6)" <<'PYTHON'
import sys
import duckdb

base = duckdb.connect(config={"threads": 1})
base.execute("create table t as select i as id, (i * 2654435761) % 100000 as key, i % 97 / 7.0 as v from range(1000000) s(i)")
base.execute("create table k as select i as key, i % 11 as kind from range(100000) s(i)")
queries = [
    "select kind, count(*), round(sum(v), 3) from t join k using (key) group by kind order by kind",
    "select key, count(*) c from t group by key order by c desc, key limit 5",
    "select id, v from t order by v desc, id limit 5",
]
for _ in range(int(sys.argv[1]) + 1):
    result = [base.execute(query).fetchall() for query in queries]
print(result)
PYTHON
    ;;
esac
