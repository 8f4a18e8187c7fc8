// SPDX-License-Identifier: Apache-2.0
// node gen_graphs.js > graphs.jsonl
//
// Makes small graph models, has TensorFlow.js run them, and writes for each a line that
// test_layers.c replays, as gen_layers.js does; "extra" is what model.json has beside its topology.
// Wants: npm install @tensorflow/tfjs@4.22.0
'use strict';
const tf = require('@tensorflow/tfjs');

// Numbers that are the same everywhere: a linear congruential generator.
let state = 7;
function uniform(low, high) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.fround(low + (high - low) * (state / 4294967296));
}
function fill(shape, low = -2, high = 2) {
  return tf.tensor(Array.from({length: shape.reduce((a, b) => a * b, 1)}, () => uniform(low, high)), shape);
}
const ints = (values, shape) => tf.tensor(values, shape, 'int32');
const bools = values => tf.tensor(values, undefined, 'bool');

// --- attributes, in the JSON of protobuf ---
const I = i => ({i: String(i)}), F = f => ({f}), B = b => ({b}), S = s => ({s: Buffer.from(s).toString('base64')});
const L = list => ({list: {i: list.map(String)}});
const T = type => ({type});
const types = {float32: 'DT_FLOAT', int32: 'DT_INT32', bool: 'DT_BOOL'};
const dims = shape => ({dim: shape.map(size => ({size: String(size)}))});
const base64 = array => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('base64');

// A model of placeholders `feeds`, constants `consts` and `nodes` [name, op, inputs, attributes].
// What it answers is what TensorFlow.js says, or `expect` where that lacks the operator's layout.
async function emit(id, {feeds = {}, consts = {}, nodes, outputs, extra = {}, resources = [], expect, dynamic}) {
  console.error(id);
  const list = [], known = shape => dynamic ? shape.map(() => -1) : shape;
  for (const [name, t] of Object.entries(feeds))
    list.push({name, op: 'Placeholder', attr: {dtype: T(types[t.dtype]), shape: {shape: dims(known(t.shape))}}});
  for (const name of resources)
    list.push({name, op: 'Placeholder', attr: {dtype: T('DT_RESOURCE'), shape: {shape: dims([])}}});
  const initializer = extra.modelInitializer ? extra.modelInitializer.node : [];
  for (const [name, t] of Object.entries(consts))
    if (!initializer.some(n => n.name === name))
      list.push({name, op: 'Const', attr: {dtype: T(types[t.dtype]), value: {tensor: {dtype: types[t.dtype], tensorShape: dims(t.shape)}}}});
  for (const [name, op, input, attr] of nodes) list.push({name, op, input: input ? input.split(',') : [], attr: attr || {}});
  const signature = {
    inputs: {...Object.fromEntries(Object.entries(feeds).map(([n, t]) => [n, {name: n + ':0', dtype: types[t.dtype], tensorShape: dims(known(t.shape))}])),
             ...((extra.signature || {}).inputs || {})},
    outputs: Object.fromEntries(outputs.map(n => [n, {name: n.includes(':') ? n : n + ':0'}])),
  };
  const weightSpecs = Object.entries(consts).map(([name, t]) => ({name, shape: t.shape, dtype: t.dtype}));
  const data = Buffer.concat(Object.values(consts).map(t => { const a = t.dataSync(); return Buffer.from(a.buffer, a.byteOffset, a.byteLength); }));
  const topology = {node: list, versions: {}};
  let answers = expect;
  if (!answers) {
    const model = await tf.loadGraphModel(tf.io.fromMemory({
      modelTopology: topology, weightSpecs, weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.length),
      ...extra, signature}));
    answers = await model.executeAsync({...feeds}, outputs);
  }
  answers = [].concat(answers);
  // Some kernels say int32 and hold floats.
  const bytes = t => t.dtype === 'int32' ? Int32Array.from(t.dataSync()) : t.dataSync();
  const describe = (name, t) => ({name, dtype: t.dtype, shape: t.shape, data: base64(bytes(t))});
  console.log(JSON.stringify({
    id, topology: {node: list}, extra: {...extra, signature}, weights: weightSpecs, data: data.toString('base64'),
    inputs: Object.entries(feeds).map(([n, t]) => describe(n, t)),
    outputs: answers.map((t, i) => describe(outputs[i], t)),
  }));
}

// One node `y` of operator `op` whose inputs are the feeds, then the constants.
const one = (id, op, feeds, consts, attr, rest = {}) =>
    emit(id, {feeds, consts, nodes: [['y', op, [...Object.keys(feeds), ...Object.keys(consts)].join(','), attr]],
              outputs: rest.outputs || ['y'], ...rest});

