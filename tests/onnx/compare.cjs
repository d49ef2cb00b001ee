// compare.cjs LIST: runs ONNX files in onnxruntime and compares outputs with expected ones.
// A line of LIST: file.onnx uint8|float32 OUTPUT DIM,DIM,...: the input is file.onnx.in, the expected
// probabilities file.onnx.out, both raw. Where the OUTPUT is "logits", their softmax is compared.
// Prints "file.onnx <largest difference>" for each.
'use strict';
const fs = require('fs');
const ort = require('onnxruntime-web');
ort.env.wasm.numThreads = 1;
ort.env.logLevel = 'error';

function floats(path) {
    const bytes = fs.readFileSync(path);
    return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

function softmax(logits, n) {
    const out = Float64Array.from(logits);
    for (let first = 0; first < out.length; first += n) {
        const row = out.subarray(first, first + n), largest = Math.max(...row);
        const sum = row.reduce((all, z) => all + Math.exp(z - largest), 0);
        row.forEach((z, k) => { row[k] = Math.exp(z - largest) / sum; });
    }
    return out;
}

async function compare(file, type, output, dims) {
    const model = new Uint8Array(fs.readFileSync(file));
    const session = await ort.InferenceSession.create(model, {executionProviders: ['wasm']});
    const input = type === 'uint8' ? new Uint8Array(fs.readFileSync(file + '.in')) : floats(file + '.in');
    const results = await session.run({input: new ort.Tensor(type, input, dims)});
    const expected = floats(file + '.out'), {data, dims: shape} = results[output];
    const got = output === 'logits' ? softmax(data, shape[1]) : data;
    let largest = got.length === expected.length ? 0 : Infinity;
    for (let k = 0; k < got.length; k++) {
        const difference = Math.abs(got[k] - expected[k]);
        if (!(difference <= largest)) largest = difference;
    }
    console.log(file + ' ' + largest);
    if (session.release) await session.release();
}

(async () => {
    for (const line of fs.readFileSync(process.argv[2], 'utf8').trim().split('\n')) {
        const [file, type, output, dims] = line.split(' ');
        await compare(file, type, output, dims.split(',').map(Number));
    }
})().catch((error) => {
    console.error(String(error));
    process.exit(1);
});
