// SPDX-License-Identifier: Apache-2.0
// node gen_layers.js > layers.jsonl
//
// Makes small layers models with TensorFlow.js, feeds them, and writes for each a line
// {"id", "topology", "weights": [{"name", "shape"}], "data", "inputs", "outputs"} that
// test_layers.c replays. "data" is all weights, little-endian float32 in base64; inputs and outputs
// are {"name", "dtype", "shape", "data"}. Wants: npm install @tensorflow/tfjs@4.22.0
'use strict';
const tf = require('@tensorflow/tfjs');
const L = tf.layers;

// Numbers that are the same everywhere: a linear congruential generator.
let state = 1;
function uniform(low, high) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.fround(low + (high - low) * (state / 4294967296));
}

function fill(shape, low, high) {
  const count = shape.reduce((a, b) => a * b, 1);
  return tf.tensor(Array.from({length: count}, () => uniform(low, high)), shape);
}

// What inference never asks for.
function prune(value) {
  if (Array.isArray(value)) return value.map(prune);
  if (value === null || typeof value !== 'object') return value;
  const out = {};
  for (const [key, item] of Object.entries(value))
    if (!/_(initializer|regularizer|constraint)$/.test(key) &&
        !['trainable', 'dropout', 'recurrent_dropout', 'implementation', 'unit_forget_bias', 'seed',
          'noise_shape'].includes(key))
      out[key] = prune(item);
  return out;
}

function base64(array) {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');
}

function describe(name, tensor) {
  return {name, dtype: tensor.dtype, shape: tensor.shape, data: base64(tensor.dataSync())};
}

// `known` is what the file is to say of the input's shape, where that is less than there is to know.
async function emit(id, model, feeds, known) {
  console.error(id);
  // Weights that are all alike would hide which is which; variances must be positive.
  model.setWeights(model.weights.map(w => /variance/.test(w.name) ? fill(w.shape, 0.5, 2)
                                                                  : fill(w.shape, -0.8, 0.8)));
  let saved;
  await model.save(tf.io.withSaveHandler(async artifacts => {
    saved = artifacts;
    return {modelArtifactsInfo: {dateSaved: new Date(0), modelTopologyType: 'JSON'}};
  }));
  const topology = prune(saved.modelTopology);
  if (known)
    topology.config.layers[0].config.batch_input_shape = [null, ...known];
  const outputs = [].concat(model.predict(feeds.length === 1 ? feeds[0] : feeds));
  const names = model.inputs.map(t => t.sourceLayer.name);
  const seen = {};
  const line = {
    id,
    topology,
    weights: saved.weightSpecs.map(w => ({name: w.name, shape: w.shape})),
    data: Buffer.from(saved.weightData instanceof ArrayBuffer ? saved.weightData
                                                              : saved.weightData[0] || '')
              .toString('base64'),
    inputs: feeds.map((t, i) => describe(names[i], t)),
    outputs: outputs.map((t, i) => {
      const name = model.outputs[i].sourceLayer.name;
      seen[name] = (seen[name] || 0) + 1;
      return describe(seen[name] > 1 ? `${name}:${seen[name] - 1}` : name, t);
    }),
  };
  console.log(JSON.stringify(line));
}

// A Sequential model of `layers` for inputs [batch, ...shape].
async function chain(id, shape, layers, options = {}) {
  layers[0] = layers[0]({batchInputShape: [null, ...shape]});
  const model = tf.sequential({layers});
  const feed = options.feed || fill([options.batch || 2, ...shape], -2, 2);
  await emit(id, model, [feed], options.known);
}

// The first layer of chain(): its arguments come later.
const first = (make, args = {}) => more => make({...args, ...more});

async function activations() {
  for (const name of ['elu', 'gelu', 'gelu_new', 'hardSigmoid', 'linear', 'logSoftmax', 'mish', 'relu',
                      'relu6', 'selu', 'sigmoid', 'softmax', 'softplus', 'softsign', 'swish', 'tanh'])
    await chain(`activation-${name}`, [3, 5], [first(L.activation, {activation: name})],
                {feed: fill([2, 3, 5], -8, 8)});
  await chain('relu', [7], [first(L.reLU)]);
  await chain('relu-max', [7], [first(L.reLU, {maxValue: 1.25})]);
  await chain('relu-6', [7], [first(L.reLU, {maxValue: 6})], {feed: fill([2, 7], -9, 9)});
  await chain('leaky-relu', [7], [first(L.leakyReLU, {alpha: 0.15})]);
  await chain('leaky-relu-default', [7], [first(L.leakyReLU)]);
  await chain('elu', [7], [first(L.elu, {alpha: 1})]);
  await chain('prelu', [3, 4], [first(L.prelu)]);
  await chain('prelu-shared', [3, 2, 4], [first(L.prelu, {sharedAxes: [1, 2]})]);
  await chain('thresholded-relu', [9], [first(L.thresholdedReLU, {theta: 0.7})]);
  await chain('softmax', [3, 5], [first(L.softmax, {axis: -1})]);
}