async function arithmetic() {
  const a = fill([2, 3]), b = fill([2, 3]);
  for (const op of ['Add', 'AddV2', 'Sub', 'RealDiv', 'Div', 'DivNoNan', 'Mul', 'Maximum', 'Minimum',
                    'SquaredDifference', 'Mod', 'FloorMod', 'Atan2', 'Equal', 'NotEqual', 'Greater', 'GreaterEqual', 'Less', 'LessEqual'])
    await one(`math-${op}`, op, {a, b}, {});
  // Of floats TensorFlow.js makes integers here, and TensorFlow does not.
  await one('math-FloorDiv', 'FloorDiv', {a: ints([7, -7, 7, -7]), b: ints([2, 2, -2, -2])}, {});
  await one('math-AddN', 'AddN', {a, b}, {c: fill([2, 3])});
  await one('math-Pow', 'Pow', {a: fill([5], 0.1, 3)}, {b: fill([5])});
  // TensorFlow.js 4.22 has the operator and looks for its inputs under other names.
  await one('math-BitwiseAnd', 'BitwiseAnd', {a: ints([0, 5, 6, -1, 12]), b: ints([3, 3, 12, 77, -8])}, {}, {},
            {expect: ints([0 & 3, 5 & 3, 6 & 12, -1 & 77, 12 & -8])});
  for (const op of ['LogicalAnd', 'LogicalOr'])
    await one(`math-${op}`, op, {}, {a: bools([0, 0, 1, 1]), b: bools([0, 1, 0, 1])});
  await one('math-LogicalNot', 'LogicalNot', {}, {a: bools([0, 1])});
  for (const op of ['Abs', 'Asin', 'Acos', 'Atan', 'Atanh', 'Ceil', 'Cos', 'Cosh', 'Elu', 'Exp', 'Floor', 'Neg', 'Relu', 'Relu6', 'Selu',
                    'Sigmoid', 'Sin', 'Sinh', 'Square', 'Tan', 'Tanh', 'Sign', 'Round', 'Expm1', 'Reciprocal', 'Softplus', 'Asinh',
                    'Erf', 'IsNan', 'IsFinite', 'IsInf'])
    await one(`math-${op}`, op, {x: fill([7], -0.9, 0.9)}, {});
  for (const op of ['Log', 'Sqrt', 'Rsqrt', 'Log1p'])
    await one(`math-${op}`, op, {x: fill([7], 0.1, 5)}, {});
  await one('math-Acosh', 'Acosh', {x: fill([5], 1.1, 5)}, {});
  await one('math-LeakyRelu', 'LeakyRelu', {x: a}, {}, {alpha: F(0.3)});
  await one('math-Prelu', 'Prelu', {x: a}, {alpha: fill([3])});
  await one('math-ClipByValue', 'ClipByValue', {x: a}, {low: tf.scalar(-0.5), high: tf.scalar(0.75)});
  await one('math-Select', 'Select', {}, {c: bools([1, 0]), a, b}, {}, {expect: tf.where(tf.tensor([[1, 1, 1], [0, 0, 0]], undefined, 'bool'), a, b)});
  await one('math-SelectV2', 'SelectV2', {}, {c: tf.tensor([[1], [0]], undefined, 'bool'), a, b});
}

async function reductions() {
  const x = fill([2, 3, 4]), axes = ints([0, -1]);
  for (const op of ['Max', 'Mean', 'Min', 'Sum', 'Prod', 'EuclideanNorm'])
    for (const keep of [false, true])
      await one(`reduce-${op}-${keep}`, op, {x}, {axes}, {keep_dims: B(keep)});
  for (const op of ['All', 'Any'])
    await one(`reduce-${op}`, op, {}, {x: tf.tensor([[1, 0], [1, 1]], undefined, 'bool'), axes: ints([1])}, {keep_dims: B(false)});
  for (const op of ['ArgMax', 'ArgMin']) await one(`reduce-${op}`, op, {x}, {axis: tf.scalar(1, 'int32')});
  for (const op of ['Cumsum', 'Cumprod'])
    for (const [exclusive, reverse] of [[false, true], [true, false]])
      await one(`reduce-${op}-${reverse}`, op, {x}, {axis: tf.scalar(1, 'int32')}, {exclusive: B(exclusive), reverse: B(reverse)});
  await one('reduce-Bincount', 'Bincount', {x: ints([1, 3, 1, 0])}, {size: tf.scalar(5, 'int32'), w: fill([4])});
  await one('reduce-DenseBincount', 'DenseBincount', {x: ints([1, 3, 1, 0, 4, 4], [2, 3])}, {size: tf.scalar(5, 'int32'), w: tf.tensor([], [0])},
            {binary_output: B(true)});
  await one('reduce-Softmax', 'Softmax', {x}, {});
  await one('reduce-LogSoftmax', 'LogSoftmax', {x}, {});
}

