// The original's SimHash and MinHash, reimplemented in its own language.
//
//   node original.mjs < texts.json > hashes.json      a JSON list of texts in, a JSON list of hashes out
//
// `hashes.json` beside this file was generated from `texts.json` this way.

import { readFileSync } from 'node:fs';

const words = (text) => text.toLowerCase().replace(/[^\w\s]/g, ' ').split(/\s+/).filter((word) => word.length >= 2);

const fnv64 = (word) => {
  let hash = 14695981039346656037n;
  for (let i = 0; i < word.length; i++) hash = BigInt.asUintN(64, (hash ^ BigInt(word.charCodeAt(i) & 255)) * 1099511628211n);
  return hash;
};

const simhash = (text) => {
  const sums = new Array(64).fill(0);
  for (const hash of words(text).map(fnv64)) sums.forEach((_, bit) => (sums[bit] += (hash >> BigInt(bit)) & 1n ? 1 : -1));
  const bits = sums.reduce((bits, sum, bit) => (sum > 0 ? bits | (1n << BigInt(bit)) : bits), 0n);
  return bits.toString(16).padStart(16, '0');
};

const seeds = [];
for (let i = 0, state = 0x12345678; i < 128; i++) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  seeds.push(state >>> 0);
}

const fnv32 = (shingle, seed) => {
  let hash = 2166136261 ^ seed;
  for (let i = 0; i < shingle.length; i++) hash = Math.imul(hash ^ (shingle.charCodeAt(i) & 255), 16777619);
  return hash >>> 0;
};

const minhash = (text) => {
  const all = words(text);
  if (all.length === 0) return null;
  const shingles = new Set();
  for (let i = 0; i === 0 || i + 3 <= all.length; i++) shingles.add(all.slice(i, i + 3).join(' '));
  const lanes = Uint32Array.from(seeds, (seed) => [...shingles].reduce((least, one) => Math.min(least, fnv32(one, seed)), 2 ** 32 - 1));
  return Buffer.from(lanes.buffer).toString('hex');
};

const texts = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map((text) => ({ simhash: simhash(text), minhash: minhash(text) })), null, 1));