async function core() {
  await chain('dense', [5], [first(L.dense, {units: 3, activation: 'relu'})]);
  await chain('dense-no-bias', [5], [first(L.dense, {units: 3, useBias: false})]);
  await chain('dense-rank-3', [4, 5], [first(L.dense, {units: 3, activation: 'softmax'})]);
  await chain('dense-rank-4', [2, 3, 5], [first(L.dense, {units: 1})]);
  await chain('flatten', [2, 3, 5], [first(L.flatten)]);
  await chain('flatten-first', [2, 3, 5], [first(L.flatten, {dataFormat: 'channelsFirst'})]);
  await chain('flatten-dynamic', [2, 3, 5], [first(L.flatten)], {known: [null, null, 5]});
  await chain('reshape', [2, 6], [first(L.reshape, {targetShape: [3, -1, 2]})]);
  await chain('permute', [2, 3, 5], [first(L.permute, {dims: [3, 1, 2]})]);
  await chain('repeat-vector', [5], [first(L.repeatVector, {n: 3})]);
  await chain('embedding', [4], [first(L.embedding, {inputDim: 7, outputDim: 3})],
              {feed: tf.tensor([[0, 6, 3, 3], [1, 2, 5, 4]])});
  await chain('dropouts', [4, 3], [first(L.dropout, {rate: 0.5}), L.alphaDropout({rate: 0.5}),
                                   L.gaussianDropout({rate: 0.5}), L.gaussianNoise({stddev: 1}),
                                   L.spatialDropout1d({rate: 0.3})]);
  await chain('masking', [3, 2], [first(L.masking, {maskValue: 0.5})],
              {feed: tf.tensor([[[0.5, 0.5], [0.5, 1], [2, 3]], [[1, 1], [0.5, 0.5], [0, 0]]])});
  await chain('time-distributed-dense', [3, 4], [first(L.timeDistributed, {layer: L.dense({units: 2})})]);
  await chain('time-distributed-conv', [3, 5, 4, 2],
              [first(L.timeDistributed, {layer: L.conv2d({filters: 3, kernelSize: 2})})]);
  await chain('time-distributed-dynamic', [3, 5, 4, 2],
              [first(L.timeDistributed, {layer: L.conv2d({filters: 3, kernelSize: 2})})],
              {known: [null, null, null, 2]});
}

async function convolutions() {
  const two = (id, make, args, shape = [7, 6, 3], options = {}) =>
      chain(id, shape, [first(make, args)], options);
  await two('conv2d-valid', L.conv2d, {filters: 4, kernelSize: 3});
  await two('conv2d-same', L.conv2d, {filters: 4, kernelSize: [3, 2], padding: 'same', strides: 2, activation: 'relu6'});
  await two('conv2d-dilated', L.conv2d, {filters: 2, kernelSize: 2, dilationRate: [2, 3], padding: 'same', useBias: false});
  await two('conv2d-dynamic', L.conv2d, {filters: 2, kernelSize: 3, strides: [1, 2]}, [7, 6, 3], {known: [null, null, 3]});
  await two('conv2d-first', L.conv2d, {filters: 4, kernelSize: 3, padding: 'same', dataFormat: 'channelsFirst'}, [3, 7, 6]);
  await two('conv2d-transpose-same', L.conv2dTranspose, {filters: 4, kernelSize: 3, strides: 2, padding: 'same'});
  await two('conv2d-transpose-valid', L.conv2dTranspose, {filters: 4, kernelSize: [3, 2], strides: [2, 3], activation: 'tanh'});
  await two('conv2d-transpose-dynamic', L.conv2dTranspose, {filters: 2, kernelSize: 4, strides: 2, padding: 'same'}, [3, 4, 3], {known: [null, null, 3]});
  await two('depthwise-valid', L.depthwiseConv2d, {kernelSize: 3, depthMultiplier: 2});
  await two('depthwise-same', L.depthwiseConv2d, {kernelSize: [2, 3], padding: 'same', strides: 2, useBias: false, activation: 'relu'});
  await two('separable', L.separableConv2d, {filters: 5, kernelSize: 3, depthMultiplier: 2, padding: 'same', activation: 'elu'});
  await two('separable-strided', L.separableConv2d, {filters: 2, kernelSize: 2, strides: 2, useBias: false});
  await two('conv1d-valid', L.conv1d, {filters: 4, kernelSize: 3, strides: 2}, [9, 3]);
  await two('conv1d-same', L.conv1d, {filters: 4, kernelSize: 2, padding: 'same', dilationRate: 2, activation: 'relu'}, [9, 3]);
  await two('conv1d-dynamic', L.conv1d, {filters: 2, kernelSize: 3}, [9, 3], {known: [null, 3]});
}