async function arrays() {
  const x = fill([2, 3, 4]);
  await one('array-ConcatV2', 'ConcatV2', {a: x, b: fill([2, 1, 4])}, {axis: tf.scalar(1, 'int32')});
  await emit('array-Concat', {feeds: {a: x, b: fill([2, 1, 4])}, consts: {axis: tf.scalar(1, 'int32')}, nodes: [['y', 'Concat', 'axis,a,b']], outputs: ['y']});
  await one('array-Gather', 'Gather', {x}, {i: ints([1, 0, 1])});
  await one('array-GatherV2', 'GatherV2', {x}, {i: ints([2, 0]), axis: tf.scalar(1, 'int32')}, {batch_dims: I(0)});
  await one('array-GatherNd', 'GatherNd', {x}, {i: ints([1, 2, 0, 0], [2, 2])});
  await one('array-ReverseV2', 'ReverseV2', {x}, {axes: ints([0, 2])});
  await one('array-Reverse', 'Reverse', {x}, {dims: bools([0, 1, 1])}, {}, {expect: tf.reverse(x, [1, 2])});
  await one('array-Slice', 'Slice', {x}, {begin: ints([0, 1, 1]), size: ints([-1, 2, 3])});
  await one('array-StridedSlice', 'StridedSlice', {x}, {begin: ints([1, 0, 3]), end: ints([2, 3, 0]), strides: ints([1, 2, -2])},
            {begin_mask: I(0), end_mask: I(0), ellipsis_mask: I(0), new_axis_mask: I(0), shrink_axis_mask: I(0)});
  await one('array-Pack', 'Pack', {a: x, b: fill([2, 3, 4])}, {}, {axis: I(-1)});
  await one('array-Unpack', 'Unpack', {x}, {}, {axis: I(1), num: I(3)}, {outputs: ['y', 'y:1', 'y:2']});
  await one('array-Tile', 'Tile', {x}, {m: ints([2, 1, 3])});
  await emit('array-Split', {feeds: {x}, consts: {axis: tf.scalar(2, 'int32')}, nodes: [['y', 'Split', 'axis,x', {num_split: I(2)}]], outputs: ['y', 'y:1']});
  await one('array-SplitV', 'SplitV', {x}, {s: ints([1, 3]), axis: tf.scalar(2, 'int32')}, {num_split: I(2)}, {outputs: ['y', 'y:1']});
  await one('array-ScatterNd', 'ScatterNd', {}, {i: ints([[4], [1], [4]]), u: fill([3, 2]), s: ints([6, 2])});
  await one('array-TensorScatterUpdate', 'TensorScatterUpdate', {x: fill([4, 2])}, {i: ints([[3], [0]]), u: fill([2, 2])});
  await one('array-SparseToDense', 'SparseToDense', {}, {i: ints([1, 4]), s: ints([6]), v: fill([2]), d: tf.scalar(0.5)});
  await one('array-Pad', 'Pad', {x}, {p: ints([0, 0, 1, 2, 3, 0], [3, 2])});
  await one('array-PadV2', 'PadV2', {x}, {p: ints([0, 0, 1, 2, 3, 0], [3, 2]), v: tf.scalar(7)});
  for (const mode of ['REFLECT', 'SYMMETRIC'])
    await one(`array-MirrorPad-${mode}`, 'MirrorPad', {x}, {p: ints([0, 0, 1, 2, 2, 0], [3, 2])}, {mode: S(mode)});
  await one('array-SpaceToBatchND', 'SpaceToBatchND', {x: fill([1, 3, 4, 2])}, {b: ints([2, 2]), p: ints([0, 1, 2, 0], [2, 2])});
  await one('array-BatchToSpaceND', 'BatchToSpaceND', {x: fill([4, 2, 3, 1])}, {b: ints([2, 2]), c: ints([0, 1, 1, 0], [2, 2])});
  await one('array-DepthToSpace', 'DepthToSpace', {x: fill([1, 2, 3, 8])}, {}, {block_size: I(2), data_format: S('NHWC')});
  await one('array-BroadcastTo', 'BroadcastTo', {x: fill([3, 1])}, {s: ints([2, 3, 4])});
  await one('array-BroadcastArgs', 'BroadcastArgs', {}, {a: ints([3, 1]), b: ints([2, 1, 4])});
  await one('array-ExpandDims', 'ExpandDims', {x}, {axis: tf.scalar(-2, 'int32')});
  await one('array-Squeeze', 'Squeeze', {x: fill([1, 3, 1])}, {}, {squeeze_dims: L([0])});
  await one('array-Reshape', 'Reshape', {x}, {s: ints([4, -1])});
  await one('array-Transpose', 'Transpose', {x}, {p: ints([2, 0, 1])});
  // The converter hands over tensors, and TensorFlow.js takes -1 for all only from a number.
  const band = fill([4, 5]);
  await one('array-MatrixBandPart', 'MatrixBandPart', {x: band}, {l: tf.scalar(1, 'int32'), u: tf.scalar(-1, 'int32')}, {},
            {expect: tf.linalg.bandPart(band, 1, -1)});
  await one('array-OneHot', 'OneHot', {x: ints([1, 0, 7, 2])}, {d: tf.scalar(3, 'int32'), on: tf.scalar(5), off: tf.scalar(-1)}, {axis: I(-1), T: T('DT_FLOAT')});
  await one('array-Fill', 'Fill', {}, {s: ints([2, 3]), v: tf.scalar(4)});
  await one('array-LinSpace', 'LinSpace', {}, {a: tf.scalar(1), b: tf.scalar(3), n: tf.scalar(5, 'int32')});
  await one('array-Range', 'Range', {}, {a: tf.scalar(3, 'int32'), b: tf.scalar(-4, 'int32'), d: tf.scalar(-2, 'int32')}, {Tidx: T('DT_INT32')});
  for (const op of ['Shape', 'Rank', 'Size', 'ZerosLike', 'OnesLike']) await one(`array-${op}`, op, {x}, {});
  await one('pick-TopKV2', 'TopKV2', {x}, {k: tf.scalar(2, 'int32')}, {sorted: B(true)}, {outputs: ['y', 'y:1']});
  for (const op of ['LowerBound', 'UpperBound'])
    await one(`pick-${op}`, op, {}, {s: tf.tensor([[1, 2, 2, 9]]), v: tf.tensor([[2, 0, 10]])});
  const boxes = tf.tensor([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 3, 1, 4], [0, 0, 0.9, 1]]), scores = tf.tensor([0.9, 0.75, 0.6, 0.8]);
  const limits = {n: tf.scalar(3, 'int32'), o: tf.scalar(0.5), s: tf.scalar(0.1)};
  await one('pick-NonMaxSuppressionV3', 'NonMaxSuppressionV3', {boxes, scores}, limits);
  await one('pick-NonMaxSuppressionV4', 'NonMaxSuppressionV4', {boxes, scores}, limits, {pad_to_max_output_size: B(true)}, {outputs: ['y', 'y:1']});
  await one('pick-NonMaxSuppressionV5', 'NonMaxSuppressionV5', {boxes, scores}, {...limits, sigma: tf.scalar(0.5)}, {}, {outputs: ['y', 'y:1']});
  await one('pick-Where', 'Where', {}, {c: tf.tensor([[1, 0], [1, 1]], undefined, 'bool')});
  await one('pick-ListDiff', 'ListDiff', {}, {a: ints([1, 2, 3, 4, 2]), b: ints([2, 4])}, {}, {outputs: ['y', 'y:1']});
  await one('pick-Unique', 'Unique', {}, {a: ints([4, 2, 4, 7, 2])}, {}, {outputs: ['y', 'y:1']});
  await one('pick-UniqueV2', 'UniqueV2', {}, {a: ints([1, 0, 1, 0, 2, 0], [3, 2]), axis: ints([0])}, {}, {outputs: ['y', 'y:1']});
}

