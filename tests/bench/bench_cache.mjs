// SPDX-License-Identifier: MIT
// The scheme this cache replaced, for comparison: better-sqlite3, float64 in a BLOB or JSON text.
import { createRequire } from 'node:module';
import { createHash } from 'node:crypto';

const require = createRequire(process.argv[2] + '/');
const Database = require('better-sqlite3');
const db = new Database(process.argv[3]);
db.pragma('journal_mode = WAL');
db.exec('CREATE TABLE embedding_cache (key TEXT PRIMARY KEY, embedding BLOB, model TEXT, timestamp INTEGER)');
const put = db.prepare('INSERT OR REPLACE INTO embedding_cache VALUES (?, ?, ?, ?)');
const get = db.prepare('SELECT embedding, model, timestamp FROM embedding_cache WHERE key = ?');
const key = (n) => createHash('sha256').update(`m:chunk ${n}`).digest('hex');
const vector = Array.from({ length: 768 }, (_, i) => i / 4096);
const schemes = {
	'float64 BLOB': [(v) => Buffer.from(new Float64Array(v).buffer), (b) => Array.from(new Float64Array(new Uint8Array(b).buffer))],
	'JSON text': [(v) => Buffer.from(JSON.stringify(v)), (b) => JSON.parse(b.toString())],
};
for (const [name, [to, from]] of Object.entries(schemes)) {
	for (let i = 0; i < 2000; i++) put.run(key(i), to(vector), 'm', Date.now());
	const keys = Array.from({ length: 2000 }, (_, i) => key(i)), took = [];
	for (let i = 0; i < 20000; i++) {
		const began = process.hrtime.bigint();
		const row = get.get(keys[(i * 7) % 2000]);
		if (from(row.embedding).length !== 768) throw new Error('length');
		took.push(Number(process.hrtime.bigint() - began) / 1e3);
	}
	took.sort((a, b) => a - b);
	console.log(`better-sqlite3 12, ${name}: get`.padEnd(58), took[10000].toFixed(2).padStart(10), 'us');
}