async function volumes() {
  const one = (id, make, args, shape, options) => chain(id, shape, [first(make, args)], options);
  const shape = [4, 5, 6, 2];
  // No stride is longer than its window: TensorFlow.js pads by less than nothing then.
  await one('conv3d-valid', L.conv3d, {filters: 3, kernelSize: 2}, shape);
  await one('conv3d-same', L.conv3d, {filters: 3, kernelSize: [2, 3, 2], strides: [1, 2, 2], padding: 'same', activation: 'relu', useBias: false}, shape);
  await one('conv3d-dynamic', L.conv3d, {filters: 2, kernelSize: [2, 2, 3]}, shape, {known: [null, null, null, 2]});
  await one('conv3d-transpose-same', L.conv3dTranspose, {filters: 3, kernelSize: 3, strides: 2, padding: 'same'}, [2, 3, 2, 2]);
  await one('conv3d-transpose-valid', L.conv3dTranspose, {filters: 2, kernelSize: [3, 2, 1], strides: [2, 3, 1], activation: 'tanh'}, [2, 3, 2, 3]);
  await one('conv3d-transpose-dynamic', L.conv3dTranspose, {filters: 2, kernelSize: 2, strides: 2}, [2, 3, 2, 3], {known: [null, null, null, 3]});
  for (const [kind, make] of [['max', L.maxPooling3d], ['average', L.averagePooling3d]]) {
    await one(`${kind}-pooling3d`, make, {poolSize: 2}, shape);
    await one(`${kind}-pooling3d-same`, make, {poolSize: [3, 2, 2], strides: [2, 1, 2], padding: 'same'}, shape);
  }
}

async function convolutionalRecurrent() {
  const one = (id, args, options) => chain(id, [3, 5, 4, 2], [first(L.convLstm2d, {filters: 2, kernelSize: 3, ...args})], options);
  await one('conv-lstm', {});
  await one('conv-lstm-sequences', {returnSequences: true, padding: 'same', recurrentActivation: 'sigmoid'});
  await one('conv-lstm-strided', {kernelSize: [2, 3], strides: [2, 1], activation: 'relu', useBias: false, returnSequences: true, goBackwards: true});
  await one('conv-lstm-dilated', {kernelSize: 2, dilationRate: 2, padding: 'same'});
  await one('conv-lstm-dynamic', {padding: 'same'}, {known: [3, null, null, 2]});
  const x = tf.input({shape: [3, 4, 4, 1], name: 'conv-lstm-in'});
  const y = L.convLstm2d({filters: 2, kernelSize: 2, returnState: true}).apply(x);
  await emit('conv-lstm-states', tf.model({inputs: x, outputs: y}), [fill([2, 3, 4, 4, 1], -1, 1)]);
}