async function windows() {
  const x = fill([1, 7, 6, 3]), w = fill([3, 2, 3, 4]), d = fill([2, 3, 3, 2]);
  const same = {strides: L([1, 2, 1, 1]), dilations: L([1, 1, 1, 1]), padding: S('SAME'), data_format: S('NHWC')};
  await one('conv-Conv2D', 'Conv2D', {x}, {w}, same);
  await one('conv-Conv2D-explicit', 'Conv2D', {x}, {w}, {...same, padding: S('EXPLICIT'), explicit_paddings: L([0, 0, 1, 0, 2, 1, 0, 0])});
  await one('conv-_FusedConv2D', '_FusedConv2D', {x}, {w, b: fill([4])}, {...same, fused_ops: {list: {s: [S('BiasAdd').s, S('Relu6').s]}}, num_args: I(1)});
  await one('conv-DepthwiseConv2d', 'DepthwiseConv2d', {x}, {d}, {...same, strides: L([1, 2, 2, 1])});
  await one('conv-Conv1D', 'Conv1D', {x: fill([1, 9, 3])}, {w: fill([3, 3, 2])}, {stride: I(2), padding: S('SAME'), data_format: S('NWC'), dilation: I(1)});
  const x3 = fill([1, 4, 5, 3, 2]);
  const cube = {strides: L([1, 2, 1, 1, 1]), padding: S('SAME'), data_format: S('NDHWC')};
  await one('conv-Conv3D', 'Conv3D', {x: x3}, {w: fill([2, 3, 2, 2, 3])}, {...cube, dilations: L([1, 1, 1, 1, 1])});
  for (const op of ['AvgPool3D', 'MaxPool3D']) await one(`conv-${op}`, op, {x: x3}, {}, {...cube, ksize: L([1, 2, 2, 3, 1])});
  const pool = {ksize: L([1, 3, 2, 1]), strides: L([1, 2, 2, 1]), padding: S('SAME'), data_format: S('NHWC')};
  for (const op of ['AvgPool', 'MaxPool']) await one(`conv-${op}`, op, {x}, {}, pool);
  await one('conv-MaxPoolWithArgmax', 'MaxPoolWithArgmax', {x}, {}, {...pool, padding: S('VALID'), include_batch_in_index: B(false)}, {outputs: ['y', 'y:1']});
  await one('conv-Conv2DBackpropInput', 'Conv2DBackpropInput', {}, {s: ints([1, 6, 8, 2]), w: fill([3, 3, 2, 3]), x: fill([1, 3, 4, 3])},
            {strides: L([1, 2, 2, 1]), padding: S('SAME'), data_format: S('NHWC')});
  await one('conv-Dilation2D', 'Dilation2D', {x}, {w: fill([2, 2, 3])}, {strides: L([1, 2, 1, 1]), rates: L([1, 1, 2, 1]), padding: S('SAME')});
  await one('conv-LRN', 'LRN', {x}, {}, {depth_radius: I(1), bias: F(1.5), alpha: F(0.3), beta: F(0.75)});
  await one('conv-FusedBatchNormV3', 'FusedBatchNormV3', {x}, {a: fill([3]), b: fill([3]), m: fill([3]), v: fill([3], 0.5, 2)}, {epsilon: F(0.01), is_training: B(false), data_format: S('NHWC')});
  await one('conv-ResizeBilinear', 'ResizeBilinear', {x}, {s: ints([4, 9])}, {align_corners: B(false), half_pixel_centers: B(true)});
  await one('conv-ResizeNearestNeighbor', 'ResizeNearestNeighbor', {x}, {s: ints([4, 9])}, {align_corners: B(true), half_pixel_centers: B(false)});
  await one('conv-CropAndResize', 'CropAndResize', {x}, {b: tf.tensor([[0.1, 0, 0.8, 1.2]]), i: ints([0]), s: ints([3, 4])}, {method: S('bilinear'), extrapolation_value: F(0.5)});
  await one('conv-ImageProjectiveTransformV3', 'ImageProjectiveTransformV3', {x},
            {t: tf.tensor([[1.1, 0.2, -0.5, 0.1, 0.9, 0.3, 0.01, 0]]), s: ints([4, 5]), f: tf.scalar(0.5)}, {interpolation: S('BILINEAR'), fill_mode: S('REFLECT')});
  await one('mat-MatMul', 'MatMul', {a: fill([3, 2])}, {b: fill([4, 3])}, {transpose_a: B(true), transpose_b: B(true)});
  await one('mat-_FusedMatMul', '_FusedMatMul', {a: fill([2, 3])}, {b: fill([3, 4]), c: fill([4])}, {fused_ops: {list: {s: [S('BiasAdd').s, S('Relu').s]}}, num_args: I(1)});
  await one('mat-BatchMatMulV2', 'BatchMatMulV2', {a: fill([2, 2, 3])}, {b: fill([2, 4, 3])}, {adj_x: B(false), adj_y: B(true)});
  await one('mat-Einsum', 'Einsum', {a: fill([2, 3, 4])}, {b: fill([4, 3, 5])}, {equation: S('bij,jik->bk'), N: I(2)});
}

