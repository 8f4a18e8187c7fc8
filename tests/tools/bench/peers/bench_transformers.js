// SPDX-License-Identifier: Apache-2.0
// bench_transformers.js THREADS MS MODEL.onnx [INPUT FILE.npy]... times a model on
// onnxruntime-node, with the named inputs from .npy files. A fifth of the time is spent on warming
// up. Prints the median and the minimum in ms. bench_transformers.py runs it.
'use strict';
const fs = require('fs');
const ort = require('onnxruntime-node');

const TYPES = {
  '<f4': ['float32', Float32Array],
  '<i8': ['int64', BigInt64Array],
  '<i4': ['int32', Int32Array],
};

function readTensor(file) {
  const bytes = fs.readFileSync(file);
  const end = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', 10, end);
  const [name, Elements] = TYPES[/'descr': '([^']+)'/.exec(header)[1]];
  const dims = /'shape': \(([^)]*)\)/.exec(header)[1].split(',').filter((d) => d.trim() !== '');
  const data = bytes.buffer.slice(bytes.byteOffset + end, bytes.byteOffset + bytes.length);
  return new ort.Tensor(name, new Elements(data), dims.map(Number));
}

const now = () => Number(process.hrtime.bigint()) / 1e6;

(async () => {
  const [threads, ms, model, ...pairs] = process.argv.slice(2);
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: +threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  });
  const feeds = {};
  for (let i = 0; i + 1 < pairs.length; i += 2) feeds[pairs[i]] = readTensor(pairs[i + 1]);
  let start = now();
  for (let runs = 0; runs < 3 || now() - start < ms / 5; runs++) await session.run(feeds);
  const times = [];
  for (start = now(); times.length < 3 || now() - start < ms; ) {
    const begin = now();
    await session.run(feeds);
    times.push(now() - begin);
  }
  times.sort((a, b) => a - b);
  console.log(`median ${times[times.length >> 1].toFixed(4)} min ${times[0].toFixed(4)}`);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