// Layers that TensorFlow.js has in its sources but not in its package, and Keras writes: the model by
// hand, and the answer from TensorFlow.js's operators. `config` and `weights` are the layer's,
// `inbound` what it is called with; without it, the inputs.
function byHand(id, className, config, weights, feeds, answer, inbound) {
  console.error(id);
  const inputs = feeds.map((t, i) => ({class_name: 'InputLayer', name: `in${i}`, inbound_nodes: [],
                                       config: {name: `in${i}`, batch_input_shape: [null, ...t.shape.slice(1)], dtype: 'float32'}}));
  const layer = {class_name: className, name: 'layer', config: {name: 'layer', ...config},
                 inbound_nodes: [inbound || feeds.map((_, i) => [`in${i}`, 0, 0, {}])]};
  const names = Object.keys(weights);
  console.log(JSON.stringify({
    id,
    topology: {class_name: 'Functional', config: {name: id, layers: [...inputs, layer], input_layers: feeds.map((_, i) => [`in${i}`, 0, 0]),
                                                  output_layers: [['layer', 0, 0]]}},
    weights: names.map(name => ({name: `layer/${name}`, shape: weights[name].shape})),
    data: Buffer.concat(names.map(name => Buffer.from(base64(weights[name].dataSync()), 'base64'))).toString('base64'),
    inputs: feeds.map((t, i) => describe(`in${i}`, t)),
    outputs: [describe('layer', answer)],
  }));
}

async function attention() {
  const x = fill([2, 3, 4], -1, 1), kernel = fill([4, 2, 3], -1, 1), bias = fill([2, 3], -1, 1);
  byHand('einsum-dense', 'EinsumDense', {equation: 'abc,cde->abde', output_shape: [null, 2, 3], bias_axes: 'de', activation: 'relu'}, {kernel, bias}, [x],
         tf.relu(tf.add(tf.einsum('abc,cde->abde', x, kernel), bias)));
  byHand('einsum-dense-no-bias', 'EinsumDense', {equation: 'ab,bc->ac', output_shape: 5, bias_axes: null}, {kernel: kernel.reshape([4, 6])}, [x.reshape([6, 4])],
         tf.matMul(x.reshape([6, 4]), kernel.reshape([4, 6])));
  const side = fill([1, 2, 3], -1, 1).reshape([2, 3]);
  byHand('einsum-dense-inner-bias', 'EinsumDense', {equation: 'abc,cde->adbe', output_shape: [2, null, 3], bias_axes: 'd'}, {kernel, bias: side.slice([0, 0], [2, 1]).reshape([2, 1, 1])}, [x],
         tf.add(tf.einsum('abc,cde->adbe', x, kernel), side.slice([0, 0], [2, 1]).reshape([2, 1, 1])));
  const heads = 2, keyDim = 3, valueDim = 5, features = 4;
  const w = {};
  for (const [name, size] of [['query', keyDim], ['key', keyDim], ['value', valueDim]]) {
    w[`${name}/kernel`] = fill([features, heads, size], -1, 1);
    w[`${name}/bias`] = fill([heads, size], -1, 1);
  }
  w['attention_output/kernel'] = fill([heads, valueDim, features], -1, 1);
  w['attention_output/bias'] = fill([features], -1, 1);
  const attend = (q, v, k) => {
    const side = (name, t) => tf.add(tf.einsum('abc,cde->abde', t, w[`${name}/kernel`]), w[`${name}/bias`]);
    const scores = tf.softmax(tf.einsum('aecd,abcd->acbe', side('key', k), tf.mul(side('query', q), 1 / Math.sqrt(keyDim))));
    return tf.add(tf.einsum('abcd,cde->abe', tf.einsum('acbe,aecd->abcd', scores, side('value', v)), w['attention_output/kernel']), w['attention_output/bias']);
  };
  const config = {num_heads: heads, key_dim: keyDim, value_dim: valueDim, dropout: 0.1, use_bias: true, output_shape: null, attention_axes: null};
  const q = fill([2, 3, features], -2, 2), v = fill([2, 5, features], -2, 2), k = fill([2, 5, features], -2, 2);
  byHand('attention', 'MultiHeadAttention', config, w, [q, v, k], attend(q, v, k));
  byHand('attention-value', 'MultiHeadAttention', config, w, [q, v], attend(q, v, v), [['in0', 0, 0, {value: ['in1', 0, 0], training: false}]]);
  byHand('attention-key', 'MultiHeadAttention', config, w, [q, v, k], attend(q, v, k), [['in0', 0, 0, {key: ['in2', 0, 0], value: ['in1', 0, 0]}]]);
  byHand('attention-self', 'MultiHeadAttention', {...config, attention_axes: [1]}, w, [q], attend(q, q, q), [['in0', 0, 0, {value: ['in0', 0, 0]}]]);
  const table = fill([6, 4], -1, 1);
  byHand('position-embedding', 'PositionEmbedding', {sequence_length: 6}, {embeddings: table}, [x], tf.slice(table, [0, 0], [3, 4]).broadcastTo([2, 3, 4]));
}