// TensorFlow.js has no channels first here: the same thing with transposes around it says what is right.
// Sizes that only a request says: the placeholders know none of theirs.
async function dynamicEinsum() {
  for (const [equation, a, b] of [['abc,cde->abde', [2, 3, 4], [4, 2, 5]], ['aecd,abcd->acbe', [2, 5, 3, 4], [2, 6, 3, 4]], ['acbe,aecd->abcd', [2, 3, 6, 5], [2, 5, 3, 4]],
                                  ['abcd,cde->abe', [2, 6, 3, 4], [3, 4, 7]]])
    await one(`dynamic-einsum-${equation.replace(/[^a-z]+/g, '-')}`, 'Einsum', {a: fill(a), b: fill(b)}, {}, {equation: S(equation), N: I(2)}, {dynamic: true});
}

async function channelsFirst() {
  const first = t => tf.transpose(t, [0, 3, 1, 2]), x = fill([1, 7, 6, 3]), w = fill([3, 2, 3, 4]), d = fill([2, 3, 3, 2]);
  const format = {padding: S('SAME'), data_format: S('NCHW')}, window = {...format, strides: L([1, 1, 2, 1]), dilations: L([1, 1, 1, 1])};
  const conv = tf.conv2d(x, w, [2, 1], 'same');
  await one('first-Conv2D', 'Conv2D', {x: first(x)}, {w}, window, {expect: first(conv)});
  await one('first-Conv2D-explicit', 'Conv2D', {x: first(x)}, {w}, {...window, padding: S('EXPLICIT'), explicit_paddings: L([0, 0, 0, 0, 1, 0, 2, 1])},
            {expect: first(tf.conv2d(x, w, [2, 1], [[0, 0], [1, 0], [2, 1], [0, 0]]))});
  const bias = fill([4]);
  await one('first-_FusedConv2D', '_FusedConv2D', {x: first(x)}, {w, bias}, {...window, fused_ops: {list: {s: [S('BiasAdd').s, S('Relu').s]}}, num_args: I(1)},
            {expect: first(tf.relu(tf.add(conv, bias)))});
  await one('first-BiasAdd', 'BiasAdd', {x: first(conv)}, {bias}, {data_format: S('NCHW')}, {expect: first(tf.add(conv, bias))});
  await one('first-DepthwiseConv2dNative', 'DepthwiseConv2dNative', {x: first(x)}, {d}, {...window, strides: L([1, 1, 2, 2])},
            {expect: first(tf.depthwiseConv2d(x, d, 2, 'same'))});
  const pool = {...format, ksize: L([1, 1, 3, 2]), strides: L([1, 1, 2, 1])};
  await one('first-MaxPool', 'MaxPool', {x: first(x)}, {}, pool, {expect: first(tf.maxPool(x, [3, 2], [2, 1], 'same'))});
  await one('first-AvgPool', 'AvgPool', {x: first(x)}, {}, pool, {expect: first(tf.avgPool(x, [3, 2], [2, 1], 'same'))});
  const [a, b, m, v] = [fill([3]), fill([3]), fill([3]), fill([3], 0.5, 2)];
  await one('first-FusedBatchNormV3', 'FusedBatchNormV3', {x: first(x)}, {a, b, m, v}, {epsilon: F(0.01), is_training: B(false), data_format: S('NCHW')},
            {expect: first(tf.batchNorm(x, m, v, b, a, 0.01))});
  const blocks = fill([1, 2, 3, 8]);
  await one('first-DepthToSpace', 'DepthToSpace', {x: first(blocks)}, {}, {block_size: I(2), data_format: S('NCHW')}, {expect: first(tf.depthToSpace(blocks, 2))});
  const up = fill([3, 3, 2, 3]), small = fill([1, 3, 4, 3]);
  await one('first-Conv2DBackpropInput', 'Conv2DBackpropInput', {}, {s: ints([1, 2, 6, 8]), up, small: first(small)},
            {strides: L([1, 1, 2, 2]), padding: S('SAME'), data_format: S('NCHW')}, {expect: first(tf.conv2dTranspose(small, up, [1, 6, 8, 2], 2, 'same'))});
  const x3 = fill([1, 4, 5, 3, 2]), w3 = fill([2, 3, 2, 2, 3]), first3 = t => tf.transpose(t, [0, 4, 1, 2, 3]);
  await one('first-Conv3D', 'Conv3D', {x: first3(x3)}, {w3}, {strides: L([1, 1, 2, 1, 1]), dilations: L([1, 1, 1, 1, 1]), padding: S('SAME'), data_format: S('NCDHW')},
            {expect: first3(tf.conv3d(x3, w3, [2, 1, 1], 'same'))});
}

