# needs memcached python3
"$UNDER" memcached -u root -s "$PWD/socket" -m 256 -I 8m -t 4 &
server=$!
for i in $(seq 1 200); do [ -S socket ] && break; sleep 0.05; done
python3 - <<'P'
import socket, hashlib
s = socket.socket(socket.AF_UNIX); s.connect('socket'); f = s.makefile('rwb')
def value(i): return bytes([65 + i % 26]) * (1 + i * i % (300000 if i % 40 == 0 else 4000))
for i in range(6000):
    v = value(i); f.write(b'set k%d 0 0 %d noreply\r\n' % (i, len(v)) + v + b'\r\n')
f.write(b'set n 0 0 1 noreply\r\n1\r\n'); f.flush()
h = hashlib.sha256()
for i in range(6000):
    if i % 3 == 0: f.write(b'append k%d 0 0 3 noreply\r\nend\r\n' % i)
    if i % 7 == 0: f.write(b'delete k%d noreply\r\n' % i)
    f.write(b'get k%d\r\n' % i); f.flush()
    line = f.readline(); h.update(line)
    if line.startswith(b'VALUE'):
        h.update(f.read(int(line.split()[3]) + 2)); h.update(f.readline())
for i in range(1000): f.write(b'incr n 7\r\n')
f.flush(); last = [f.readline() for i in range(1000)][-1]
print(h.hexdigest(), last.strip().decode())
f.write(b'stats\r\n'); f.flush()
for line in iter(f.readline, b'END\r\n'):
    if line.split()[1] in (b'curr_items', b'total_items', b'cmd_set', b'delete_hits', b'bytes', b'evictions'): print(line.strip().decode())
P
kill $server; wait $server; echo "ended $?"