// Scores that a mask hides are -1e9 smaller, as Keras does it.
async function masked() {
  const features = 4, heads = 2, keyDim = 2, width = 5, T = 3, S = 4;
  const w = {};
  const attentionWeights = part => {
    for (const name of ['query', 'key', 'value']) {
      w[`${part}${name}/kernel`] = fill([features, heads, keyDim], -1, 1);
      w[`${part}${name}/bias`] = fill([heads, keyDim], -1, 1);
    }
    w[`${part}attention_output/kernel`] = fill([heads, keyDim, features], -1, 1);
    w[`${part}attention_output/bias`] = fill([features], -1, 1);
  };
  const attend = (part, q, v, mask) => {
    const side = (name, t) => tf.add(tf.einsum('abc,cde->abde', t, w[`${part}${name}/kernel`]), w[`${part}${name}/bias`]);
    let scores = tf.einsum('aecd,abcd->acbe', side('key', v), tf.mul(side('query', q), 1 / Math.sqrt(keyDim)));
    if (mask) scores = tf.add(scores, tf.mul(tf.sub(1, mask), -1e9));
    return tf.add(tf.einsum('abcd,cde->abe', tf.einsum('acbe,aecd->abcd', tf.softmax(scores), side('value', v)), w[`${part}attention_output/kernel`]), w[`${part}attention_output/bias`]);
  };
  const triangle = (t, s) => tf.tensor(Array.from({length: t * s}, (_, i) => i % s <= Math.floor(i / s) ? 1 : 0), [1, 1, t, s]);
  attentionWeights('');
  const config = {num_heads: heads, key_dim: keyDim, dropout: 0.1, use_bias: true};
  const q = fill([2, T, features], -2, 2), v = fill([2, S, features], -2, 2);
  const seen = tf.tensor([1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1], [2, T, S]);
  byHand('attention-causal', 'MultiHeadAttention', config, w, [q, v], attend('', q, v, triangle(T, S)), [['in0', 0, 0, {value: ['in1', 0, 0], use_causal_mask: true}]]);
  byHand('attention-mask', 'MultiHeadAttention', config, w, [q, v, seen], attend('', q, v, seen.expandDims(1)),
         [['in0', 0, 0, {value: ['in1', 0, 0], attention_mask: ['in2', 0, 0], use_causal_mask: false}]]);
  const keras3 = name => ({class_name: '__keras_tensor__', config: {keras_history: [name, 0, 0]}});
  byHand('attention-mask-causal-keras3', 'MultiHeadAttention', config, w, [q, v, seen], attend('', q, v, tf.minimum(seen.expandDims(1), triangle(T, S))),
         {args: [keras3('in0')], kwargs: {attention_mask: keras3('in2'), value: keras3('in1'), use_causal_mask: true}});
  for (const key of Object.keys(w)) delete w[key];
  attentionWeights('self_attention/');
  attentionWeights('cross_attention/');
  for (const name of ['self_attention_layer_norm', 'cross_attention_layer_norm', 'feedforward_layer_norm']) {
    w[`${name}/gamma`] = fill([features], 0.5, 2);
    w[`${name}/beta`] = fill([features], -1, 1);
  }
  w['feedforward_intermediate_dense/kernel'] = fill([features, width], -1, 1);
  w['feedforward_intermediate_dense/bias'] = fill([width], -1, 1);
  w['feedforward_output_dense/kernel'] = fill([width, features], -1, 1);
  w['feedforward_output_dense/bias'] = fill([features], -1, 1);
  const norm = (name, t, epsilon) => {
    const {mean, variance} = tf.moments(t, -1, true);
    return tf.add(tf.mul(tf.div(tf.sub(t, mean), tf.sqrt(tf.add(variance, epsilon))), w[`${name}/gamma`]), w[`${name}/beta`]);
  };
  const dense = (name, t) => tf.add(tf.einsum('abc,cd->abd', t, w[`${name}/kernel`]), w[`${name}/bias`]);
  const decode = (x, encoder, {first, epsilon = 1e-5, activation, mask, encoderMask}) => {
    const block = (name, t, f) => first ? tf.add(t, f(norm(name, t, epsilon))) : norm(name, tf.add(t, f(t)), epsilon);
    x = block('self_attention_layer_norm', x, t => attend('self_attention/', t, t, mask));
    if (encoder) x = block('cross_attention_layer_norm', x, t => attend('cross_attention/', t, encoder, encoderMask));
    return block('feedforward_layer_norm', x, t => dense('feedforward_output_dense', activation(dense('feedforward_intermediate_dense', t))));
  };
  const settings = {intermediate_dim: width, num_heads: heads, dropout: 0.1, activation: 'relu', layer_norm_epsilon: 1e-5, normalize_first: false};
  const padding = tf.tensor([1, 1, 0, 1, 0, 0], [2, T]), encoderPadding = tf.tensor([1, 0, 1, 1, 0, 1, 1, 0], [2, S]);
  byHand('decoder', 'TransformerDecoder', settings, w, [q], decode(q, null, {activation: tf.relu, mask: triangle(T, T)}));
  byHand('decoder-first', 'TransformerDecoder', {...settings, normalize_first: true, activation: 'tanh', layer_norm_epsilon: 0.1}, w, [q],
         decode(q, null, {first: true, epsilon: 0.1, activation: tf.tanh}), [['in0', 0, 0, {use_causal_mask: false}]]);
  byHand('decoder-encoder', 'TransformerDecoder', settings, w, [q, v], decode(q, v, {activation: tf.relu, mask: triangle(T, T)}),
         [['in0', 0, 0, {encoder_sequence: ['in1', 0, 0], use_causal_mask: true}]]);
  byHand('decoder-padded', 'TransformerDecoder', settings, w, [q, v, padding, encoderPadding],
         decode(q, v, {activation: tf.relu, mask: tf.minimum(padding.reshape([2, 1, 1, T]), triangle(T, T)), encoderMask: encoderPadding.reshape([2, 1, 1, S])}),
         [['in0', 0, 0, {encoder_sequence: ['in1', 0, 0], decoder_padding_mask: ['in2', 0, 0], encoder_padding_mask: ['in3', 0, 0]}]]);
}