async function spectral() {
  const length = n => ints([n]);
  const parts = {a: fill([2, 6]), b: fill([2, 6])};
  const both = (id, nodes, feeds = parts, consts = {}) =>
      emit(id, {feeds, consts, nodes: [['c', 'Complex', 'a,b'], ...nodes, ['re', 'Real', nodes[nodes.length - 1][0]], ['im', 'Imag', nodes[nodes.length - 1][0]]], outputs: ['re', 'im']});
  await both('spectral-FFT', [['f', 'FFT', 'c']]);
  await both('spectral-IFFT', [['f', 'IFFT', 'c']]);
  await both('spectral-FFT-prime', [['f', 'FFT', 'c']], {a: fill([7]), b: fill([7])});
  await both('spectral-moved', [['r', 'Reshape', 'c,s'], ['f', 'FFT', 'r']], parts, {s: ints([3, 4])});
  await emit('spectral-ComplexAbs', {feeds: parts, nodes: [['c', 'Complex', 'a,b'], ['y', 'ComplexAbs', 'c']], outputs: ['y']});
  for (const n of [8, 9])
    await emit(`spectral-RFFT-${n}`, {feeds: {x: fill([2, 3, n])}, consts: {n: length(n)}, nodes: [['f', 'RFFT', 'x,n'], ['re', 'Real', 'f'], ['im', 'Imag', 'f']], outputs: ['re', 'im']});
  // fft_length, which TensorFlow.js passes over: its own rfft() with a length has the answer.
  for (const n of [5, 12]) {
    const x = fill([2, 8]), y = tf.spectral.rfft(x, n);
    await emit(`spectral-RFFT-8-as-${n}`, {feeds: {x}, consts: {n: length(n)}, nodes: [['f', 'RFFT', 'x,n'], ['re', 'Real', 'f'], ['im', 'Imag', 'f']], outputs: ['re', 'im'],
                                           expect: [tf.real(y), tf.imag(y)]});
  }
  await emit('spectral-IRFFT', {feeds: {a: fill([2, 5]), b: tf.mul(fill([2, 5]), tf.tensor([[0, 1, 1, 1, 0]]))}, consts: {n: length(8)}, nodes: [['c', 'Complex', 'a,b'], ['y', 'IRFFT', 'c,n']], outputs: ['y']});
  // There and back, an odd length.
  const odd = fill([2, 7]);
  await emit('spectral-back', {feeds: {x: odd}, consts: {n: length(7)}, nodes: [['f', 'RFFT', 'x,n'], ['y', 'IRFFT', 'f,n']], outputs: ['y'], expect: odd});
  const product = (a, b, c, d) => [tf.sub(tf.mul(a, c), tf.mul(b, d)), tf.add(tf.mul(a, d), tf.mul(b, c))];
  const [a, b, c, d] = [fill([3]), fill([3]), fill([3]), fill([3])];
  await emit('spectral-Mul', {feeds: {a, b, c, d}, nodes: [['p', 'Complex', 'a,b'], ['q', 'Complex', 'c,d'], ['m', 'Mul', 'p,q'], ['re', 'Real', 'm'], ['im', 'Imag', 'm']],
                              outputs: ['re', 'im'], expect: product(a, b, c, d)});
}

