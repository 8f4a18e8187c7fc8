// SPDX-License-Identifier: Apache-2.0
// bench_cores.js MODEL.onnx CLIENTS MS: runs a model on onnxruntime-node with its default options,
// with CLIENTS requests in flight. Prints the requests a second and the median time of one in ms.
// bench_cores.py runs it.
'use strict';
const ort = require('onnxruntime-node');

const TYPES = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array };
const now = () => Number(process.hrtime.bigint()) / 1e6;

(async () => {
  const [model, clients, ms] = process.argv.slice(2);
  const session = await ort.InferenceSession.create(model, { logSeverityLevel: 3 });
  const feeds = {};
  for (const input of session.inputMetadata) {
    const shape = input.shape.map((size) => (typeof size === 'number' && size > 0 ? size : 1));
    const count = shape.reduce((a, b) => a * b, 1);
    const values = new TYPES[input.type](count);
    if (input.type === 'float32') values.forEach((_, i) => (values[i] = ((i * 7919) % 255) / 255));
    feeds[input.name] = new ort.Tensor(input.type, values, shape);
  }
  const times = [];
  const runUntil = async (end) => {
    while (now() < end) {
      const begin = now();
      await session.run(feeds);
      times.push(now() - begin);
    }
  };
  await Promise.all(Array.from({ length: +clients }, () => runUntil(now() + ms / 5)));
  times.length = 0;
  const start = now();
  await Promise.all(Array.from({ length: +clients }, () => runUntil(start + +ms)));
  const perSecond = (times.length * 1000) / (now() - start);
  times.sort((a, b) => a - b);
  console.log(perSecond.toFixed(2), times[times.length >> 1].toFixed(4));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