async function pooling() {
  const one = (id, make, args, shape, options) => chain(id, shape, [first(make, args)], options);
  for (const [kind, make1, make2] of [['max', L.maxPooling1d, L.maxPooling2d],
                                      ['average', L.averagePooling1d, L.averagePooling2d]]) {
    await one(`${kind}-pooling1d`, make1, {poolSize: 3}, [8, 2]);
    await one(`${kind}-pooling1d-same`, make1, {poolSize: 3, strides: 2, padding: 'same'}, [8, 2]);
    await one(`${kind}-pooling2d`, make2, {poolSize: 2}, [5, 6, 3]);
    await one(`${kind}-pooling2d-same`, make2, {poolSize: [3, 2], strides: [2, 1], padding: 'same'}, [5, 6, 3]);
    await one(`${kind}-pooling2d-first`, make2, {poolSize: 2, strides: 1, dataFormat: 'channelsFirst'}, [3, 5, 6]);
  }
  await one('global-max1d', L.globalMaxPooling1d, {}, [5, 3]);
  await one('global-average1d', L.globalAveragePooling1d, {}, [5, 3]);
  await one('global-max2d', L.globalMaxPooling2d, {}, [4, 5, 3]);
  await one('global-average2d', L.globalAveragePooling2d, {}, [4, 5, 3], {known: [null, null, 3]});
  await one('global-average2d-first', L.globalAveragePooling2d, {dataFormat: 'channelsFirst'}, [3, 4, 5]);
  await one('zero-padding', L.zeroPadding2d, {padding: [[0, 1], [2, 3]]}, [3, 4, 2]);
  await one('zero-padding-one', L.zeroPadding2d, {padding: 2}, [3, 4, 2]);
  await one('cropping', L.cropping2D, {cropping: [[1, 0], [0, 2]]}, [5, 6, 2], {known: [null, null, 2]});
  await one('upsampling', L.upSampling2d, {size: [2, 3]}, [3, 2, 2]);
  await one('upsampling-bilinear', L.upSampling2d, {size: [3, 2], interpolation: 'bilinear'}, [3, 4, 2]);
  await one('upsampling-dynamic', L.upSampling2d, {size: [2, 2]}, [3, 4, 2], {known: [null, null, 2]});
  await one('upsampling-first', L.upSampling2d, {size: [2, 2], dataFormat: 'channelsFirst'}, [2, 3, 4]);
}

