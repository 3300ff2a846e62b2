// Packed arrays of a document, unfolded: see `Packed` in packing.py.

import { t } from "../page/language.js";

const FAINTEST = 1e-7; // of the largest: what is smaller counts as zero on a log scale

/**
 * An array as `{shape, get(at), size, error(value)}`: `get` gives the value at a position counted with
 * the last axis running fastest, and `error` what a value may be off by. Numbers stay as packed;
 * values are looked up, so that an array of a million weights takes a million bytes.
 */
export async function unfold(packed) {
  const size = packed.shape.reduce((product, length) => product * length, 1);
  const width = packed.bits / 8;
  const bytes = size ? await inflate(packed.data) : new Uint8Array(0);
  if (bytes.length !== size * width) {
    throw new Error(t("check.bytes", { wanted: size * width, got: bytes.length }));
  }
  const stored = width === 1 ? bytes : joined(bytes, size, width);
  const numbers = packed.steps ? unrolled(stored, packed) : stored;
  const value = decoderOf(packed);
  // A table of all values is worth its while where there are more numbers than values.
  if (size < 2 ** packed.bits)
    return { shape: packed.shape, size, get: (at) => value(numbers[at]), error: errorOf(packed) };
  const table = Float64Array.from({ length: 2 ** packed.bits }, (_, number) => value(number));
  return { shape: packed.shape, size, get: (at) => table[numbers[at]], error: errorOf(packed) };
}

async function inflate(text) {
  const binary = atob(text);
  const deflated = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) deflated[at] = binary.charCodeAt(at);
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Bytes stand plane by plane, the highest of all numbers first.
function joined(bytes, size, width) {
  const numbers = width === 2 ? new Uint16Array(size) : new Uint32Array(size);
  for (let at = 0; at < size; at++) {
    let number = 0;
    for (let spot = at; spot < bytes.length; spot += size) number = (number << 8) | bytes[spot];
    numbers[at] = number;
  }
  return numbers;
}

// Steps from one number to the next along the axis before the last, rank by rank; the sign is the last bit.
function unrolled(steps, { shape, bits }) {
  const [N, K] = shape.slice(-2);
  const numbers = new steps.constructor(steps.length);
  const wrap = 2 ** bits;
  for (let start = 0; start < steps.length; start += N * K) {
    for (let rank = 0; rank < K; rank++) {
      let number = 0;
      for (let at = 0; at < N; at++) {
        const step = steps[start + rank * N + at];
        number = (number + (step % 2 ? -(step + 1) / 2 : step / 2) + wrap) % wrap;
        numbers[start + at * K + rank] = number;
      }
    }
  }
  return numbers;
}

function decoderOf({ bits, scale, low, high }) {
  const most = 2 ** bits - 1;
  if (scale === "linear") return (number) => low + (number * (high - low)) / most;
  const ratio = high / low;
  return (number) => (number === 0 ? 0 : low * ratio ** ((number - 1) / (most - 1)));
}

// Half a step: relative to the value on a log scale, where what is faintest counts as zero.
function errorOf({ bits, scale, low, high }) {
  if (scale === "linear") return () => (high - low) / (2 ** bits - 1) / 2;
  const share = (high / low) ** (0.5 / (2 ** bits - 2)) - 1;
  return (value) => (value === 0 ? FAINTEST * high : share * value);
}
