# SQLite: large blobs written, read, and copied by VACUUM and backup.
set -eu
. "$COMMON"
case $1 in
prepare)
    need sqlite3
    cat >script.sql <<SQL
PRAGMA page_size=65536; PRAGMA cache_size=-300000; PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;
CREATE TABLE b(i INTEGER PRIMARY KEY, d BLOB);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<$(part 120))
INSERT INTO b SELECT x, zeroblob(1000000+x*1000) FROM c;
UPDATE b SET d=CAST(d AS BLOB)||CAST(i AS BLOB);
CREATE TABLE e AS SELECT i, d FROM b;
SELECT count(*), sum(length(d)) FROM e;
DELETE FROM b WHERE i%2=0;
VACUUM;
.backup copy.db
PRAGMA integrity_check;
SQL
    ;;
run)
    on_one_cpu
    sqlite3 test.db <"$PREPARED/script.sql"
    sha256sum <copy.db
    ;;
esac