async function normalization() {
  await chain('batch-norm', [3, 4, 5], [first(L.batchNormalization)]);
  await chain('batch-norm-bare', [5], [first(L.batchNormalization, {center: false, scale: false, epsilon: 0.01})]);
  await chain('layer-norm', [4, 5], [first(L.layerNormalization)]);
  await chain('layer-norm-axis', [3, 4, 5], [first(L.layerNormalization, {axis: [1, 2], epsilon: 0.01})]);
  await chain('layer-norm-bare', [4, 5], [first(L.layerNormalization, {center: false, scale: false})]);
}

async function images() {
  await chain('rescaling', [3, 4, 2], [first(L.rescaling, {scale: 0.0078125, offset: -1})]);
  const categories = tf.tensor([[0, 2, 2, 3, 2], [4, 1, 0, 0, 1]], [2, 5], 'int32');
  for (const outputMode of ['multiHot', 'count'])
    await chain(`category-${outputMode}`, [5], [first(L.categoryEncoding, {numTokens: 5, outputMode, dtype: 'int32'})],
                {feed: categories});
}

async function merges() {
  const pair = async (id, layer, a = [3, 4], b = [3, 4]) => {
    const x = tf.input({shape: a, name: `${id}-a`}), y = tf.input({shape: b, name: `${id}-b`});
    await emit(id, tf.model({inputs: [x, y], outputs: layer.apply([x, y])}),
               [fill([2, ...a], -2, 2), fill([2, ...b], -2, 2)]);
  };
  await pair('add', L.add());
  await pair('multiply', L.multiply());
  await pair('average', L.average());
  await pair('maximum', L.maximum());
  await pair('minimum', L.minimum());
  await pair('add-broadcast', L.add(), [3, 4], [3, 1]);
  await pair('concatenate', L.concatenate());
  await pair('concatenate-axis', L.concatenate({axis: 1}), [3, 4], [2, 4]);
  await pair('dot-vectors', L.dot({axes: 1}), [4], [4]);
  await pair('dot-normalized', L.dot({axes: 1, normalize: true}), [4], [4]);
  await pair('dot-matrices', L.dot({axes: [2, 1]}), [3, 4], [4, 5]);
  await pair('dot-matrices-2', L.dot({axes: [2, 2]}), [3, 4], [5, 4]);
  await pair('dot-matrices-1', L.dot({axes: [1, 1]}), [4, 3], [4, 5]);
}

// As many time steps as a request has, and more than are written out.
async function sequences() {
  const makes = {lstm: L.lstm, gru: L.gru, simple: L.simpleRNN};
  for (const [kind, make] of Object.entries(makes)) {
    const open = (id, args, options = {}) =>
        chain(`${kind}-open-${id}`, [5, 3], [first(make, {units: 2, ...args})], {known: [null, 3], ...options});
    await open('last', {});
    await open('sequences', {units: 4, returnSequences: true, recurrentActivation: 'sigmoid'});
    await open('backwards', {returnSequences: true, goBackwards: true, useBias: false});
    await open('linear', {activation: 'linear', recurrentActivation: 'sigmoid', goBackwards: true});
    await chain(`${kind}-long`, [1027, 2], [first(make, {units: 2})], {batch: 1});
    const x = tf.input({shape: [3, 2], name: `${kind}-open-in`}), h = tf.input({shape: [4], name: `${kind}-open-h`});
    const states = kind === 'lstm' ? [h, tf.input({shape: [4], name: `${kind}-open-c`})] : [h];
    const y = make({units: 4, returnState: true, returnSequences: true}).apply(x, {initialState: states});
    await emit(`${kind}-open-states`, tf.model({inputs: [x, ...states], outputs: y}),
               [fill([2, 3, 2], -1, 1), ...states.map(() => fill([2, 4], -1, 1))], [null, 2]);
  }
  for (const mergeMode of ['concat', 'mul'])
    await chain(`bidirectional-open-${mergeMode}`, [4, 3],
                [first(L.bidirectional, {layer: L.gru({units: 2, returnSequences: mergeMode === 'mul'}), mergeMode})],
                {known: [null, 3]});
  await chain('lstm-open-stack', [4, 3], [first(L.lstm, {units: 3, returnSequences: true}), L.timeDistributed({layer: L.dense({units: 2})}),
                                          L.gru({units: 2}), L.dense({units: 2, activation: 'softmax'})], {known: [null, 3]});
}

