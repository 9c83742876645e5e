# needs jq python3
python3 -c 'import json; print(json.dumps([{"id": i, "s": "x" * (i * 7 % 3000), "t": list(range(i % 30))} for i in range(20000)]))' >in.json
"$UNDER" jq -c '[.[] | select(.id % 3 == 0) | {id, n: (.s | length), sum: (.t | add)}] | group_by(.n % 10) | map({k: .[0].n, c: length, t: (map(.sum // 0) | add)})' in.json
"$UNDER" jq -S . in.json | sha256sum
