# needs node
cat >case.js <<'P'
const crypto = require('crypto'), zlib = require('zlib'), { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const sha = data => crypto.createHash('sha256').update(data).digest('hex');
if (!isMainThread) { const b = Buffer.alloc(6e6, workerData); b.copyWithin(1e6, 0, 3e6); parentPort.postMessage(sha(b)); }
else {
  const rows = Array.from({ length: 40000 }, (_, i) => ({ id: i, s: 'v'.repeat(i * 7 % 900), t: [i, i / 3] }));
  const text = JSON.stringify(rows); console.log(text.length, sha(text), JSON.stringify(JSON.parse(text)) === text);
  const packed = zlib.deflateSync(text); console.log(packed.length, zlib.inflateSync(packed).equals(Buffer.from(text)));
  const big = Buffer.alloc(50e6); for (let i = 0; i < big.length; i += 4093) big[i] = i & 255; big.copy(big, 7, 0, 40e6); console.log(sha(big), Buffer.compare(big.subarray(0, 20e6), big.subarray(7, 20e6 + 7)));
  const typed = new Float64Array(3e6).map((_, i) => (i * 2654435761) % 1000003); typed.sort(); console.log(typed[0], typed[1e6], typed[3e6 - 1], structuredClone(typed).length);
  console.log(text.replace(/v{10,}/g, m => m.length).length, rows.map(r => r.s).join('').split('vvv').length);
  Promise.all([1, 2, 3, 4].map(n => new Promise(done => new Worker(__filename, { workerData: n }).on('message', done)))).then(all => console.log(all.join('\n')));
}
P
"$UNDER" node case.js