async function recurrent() {
  const makes = {lstm: L.lstm, gru: L.gru, simple: L.simpleRNN};
  for (const [kind, make] of Object.entries(makes)) {
    await chain(`${kind}`, [4, 3], [first(make, {units: 2})]);
    await chain(`${kind}-sequences`, [4, 3], [first(make, {units: 3, returnSequences: true, recurrentActivation: 'sigmoid'})]);
    await chain(`${kind}-backwards`, [4, 3], [first(make, {units: 2, returnSequences: true, goBackwards: true, useBias: false})]);
    await chain(`${kind}-masked`, [4, 2], [first(L.masking), make({units: 2, returnSequences: true})],
                {feed: tf.tensor([[[0, 0], [1, 2], [0, 0], [0, 1]], [[1, 1], [2, -1], [0, 0], [0, 0]]])});
    await chain(`${kind}-masked-last`, [4], [first(L.embedding, {inputDim: 5, outputDim: 3, maskZero: true}), make({units: 2})],
                {feed: tf.tensor([[0, 1, 2, 0], [3, 4, 0, 0]])});
    const x = tf.input({shape: [3, 2], name: `${kind}-in`}), h = tf.input({shape: [4], name: `${kind}-h`});
    const states = kind === 'lstm' ? [h, tf.input({shape: [4], name: `${kind}-c`})] : [h];
    const y = make({units: 4, returnState: true, returnSequences: true}).apply(x, {initialState: states});
    await emit(`${kind}-states`, tf.model({inputs: [x, ...states], outputs: y}),
               [fill([2, 3, 2], -1, 1), ...states.map(() => fill([2, 4], -1, 1))]);
  }
  for (const mergeMode of ['concat', 'sum', 'mul', 'ave'])
    await chain(`bidirectional-${mergeMode}`, [4, 3],
                [first(L.bidirectional, {layer: L.lstm({units: 2, returnSequences: mergeMode !== 'sum'}), mergeMode})]);
  await chain('bidirectional-gru', [4, 3], [first(L.bidirectional, {layer: L.gru({units: 2}), mergeMode: 'concat'})]);
  await chain('rnn-cell', [4, 3], [first(L.rnn, {cell: L.gruCell({units: 2}), returnSequences: true})]);
  await chain('rnn-stacked', [4, 3], [first(L.rnn, {cell: [L.lstmCell({units: 2}), L.gruCell({units: 3}), L.simpleRNNCell({units: 2})]})]);
  await chain('lstm-dense', [4, 3], [first(L.lstm, {units: 3, returnSequences: true}), L.timeDistributed({layer: L.dense({units: 2})}),
                                     L.gru({units: 2}), L.dense({units: 2, activation: 'softmax'})]);
}

async function models() {
  // A shared layer, two inputs, two outputs of different layers.
  const a = tf.input({shape: [4], name: 'left'}), b = tf.input({shape: [4], name: 'right'});
  const shared = L.dense({units: 3, name: 'shared', activation: 'tanh'});
  const u = shared.apply(a), v = shared.apply(b);
  const sum = L.add({name: 'sum'}).apply([u, v]);
  await emit('shared-layer', tf.model({inputs: [a, b], outputs: [sum, v]}), [fill([2, 4], -1, 1), fill([2, 4], -1, 1)]);
  // A model within a model, called twice.
  const x = tf.input({shape: [5], name: 'inner-x'});
  const inner = tf.model({inputs: x, outputs: L.dense({units: 5, name: 'inner-d'}).apply(x), name: 'inner'});
  const y = tf.input({shape: [5], name: 'outer-x'});
  await emit('nested-twice', tf.model({inputs: y, outputs: L.reLU({name: 'outer-r'}).apply(inner.apply(inner.apply(y)))}), [fill([2, 5], -1, 1)]);
  const base = tf.sequential({name: 'base', layers: [L.conv2d({inputShape: [6, 6, 2], filters: 3, kernelSize: 3, name: 'base-c'}), L.flatten({name: 'base-f'})]});
  await emit('sequential-in-sequential', tf.sequential({layers: [base, L.dense({units: 2, name: 'head'})]}), [fill([1, 6, 6, 2], -1, 1)]);
  await emit('functional-in-sequential', tf.sequential({layers: [inner, L.dense({units: 2, name: 'head2'})]}), [fill([3, 5], -1, 1)]);
}

(async () => {
  for (const family of [activations, core, convolutions, pooling, normalization, images, merges, recurrent, models, volumes, convolutionalRecurrent, attention, sequences, masked])
    await family();
})();
