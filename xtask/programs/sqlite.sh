# Inserts, updates, indices, joins, text, blobs, vacuum; after SQLite's own speedtest1.
set -eu
. "$COMMON"
case $1 in
prepare)
    need sqlite3
    cat >script.sql <<SQL
PRAGMA page_size=4096; PRAGMA cache_size=-65536; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;
BEGIN;
CREATE TABLE a(i INTEGER PRIMARY KEY, v INTEGER, t TEXT);
CREATE TABLE b(i INTEGER PRIMARY KEY, k INTEGER, d BLOB);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<$(part 200000))
INSERT INTO a SELECT x, (x*7919)%100003, printf('row %d of %s', x, hex(x*x)) FROM c;
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<$(part 4000))
INSERT INTO b SELECT x, (x*31)%1009, zeroblob(200+(x*37)%9000) FROM c;
COMMIT;
CREATE INDEX av ON a(v); CREATE INDEX at ON a(t); CREATE INDEX bk ON b(k);
SELECT count(*), sum(v), min(t), max(t) FROM a WHERE v BETWEEN 1000 AND 60000;
SELECT count(*), sum(length(d)) FROM a JOIN b ON a.v=b.k;
UPDATE a SET t=t||'+' WHERE v%5=0; UPDATE b SET d=CAST(hex(d) AS BLOB) WHERE k%3=0;
SELECT count(*), sum(length(t)) FROM a; SELECT count(*), sum(length(d)) FROM b;
SELECT v%1000, group_concat(substr(t,1,8)) FROM a GROUP BY v%1000 ORDER BY 1 LIMIT 5;
SELECT sum(n) FROM (SELECT count(*) AS n FROM a GROUP BY substr(t,5,3) ORDER BY t);
DELETE FROM a WHERE v%3=1; VACUUM; PRAGMA integrity_check;
SQL
    ;;
run)
    sqlite3 test.db <"$PREPARED/script.sql" >told
    sha256sum <told
    tail -c 300 told
    sqlite3 test.db .dump | sha256sum
    ;;
esac