async function tables() {
  const key = {key_dtype: T('DT_INT32'), value_dtype: T('DT_FLOAT'), shared_name: S('t')};
  const consts = {keys: ints([30, -2, 7, 30]), values: tf.tensor([1.5, 2.5, 3.5, 4.5]), none: tf.scalar(-1)};
  const node = (name, op, input, attr = {}) => ({name, op, input: input ? input.split(',') : [], attr});
  const fill_ = op => [node('table', 'HashTableV2', '', key), node('keys', 'Const', '', {dtype: T('DT_INT32')}), node('values', 'Const', '', {dtype: T('DT_FLOAT')}),
                       node('fill', op, 'table,keys,values', {Tin: T('DT_INT32'), Tout: T('DT_FLOAT')})];
  const asked = ints([7, 8, 30, -2, -3, 31]);
  for (const op of ['LookupTableImportV2', 'InitializeTableV2'])
    await emit(`table-${op}`, {feeds: {x: asked}, consts, nodes: [['table', 'HashTableV2', '', key], ['y', 'LookupTableFindV2', 'table,x,none'], ['n', 'LookupTableSizeV2', 'table']],
                               outputs: ['y', 'n'], extra: {modelInitializer: {node: fill_(op)}, initializerSignature: {outputs: {fill: {name: 'fill:0', resourceId: 5}}}}});
  // The table as an input that the initializer provides.
  await emit('table-resource', {feeds: {x: asked}, resources: ['handle'], consts, nodes: [['y', 'LookupTableFindV2', 'handle,x,none']], outputs: ['y'],
                                extra: {modelInitializer: {node: fill_('LookupTableImportV2')}, signature: {inputs: {handle: {name: 'handle:0', dtype: 'DT_RESOURCE', tensorShape: {}, resourceId: 9}}},
                                        initializerSignature: {outputs: {fill: {name: 'fill:0', dtype: 'DT_RESOURCE', tensorShape: {}, resourceId: 9}}}}});
  const words = {...key, key_dtype: T('DT_FLOAT'), value_dtype: T('DT_INT32')};
  await emit('table-float', {feeds: {x: tf.tensor([0.5, 0.25, 9])}, consts: {keys: tf.tensor([0.25, 0.5]), values: ints([4, 5]), none: tf.scalar(0, 'int32')},
                             nodes: [['table', 'HashTable', '', words], ['y', 'LookupTableFind', 'table,x,none']], outputs: ['y'],
                             extra: {modelInitializer: {node: [node('table', 'HashTable', '', words), node('keys', 'Const', '', {dtype: T('DT_FLOAT')}), node('values', 'Const', '', {dtype: T('DT_INT32')}),
                                                               node('fill', 'LookupTableImport', 'table,keys,values', {Tin: T('DT_FLOAT'), Tout: T('DT_INT32')})]},
                                     initializerSignature: {outputs: {fill: {name: 'fill:0', resourceId: 5}}}}});
}

// Sparse tensors as three plain ones: indices, values, shape.
async function sparse() {
  const i = ints([[0, 0], [1, 0], [1, 3], [4, 2], [4, 5]]);
  for (const [name, shape] of [['same-rank', [10, -1]], ['more-axes', [1, 5, 2, 3]], ['one-axis', [-1]]])
    await one(`sparse-Reshape-${name}`, 'SparseReshape', {i}, {s: ints([5, 6]), n: ints(shape)}, {}, {outputs: ['y', 'y:1']});
  const filled = {outputs: ['y', 'y:1', 'y:2', 'y:3']};
  await one('sparse-FillEmptyRows', 'SparseFillEmptyRows', {i: ints([[3, 1], [0, 2], [3, 0], [0, 1]]), v: fill([4])},
            {s: ints([6, 3]), d: tf.scalar(-1)}, {}, filled);
  await one('sparse-FillEmptyRows-none-empty', 'SparseFillEmptyRows', {i: ints([[1, 2], [0, 0]]), v: ints([7, 8])},
            {s: ints([2, 3]), d: tf.scalar(5, 'int32')}, {}, filled);
  for (const op of ['SparseSegmentSum', 'SparseSegmentMean']) {
    await one(`sparse-${op}`, op, {x: fill([6, 3])}, {i: ints([5, 0, 2, 2, 1]), s: ints([0, 0, 1, 3, 3])});
    await one(`sparse-${op}-volume`, op, {x: fill([4, 2, 2])}, {i: ints([3, 3, 0]), s: ints([0, 0, 0])});
    await one(`sparse-${op}-list`, op, {x: fill([5])}, {i: ints([4, 1]), s: ints([1, 2])});
  }
}

