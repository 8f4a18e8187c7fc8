// SPDX-License-Identifier: Apache-2.0
// A peer of bench_sentences.py: the sentence encoder on onnxruntime-node or on TensorFlow.js.
//
//   node bench_sentences.js ort|tfjs-wasm|tfjs-cpu THREADS MS MODEL CASE
//
// MODEL is what gen_sentences.py wrote, or a folder with model.json; CASE.in0.npy, CASE.in1.npy and CASE.out0.npy are the
// input and what it is to answer. Prints the worst difference from that, then times as bench_engine does.
'use strict';
const fs = require('fs');
const path = require('path');

const [peer, threads, ms, model, base] = process.argv.slice(2);

/** An array of a .npy file that numpy wrote: {dims, data}, of INT32 or floats. */
function readArray(file) {
  const bytes = fs.readFileSync(file);
  const start = 10 + bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', 10, start);
  const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(',').filter((text) => text.trim()).map(Number);
  const data = new Uint8Array(bytes.subarray(start)).buffer;
  return {dims, data: header.includes('<i4') ? new Int32Array(data) : new Float32Array(data)};
}

const inputs = ['in0', 'in1'].map((name) => readArray(`${base}.${name}.npy`));
const wanted = readArray(`${base}.out0.npy`);

/** A function that runs the model and resolves to the numbers of its answer. */
async function openOrt() {
  const ort = require('onnxruntime-node');
  const session = await ort.InferenceSession.create(model,
      {intraOpNumThreads: +threads, interOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 3});
  const tensor = ({dims, data}) => new ort.Tensor('int32', data, dims);
  const feeds = {indices: tensor(inputs[0]), values: tensor(inputs[1])};
  return async () => (await session.run(feeds))[session.outputNames[0]].data;
}

async function openTf() {
  const tf = require('@tensorflow/tfjs-core');
  const {loadGraphModel} = require('@tensorflow/tfjs-converter');
  require('@tensorflow/tfjs-backend-cpu');
  if (peer === 'tfjs-wasm') {
    const wasm = require('@tensorflow/tfjs-backend-wasm');
    const core = path.dirname(require.resolve('@tensorflow/tfjs-core/package.json'));
    wasm.setWasmPaths(path.join(core, '../tfjs-backend-wasm/wasm-out/'));
    tf.env().set('WASM_HAS_SIMD_SUPPORT', true);
    tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
  }
  await tf.setBackend(peer.slice(5));
  await tf.ready();
  const json = JSON.parse(fs.readFileSync(path.join(model, 'model.json')));
  const shards = json.weightsManifest.flatMap((group) => group.paths.map((name) => fs.readFileSync(path.join(model, name))));
  const data = Buffer.concat(shards);
  const graph = await loadGraphModel({load: async () => ({
    modelTopology: json.modelTopology, format: 'graph-model', weightSpecs: json.weightsManifest.flatMap((group) => group.weights),
    weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.length)})});
  const tensor = ({dims, data: numbers}) => tf.tensor(numbers, dims, 'int32');
  const feeds = {indices: tensor(inputs[0]), values: tensor(inputs[1])};
  return async () => {
    const y = await graph.executeAsync(feeds);
    const numbers = y.dataSync();
    y.dispose();
    return numbers;
  };
}

(async () => {
  const run = await (peer === 'ort' ? openOrt() : openTf());
  const answer = await run();
  const worst = wanted.data.reduce((most, number, i) => Math.max(most, Math.abs(number - answer[i])), 0);
  if (answer.length !== wanted.data.length || !(worst < 1e-4)) {
    throw new Error(`${peer}: answers differ by ${worst}`);
  }
  const now = () => Number(process.hrtime.bigint()) / 1e6;
  const times = [];
  for (const begin = now(); now() - begin < ms / 5;) await run();
  for (const begin = now(); now() - begin < ms || times.length < 5;) {
    const start = now();
    await run();
    times.push(now() - start);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(times.length * share)].toFixed(4);
  console.log(`${peer} ${path.basename(model)} ${threads} median ${at(0.5)} p99 ${at(0.99)} min ${at(0)} worst ${worst}`);
  process.exit(0);
})().catch((error) => { console.error(error.message); process.exit(1); });