// Ragged tensors: values, and where each row begins; the last split is where the last row ends.
// TensorFlow.js 4.22 has the kernels and does not find them for a graph.
async function ragged() {
  const range = (name, starts, limits, deltas) => {
    const {rtNestedSplits, rtDenseValues} = tf.raggedRange(starts, limits, deltas);
    return one(`ragged-Range-${name}`, 'RaggedRange', {}, {starts, limits, deltas}, {}, {outputs: ['y', 'y:1'], expect: [rtNestedSplits, rtDenseValues]});
  };
  const scalar = x => tf.scalar(x, 'int32');
  await range('scalars', scalar(0), scalar(5), scalar(2));
  await range('limits', scalar(0), ints([3, 0, 2]), scalar(1));
  await range('downwards', ints([0, 5, 4]), ints([5, 0, 4]), scalar(-2));
  await range('floats', tf.tensor([0, 5, 8, 5]), tf.tensor([8, 7, 8, 1]), tf.tensor([2, 0.75, 1, -1]));
  const splits = ints([0, 3, 3, 7, 9]), dense = fill([9]);
  const gather = (name, feeds, consts, count) => {
    const params = Object.values(feeds), {outputNestedSplits, outputDenseValues} =
        tf.raggedGather(params.slice(0, -1), params[params.length - 1], consts.i, count);
    return one(`ragged-Gather-${name}`, 'RaggedGather', feeds, consts, {OUTPUT_RAGGED_RANK: I(count)},
               {outputs: ['y', 'y:1', 'y:2', 'y:3'].slice(0, count + 1), expect: [...outputNestedSplits, outputDenseValues]});
  };
  await gather('row', {splits, dense}, {i: scalar(2)}, 0);
  await gather('rows', {splits, dense}, {i: ints([2, 1, 0, 3, 3])}, 1);
  await gather('matrix', {splits, dense}, {i: ints([[2, 1, 0], [3, 3, 0]])}, 2);
  await gather('two-axes', {outer: ints([0, 1, 3, 3]), inner: ints([0, 0, 3, 4]), dense: fill([4, 2])}, {i: ints([2, 1, 0, 2])}, 2);
  await gather('one-of-two-axes', {outer: ints([0, 1, 3, 3]), inner: ints([0, 0, 3, 4]), dense: fill([4, 2])}, {i: scalar(1)}, 1);
  const types = list => ({row_partition_types: {list: {s: list.map(x => Buffer.from(x).toString('base64'))}}});
  const toTensor = (name, shape, values, partitions, list) =>
      one(`ragged-ToTensor-${name}`, 'RaggedTensorToTensor', {},
          {shape, values, none: tf.scalar(1.5), ...Object.fromEntries(partitions.map((t, i) => ['p' + i, t]))}, types(list),
          {expect: tf.raggedTensorToTensor(shape, values, tf.scalar(1.5), partitions, list)});
  await toTensor('open', ints([-1, -1]), dense, [splits], ['ROW_SPLITS']);
  await toTensor('cut', ints([3, 2]), dense, [splits], ['ROW_SPLITS']);
  await toTensor('padded', ints([6, 5]), dense, [splits], ['ROW_SPLITS']);
  await toTensor('pairs', ints([-1, 5, 2]), fill([9, 2]), [scalar(4), ints([0, 0, 0, 2, 2, 2, 2, 3, 3])], ['FIRST_DIM_SIZE', 'VALUE_ROWIDS']);
  await toTensor('two-axes', ints([-1, -1, -1]), fill([9]), [ints([0, 1, 3, 3, 5, 6]), ints([0, 0, 2, 3, 5, 8, 9])], ['ROW_SPLITS', 'ROW_SPLITS']);
  await toTensor('row-ids', ints([4, 1, -1]), fill([9]), [scalar(5), ints([0, 1, 1, 3, 3, 4]), ints([1, 1, 2, 3, 3, 4, 4, 4, 5])],
                 ['FIRST_DIM_SIZE', 'VALUE_ROWIDS', 'VALUE_ROWIDS']);
  await toTensor('no-values', ints([-1, -1]), tf.tensor([], [0]), [ints([0, 0, 0])], ['ROW_SPLITS']);
}

(async () => {
  for (const family of [arithmetic, reductions, arrays, windows, dynamicEinsum, channelsFirst, spectral, tables, sparse, ragged])
    await family();
})();
